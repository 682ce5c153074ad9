from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.tracers.context import collect_runs
from typing_extensions import override

from langchain_groundedness.types import Claim, ClaimVerdict, VerificationTask
from langchain_groundedness.verification.base import FinalVerdicts, PooledVerifier, VerdictSteps

TASK = VerificationTask(
    claims=(Claim(id="a", text="A."), Claim(id="b", text="B."), Claim(id="c", text="C.")),
    documents=(Document(page_content="A."),),
)


class Asking(PooledVerifier):
    """Asks what to say about each claim, and forgets claims it is told nothing about."""

    replies: dict[str, Any]

    @override
    def _verdict_steps(self, tasks: Sequence[VerificationTask]) -> VerdictSteps:
        for place, task in enumerate(tasks):
            for claim in task.claims:
                explanation = yield claim.id
                if explanation is not None:
                    verdict = ClaimVerdict(
                        claim=claim, verdict="unverifiable", explanation=explanation
                    )
                    yield FinalVerdicts(place, [verdict])

    @override
    def _ask(self, request: str, configs: Sequence[RunnableConfig]) -> Any:
        reply = self.replies.get(request)
        if isinstance(reply, BaseException):
            raise reply
        return reply

    @override
    async def _aask(self, request: str, configs: Sequence[RunnableConfig]) -> Any:
        return self._ask(request, configs)


def verdict_lines(verdicts: list[ClaimVerdict]) -> list[tuple[str, str, str]]:
    return [(v.claim.id, v.verdict, v.reason or v.explanation) for v in verdicts]


MISSING = "the verifier gave no verdict"


async def test_a_claim_without_a_verdict_is_unchecked_and_comes_last_in_a_stream() -> None:
    verifier = Asking(replies={"b": "fine", "c": "good"})
    expected = [
        ("a", "unchecked", MISSING),
        ("b", "unverifiable", "fine"),
        ("c", "unverifiable", "good"),
    ]
    assert verdict_lines(verifier.invoke(TASK)) == expected
    assert verdict_lines(await verifier.ainvoke(TASK)) == expected
    streamed = [verdict_lines(chunk) for chunk in verifier.stream(TASK)]
    assert streamed == [expected[1:2], expected[2:], expected[:1]]
    assert [verdict_lines(chunk) async for chunk in verifier.astream(TASK)] == streamed


async def test_an_error_that_the_logic_does_not_handle_is_the_callers() -> None:
    verifier = Asking(replies={"b": KeyError("b")})
    with pytest.raises(KeyError):
        verifier.invoke(TASK)
    with pytest.raises(KeyError):
        await verifier.ainvoke(TASK)
    outputs: list[Any] = list(verifier.batch([TASK, TASK], return_exceptions=True))
    assert [type(output) for output in outputs] == [KeyError, KeyError]


@pytest.mark.parametrize("return_exceptions", [True, False])
def test_an_interrupt_from_the_keyboard_is_never_returned_as_a_result(
    return_exceptions: bool,  # noqa: FBT001  (pytest passes it by name)
) -> None:
    verifier = Asking(replies={"a": KeyboardInterrupt()})
    with pytest.raises(KeyboardInterrupt):
        verifier.batch([TASK], return_exceptions=return_exceptions)


def test_it_composes_and_streams_through_a_sequence() -> None:
    verifier = Asking(replies={"a": "one", "b": "two", "c": "three"})
    chain = RunnableLambda(lambda text: TASK if text else None) | verifier
    assert [verdict_lines(chunk)[0][0] for chunk in chain.stream("go")] == ["a", "b", "c"]
    assert verdict_lines(chain.invoke("go")) == verdict_lines(verifier.invoke(TASK))


def test_every_task_of_a_batch_is_a_run_of_its_own() -> None:
    verifier = Asking(replies={}).with_config(run_name="check")
    with collect_runs() as runs:
        verifier.batch([TASK, TASK])
        list(verifier.stream(TASK))
    assert [run.name for run in runs.traced_runs] == ["check"] * 3
    assert all(len(run.outputs["output"]) == 3 for run in runs.traced_runs if run.outputs)
