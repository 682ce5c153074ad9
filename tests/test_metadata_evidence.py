"""Named metadata is evidence, and is cited as such."""

from datetime import date
from typing import Any

import pytest
from langchain_core.documents import Document

from langchain_groundedness import (
    ConfigurationError,
    GroundednessCallbackHandler,
    GroundednessGuard,
    GroundednessRunnable,
    check,
)
from langchain_groundedness.testing import ScriptedVerifier
from langchain_groundedness.types import (
    Citation,
    ClaimVerdict,
    GroundednessResult,
    VerificationTask,
)

TEXT = "Revenue was $2.1B, up 12% from last year."
REPORT = Document(TEXT, metadata={"title": "Q3 2025 report", "date": date(2025, 10, 1), "page": 3})


def quotes(result: GroundednessResult) -> list[tuple[str | None, str]]:
    assert all(c.holds_in(result.documents) for v in result.claims for c in v.citations)
    return [(c.field, c.quote) for v in result.claims for c in v.citations]


def test_the_title_of_a_document_is_evidence() -> None:
    result = check("The Q3 2025 report says that revenue was $2.1B.", [REPORT])
    assert result.verdict == "grounded"
    assert result.documents == (REPORT,)
    assert quotes(result) == [("title", "Q3 2025 report"), (None, TEXT)]
    other = check("The Q2 2025 report says that revenue was $2.1B.", [REPORT])
    assert other.verdict == "has_contradictions"


def test_other_metadata_is_evidence_if_it_is_named() -> None:
    answer = "The report of 2025-10-01 says that revenue was $2.1B."
    assert check(answer, [REPORT]).verdict != "grounded"
    result = check(answer, [REPORT], metadata_keys=["title", "date"])
    assert result.verdict == "grounded"
    assert ("date", "2025-10-01") in quotes(result)
    assert (
        check("The Q3 2025 report says so.", [REPORT], metadata_keys=()).claims[0].citations == ()
    )


@pytest.mark.parametrize("metadata", [{}, {"title": None}, {"title": " "}, {"name": "Q3 report"}])
def test_documents_without_that_metadata_are_read_as_they_are(metadata: dict[str, Any]) -> None:
    judge = ScriptedVerifier({TEXT: "supported"})
    document = Document(TEXT, metadata=metadata)
    check(TEXT, [document], verifier=judge)
    assert judge.tasks[0].documents == (document,)


@pytest.mark.parametrize("text", ["# Q3 2025 report\n\nRevenue.", "Q3 2025 report: revenue"])
def test_a_title_that_the_text_begins_with_is_not_repeated(text: str) -> None:
    judge = ScriptedVerifier({TEXT: "supported"})
    check(TEXT, [Document(text, metadata={"title": "Q3 2025 report"})], verifier=judge)
    assert judge.tasks[0].documents[0].page_content == text


def test_a_quote_over_metadata_and_text_is_one_citation_of_each() -> None:
    def verify(task: VerificationTask) -> list[ClaimVerdict]:
        end = len(task.documents[0].page_content)
        whole = Citation.from_document(task.documents, 0, 0, end)
        return [
            ClaimVerdict(claim=claim, verdict="supported", citations=(whole,))
            for claim in task.claims
        ]

    result = check(TEXT, [REPORT], verifier=verify, metadata_keys=("date", "title"))
    assert quotes(result) == [("date", "2025-10-01"), ("title", "Q3 2025 report"), (None, TEXT)]


def test_a_correction_with_a_title_at_hand_is_made_from_the_text() -> None:
    result = check("Revenue was $2.4B.", [REPORT], on_contradicted="correct")
    assert result.answer == f"[CORRECTED: {TEXT}]"
    assert quotes(result) == [(None, TEXT)]


def test_streams_cite_metadata_too() -> None:
    checker = GroundednessRunnable()
    given = {"answer": "The Q3 2025 report says that revenue was $2.1B.", "documents": [REPORT]}
    chunks = list(checker.stream(given))
    total = chunks[0]
    for chunk in chunks[1:]:
        total += chunk
    assert total == checker.invoke(given)
    assert quotes(total)[0][0] == "title"


def test_every_entry_point_takes_the_keys() -> None:
    for taker in (GroundednessGuard, GroundednessCallbackHandler):
        taker(metadata_keys=("date",))
        with pytest.raises(ConfigurationError, match="metadata_keys"):
            taker(metadata_keys="date")
