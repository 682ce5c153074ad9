"""Exports reviewers' decisions as evaluation data."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Literal, get_args

from langchain_groundedness._runtime.options import require_one_of
from langchain_groundedness.audit import AuditRecord
from langchain_groundedness.types import ClaimVerdict

__all__ = ["ReviewExport"]

Unit = Literal["answer", "claim"]
_RIGHT, _WRONG = "supported", "unsupported"


class ReviewExport:
    """Turns reviewed records into rows for evaluators and `calibrate`, and counts those left out.

    Approved answers are labelled `supported`; edited and rejected answers, `unsupported`. A claim
    that the reviewer has marked right is `supported`, one marked wrong `unsupported` (`marked` is
    true). Others get a label only where it follows from the review: the
    claims of an approved answer are `supported`; a claim of an edited answer is `supported` if the
    edited text still contains its words, and else `unsupported`; the only claim of a rejected
    answer is `unsupported`. Rows have the documents whose texts the log kept: all of them, up to a
    limit, for records under review, and the cited ones for others.

    Example:
        >>> from langchain_groundedness.testing import ScriptedVerifier
        >>> from langchain_groundedness import GroundednessRunnable
        >>> from langchain_groundedness.audit import AuditRecord, Review
        >>> judge = ScriptedVerifier({"Rome is big.": "supported"})
        >>> result = GroundednessRunnable(verifier=judge).invoke(
        ...     {"answer": "Rome is big.", "documents": ["Rome is big."]}
        ... )
        >>> review = Review(status="decided", reviewer="ada", action="approve")
        >>> export = ReviewExport(unit="claim")
        >>> [row] = export.rows([AuditRecord.from_result(result, review=review)])
        >>> row["claim"], row["documents"], row["label"], row["action"]
        ('Rome is big.', ['Rome is big.'], 'supported', 'approve')
    """

    def __init__(self, *, unit: Unit = "answer") -> None:
        """Say what a row is."""
        require_one_of("unit", unit, get_args(Unit))
        self._unit = unit
        self.left_out: dict[str, int] = Counter()
        """Why records gave no row, and how many; complete when the rows are."""

    def rows(self, records: Iterable[AuditRecord]) -> Iterator[dict[str, Any]]:
        """Turn records into rows.

        Args:
            records: The records; undecided ones give no row and are not counted.

        Yields:
            Mappings that JSON can hold.
        """
        for record in records:
            if record.review.status != "decided" or record.review.action is None:
                continue
            if (why := _why_unusable(record)) is not None:
                self.left_out[why] += 1
                continue
            claims = [_claim_columns(record, verdict) for verdict in record.claims]
            rows = [row for row in claims if row["label"] is not None]
            if self._unit == "answer":
                rows = [_answer_columns(record, claims)]
            if not rows:
                self.left_out["no label follows for a claim"] += 1
            yield from ({**row, **_record_columns(record)} for row in rows)


def _why_unusable(record: AuditRecord) -> str | None:
    if record.content != "full":
        return f"texts are not kept (content={record.content!r})"
    if record.original_answer is None:
        return "the answer is not kept"
    if not any((document.content or "").strip() for document in record.documents):
        return "no text of a document is kept"
    return None


def _answer_columns(record: AuditRecord, claims: list[dict[str, Any]]) -> dict[str, Any]:
    label = _RIGHT if record.review.action == "approve" else _WRONG
    row = {"answer": record.original_answer, "label": label}
    if record.review.action == "edit":
        row["corrected_answer"] = record.review.answer
    return {**row, "claims": claims}


def _claim_columns(record: AuditRecord, found: ClaimVerdict) -> dict[str, Any]:
    return {
        "claim": found.claim.text,
        "verdict": found.verdict,
        "support_probability": found.support_probability,
        "verifier": found.verifier,
        "label": _label(record, found),
        "marked": found.claim.id in record.review.marks,
    }


def _record_columns(record: AuditRecord) -> dict[str, Any]:
    texts = [document.content for document in record.documents if document.content is not None]
    return {
        "question": record.question,
        "documents": texts,
        "documents_left_out": len(record.documents) - len(texts),
        "action": record.review.action,
        "note": record.review.note,
        "reviewer": record.review.reviewer,
        "reviewed": record.review.time and record.review.time.isoformat(),
        "query_class": record.query_class,
        "retrieval_score": record.retrieval_score,
        "redacted": record.redacted,
        "group": record.thread_id or record.id,
        "record": record.id,
    }


def _label(record: AuditRecord, found: ClaimVerdict) -> str | None:
    """Give the reviewer's label of a claim, or the one that follows from the review."""
    review, claim = record.review, found.claim
    if claim.id in review.marks:
        return _RIGHT if review.marks[claim.id] else _WRONG
    if review.action == "approve":
        return _RIGHT
    if review.action == "reject":
        return _WRONG if len(record.claims) == 1 else None
    answer, edited = record.original_answer or "", review.answer or ""
    if claim.start is None or claim.end is None or record.redacted:
        return None
    return _RIGHT if _contains_words(answer[claim.start : claim.end], edited) else _WRONG


def _contains_words(words: str, text: str) -> bool:
    """Tell whether a text has these words, not just as part of other words or numbers."""
    exact = re.escape(" ".join(words.split()))
    before = r"(?<!\d[.,])" + (r"(?<!\w)" if words[:1].isascii() else "")
    after = r"(?![.,]?\d|%)" + (r"(?!\w)" if words[-1:].isascii() else "")
    return re.search(before + exact + after, " ".join(text.split())) is not None
