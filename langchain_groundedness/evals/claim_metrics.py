"""Metrics that count the claims of a text which another text supports.

Faithfulness, context recall and precision, factual and answer correctness.
"""

from abc import ABC
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self, TypeAlias

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import merge_configs
from pydantic import Field, model_validator
from typing_extensions import override

from langchain_groundedness._runtime.flow import Flow, ModelCall
from langchain_groundedness._runtime.options import AnyRunnable
from langchain_groundedness._runtime.telemetry import count
from langchain_groundedness.display.counts import format_count
from langchain_groundedness.evals.citation_marks import (
    blank_out_marks,
    citation_marks,
    reference_list,
)
from langchain_groundedness.evals.evaluator import Evaluator, RowFailedError
from langchain_groundedness.evals.prompts import FEW_SHOT_VERIFICATION_PROMPT, FaithfulnessExample
from langchain_groundedness.evals.text_metrics import cosine_of
from langchain_groundedness.evals.values import EvaluationRow, RowScore
from langchain_groundedness.exceptions import ConfigurationError, MissingDependencyError
from langchain_groundedness.inputs.formats import CheckInput, has_text
from langchain_groundedness.llm.chat_models import ChatModel, memoized
from langchain_groundedness.llm.usage import UsageCounter
from langchain_groundedness.pipeline.check import Check, CheckState
from langchain_groundedness.pipeline.recording import encoder_checksum
from langchain_groundedness.runnable import GroundednessRunnable
from langchain_groundedness.types import Citation, Claim, ClaimVerdict, GroundednessResult, Usage
from langchain_groundedness.verification import EmbeddedVerifier, LLMVerifier
from langchain_groundedness.verification.by_name import AnyVerifier
from langchain_groundedness.verification.scoring import merge_verdicts
from langchain_groundedness.verification.single_pass import SinglePassJudge

__all__ = [
    "AnswerCorrectnessEvaluator",
    "ClaimEvaluator",
    "ContextPrecisionEvaluator",
    "ContextRecallEvaluator",
    "FactualCorrectnessEvaluator",
    "FaithfulnessEvaluator",
]

_PERMANENT = (ConfigurationError, MissingDependencyError)
_NOTHING = "There is no text that could support it."

Places: TypeAlias = tuple[int, ...]
"""Indices of some of the documents of a row."""


class ClaimEvaluator(Evaluator, ABC):
    """Base of evaluators that find claims and have them judged, as `GroundednessRunnable` does."""

    model: ChatModel | None = None
    """A chat model, or its name as `provider:name`, that extracts and judges claims; `None` for the
    embedded verifier."""
    verifier: AnyVerifier | None = None
    """Judges the claims; by default the model, or the embedded verifier."""
    extractor: AnyRunnable | None = None
    """Finds the claims; by default the model, or sentences where there is no model."""
    max_claims: int | None = Field(default=None, ge=1)
    """Most claims of one text to verify; a row with more fails."""

    @model_validator(mode="after")
    def _usable_parts(self) -> Self:
        _ = self._check
        return self

    def _checker_options(self) -> dict[str, Any]:
        names = ("model", "model_timeout", "verifier", "extractor", "max_claims")
        return {name: getattr(self, name) for name in names}

    @property
    def _check(self) -> Check:
        return memoized(self, self._make_check)

    def _make_check(self) -> Check:
        checker = GroundednessRunnable(**self._checker_options())
        return replace(checker.check, permanent_errors=_PERMANENT)

    @override
    def _defaults(self) -> Mapping[str, Any]:
        check = self._check
        if check.single_pass is not None:
            return {"single_pass": check.single_pass}
        embedded = isinstance(check.verifier, EmbeddedVerifier)
        checksum = {"encoder": encoder_checksum()} if embedded else {}
        return {"extractor": check.extractor, "verifier": check.verifier, **checksum}

    def _judge_all(self, sources: Sequence[CheckInput]) -> Flow[list[GroundednessResult]]:
        """Check all texts in one batch; without documents, no claim is supported."""
        states = [CheckState(source=source) for source in sources]
        counters = [UsageCounter() for _ in sources]
        for step in self._check.on_whole_answers():
            states = yield ModelCall(_MeteredBatch(step, counters), states)
        results = [
            self._check.result(self._judged(state), counter.usage)
            for state, counter in zip(states, counters, strict=True)
        ]
        for result in results:
            count(result)
        return results

    def _claims_of(self, text: str, question: str | None) -> Flow[tuple[Claim, ...]]:
        """Find the claims of a text; raises if that fails."""
        state = CheckState(source=CheckInput(answer=text, question=question))
        if (task := self._check.extraction(state)) is None:
            return ()
        reply = yield ModelCall(self._check.extractor, task)
        claims = self._check.with_claims(state, reply, complete=True).claims or ()
        if self.max_claims is not None and len(claims) > self.max_claims:
            msg = f"{format_count(len(claims), 'claim')}, over max_claims={self.max_claims}"
            raise RowFailedError(msg)
        return claims

    def _judge_against(
        self, claims: Mapping[Places, tuple[Claim, ...]], source: CheckInput
    ) -> Flow[dict[Places, tuple[ClaimVerdict, ...]]]:
        """Judge claims by the documents with which they are listed, in one batch."""
        # Citations of the verdicts refer to all documents. Without documents, no claim is
        # supported.
        states = []
        for places, some in claims.items():
            documents = tuple(source.documents[place] for place in places)
            asked = source.model_copy(update={"documents": documents})
            states.append(CheckState(source=asked, claims=some))
        plain = replace(self._check, metadata_keys=())  # a title alone is no retrieved text
        verify = _MeteredBatch(plain.verifying(edit=False), [UsageCounter() for _ in states])
        states = yield ModelCall(verify, states)
        return {
            places: tuple(
                _citing_all_documents(self._judged(state).verdicts, places, source.documents)
            )
            for places, state in zip(claims, states, strict=True)
        }

    def _judged(self, state: CheckState) -> CheckState:
        """Give each claim a verdict; where there was nothing to read, no claim is supported."""
        verdicts = self._check.all_verdicts(state)
        if state.failure is None and not has_text(state.source.documents):
            checked = tuple(map(_not_supported, self._check.claims_to_check(state)))
            verdicts = checked + verdicts[len(checked) :]
        return replace(state, verdicts=verdicts)

    def _row_score(
        self,
        score: float | None,
        verdicts: Sequence[ClaimVerdict],
        *,
        nothing: str,
        comment: str,
        **found: Any,
    ) -> RowScore:
        """Make a score, unless verdicts are missing or there is no claim."""
        if reason := unchecked_reason(verdicts):
            return self._failed(reason, **found)
        if score is None:
            return self._skipped(nothing, **found)
        return self._scored(score, comment=comment, **found)

    def _result(self, source: CheckInput, verdicts: Iterable[ClaimVerdict]) -> GroundednessResult:
        """Build the result that the run-time check would return."""
        listed = tuple(verdicts)
        state = CheckState(source=source, claims=tuple(v.claim for v in listed), verdicts=listed)
        return self._check.result(state, Usage())


