"""Metrics that count the claims of a text which another text supports.

Faithfulness, context recall and precision, factual and answer correctness.
"""

from typing import Any, Literal, NamedTuple, Self

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from pydantic import Field, model_validator
from typing_extensions import override

from langchain_groundedness._runtime.flow import Flow
from langchain_groundedness.evals.citation_marks import blanked, citation_marks, reference_list
from langchain_groundedness.evals.claim_evaluator import (
    ClaimEvaluator,
    ClaimGroup,
    plain_verdicts,
    supported_count,
    supported_share,
    unchecked_reason,
)
from langchain_groundedness.evals.prompts import FEW_SHOT_VERIFICATION_PROMPT, FaithfulnessExample
from langchain_groundedness.evals.text_metrics import cosine_of
from langchain_groundedness.evals.values import EvaluationRow, RowScore
from langchain_groundedness.inputs.formats import CheckInput
from langchain_groundedness.types import ClaimVerdict, GroundednessResult
from langchain_groundedness.verification import LLMVerifier
from langchain_groundedness.verification.scoring import merge_verdicts
from langchain_groundedness.verification.single_pass import SinglePassJudge

__all__ = [
    "AnswerCorrectnessEvaluator",
    "ContextPrecisionEvaluator",
    "ContextRecallEvaluator",
    "FactualCorrectnessEvaluator",
    "FaithfulnessEvaluator",
    "average_precision",
    "f_beta",
]

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
    def _checker_options(self) -> dict[str, Any]:
        return {
            **super()._checker_options(),
            "verifier": self.verifier or self._taught_verifier(),
            "examples": [example.extraction for example in self.examples or ()] or None,
            "single_pass": self.single_pass,
        }

    def _taught_verifier(self) -> LLMVerifier | None:
        messages = [m for example in self.examples or () for m in example.verification()]
        if not messages or self.model is None:
            return None
        prompt = FEW_SHOT_VERIFICATION_PROMPT.partial(examples=messages)
        return LLMVerifier(model=self.model, prompt=prompt, timeout=self.model_timeout)


_ANSWER, _REFERENCE = "the answer makes no claim", "the reference makes no claim"


def f_beta(precision: float, recall: float, beta: float = 1.0) -> float:
    """Join precision and recall in their weighted harmonic mean.

    Van Rijsbergen, Information Retrieval, 1979: (1 + β²)·P·R / (β²·P + R).
    """
    if 0 in (precision, recall):
        return 0.0
    return (1 + beta**2) * precision * recall / (beta**2 * precision + recall)


class _Comparison(NamedTuple):
    """The claims of the answer against the reference, and the other way round."""

    answer: GroundednessResult | None
    reference: GroundednessResult | None

    @property
    def verdicts(self) -> tuple[ClaimVerdict, ...]:
        return tuple(v for side in self if side is not None for v in side.claims)

    @property
    def precision(self) -> float | None:
        return None if self.answer is None else supported_share(self.answer.claims)

    @property
    def recall(self) -> float | None:
        return None if self.reference is None else supported_share(self.reference.claims)

    def f_score(self, beta: float) -> float | None:
        """Join both directions; `None` if neither text makes a claim.

        An answer without claims repeats nothing of the reference, and claims where the reference
        has none are not supported by it: the missing half counts as 0.
        """
        if self.precision is None and self.recall is None:
            return None
        return f_beta(self.precision or 0.0, self.recall or 0.0, beta)

    def details(self) -> dict[str, Any]:
        sides = {"claims": self.answer, "reference_claims": self.reference}
        claims = {
            key: plain_verdicts(side.claims) for key, side in sides.items() if side is not None
        }
        return {"precision": self.precision, "recall": self.recall, **claims}

    def comment(self) -> str:
        told = []
        if self.answer is not None:
            told.append(f"the reference supports {_supported(self.answer)} of the answer")
        if self.reference is not None:
            told.append(f"the answer supports {_supported(self.reference)} of the reference")
        return "; ".join(told)


def _supported(result: GroundednessResult) -> str:
    return f"{supported_count(result.claims)} of {len(result.claims)} claims"


class _ComparingEvaluator(ClaimEvaluator):
    """Base of the evaluators that compare answer and reference by their claims."""

    needs = ("answer", "reference")

    beta: float = Field(default=1.0, gt=0.0, allow_inf_nan=False)
    """How many times as much recall counts as precision."""

    def _compare(
        self, row: EvaluationRow, *, answer: bool = True, reference: bool = True
    ) -> Flow[_Comparison]:
        said, right = row.answer or "", row.reference or ""
        pairs = [(said, right)] * answer + [(right, _uncited(said))] * reference
        given = iter(
            (
                yield from self._judge_all(
                    [
                        CheckInput(question=row.question, answer=text, documents=(Document(other),))
                        for text, other in pairs
                    ]
                )
            )
        )
        return _Comparison(next(given) if answer else None, next(given) if reference else None)


