import asyncio
import math
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_core.load import dumpd
from typing_extensions import override

from langchain_groundedness import CascadeVerifier, EmbeddingVerifier
from langchain_groundedness.exceptions import ConfigurationError
from langchain_groundedness.types import Claim, ClaimVerdict, VerificationTask

CLAIM = "Rome is a capital."
NEAR = "The capital is Rome."
FAR = "Bread is baked from flour."
DOCUMENTS = (
    Document(page_content=FAR),
    Document(page_content=f"It is late. {NEAR}", id="rome", metadata={"page": 1}),
)


def at(cosine: float) -> list[float]:
    """Give a vector with this cosine to (1, 0), not of length one."""
    return [3 * cosine, 3 * math.sqrt(1 - cosine**2)]


class Scripted(Embeddings):
    """Gives known vectors, and keeps what it was asked."""

    def __init__(self, vectors: dict[str, Any], other: Any = None) -> None:
        self.vectors = {CLAIM: [2.0, 0.0], **vectors}
        self.other = at(0.0) if other is None else other
        self.calls: list[list[str]] = []
        self.awaited = 0

    @override
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.calls.append(texts)
        replies = [self.vectors.get(text, self.other) for text in texts]
        for reply in replies:
            if isinstance(reply, Exception):
                raise reply
        return replies

    @override
    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        self.awaited += 1
        return self.embed_documents(texts)

    @override
    def embed_query(self, text: str) -> list[float]:
        raise AssertionError  # claims and windows must lie in the same space


def task(*claims: str, documents: tuple[Document, ...] = DOCUMENTS) -> VerificationTask:
    texts = claims or (CLAIM,)
    return VerificationTask(
        claims=tuple(Claim(id=str(place), text=text) for place, text in enumerate(texts)),
        documents=documents,
    )


def check(embeddings: Embeddings, **options: Any) -> ClaimVerdict:
    options = {"window_sentences": 1, **options}
    return EmbeddingVerifier(embeddings=embeddings, **options).invoke(task())[0]


@pytest.mark.parametrize(
    ("cosine", "verdict"),
    [
        (1.0, "supported"),
        (0.7501, "supported"),
        (0.7499, "unchecked"),
        (0.5001, "unchecked"),
        (0.4999, "unverifiable"),
        (-1.0, "unverifiable"),
    ],
)
def test_similarity_accepts_rejects_or_settles_nothing(cosine: float, verdict: str) -> None:
    found = check(Scripted({NEAR: at(cosine)}, other=at(-1.0)))
    assert found.verdict == verdict
    assert found.support_probability is None
    assert f"{cosine:.2f}" in (found.reason or found.explanation)


def test_the_closest_window_is_quoted_with_its_place() -> None:
    (citation,) = check(Scripted({NEAR: at(0.9)})).citations
    assert (citation.quote, citation.document, citation.start) == (NEAR, 1, 12)
    assert (citation.document_id, citation.metadata) == ("rome", {"page": 1})


@pytest.mark.parametrize(
    ("near", "kind"),
    [
        ("The capital is Oslo.", "names"),
        ("Rome is no capital.", "negations"),
        ("Tiber flows.", "words"),
    ],
)
def test_what_differs_in_names_or_negations_is_never_settled_by_similarity(
    near: str, kind: str
) -> None:
    embeddings = Scripted({near: at(0.99)})
    work = task(documents=(Document(page_content=near),))
    (found,) = EmbeddingVerifier(embeddings=embeddings).invoke(work)
    assert found.verdict == "unchecked"
    assert kind in str(found.reason)


def test_a_similar_window_that_differs_does_not_hide_one_that_does_not() -> None:
    other = "The capital is Oslo."
    work = task(documents=(Document(page_content=other), Document(page_content=NEAR)))
    embeddings = Scripted({other: at(0.99), NEAR: at(0.8)})
    (found,) = EmbeddingVerifier(embeddings=embeddings).invoke(work)
    assert (found.verdict, found.citations[0].document) == ("supported", 1)


def test_numbers_that_differ_are_left_to_the_next_stage_of_a_cascade() -> None:
    said, claim = "Revenue was $2.1B in Q3.", "Revenue was $2.4B in Q3."
    gate = EmbeddingVerifier(embeddings=Scripted({said: at(0.97), claim: [1.0, 0.0]}))
    asked: list[str] = []

    def judge(task: VerificationTask) -> list[ClaimVerdict]:
        asked.extend(claim.text for claim in task.claims)
        return [ClaimVerdict(claim=claim, verdict="unverifiable") for claim in task.claims]

    CascadeVerifier([gate, judge]).invoke(task(claim, documents=(Document(page_content=said),)))
    assert asked == [claim]


async def test_each_distinct_text_of_a_batch_is_embedded_once_in_one_call() -> None:
    tasks = [task(), task(CLAIM, "Other?"), task("Other?", documents=DOCUMENTS[:1])]
    for awaited in (0, 1):
        embeddings = Scripted({})
        verifier = EmbeddingVerifier(embeddings=embeddings, window_sentences=1)
        outputs = await verifier.abatch(tasks) if awaited else verifier.batch(tasks)
        assert [len(output) for output in outputs] == [1, 2, 1]
        (texts,) = embeddings.calls
        assert sorted(texts) == sorted({CLAIM, "Other?", FAR, "It is late.", NEAR})
        assert embeddings.awaited == awaited


