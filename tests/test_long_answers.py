"""Answers of thousands of claims neither take the event loop for long, nor ever more per claim."""

import asyncio
import threading
from time import process_time
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda

from langchain_groundedness._runtime.flow import Flow, ModelCall, adrive, drive
from langchain_groundedness.claims import LLMClaimExtractor
from langchain_groundedness.claims.statements import sentence_claims
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


@pytest.mark.parametrize(("sentences", "aside"), [(2, False), (200, True)])
async def test_the_sentences_of_a_long_answer_are_found_off_the_event_loop(
    sentences: int, *, aside: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    found_in = []

    def noted(*given: Any, **options: Any) -> list[Claim]:
        found_in.append(threading.current_thread() is not threading.main_thread())
        return sentence_claims(*given, **options)

    monkeypatch.setattr("langchain_groundedness.claims.extractors.sentence_claims", noted)
    answer = " ".join(SENTENCE.format(n, n) for n in range(sentences))
    found = await LLMClaimExtractor(model=ScriptedChatModel(replies=["none"])).ainvoke(answer)
    assert len(found) == sentences
    assert found_in == [aside]


def asking() -> Flow[str]:
    """Ask three times; the second call fails."""
    first = yield ModelCall(RunnableLambda(lambda text: text + "!"), "one")
    try:
        yield ModelCall(RunnableLambda(lambda _: 1 // 0), "two")
    except ZeroDivisionError:
        return f"{first} failed"
    return "not reached"


@pytest.mark.parametrize("size", [0, 1_000_000])
def test_a_flow_gives_the_same_wherever_it_computes(size: int) -> None:
    assert asyncio.run(adrive(asking(), {}, size=size)) == drive(asking(), {}) == "one! failed"


def failing() -> Flow[str]:
    yield ModelCall(RunnableLambda(lambda text: text), "one")
    raise KeyError


@pytest.mark.parametrize("size", [0, 1_000_000])
def test_an_error_of_a_flow_is_raised_wherever_it_computes(size: int) -> None:
    with pytest.raises(KeyError):
        asyncio.run(adrive(failing(), {}, size=size))
    with pytest.raises(KeyError):
        drive(failing(), {})
