"""Faithfulness: how much of what an answer says the documents support."""

from typing import Any, Self

from pydantic import Field, PrivateAttr, model_validator
from typing_extensions import override

from langchain_groundedness._options import AnyRunnable
from langchain_groundedness.evals.evaluator import Evaluator
from langchain_groundedness.evals.values import EvaluationRow, RowScore
from langchain_groundedness.inputs import CheckInput
from langchain_groundedness.runnable import GroundednessRunnable
from langchain_groundedness.structured import Flow, ModelCall
from langchain_groundedness.types import GroundednessResult

__all__ = ["FaithfulnessEvaluator"]


class FaithfulnessEvaluator(Evaluator):
    """Share of the claims of an answer that its documents support.

    Example:
        >>> evaluator = FaithfulnessEvaluator()
        >>> result = evaluator.run(
        ...     questions=["What is the capital of Italy?"],
        ...     contexts=[["Rome is the capital of Italy."]],
        ...     predicted_answers=["Rome is the capital of Italy. It has 40 million inhabitants."],
        ... )
        >>> result["score"], result["individual_scores"]
        (0.5, [0.5])
        >>> result["results"][0]["statement_scores"]
        [1, 0]
    """

    needs = ("answer", "documents")

    key: str = Field(default="faithfulness", min_length=1)
    model: AnyRunnable | None = None
    """Chat model that extracts and judges claims; `None` for the embedded verifier."""
    verifier: AnyRunnable | None = None
    """Judges the claims; by default the model, or the embedded verifier."""
    extractor: AnyRunnable | None = None
    """Finds the claims; by default the model, or sentences where there is no model."""
    max_claims: int | None = Field(default=None, ge=1)
    """Most claims to verify; an answer with more fails."""

    _made: GroundednessRunnable | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _usable(self) -> Self:
        self._checker()
        return self

    @override
    def _score(self, row: EvaluationRow) -> Flow[RowScore]:
        source = CheckInput(
            question=row.question, answer=row.answer or "", documents=row.documents or ()
        )
        result: GroundednessResult = yield ModelCall(self._checker(), source)
        details = _details(result)
        unchecked = [v for v in result.claims if v.verdict == "unchecked"]
        if unchecked:
            reason = (
                f"{len(unchecked)} of {len(result.claims)} claims could not be checked: "
                f"{unchecked[0].reason}"
            )
            return self._failed(reason, details=details, result=result)
        if result.trust_score is None:
            reason = "the answer makes no claim that could be checked"
            return self._skipped(reason, details=details, result=result)
        return self._scored(
            result.trust_score, comment=_comment(result), details=details, result=result
        )

    def _checker(self) -> GroundednessRunnable:
        if self._made is None:
            self._made = GroundednessRunnable(
                model=self.model,
                verifier=self.verifier,
                extractor=self.extractor,
                max_claims=self.max_claims,
            )
        return self._made


def _details(result: GroundednessResult) -> dict[str, Any]:
    scores = {"supported": 1, "contradicted": 0, "unverifiable": 0}
    return {
        "statements": [v.claim.text for v in result.claims],
        "statement_scores": [scores.get(v.verdict) for v in result.claims],
    }


def _comment(result: GroundednessResult) -> str:
    counts = {
        label: sum(v.verdict == label for v in result.claims)
        for label in ("supported", "contradicted", "unverifiable")
    }
    told = ", ".join(f"{count} {label}" for label, count in counts.items() if count)
    return f"{len(result.claims)} claims: {told}"