class FactualCorrectnessEvaluator(_ComparingEvaluator):
    """How much of an answer the reference supports, and how much of the reference it covers.

    Precision is the share of the claims of the answer that the reference supports; recall is the
    share of the claims of the reference that the answer supports; `f1` joins them. Both sides are
    judged by the claim verifier, in parallel; the idea is that of FActScore (Min et al. 2023) in
    both directions. `details` has precision, recall and the claims of both sides with their
    verdicts; `result` is the check of the answer, or of the reference with `mode="recall"`.

    A row is skipped if there is nothing to take a share of.

    Example:
        >>> evaluator = FactualCorrectnessEvaluator()
        >>> score = evaluator.invoke(
        ...     {
        ...         "answer": "Rome is the capital of Italy.",
        ...         "reference": "Rome is the capital of Italy. Rome lies on the Tiber.",
        ...     }
        ... )
        >>> score.details["precision"], score.details["recall"], round(score.score, 3)
        (1.0, 0.5, 0.667)
    """

    key: str = Field(default="factual_correctness", min_length=1)
    mode: Literal["f1", "precision", "recall"] = "f1"
    """What the score is. With `precision` or `recall` only that direction is judged."""

    @override
    def _score(self, row: EvaluationRow) -> Flow[RowScore]:
        compared = yield from self._compare(
            row, answer=self.mode != "recall", reference=self.mode != "precision"
        )
        scores = {
            "f1": (compared.f_score(self.beta), f"{_ANSWER}, and {_REFERENCE}"),
            "precision": (compared.precision, _ANSWER),
            "recall": (compared.recall, _REFERENCE),
        }
        score, nothing = scores[self.mode]
        return self._row_score(
            score,
            compared.verdicts,
            nothing=nothing,
            comment=compared.comment(),
            details={"mode": self.mode, "beta": self.beta, **compared.details()},
            result=compared.answer or compared.reference,
        )


class AnswerCorrectnessEvaluator(_ComparingEvaluator):
    """Facts and wording together: the F-score of the claims, and the closeness of the texts.

    The score is the mean of `FactualCorrectnessEvaluator`'s F-score and the cosine similarity of
    the embeddings of answer and reference, weighted 0.75 and 0.25 as ragas does (0.4.3,
    `answer_correctness`). A cosine may be negative. `details` has both parts beside what factual
    correctness has.

    Example:
        >>> from langchain_core.embeddings import DeterministicFakeEmbedding
        >>> evaluator = AnswerCorrectnessEvaluator(embeddings=DeterministicFakeEmbedding(size=64))
        >>> text = "Rome is the capital of Italy."
        >>> round(evaluator.invoke({"answer": text, "reference": text}).score, 6)
        1.0
    """

    key: str = Field(default="answer_correctness", min_length=1)
    embeddings: Embeddings | None = None
    """Any LangChain embeddings; needed unless the second weight is 0."""
    weights: tuple[float, float] = (0.75, 0.25)
    """Of the F-score and of the similarity; they need not add up to 1."""

    @model_validator(mode="after")
    def _usable_weights(self) -> Self:
        if min(self.weights) < 0 or not 0 < sum(self.weights) < float("inf"):
            msg = f"weights must not be negative, nor both 0, got {self.weights}"
            raise ValueError(msg)
        if self.weights[1] and self.embeddings is None:
            msg = "embeddings are needed for the similarity: give embeddings=, or weights=(1, 0)"
            raise ValueError(msg)
        return self

    @override
    def _score(self, row: EvaluationRow) -> Flow[RowScore]:
        compared = yield from self._compare(row)
        details = {"beta": self.beta, "weights": list(self.weights), **compared.details()}
        score = compared.f_score(self.beta)
        if score is not None and not unchecked_reason(compared.verdicts):
            similarity = 0.0
            details["factual"] = score
            if self.embeddings is not None and self.weights[1]:
                similarity = yield from cosine_of(
                    self.embeddings, row.answer or "", row.reference or ""
                )
                details["similarity"] = similarity
            score = (self.weights[0] * score + self.weights[1] * similarity) / sum(self.weights)
        return self._row_score(
            score,
            compared.verdicts,
            nothing=f"{_ANSWER}, and {_REFERENCE}",
            comment=compared.comment(),
            details=details,
            result=compared.answer,
        )


def _uncited(answer: str) -> str:
    """Remove citations from an answer: the number in `[5]` is not a fact."""
    text, _ = reference_list(answer)
    return blanked(text, citation_marks(text))


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
