"""Answers of thousands of claims neither take the event loop for long, nor ever more per claim."""

import asyncio
import threading
from time import process_time
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda

from langchain_groundedness import LLMClaimExtractor
from langchain_groundedness.claims.statements import sentence_claims
from langchain_groundedness.evals import EvaluationRow, Evaluator, Flow, ModelCall, RowScore
from langchain_groundedness.testing import ScriptedChatModel
from langchain_groundedness.types import Citation, Claim, ClaimVerdict, VerificationTask
from langchain_groundedness.verification.scoring import reconcile

SENTENCE = "The reading of station {} was {} millimetres on the first day of the month."


def answered(count: int) -> tuple[VerificationTask, list[ClaimVerdict]]:
    texts = [SENTENCE.format(number, 7 * number) for number in range(count)]
    said = tuple(Claim(id=str(number), text=text) for number, text in enumerate(texts))
    documents = (Document(" ".join(texts)),)
    quote = (Citation.from_document(documents, 0, 0, 70),)
    verdicts = [ClaimVerdict(claim=each, verdict="supported", citations=quote) for each in said]
    return VerificationTask(claims=said, documents=documents), verdicts


def seconds_to_reconcile(count: int) -> float:
    task, verdicts = answered(count)
    begun = process_time()
    for _ in range(5):
        reconcile(task, verdicts)
    return process_time() - begun


def test_matching_twice_the_verdicts_takes_about_twice_the_time() -> None:
    assert any(seconds_to_reconcile(2000) < 3.5 * seconds_to_reconcile(1000) for _ in range(4))


def test_verdicts_with_nothing_to_change_are_not_copied() -> None:
    task, verdicts = answered(3)
    assert all(one is other for one, other in zip(reconcile(task, verdicts), verdicts, strict=True))


@pytest.mark.parametrize("sentences", [2, 200])
async def test_the_sentences_of_an_answer_are_found_off_the_event_loop(
    sentences: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found_in = []

    def noted(*given: Any, **options: Any) -> list[Claim]:
        found_in.append(threading.current_thread() is not threading.main_thread())
        return sentence_claims(*given, **options)

    monkeypatch.setattr("langchain_groundedness.claims.extractors.sentence_claims", noted)
    answer = " ".join(SENTENCE.format(n, n) for n in range(sentences))
    found = await LLMClaimExtractor(model=ScriptedChatModel(replies=["none"])).ainvoke(answer)
    assert len(found) == sentences
    assert found_in == [True]


class Asking(Evaluator):
    """Asks twice, and fails the second time."""

    needs = ("answer",)
    key: str = "asking"
    handles: bool

    def _score(self, row: EvaluationRow) -> Flow[RowScore]:
        first = yield ModelCall(RunnableLambda(lambda text: text + "!"), "one")
        try:
            yield ModelCall(RunnableLambda(lambda _: 1 // 0), "two")
        except ZeroDivisionError:
            if not self.handles:
                raise KeyError from None
        return self._scored(1.0, comment=f"{first} failed")


@pytest.mark.parametrize("handles", [True, False])
@pytest.mark.parametrize("length", [1, 1_000_000])
def test_an_evaluator_scores_alike_wherever_it_computes(length: int, *, handles: bool) -> None:
    evaluator, row = Asking(handles=handles), {"answer": "x" * length}
    score = evaluator.invoke(row)
    assert asyncio.run(evaluator.ainvoke(row)) == score
    assert score.status == ("scored" if handles else "failed")
    assert (score.comment == "one! failed") == handles
