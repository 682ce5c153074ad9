"""What an answer cites, and the documents that count as evidence for it."""

from typing import NamedTuple

from langchain_core.documents import Document

from langchain_groundedness.evals._citation_marks import blanked, citation_marks
from langchain_groundedness.evals._cited_documents import DocumentIndex
from langchain_groundedness.evals.validation.values import ValidationReason
from langchain_groundedness.evals.values import EvaluationRow
from langchain_groundedness.inputs import has_text

__all__ = ["Cited", "cited"]


class Cited(NamedTuple):
    """An answer to check, and what to check it against."""

    answer: str
    """Without its marks of citations, which say nothing about the world; of the same length."""
    documents: tuple[Document, ...]
    citations: dict[str, tuple[int, ...]]
    """What is cited, and the places of the documents that it names."""


def cited(row: EvaluationRow, *, only_cited: bool) -> Cited | ValidationReason:
    """Find the evidence for an answer.

    Args:
        row: The row; it has an answer.
        only_cited: Whether only what the answer cites counts.

    Returns:
        The evidence, or why there is none.
    """
    documents = row.documents or ()
    if not has_text(documents):
        return ValidationReason(
            code="no_documents", text="the row has no documents to check against"
        )
    index = DocumentIndex(documents)
    marks = citation_marks(row.answer or "", index.names)
    citations = {str(target): index.find(target) for mark in marks for target in mark.targets}
    answer = blanked(row.answer or "", marks)
    if not only_cited:
        return Cited(answer, documents, citations)
    named = sorted({place for places in citations.values() for place in places})
    evidence = tuple(documents[place] for place in named)
    if has_text(evidence):
        return Cited(answer, evidence, citations)
    text = (
        "the answer cites nothing, and only what it cites was to count"
        if not citations
        else f"none of what the answer cites is among the documents: {', '.join(citations)}"
    )
    return ValidationReason(code="not_cited", text=text)
