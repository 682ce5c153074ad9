"""Pure functions over verdicts: one per claim, merged over batches, aggregated per answer.

Every verifier ends with `reconcile`, which guarantees exactly one verdict per claim, and no
`supported` or `contradicted` without a quote from the documents.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from langchain_core.runnables import Runnable
from langchain_core.runnables.base import RunnableBindingBase

from langchain_groundedness.types import (
    AnswerVerdict,
    Citation,
    Claim,
    ClaimVerdict,
    VerificationTask,
)

__all__ = [
    "answer_verdict",
    "halfway",
    "merge_verdicts",
    "reconcile",
    "strict_threshold_of",
    "trust_score",
]

_NO_QUOTE = "The verdict came without a quote from the documents, so it does not count."


def reconcile(
    task: VerificationTask, verdicts: Iterable[ClaimVerdict], *, verifier: str = ""
) -> list[ClaimVerdict]:
    """Return exactly one verdict per claim of the task, with valid citations only.

    Verdicts are matched by claim id. Unknown ids are dropped; a second verdict on a claim is
    merged with the first; a claim without any is `unchecked`. Citations whose quote is not
    verbatim in the documents are dropped; `supported` or `contradicted` without a citation becomes
    `unverifiable`.
    """
    by_id: dict[str, list[ClaimVerdict]] = {}
    for verdict in verdicts:
        by_id.setdefault(verdict.claim.id, []).append(_with_valid_citations(verdict, task))
    return [
        _for_claim(claim, merge_verdicts(by_id[claim.id]))
        if claim.id in by_id
        else ClaimVerdict.unchecked(claim, "the verifier gave no verdict", verifier=verifier)
        for claim in task.claims
    ]


def _for_claim(claim: Claim, verdict: ClaimVerdict) -> ClaimVerdict:
    # Copying is the most expensive step here, and rarely needed.
    same = verdict.claim is claim or verdict.claim == claim
    return verdict if same else verdict.model_copy(update={"claim": claim})


def _with_valid_citations(verdict: ClaimVerdict, task: VerificationTask) -> ClaimVerdict:
    citations = tuple(c for c in verdict.citations if c.holds_in(task.documents))
    if citations or verdict.verdict in ("unverifiable", "unchecked"):
        same = len(citations) == len(verdict.citations)
        return verdict if same else verdict.model_copy(update={"citations": citations})
    return verdict.model_copy(
        update={
            "verdict": "unverifiable",
            "citations": (),
            "correction": None,
            "conflicting": False,
            "support_probability": None,
            "explanation": f"{verdict.explanation} {_NO_QUOTE}".strip(),
        }
    )


def merge_verdicts(verdicts: Sequence[ClaimVerdict]) -> ClaimVerdict:
    """Merge the verdicts of several evidence batches on one claim.

    Supported if any batch supports it; else contradicted if any contradicts it; else
    unverifiable; unchecked only if no batch answered. If some support and some contradict, the
    verdict is `supported` and `conflicting`, with the citations of both sides. Taking the worst
    batch instead would flag more true claims the more documents there are.
    """
    if not verdicts:
        msg = "merge_verdicts needs at least one verdict"
        raise ValueError(msg)
    winner = next(
        v
        for label in ("supported", "contradicted", "unverifiable", "unchecked")
        for v in sorted(verdicts, key=_probability, reverse=True)
        if v.verdict == label
    )
    if len(verdicts) == 1 or winner.verdict == "unchecked":
        return winner
    agreeing = [v for v in verdicts if v.verdict == winner.verdict]
    against = [v for v in verdicts if v.verdict == "contradicted" and winner.verdict == "supported"]
    probabilities = [p for v in verdicts if (p := v.support_probability) is not None]
    return winner.model_copy(
        update={
            "citations": _distinct(c for v in (winner, *agreeing, *against) for c in v.citations),
            "conflicting": bool(against) or any(v.conflicting for v in agreeing),
            "support_probability": max(probabilities, default=None),
            "explanation": " ".join(
                dict.fromkeys(v.explanation for v in (winner, *against) if v.explanation)
            ),
        }
    )


def _probability(verdict: ClaimVerdict) -> float:
    return -1.0 if verdict.support_probability is None else verdict.support_probability


def _distinct(citations: Iterable[Citation]) -> tuple[Citation, ...]:
    return tuple({(c.document, c.field, c.start, c.end): c for c in citations}.values())


def strict_threshold_of(verifier: Runnable[Any, Any]) -> float:
    """Return the least probability of support for what a correction says.

    It is the verifier's own. Where none was measured, it lies halfway between the threshold for
    other claims and certainty.
    """
    while isinstance(verifier, RunnableBindingBase):
        verifier = verifier.bound
    return float(getattr(verifier, "strict_threshold", halfway(0.5)))


def halfway(threshold: float) -> float:
    """Return the middle between a threshold and certainty."""
    return (1 + threshold) / 2


def trust_score(verdicts: Iterable[ClaimVerdict]) -> float | None:
    """Return the share of checked claims that the documents support."""
    checked = [v.verdict == "supported" for v in verdicts if v.verdict != "unchecked"]
    return sum(checked) / len(checked) if checked else None


def answer_verdict(verdicts: Sequence[ClaimVerdict]) -> AnswerVerdict:
    """Aggregate the verdicts on the claims into the verdict on the answer."""
    labels = {v.verdict for v in verdicts}
    if not labels:
        return "no_claims"
    if "contradicted" in labels:
        return "has_contradictions"
    if "unchecked" in labels:
        return "unchecked"
    if labels == {"supported"}:
        return "grounded"
    return "partially_grounded" if "supported" in labels else "ungrounded"