def test_calls_hold_at_most_batch_size_texts() -> None:
    embeddings = Scripted({})
    check(embeddings, batch_size=3)
    assert [len(call) for call in embeddings.calls] == [3, 1]


def test_wider_windows_are_embedded_beside_single_sentences() -> None:
    embeddings = Scripted({f"It is late. {NEAR}": at(0.9)})
    found = check(embeddings, window_sentences=2)
    assert found.citations[0].quote == f"It is late. {NEAR}"


@pytest.mark.parametrize(
    ("embeddings", "reason"),
    [
        (Scripted({NEAR: TimeoutError("secret")}), "failed with TimeoutError"),
        (Scripted({CLAIM: [0.0, 0.0]}), "zero or not a number"),
        (Scripted({CLAIM: [math.nan, 1.0]}), "zero or not a number"),
        (Scripted({CLAIM: [math.inf, 1.0]}), "zero or not a number"),
        (Scripted({}, other=[0.0, 0.0]), "zero or not a number"),
        (Scripted({NEAR: [1.0]}), "the embeddings of 4 texts must be numeric vectors of one size"),
        (Scripted({CLAIM: []}, other=[]), "shape (4, 0)"),
        (Scripted({CLAIM: 1.0}, other=1.0), "shape (4,)"),
    ],
)
def test_embeddings_that_cannot_be_used_leave_the_claim_unchecked(
    embeddings: Embeddings, reason: str
) -> None:
    found = check(embeddings)
    assert found.verdict == "unchecked"
    assert reason in str(found.reason)
    assert "secret" not in repr(found)


def test_embeddings_that_change_their_size_are_not_compared() -> None:
    found = check(Scripted({NEAR: [1.0, 0.0, 0.0]}), batch_size=1)
    assert found.reason == "the embeddings have different sizes: [2, 3]"


def test_a_window_without_an_embedding_matters_only_where_no_other_supports() -> None:
    assert check(Scripted({NEAR: at(0.9), FAR: [0.0, 0.0]})).verdict == "supported"
    assert check(Scripted({NEAR: at(0.1), FAR: [0.0, 0.0]})).verdict == "unchecked"


def test_a_blank_claim_is_unchecked_and_not_embedded() -> None:
    embeddings = Scripted({})
    (found,) = EmbeddingVerifier(embeddings=embeddings).invoke(task(" "))
    assert found.reason == "the claim is empty"
    assert " " not in embeddings.calls[0]


@pytest.mark.parametrize("documents", [(), (Document(page_content=" \n"),)])
def test_without_any_text_claims_are_unchecked(documents: tuple[Document, ...]) -> None:
    (found,) = EmbeddingVerifier(embeddings=Scripted({})).invoke(task(documents=documents))
    assert found.reason == "the documents hold no text to check against"


def test_without_claims_nothing_is_embedded() -> None:
    embeddings = Scripted({})
    empty = VerificationTask(claims=(), documents=DOCUMENTS)
    assert EmbeddingVerifier(embeddings=embeddings).invoke(empty) == []
    assert embeddings.calls == []


@pytest.mark.parametrize("way", ["ainvoke", "abatch", "astream"])
async def test_cancellation_propagates(way: str) -> None:
    started = asyncio.Event()

    class Slow(Scripted):
        @override
        async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
            started.set()
            await asyncio.Event().wait()
            return []

    verifier = EmbeddingVerifier(embeddings=Slow({}))

    async def run() -> object:
        if way == "ainvoke":
            return await verifier.ainvoke(task())
        if way == "abatch":
            return await verifier.abatch([task()], return_exceptions=True)
        return [chunk async for chunk in verifier.astream(task())]

    running = asyncio.create_task(run())
    await started.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_every_way_to_call_it_gives_the_same() -> None:
    verifier = EmbeddingVerifier(embeddings=DeterministicFakeEmbedding(size=32))
    work = task(NEAR, "Rome is new.", FAR)
    expected = verifier.invoke(work)
    assert [v.verdict for v in expected] == ["supported", expected[1].verdict, "supported"]
    assert await verifier.ainvoke(work) == expected
    assert verifier.batch([work, work]) == [expected, expected]
    assert await verifier.abatch([work]) == [expected]
    assert [v for chunk in verifier.stream(work) for v in chunk] == expected
    assert [v async for chunk in verifier.astream(work) for v in chunk] == expected


@pytest.mark.parametrize(
    "options",
    [
        {"accept": 0.4, "reject": 0.5},
        {"accept": 1.1},
        {"reject": -1.1},
        {"accept": math.nan},
        {"batch_size": 0},
        {"window_sentences": 0},
        {"max_tokens": 0},
    ],
)
def test_options_that_cannot_work_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        EmbeddingVerifier(embeddings=Scripted({}), **options)


def test_it_is_serialisable_but_for_the_embeddings() -> None:
    dumped = dumpd(EmbeddingVerifier(embeddings=Scripted({}), accept=0.8))
    assert dumped["kwargs"]["accept"] == 0.8
    assert dumped["kwargs"]["embeddings"]["type"] == "not_implemented"
