import asyncio
import math
import threading
from typing import Any

import pytest
from langchain_core.cross_encoders import BaseCrossEncoder
from langchain_core.documents import Document
from langchain_core.load import dumpd

from langchain_groundedness import CrossEncoderVerifier
from langchain_groundedness.exceptions import ConfigurationError
from langchain_groundedness.types import Claim, ClaimVerdict, VerificationTask

DOCUMENTS = (
    Document(page_content="Rome is the capital. It is old.", id="rome", metadata={"page": 1}),
    Document(page_content="Oslo is the capital of Norway."),
)


class Scripted(BaseCrossEncoder):
    """Scores a pair by the window in it, and keeps what it was asked."""

    def __init__(self, scores: dict[str, Any] | Exception | None = None, other: Any = 0.0) -> None:
        self.scores = scores
        self.other = other
        self.calls: list[list[tuple[str, str]]] = []
        self.threads: set[int] = set()

    def score(self, text_pairs: list[tuple[str, str]]) -> list[float]:
        self.calls.append(text_pairs)
        self.threads.add(threading.get_ident())
        if isinstance(self.scores, Exception):
            raise self.scores
        known = self.scores or {}
        return [
            next((known[t] for t in (f"{a}|{b}", b, a) if t in known), self.other)
            for a, b in text_pairs
        ]


def task(*claims: str, documents: tuple[Document, ...] = DOCUMENTS) -> VerificationTask:
    texts = claims or ("The capital is Rome.",)
    return VerificationTask(
        claims=tuple(Claim(id=str(place), text=text) for place, text in enumerate(texts)),
        documents=documents,
    )


def check(encoder: BaseCrossEncoder, **options: Any) -> ClaimVerdict:
    options = {"window_sentences": 1, **options}
    return CrossEncoderVerifier(cross_encoder=encoder, **options).invoke(task())[0]


def test_the_best_window_at_the_threshold_supports_and_is_quoted() -> None:
    encoder = Scripted({"Rome is the capital.": 0.5, "Oslo is the capital of Norway.": 0.4})
    verdict = check(encoder)
    assert (verdict.verdict, verdict.support_probability) == ("supported", 0.5)
    (citation,) = verdict.citations
    assert (citation.quote, citation.document_id) == ("Rome is the capital.", "rome")
    assert citation.metadata == {"page": 1}
    assert verdict.verifier == "CrossEncoderVerifier"


def test_below_the_threshold_a_claim_is_unverifiable_with_the_best_probability() -> None:
    verdict = check(Scripted({"It is old.": 0.49}))
    assert (verdict.verdict, verdict.support_probability) == ("unverifiable", 0.49)
    assert "0.49" in verdict.explanation


def test_a_window_that_shares_no_content_word_does_not_count() -> None:
    verdict = check(Scripted({"It is old.": 0.99}))
    assert (verdict.verdict, verdict.support_probability) == ("unverifiable", None)
    assert "no content word" in verdict.explanation
    verdict = check(Scripted({"It is old.": 0.99, "Oslo is the capital of Norway.": 0.6}))
    assert verdict.citations[0].quote == "Oslo is the capital of Norway."


def test_logits_become_probabilities() -> None:
    verdict = check(Scripted({"Rome is the capital.": 1.0}, other=-800.0), scores="logit")
    assert verdict.verdict == "supported"
    assert verdict.support_probability == pytest.approx(1 / (1 + math.exp(-1)))


def test_a_relevance_is_compared_and_never_called_a_probability() -> None:
    encoder = Scripted({"Rome is the capital.": 7.5}, other=-3.0)
    supported = check(encoder, scores="relevance", threshold=7.0)
    assert (supported.verdict, supported.support_probability) == ("supported", None)
    other = check(encoder, scores="relevance", threshold=8.0)
    assert (other.verdict, other.support_probability) == ("unverifiable", None)


CLASSES = ("contradicted", "supported", "unverifiable")