@dataclass
class _MeteredBatch(Runnable[list[CheckState], list[CheckState]]):
    """Batches a step, and counts the usage of each entry; adds no traced run of its own."""

    step: Runnable[CheckState, CheckState]
    counters: Sequence[UsageCounter]

    @override
    def invoke(
        self, input: list[CheckState], config: RunnableConfig | None = None, **_: Any
    ) -> list[CheckState]:
        return self.step.batch(input, self._configs(config))

    @override
    async def ainvoke(
        self, input: list[CheckState], config: RunnableConfig | None = None, **_: Any
    ) -> list[CheckState]:
        return await self.step.abatch(input, self._configs(config))

    def _configs(self, config: RunnableConfig | None) -> list[RunnableConfig]:
        return [merge_configs(config, {"callbacks": [counter]}) for counter in self.counters]


def supported_share(result: GroundednessResult | None) -> float | None:
    """Give the share of claims that are supported."""
    labels = [v.verdict for v in result.claims] if result else []
    return None if "unchecked" in labels or not labels else labels.count("supported") / len(labels)


def supported_summary(result: GroundednessResult) -> str:
    """Write how many of the claims are supported."""
    supported = sum(v.verdict == "supported" for v in result.claims)
    return f"{supported} of {format_count(len(result.claims), 'claim')}"


def unchecked_reason(verdicts: Sequence[ClaimVerdict]) -> str | None:
    """Say that claims could not be checked, if that is so."""
    reasons = [v.reason for v in verdicts if v.verdict == "unchecked"]
    of = format_count(len(verdicts), "claim")
    return f"{len(reasons)} of {of} could not be checked: {reasons[0]}" if reasons else None


def plain_verdicts(verdicts: Iterable[ClaimVerdict]) -> list[dict[str, Any]]:
    """Write verdicts as plain data."""
    return [{"text": v.claim.text, "verdict": v.verdict} for v in verdicts]


def _citing_all_documents(
    verdicts: Iterable[ClaimVerdict], places: Places, documents: Sequence[Document]
) -> Iterator[ClaimVerdict]:
    """Map the citations of verdicts to all documents."""
    for verdict in verdicts:
        quotes = ((places[c.document], c.start, c.end) for c in verdict.citations)
        citations = tuple(Citation.from_document(documents, *quote) for quote in quotes)
        yield verdict.model_copy(update={"citations": citations})


