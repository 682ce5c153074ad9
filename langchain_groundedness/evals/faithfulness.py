"""Faithfulness: the share of an answer's claims that the documents support."""

from pydantic import Field
from typing_extensions import override

from langchain_groundedness._runtime.flow import Flow
from langchain_groundedness.evals.claim_evaluator import ClaimEvaluator
from langchain_groundedness.evals.prompts import FEW_SHOT_VERIFICATION_PROMPT, FaithfulnessExample
from langchain_groundedness.evals.values import EvaluationRow, RowScore
from langchain_groundedness.inputs.formats import CheckInput
from langchain_groundedness.runnable import GroundednessRunnable
from langchain_groundedness.verification import LLMVerifier
from langchain_groundedness.verification.single_pass import SinglePassJudge

__all__ = ["FaithfulnessEvaluator"]

_NO_CLAIMS = "the answer makes no claim that could be checked"


class FaithfulnessEvaluator(ClaimEvaluator):
    """Share of the claims of an answer that its documents support.

    Score: supported / (supported + contradicted + unverifiable). An answer of which any claim
    could not be checked fails, with its finished verdicts in `RowScore.result`; one that claims
    nothing ("I don't know") is skipped. Where nothing was retrieved, nothing is supported: the
    score is 0, as context recall's is. `details` has `statements`, `statement_scores` (1
    supported, 0 not, `None` not checked) and `verdicts`.

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
    examples: tuple[FaithfulnessExample, ...] | None = None
    """Few-shot examples for the model, each `{"inputs": {"questions": "…", "contexts": ["…"],
    "predicted_answers": "…"}, "outputs": {"statements": ["…"], "statement_scores": [1]}}`. They
    cost tokens in every call."""
    single_pass: bool | SinglePassJudge = False
    """Find and judge the claims in one call of the model, as `GroundednessRunnable` does;
    without `examples`, `extractor` and `verifier`."""

    @override
    def _score(self, row: EvaluationRow) -> Flow[RowScore]:
        source = CheckInput(
            question=row.question, answer=row.answer or "", documents=row.documents or ()
        )
        [result] = yield from self._judge_all([source])
        labels = [v.verdict for v in result.claims]
        counts = ", ".join(f"{labels.count(label)} {label}" for label in dict.fromkeys(labels))
        scores = {"supported": 1, "contradicted": 0, "unverifiable": 0}
        return self._row_score(
            result.trust_score,
            result.claims,
            nothing=_NO_CLAIMS,
            comment=f"{len(labels)} claim{'s' if len(labels) != 1 else ''}: {counts}",
            details={
                "statements": [v.claim.text for v in result.claims],
                "statement_scores": [scores.get(label) for label in labels],
                "verdicts": labels,
            },
            result=result,
        )

    @override
    def _checker(self) -> GroundednessRunnable:
        if self._made is None:
            examples = self.examples or ()
            self._made = GroundednessRunnable(
                model=self.model,
                model_timeout=self.model_timeout,
                verifier=self.verifier or self._taught_verifier(),
                extractor=self.extractor,
                max_claims=self.max_claims,
                examples=[example.extraction for example in examples] or None,
                single_pass=self.single_pass,
            )
        return self._made

    def _taught_verifier(self) -> LLMVerifier | None:
        messages = [m for example in self.examples or () for m in example.verification()]
        if not messages or self.model is None:
            return None
        prompt = FEW_SHOT_VERIFICATION_PROMPT.partial(examples=messages)
        return LLMVerifier(model=self.model, prompt=prompt, timeout=self.model_timeout)
