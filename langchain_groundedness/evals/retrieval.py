"""How good the retrieved documents are, by the claims of the right answer that they support."""

from typing import Any

from pydantic import Field
from typing_extensions import override

from langchain_groundedness._runtime.flow import Flow
from langchain_groundedness.evals.claim_evaluator import (
    ClaimEvaluator,
    Evidence,
    listed,
    share,
    unchecked_reason,
)
from langchain_groundedness.evals.values import EvaluationRow, RowScore
from langchain_groundedness.inputs.formats import CheckInput
from langchain_groundedness.types import Claim, ClaimVerdict
from langchain_groundedness.verification.scoring import merge_verdicts

__all__ = ["ContextPrecisionEvaluator", "ContextRecallEvaluator", "average_precision"]


def average_precision(relevant: list[bool]) -> float:
    """Rate a ranking: high if what is relevant stands on top.

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
        [result] = yield from self._judge_all(
            [
                CheckInput(
                    question=row.question,
                    answer=row.reference or "",
                    documents=row.documents or (),
                )
            ]
        )
        details = {"reference_claims": listed(result.claims)}
        if reason := unchecked_reason(result.claims):
            return self._failed(reason, details=details, result=result)
        score = share(result.claims)
        if score is None:
            reason = "the reference makes no claim that could be checked"
            return self._skipped(reason, details=details, result=result)
        found = sum(v.verdict == "supported" for v in result.claims)
        comment = f"the documents support {found} of {len(result.claims)} claims of the reference"
        return self._scored(score, comment=comment, details=details, result=result)


class ContextPrecisionEvaluator(ClaimEvaluator):
    """Average precision of the ranked documents: does what helps stand on top?

    A document is relevant if it alone supports a claim of the reference, or, in a row without
    reference, of the answer. Where nothing was retrieved, or nothing relevant, the score is 0. The
    claims are found once; the documents are judged in parallel, each for itself, so that a chat
    model is called about once per document. `details` has `relevant` (1 or 0 per document, `None`
    where it could not be told), `supported` (for each the claims that it supports) and
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
            [Evidence(claims, (place,)) for place in range(len(documents))],
            documents,
            question=row.question,
            answer=text,
        )
        source = CheckInput(question=row.question, answer=text, documents=documents)
        result = self._result(source, _merged(claims, found))
        relevant = [any(v.verdict == "supported" for v in verdicts) for verdicts in found]
        open_ones = [
            f"document {place} of {len(found)}: {reason}"
            for place, (verdicts, hit) in enumerate(zip(found, relevant, strict=True), 1)
            if not hit and (reason := unchecked_reason(verdicts))
        ]
        details = _details(judged_by, found)
        if open_ones:
            return self._failed(open_ones[0], details=details, result=result)
        comment = f"{sum(relevant)} of {len(relevant)} documents support the {judged_by}"
        score = average_precision(relevant)
        return self._scored(score, comment=comment, details=details, result=result)


def _details(judged_by: str, found: list[tuple[ClaimVerdict, ...]]) -> dict[str, Any]:
    return {
        "judged_by": judged_by,
        "relevant": [_relevance(verdicts) for verdicts in found],
        "supported": [
            [v.claim.text for v in verdicts if v.verdict == "supported"] for verdicts in found
        ],
    }


def _relevance(verdicts: tuple[ClaimVerdict, ...]) -> int | None:
    """Tell whether a document supports any claim; `None` if that stayed open."""
    labels = {v.verdict for v in verdicts}
    return 1 if "supported" in labels else None if "unchecked" in labels else 0


def _merged(claims: tuple[Claim, ...], found: list[tuple[ClaimVerdict, ...]]) -> list[ClaimVerdict]:
    """Say of each claim what all documents together say."""
    if not found:
        reason = "no document was retrieved"
        return [ClaimVerdict.unchecked(claim, reason) for claim in claims]
    return [merge_verdicts(verdicts) for verdicts in zip(*found, strict=True)]