@pytest.mark.parametrize(
    ("rows", "verdict", "conflicting", "quotes"),
    [
        ({"Rome is the capital.": [0.1, 0.8, 0.1]}, "supported", False, 1),
        ({"Rome is the capital.": [0.7, 0.2, 0.1]}, "contradicted", False, 1),
        ({"Rome is the capital.": [0.3, 0.3, 0.4]}, "unverifiable", False, 0),
        (
            {
                "Rome is the capital.": [0.1, 0.8, 0.1],
                "Oslo is the capital of Norway.": [0.9, 0.0, 0.1],
            },
            "supported",
            True,
            2,
        ),
    ],
)
def test_a_model_of_three_classes_tells_contradictions(
    rows: dict[str, list[float]],
    verdict: str,
    conflicting: bool,  # noqa: FBT001  (pytest passes it by name)
    quotes: int,
) -> None:
    encoder = Scripted(rows, other=[0.0, 0.0, 1.0])
    found = check(encoder, classes=CLASSES)
    assert (found.verdict, found.conflicting) == (verdict, conflicting)
    assert len(found.citations) == quotes
    assert found.support_probability == max(row[1] for row in rows.values())


def test_rows_of_logits_go_through_the_softmax() -> None:
    encoder = Scripted({"Rome is the capital.": [2.0, 0.0, 0.0]}, other=[-9.0, -9.0, 9.0])
    found = check(encoder, classes=CLASSES, scores="logit")
    assert found.verdict == "contradicted"
    assert found.support_probability == pytest.approx(1 / (math.exp(2) + 2))


@pytest.mark.parametrize(
    ("options", "first"),
    [
        ({}, "claim"),
        ({"classes": CLASSES}, "evidence"),
        ({"evidence_first": True}, "evidence"),
        ({"classes": CLASSES, "evidence_first": False}, "claim"),
    ],
)
def test_the_order_of_a_pair_suits_the_model(options: dict[str, Any], first: str) -> None:
    encoder = Scripted(other=[0.0, 0.0, 1.0] if "classes" in options else 0.0)
    verifier = CrossEncoderVerifier(cross_encoder=encoder, **options)
    verifier.invoke(task("The claim?"))
    assert all((pair[0] == "The claim?") == (first == "claim") for pair in encoder.calls[0])


async def test_all_pairs_of_all_tasks_are_scored_in_one_call_and_each_once() -> None:
    tasks = [task("a", "b"), task("b", "c"), task("d", documents=DOCUMENTS[:1])]
    for encoder in (Scripted(), Scripted()):
        verifier = CrossEncoderVerifier(cross_encoder=encoder, window_sentences=1)
        outputs = verifier.batch(tasks) if encoder.calls else await verifier.abatch(tasks)
        assert [len(output) for output in outputs] == [2, 2, 1]
        (pairs,) = encoder.calls
        assert len(pairs) == len(set(pairs)) == 3 * 3 + 2


def test_calls_hold_at_most_batch_size_pairs() -> None:
    encoder = Scripted()
    verifier = CrossEncoderVerifier(cross_encoder=encoder, window_sentences=1, batch_size=4)
    verifier.invoke(task("a", "b", "c"))
    assert [len(call) for call in encoder.calls] == [4, 4, 1]


def test_a_long_document_is_read_to_its_end() -> None:
    text = "Filler words go on and on. " * 2000 + "Rome is the capital."
    encoder = Scripted()
    verifier = CrossEncoderVerifier(cross_encoder=encoder)
    verifier.invoke(task(documents=(Document(page_content=text),)))
    read = [window for call in encoder.calls for _, window in call]
    assert read[-1].endswith("Rome is the capital.")
    assert max(len(window) for window in read) <= 3 * 256


async def test_scoring_runs_off_the_event_loop() -> None:
    encoder = Scripted()
    await CrossEncoderVerifier(cross_encoder=encoder).ainvoke(task())
    assert threading.get_ident() not in encoder.threads


