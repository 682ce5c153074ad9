"""Calls are bounded, not rows: a row that waits for its next call does not hold up another one."""

import asyncio
from threading import Condition
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig, RunnableLambda

from langchain_groundedness import Claim, ClaimVerdict, VerificationTask
from langchain_groundedness.evals import FaithfulnessEvaluator
from langchain_groundedness.types import ExtractionTask

ROWS, AT_ONCE = 6, 2


class Calls:
    """Notes calls in the order in which they begin, and how many are under way at most."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.most = self._inside = 0
        self._changed = Condition()

    def extract(self, task: ExtractionTask) -> list[Claim]:
        self._note("extract", together=AT_ONCE)
        return [Claim(id="1", text=task.answer)]

    async def aextract(self, task: ExtractionTask) -> list[Claim]:
        await self._anote("extract")
        return [Claim(id="1", text=task.answer)]

    def verify(self, task: VerificationTask) -> list[ClaimVerdict]:
        self._note("verify", together=1)
        return verdicts(task)

    async def averify(self, task: VerificationTask) -> list[ClaimVerdict]:
        await self._anote("verify")
        return verdicts(task)

    def _note(self, name: str, *, together: int) -> None:
        """Wait until so many calls of this kind have begun: the next ones are then in line."""
        with self._changed:
            self.begun.append(name)
            self._inside += 1
            self.most = max(self.most, self._inside)
            self._changed.notify_all()
            assert self._changed.wait_for(lambda: self.begun.count(name) >= together, timeout=300)
            self._inside -= 1

    async def _anote(self, name: str) -> None:
        self.begun.append(name)
        self._inside += 1
        self.most = max(self.most, self._inside)
        await asyncio.sleep(0)
        self._inside -= 1


def verdicts(task: VerificationTask) -> list[ClaimVerdict]:
    return [ClaimVerdict(claim=c, verdict="unverifiable", explanation="") for c in task.claims]


@pytest.fixture
def calls() -> Calls:
    return Calls()


@pytest.fixture
def evaluator(calls: Calls) -> FaithfulnessEvaluator:
    return FaithfulnessEvaluator(
        extractor=RunnableLambda(calls.extract, calls.aextract),
        verifier=RunnableLambda(calls.verify, calls.averify),
    )


COLUMNS: dict[str, Any] = {
    "questions": ["?"] * ROWS,
    "contexts": [["Rome is the capital of Italy."]] * ROWS,
    "predicted_answers": ["Rome is large."] * ROWS,
}
CONFIG = RunnableConfig(max_concurrency=AT_ONCE)


def test_in_threads_only_so_many_calls_are_under_way(
    evaluator: FaithfulnessEvaluator, calls: Calls
) -> None:
    result = evaluator.run(**COLUMNS, config=CONFIG)
    assert result.individual_scores == [0.0] * ROWS
    assert calls.most == AT_ONCE
    assert sorted(calls.begun) == ["extract"] * ROWS + ["verify"] * ROWS


async def test_on_the_event_loop_rows_that_wait_go_before_the_second_call_of_others(
    evaluator: FaithfulnessEvaluator, calls: Calls
) -> None:
    result = await evaluator.arun(**COLUMNS, config=CONFIG)
    assert result.individual_scores == [0.0] * ROWS
    assert calls.most == AT_ONCE
    assert calls.begun[: 2 * AT_ONCE] == ["extract"] * 2 * AT_ONCE
    assert "verify" in calls.begun[: 3 * AT_ONCE]
