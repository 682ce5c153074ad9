"""The values and what they refuse."""

import pytest
from langchain_core.documents import Document
from pydantic import ValidationError

from langchain_groundedness.types import (
    Citation,
    Claim,
    ClaimVerdict,
    Decision,
    GroundednessResult,
    GroundednessResultChunk,
    VerificationTask,
)

FIRST = Claim(id="c1", text="One.", start=0, end=4)
SECOND = Claim(id="c2", text="Two.", start=5, end=9)


def unverifiable(claim: Claim) -> ClaimVerdict:
    return ClaimVerdict(claim=claim, verdict="unverifiable")


def test_values_are_frozen_and_refuse_unknown_fields() -> None:
    with pytest.raises(ValidationError):
        FIRST.text = "Other."  # type: ignore[misc]
    with pytest.raises(ValidationError):
        Claim(id="c1", text="One.", offset=3)  # type: ignore[call-arg]


@pytest.mark.parametrize(("start", "end"), [(0, None), (None, 4), (4, 0), (-1, 2)])
def test_a_claim_has_a_whole_span_or_none(start: int | None, end: int | None) -> None:
    with pytest.raises(ValidationError):
        Claim(id="c1", text="One.", start=start, end=end)


def test_a_citation_that_ends_before_it_starts_is_refused() -> None:
    with pytest.raises(ValidationError, match="end must not be before start"):
        Citation(document=0, start=3, end=1, quote="x")


def test_a_citation_quotes_its_document_verbatim() -> None:
    document = Document(page_content="Café au lait.", id="d7", metadata={"source": "menu.md"})
    citation = Citation.from_document([document], 0, 0, 4)
    assert (citation.quote, citation.document_id) == ("Café", "d7")
    assert citation.metadata == {"source": "menu.md"}
    assert citation.holds_in([document])
    assert not citation.holds_in([])


@pytest.mark.parametrize(("verdict", "reason"), [("unchecked", None), ("supported", "late")])
def test_a_reason_goes_with_unchecked_and_with_nothing_else(
    verdict: str, reason: str | None
) -> None:
    with pytest.raises(ValidationError, match="reason must be set"):
        ClaimVerdict(claim=FIRST, verdict=verdict, reason=reason)


def test_a_task_refuses_two_claims_with_one_id() -> None:
    with pytest.raises(ValidationError, match="unique"):
        VerificationTask(claims=(FIRST, FIRST), documents=())


def test_a_task_can_be_narrowed() -> None:
    task = VerificationTask(claims=(FIRST, SECOND), documents=(), question="Why?")
    assert task.only([SECOND]).claims == (SECOND,)
    assert task.only([SECOND]).question == "Why?"


def test_a_sum_of_chunks_reads_as_unchecked_until_the_last() -> None:
    total = GroundednessResultChunk(answer="One. Two.", extracted=(FIRST, SECOND))
    total += GroundednessResultChunk(claims=(unverifiable(SECOND),))
    assert (total.verdict, total.is_trusted, total.decision.action) == (
        "unchecked",
        False,
        "review",
    )
    assert total.pending == (FIRST,)


def test_chunks_gather_verdicts_in_the_order_of_the_claims_and_later_ones_win() -> None:
    total = GroundednessResultChunk(extracted=(FIRST, SECOND))
    total += GroundednessResultChunk(claims=(unverifiable(SECOND),))
    total += GroundednessResultChunk(claims=(unverifiable(FIRST),))
    late = ClaimVerdict.unchecked(SECOND, "late")
    total += GroundednessResultChunk(claims=(late,))
    assert total.claims == (unverifiable(FIRST), late)
    assert total.pending == ()


def test_the_probability_of_an_answer_is_that_of_all_its_checked_claims() -> None:
    def result(*claims: ClaimVerdict) -> GroundednessResultChunk:
        return GroundednessResultChunk(claims=claims)

    half = unverifiable(FIRST).model_copy(update={"support_probability": 0.5})
    fifth = unverifiable(SECOND).model_copy(update={"support_probability": 0.2})
    assert result(half, fifth).support_probability == pytest.approx(0.1)
    assert result(half, ClaimVerdict.unchecked(SECOND, "late")).support_probability == 0.5
    assert result(half, unverifiable(SECOND)).support_probability is None
    assert result().support_probability is None


def test_a_later_chunk_overrides_only_what_it_sets() -> None:
    total = GroundednessResultChunk(question="Why?", answer="One.", trust_score=0.5)
    total += GroundednessResultChunk(answer="", trust_score=None)
    assert (total.question, total.answer, total.trust_score) == ("Why?", "", None)


def test_a_chunk_equals_the_result_with_the_same_content() -> None:
    result = GroundednessResult(
        question=None,
        answer="One.",
        original_answer="One.",
        documents=(),
        claims=(unverifiable(FIRST),),
        trust_score=0.0,
        verdict="ungrounded",
        is_trusted=False,
        decision=Decision(action="flag"),
    )
    chunk = GroundednessResultChunk(**dict(result))
    assert chunk == result
    assert result == chunk
    assert chunk.model_copy(update={"answer": "Two."}) != result
    assert result != "One."