@pytest.mark.parametrize(
    ("encoder", "options", "reason"),
    [
        (Scripted(TimeoutError("secret")), {}, "failed with TimeoutError"),
        (Scripted(other=float("nan")), {}, "a score is not a number"),
        (Scripted(other=1.5), {}, "scores lie outside 0..1: set scores='logit'"),
        (Scripted(other=[0.5, 0.5]), {}, "3 pairs need scores of shape (3, 1)"),
        (Scripted(other=0.5), {"classes": CLASSES}, "3 pairs need scores of shape (3, 3)"),
        (Scripted(other="high"), {}, "failed with ValueError"),
        (Scripted(other=None), {}, "a score is not a number"),
    ],
)
def test_scores_that_cannot_be_read_leave_the_claim_unchecked(
    encoder: BaseCrossEncoder, options: dict[str, Any], reason: str
) -> None:
    verdict = check(encoder, **options)
    assert verdict.verdict == "unchecked"
    assert reason in str(verdict.reason)
    assert "secret" not in str(verdict.reason)


def test_a_missing_score_matters_only_where_nothing_else_supports() -> None:
    encoder = Scripted({"Rome is the capital.": 0.9}, other=float("nan"))
    assert check(encoder).verdict == "supported"
    assert check(Scripted({"Rome is the capital.": 0.3}, other=float("nan"))).verdict == "unchecked"


@pytest.mark.parametrize("documents", [(), (Document(page_content=" \n"),)])
def test_without_any_text_claims_are_unchecked_and_nothing_is_scored(
    documents: tuple[Document, ...],
) -> None:
    encoder = Scripted()
    verdicts = CrossEncoderVerifier(cross_encoder=encoder).invoke(task(documents=documents))
    assert [v.reason for v in verdicts] == ["the documents hold no text to check against"]
    assert encoder.calls == []


def test_without_claims_nothing_is_scored() -> None:
    encoder = Scripted()
    verifier = CrossEncoderVerifier(cross_encoder=encoder)
    assert verifier.invoke(VerificationTask(claims=(), documents=DOCUMENTS)) == []
    assert encoder.calls == []


@pytest.mark.parametrize("return_exceptions", [True, False])
async def test_cancellation_propagates(
    return_exceptions: bool,  # noqa: FBT001  (pytest passes it by name)
) -> None:
    running, released = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    class Slow(BaseCrossEncoder):
        def score(self, text_pairs: list[tuple[str, str]]) -> list[float]:
            loop.call_soon_threadsafe(running.set)
            released.wait(timeout=300)
            return [0.0 for _ in text_pairs]

    verifier = CrossEncoderVerifier(cross_encoder=Slow())
    check = asyncio.create_task(verifier.abatch([task()], return_exceptions=return_exceptions))
    await running.wait()
    check.cancel()
    with pytest.raises(asyncio.CancelledError):
        await check
    released.set()


async def test_every_way_to_call_it_gives_the_same() -> None:
    verifier = CrossEncoderVerifier(cross_encoder=Scripted({"Rome is the capital.": 0.9}))
    work = task("Rome is the capital.", "Rome is new.")
    expected = verifier.invoke(work)
    assert [v.claim.id for v in expected] == ["0", "1"]
    assert await verifier.ainvoke(work) == expected
    assert verifier.batch([work, work]) == [expected, expected]
    assert await verifier.abatch([work]) == [expected]
    assert [v for chunk in verifier.stream(work) for v in chunk] == expected
    assert [v async for chunk in verifier.astream(work) for v in chunk] == expected


@pytest.mark.parametrize(
    "options",
    [
        {"threshold": 0.0},
        {"threshold": 1.1},
        {"threshold": math.nan},
        {"scores": "relevance"},
        {"scores": "relevance", "threshold": math.inf},
        {"scores": "relevance", "threshold": 1.0, "classes": CLASSES},
        {"classes": ("contradicted", "unverifiable")},
        {"classes": ("supported", "supported")},
        {"batch_size": 0},
        {"window_sentences": 0},
        {"max_tokens": 7},
    ],
)
def test_options_that_cannot_work_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        CrossEncoderVerifier(cross_encoder=Scripted(), **options)


def test_it_is_serialisable_but_for_the_model() -> None:
    dumped = dumpd(CrossEncoderVerifier(cross_encoder=Scripted(), threshold=0.7))
    assert dumped["kwargs"]["threshold"] == 0.7
    assert dumped["kwargs"]["cross_encoder"]["type"] == "not_implemented"