def _not_supported(claim: Claim) -> ClaimVerdict:
    return ClaimVerdict(claim=claim, verdict="unverifiable", explanation=_NOTHING)


class FaithfulnessEvaluator(ClaimEvaluator):
    """Share of the claims of an answer that its documents support.

    Score: supported / (supported + contradicted + unverifiable). An answer with a claim that could
    not be checked fails, with its finished verdicts in `RowScore.result`; one without claims ("I
    don't know") is skipped. Where nothing was retrieved, nothing is supported: the score is 0, as
    in context recall. `details` has `statements`, `statement_scores` (1 supported, 0 not, `None`
    not checked) and `verdicts`.

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
        counts = ", ".join(f"{number} {label}" for label, number in Counter(labels).items())
        scores = {"supported": 1, "contradicted": 0, "unverifiable": 0}
        return self._row_score(
            result.trust_score,
            result.claims,
            nothing="the answer makes no claim that could be checked",
            comment=f"{format_count(len(labels), 'claim')}: {counts}",
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
            "verifier": self.verifier or self._few_shot_verifier(),
            "examples": [example.extraction for example in self.examples or ()] or None,
            "single_pass": self.single_pass,
        }

    def _few_shot_verifier(self) -> LLMVerifier | None:
        messages = [m for example in self.examples or () for m in example.verification()]
        if not messages or self.model is None:
            return None
        prompt = FEW_SHOT_VERIFICATION_PROMPT.partial(examples=messages)
        return LLMVerifier(model=self.model, prompt=prompt, timeout=self.model_timeout)


_Mode: TypeAlias = Literal["f1", "precision", "recall"]
_ANSWER, _REFERENCE = "the answer makes no claim", "the reference makes no claim"


def f_beta(precision: float, recall: float, beta: float = 1.0) -> float:
    """Join precision and recall in their weighted harmonic mean.

    Van Rijsbergen, Information Retrieval, 1979: (1 + β²)·P·R / (β²·P + R).
    """
    if 0 in (precision, recall):
        return 0.0
    return (1 + beta**2) * precision * recall / (beta**2 * precision + recall)


def f_score(precision: float | None, recall: float | None, beta: float = 1.0) -> float | None:
    """Join precision and recall; `None` if neither text makes a claim.

    An answer without claims repeats nothing of the reference, and claims where the reference has
    none are not supported by it: the missing half counts as 0.
    """
    if precision is None and recall is None:
        return None
    return f_beta(precision or 0.0, recall or 0.0, beta)


class _ComparingEvaluator(ClaimEvaluator):
    """Base of the evaluators that compare answer and reference by their claims."""

    needs = ("answer", "reference")

    beta: float = Field(default=1.0, gt=0.0, allow_inf_nan=False)
    """Weight of recall relative to precision."""

    def _compared(
        self, row: EvaluationRow, mode: _Mode, options: Mapping[str, Any]
    ) -> Flow[RowScore]:
        """Judge the claims of each text by the other; `options` begin the details."""
        said, right = row.answer or "", row.reference or ""
        pairs = {"answer": (said, right), "reference": (right, _without_citations(said))}
        asked = {"precision": ["answer"], "recall": ["reference"]}.get(mode, list(pairs))
        sources = [
            CheckInput(question=row.question, answer=text, documents=(Document(other),))
            for text, other in map(pairs.__getitem__, asked)
        ]
        results = yield from self._judge_all(sources)
        found = dict(zip(asked, results, strict=True))
        precision = supported_share(found.get("answer"))
        recall = supported_share(found.get("reference"))
        score, nothing = {
            "f1": (f_score(precision, recall, self.beta), f"{_ANSWER}, and {_REFERENCE}"),
            "precision": (precision, _ANSWER),
            "recall": (recall, _REFERENCE),
        }[mode]
        details = {**options, "precision": precision, "recall": recall}
        comments = []
        for text, result in found.items():
            is_answer = text == "answer"
            details["claims" if is_answer else "reference_claims"] = plain_verdicts(result.claims)
            other = "reference" if is_answer else "answer"
            comments.append(f"the {other} supports {supported_summary(result)} of the {text}")
        return self._row_score(
            score,
            [verdict for result in results for verdict in result.claims],
            nothing=nothing,
            comment="; ".join(comments),
            details=details,
            result=results[0],
        )


class FactualCorrectnessEvaluator(_ComparingEvaluator):
    """How much of an answer the reference supports, and how much of the reference it covers.

    Precision is the share of the claims of the answer that the reference supports; recall is the
    share of the claims of the reference that the answer supports; `f1` joins them. Both sides are
    judged by the claim verifier, in parallel; the idea is that of FActScore (Min et al. 2023) in
    both directions. `details` has precision, recall and the claims of both sides with their
    verdicts; `result` is the check of the answer, or of the reference with `mode="recall"`.

    A row is skipped if there are no claims to count.

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
    mode: _Mode = "f1"
    """What the score is. With `precision` or `recall` only that direction is judged."""

    @override
    def _score(self, row: EvaluationRow) -> Flow[RowScore]:
        return self._compared(row, self.mode, {"mode": self.mode, "beta": self.beta})


