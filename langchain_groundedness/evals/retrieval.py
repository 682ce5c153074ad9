"""Retrieval metrics, by the claims of the reference that the documents support."""

from pydantic import Field
from typing_extensions import override

from langchain_groundedness._runtime.flow import Flow
from langchain_groundedness.evals.claim_evaluator import (
    ClaimEvaluator,
    ClaimGroup,
    plain_verdicts,
    supported_count,
    supported_share,
    unchecked_reason,
)
from langchain_groundedness.evals.values import EvaluationRow, RowScore
from langchain_groundedness.inputs.formats import CheckInput
from langchain_groundedness.types import ClaimVerdict
from langchain_groundedness.verification.scoring import merge_verdicts

__all__ = ["ContextPrecisionEvaluator", "ContextRecallEvaluator", "average_precision"]


def average_precision(relevant: list[bool]) -> float:
    """Average precision of a ranking: high if relevant documents come first.

    The mean, over the places that are relevant, of the precision down to that place (Manning,
    Raghavan and Schütze, Introduction to Information Retrieval, 2008, section 8.4), of what was
    retrieved: what was not does not count.
    """
    found, total = 0, 0.0
    for place, hit in enumerate(relevant, 1):
        found += hit
        total += hit * found / place
    return total / found if found else 0.0


class ContextRecallEvaluator(ClaimEvaluator):
    """Share of the claims of the reference that the documents support: was enough retrieved?

    Where nothing was retrieved the score is 0. `result` is the check of the reference against the
    documents: its claims that are not supported are what retrieval missed.

    Example:
        >>> evaluator = ContextRecallEvaluator()
        >>> evaluator.invoke(
        ...     {
        ...         "reference": "Rome is the capital of Italy. Rome lies on the Tiber.",
        ...         "contexts": ["Rome is the capital of Italy."],
        ...     }
        ... ).score
        0.5
    """

    needs = ("reference", "documents")

    key: str = Field(default="context_recall", min_length=1)

    @override
    def _score(self, row: EvaluationRow) -> Flow[RowScore]:
        source = CheckInput(
            question=row.question, answer=row.reference or "", documents=row.documents or ()
        )
        [result] = yield from self._judge_all([source])
        found, total = supported_count(result.claims), len(result.claims)
        return self._row_score(
            supported_share(result.claims),
            result.claims,
            nothing="the reference makes no claim that could be checked",
            comment=f"the documents support {found} of {total} claims of the reference",
            details={"reference_claims": plain_verdicts(result.claims)},
            result=result,
        )


class ContextPrecisionEvaluator(ClaimEvaluator):
    """Average precision of the ranked documents: do relevant ones come first?

    A document is relevant if it alone supports a claim of the reference, or, in a row without
    reference, of the answer. Where nothing was retrieved, or nothing relevant, the score is 0. The
    claims are found once; the documents are judged in parallel, each for itself, so that a chat
    model is called about once per document. `details` has `relevant` (1 or 0 per document, `None`
    where that could not be checked), `supported` (for each the claims that it supports) and
    `judged_by`; `result` has for each claim what all documents together say.

    Example:
        >>> evaluator = ContextPrecisionEvaluator()
        >>> score = evaluator.invoke(
        ...     {
        ...         "reference": "Rome is the capital of Italy.",
        ...         "contexts": ["Cats sleep a lot.", "Rome is the capital of Italy."],
        ...     }
        ... )
        >>> score.score, score.details["relevant"]
        (0.5, [0, 1])
    """

    needs = ("documents",)

    key: str = Field(default="context_precision", min_length=1)

    @override
    def _score(self, row: EvaluationRow) -> Flow[RowScore]:
        judged_by = "reference" if (row.reference or "").strip() else "answer"
        text = (row.reference if judged_by == "reference" else row.answer) or ""
        if not text.strip():
            return self._skipped("the row has neither a reference nor an answer")
        documents = row.documents or ()
        claims = yield from self._claims_of(text, row.question)
        if not claims:
            return self._skipped(f"the {judged_by} makes no claim that could be checked")
        found = yield from self._judge_against(
            [ClaimGroup(claims, (place,)) for place in range(len(documents))],
            documents,
            question=row.question,
            answer=text,
        )
        merged = [merge_verdicts(verdicts) for verdicts in zip(*found, strict=True)]
        source = CheckInput(question=row.question, answer=text, documents=documents)
        nothing = "no document was retrieved"
        result = self._result(
            source, merged or (ClaimVerdict.unchecked(claim, nothing) for claim in claims)
        )
        relevant = list(map(_relevance, found))
        supported = [[v.claim.text for v in each if v.verdict == "supported"] for each in found]
        details = {"judged_by": judged_by, "relevant": relevant, "supported": supported}
        if None in relevant:
            place = relevant.index(None)
            reason = f"document {place + 1} of {len(found)}: {unchecked_reason(found[place])}"
            return self._failed(reason, details=details, result=result)
        hits = [bool(each) for each in relevant]
        comment = f"{sum(hits)} of {len(hits)} documents support the {judged_by}"
        score = average_precision(hits)
        return self._scored(score, comment=comment, details=details, result=result)


def _relevance(verdicts: tuple[ClaimVerdict, ...]) -> int | None:
    """Tell whether a document supports any claim; `None` if that could not be checked."""
    labels = {v.verdict for v in verdicts}
    return 1 if "supported" in labels else None if "unchecked" in labels else 0