class AnswerCorrectnessEvaluator(_ComparingEvaluator):
    """Facts and wording together: the F-score of the claims, and the closeness of the texts.

    The score is the mean of `FactualCorrectnessEvaluator`'s F-score and the cosine similarity of
    the embeddings of answer and reference, weighted 0.75 and 0.25 as ragas does (0.4.3,
    `answer_correctness`). A cosine may be negative. `details` has both parts in addition to those
    of factual correctness.

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
    """Weights of the F-score and the similarity; they need not add up to 1."""

    @model_validator(mode="after")
    def _usable_weights(self) -> Self:
        if min(self.weights) < 0 or not 0 < sum(self.weights) < float("inf"):
            msg = f"weights must not be negative, nor both 0, got {self.weights}"
            raise ValueError(msg)
        if self.weights[1] and self.embeddings is None:
            msg = (
                "embeddings are needed for the similarity: give embeddings=, or --embeddings on "
                "the command line; without, weights=(1, 0)"
            )
            raise ValueError(msg)
        return self

    @override
    def _score(self, row: EvaluationRow) -> Flow[RowScore]:
        options = {"beta": self.beta, "weights": list(self.weights)}
        found = yield from self._compared(row, "f1", options)
        if found.score is None:
            return found
        parts = {"factual": found.score}
        if self.embeddings is not None and self.weights[1]:
            texts = row.answer or "", row.reference or ""
            parts["similarity"] = yield from cosine_of(self.embeddings, *texts)
        weighted = zip(self.weights, parts.values(), strict=False)
        score = sum(weight * part for weight, part in weighted) / sum(self.weights)
        return found.model_copy(update={"score": score, "details": {**found.details, **parts}})


def _without_citations(answer: str) -> str:
    """Remove citations from an answer: the number in `[5]` is not a fact."""
    text, _ = reference_list(answer)
    return blank_out_marks(text, citation_marks(text))


def average_precision(relevant: list[bool]) -> float:
    """Average precision of a ranking: high if relevant documents come first.

    The mean, over the relevant documents, of the precision down to their rank (Manning, Raghavan
    and Schütze, Introduction to Information Retrieval, 2008, section 8.4), among the retrieved
    documents only.
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
        return self._row_score(
            supported_share(result),
            result.claims,
            nothing="the reference makes no claim that could be checked",
            comment=f"the documents support {supported_summary(result)} of the reference",
            details={"reference_claims": plain_verdicts(result.claims)},
            result=result,
        )


class ContextPrecisionEvaluator(ClaimEvaluator):
    """Average precision of the ranked documents: do relevant ones come first?

    A document is relevant if it alone supports a claim of the reference, or, in a row without
    reference, of the answer. Where nothing was retrieved, or nothing relevant, the score is 0. The
    claims are found once; the documents are judged in parallel, each by itself, so that a chat
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
        source = CheckInput(question=row.question, answer=text, documents=row.documents or ())
        claims = yield from self._claims_of(text, row.question)
        if not claims:
            return self._skipped(f"the {judged_by} makes no claim that could be checked")
        places = range(len(source.documents))
        alone = yield from self._judge_against({(place,): claims for place in places}, source)
        found = list(alone.values())
        verdicts = list(map(merge_verdicts, zip(*found, strict=True)))
        if not found:
            verdicts = [ClaimVerdict.unchecked(c, "no document was retrieved") for c in claims]
        result = self._result(source, verdicts)
        relevant = list(map(_relevance, found))
        supported = [[v.claim.text for v in each if v.verdict == "supported"] for each in found]
        details = {"judged_by": judged_by, "relevant": relevant, "supported": supported}
        if None in relevant:
            place = relevant.index(None)
            reason = f"document {place + 1} of {len(found)}: {unchecked_reason(found[place])}"
            return self._failed(reason, details=details, result=result)
        of = format_count(len(relevant), "document")
        comment = f"{relevant.count(1)} of {of} support the {judged_by}"
        score = average_precision([each == 1 for each in relevant])
        return self._scored(score, comment=comment, details=details, result=result)


def _relevance(verdicts: tuple[ClaimVerdict, ...]) -> int | None:
    """Tell whether a document supports any claim; `None` if that could not be checked."""
    labels = {v.verdict for v in verdicts}
    return 1 if "supported" in labels else None if "unchecked" in labels else 0
