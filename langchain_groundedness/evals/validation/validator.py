"""Validates an example for a data set: support by its documents, then quality."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self, TypeAlias

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.embeddings import Embeddings
from pydantic import Field, model_validator
from typing_extensions import override

from langchain_groundedness._runtime.flow import Flow, FlowRunnable, ModelCall
from langchain_groundedness._runtime.options import AnyRunnable, EqualByOptions
from langchain_groundedness._runtime.timeouts import DEFAULT_TIMEOUT, Seconds
from langchain_groundedness.calibration import Calibration
from langchain_groundedness.calibration.thresholds import require_installed_encoder
from langchain_groundedness.claims.extractors import SentenceClaimExtractor
from langchain_groundedness.display.counts import count_of, format_count
from langchain_groundedness.evals.citation_marks import (
    DocumentIndex,
    blank_out_marks,
    citation_marks,
)
from langchain_groundedness.evals.columns import read_row
from langchain_groundedness.evals.composite import CompositeScore
from langchain_groundedness.evals.evaluator import run_row_flow
from langchain_groundedness.evals.judged import QUALITY_DIMENSIONS, AnswerQualityEvaluator
from langchain_groundedness.evals.values import EvaluationRow, RowScore
from langchain_groundedness.exceptions import (
    ConfigurationError,
    MissingDependencyError,
    cause,
)
from langchain_groundedness.inputs.formats import CheckInput, has_text
from langchain_groundedness.llm.chat_models import ChatModel, memoized
from langchain_groundedness.runnable import GroundednessRunnable
from langchain_groundedness.types import (
    ClaimVerdict,
    FrozenModel,
    GroundednessResult,
    Usage,
    VerdictLabel,
)
from langchain_groundedness.verification import (
    CascadeVerifier,
    EmbeddedVerifier,
    EmbeddingVerifier,
    LLMVerifier,
    Stage,
)
from langchain_groundedness.verification.by_name import AnyVerifier
from langchain_groundedness.verification.embedding import SimilarityVerdict

__all__ = [
    "SOURCE",
    "AnswerValidator",
    "Bands",
    "Outcome",
    "ReasonCode",
    "RowValidation",
    "SourceClaim",
    "Thresholds",
    "ValidatedRow",
    "ValidationReason",
]

SOURCE = "source"
"""Name of the score of the first stage."""

_FIRST_STAGE = "stage:1"
"""Tag of the runs of a cascade's first stage."""
_EMBEDDED = "embedded"
_THRESHOLDS = frozenset({"settle_supported", "settle_unsupported", "support"})
_SLACK = 1e-9
"""In floating point, 0.3 + 0.15 + 0.25 is less than 0.7."""

Outcome: TypeAlias = Literal["passed", "rejected", "unchecked"]
"""`unchecked`: the row could not be checked. Such a row never passes."""

Band: TypeAlias = Literal["accept", "judge", "reject"]
"""What follows from the similarity: the claim is supported, the judge decides, or the claim is not
supported."""

ReasonCode: TypeAlias = Literal[
    "contradicted",
    "source",
    "minimum",
    "composite",
    "no_answer",
    "no_documents",
    "no_claims",
    "not_cited",
    "claims_unchecked",
    "quality_unchecked",
    "failed",
]


class ValidationReason(FrozenModel):
    """Why a row has not passed."""

    code: ReasonCode
    """`contradicted`: the documents say otherwise; `source`: too small a share of the claims is
    supported; `minimum`: one score is below its minimum; `composite`: all scores together are too
    low. The others say why a row could not be checked."""
    text: str
    """The same, for a reader."""


class SourceClaim(FrozenModel):
    """A claim of the answer, and what decided it."""

    verdict: ClaimVerdict
    """The final verdict."""
    similarity: float | None = None
    """With embeddings, the cosine similarity to the closest passage, rounded to two digits;
    without, the support probability of the embedded verifier. `None` if it is not known."""
    band: Band | None = None
    """What follows from the similarity."""
    differs: bool = False
    """Whether the documents have other numbers, names or negations. The judge then decides."""


class RowValidation(FrozenModel):
    """What validation found in one row."""

    outcome: Outcome
    stage: Literal["source", "quality"]
    """The last stage that saw the row."""
    reasons: tuple[ValidationReason, ...] = ()
    """Why the row has not passed; empty if it has."""
    composite: float | None = Field(default=None, ge=0, le=1, allow_inf_nan=False)
    """Weighted mean of the scores; `None` if the row was rejected before all of them were known."""
    scores: dict[str, float] = Field(default_factory=dict)
    """`source`: the share of claims that is supported; with a chat model `relevance`,
    `correctness` and `completeness`."""
    claims: tuple[SourceClaim, ...] = ()
    quality: dict[str, Any] = Field(default_factory=dict)
    """What stage 2 found besides its scores, such as its reasoning."""
    citations: dict[str, tuple[int, ...]] = Field(default_factory=dict)
    """Each citation of the answer (a path, number or name) with the indexes of the documents that
    it names, counted from 0; empty if it names none."""
    usage: Usage = Usage()


class ValidatedRow(RowValidation):
    """What is written with each row to `passed.jsonl` and `rejected.jsonl`, under `validation`."""

    id: str
    """The id of the row, or its line."""
    label: str | bool | float | None = None
    """The label that a person gave the row."""
    digest: str = ""
    """Digest of question, answer and documents; shows whether the row changed between runs."""
    group: str = ""
    """Digest of the documents; rows with the same documents are not independent evidence."""


class Bands(NamedTuple):
    """The thresholds of stage 1."""

    accept: float
    """Least similarity of a supported claim."""
    reject: float
    """Similarity below which a claim is not supported."""
    support: float | None = None
    """Without a judge, the least probability of a supported claim between the two; with `None`, all
    of those claims are supported."""

    @property
    def middle(self) -> float:
        """Without a judge, the least probability of a supported claim."""
        if self.support is None:
            return self.reject
        return min(max(self.support, self.reject), self.accept)

    def band(self, said: ClaimVerdict) -> Band:
        """Return what follows from a verdict of the first verifier.

        The judge confirms contradictions, because they reject the whole row.
        """
        near = _similarity(said)
        # A cosine is rounded, so the verdict decides.
        is_exact = said.support_probability is not None
        if said.verdict == "supported" and (near is None or not is_exact or near >= self.accept):
            return "accept"
        if said.verdict != "unverifiable" or near is None:
            return "judge"
        return "reject" if not is_exact or near < self.reject else "judge"

    def settles(self, said: ClaimVerdict) -> bool:
        """Tell whether a probability settles a claim."""
        return said.support_probability is not None and self.band(said) != "judge"


class Thresholds(NamedTuple):
    """The thresholds of both stages."""

    bands: Bands
    pass_score: float
    min_source: float
    on_contradicted: Literal["reject", "count"]
    composite: CompositeScore
    has_judge: bool
    """Whether another verifier decides what similarity leaves open."""
    has_quality: bool
    """Whether there is a second stage."""

    def against_source(self, labels: Sequence[VerdictLabel]) -> ValidationReason | None:
        """Tell what in the verdicts rejects a row, if anything does."""
        contradicted, total = labels.count("contradicted"), len(labels)
        if contradicted and self.on_contradicted == "reject":
            text = f"the documents contradict {contradicted} of {format_count(total, 'claim')}"
            return ValidationReason(code="contradicted", text=text)
        supported = labels.count("supported")
        if not total or "unchecked" in labels or supported / total >= self.min_source - _SLACK:
            return None
        claims, share = count_of(supported, total, "claim"), supported / total
        text = f"{claims} supported: {share:.2f} is less than {self.min_source:.2f}"
        return ValidationReason(code="source", text=text)

    def combined(
        self, scores: Mapping[str, float]
    ) -> tuple[RowScore, tuple[ValidationReason, ...]]:
        """Combine the scores there are; tell what in them rejects a row."""
        weights = {n: w for n, w in self.composite.weights.items() if n in scores}
        minimums = {n: least for n, least in self.composite.minimums.items() if n in weights}
        narrowed = {"weights": weights, "minimums": minimums}
        found, against = self.composite.model_copy(update=narrowed).of(scores), []
        for name, least in minimums.items():
            if scores[name] < least:
                text = f"{name}: {scores[name]:.2f} is less than its minimum {least:.2f}"
                against.append(ValidationReason(code="minimum", text=text))
        if found.score is not None and found.score < self.pass_score - _SLACK:
            text = f"the composite score {found.score:.2f} is less than {self.pass_score:.2f}"
            against.append(ValidationReason(code="composite", text=text))
        return found, tuple(against)


class AnswerValidator(EqualByOptions, FlowRunnable[Any, RowValidation]):
    """Validates a question, its answer and its documents in two stages.

    Stage 1 compares each claim of the answer with the documents. A claim is supported if its
    similarity is at least `accept`, and unsupported if it is below `reject`. In between, the judge
    decides; the judge also decides where numbers, names or negations differ. Without `embeddings`,
    the support probability of the embedded verifier is used instead of the similarity. It is
    calibrated and already compares numbers, names and negations. A contradiction that the embedded
    verifier finds also goes to the judge, because it rejects the row. The judge is the model or
    `verifier`. Without either, the embedded verifier decides, and a claim between the two
    thresholds is supported.

    An answer that the documents contradict is rejected. Otherwise its source score is the share of
    supported claims. By default half of the claims must be supported to reach stage 2: missing
    support lowers the score but does not reject the row.

    Stage 2 needs a model and sees only rows that passed stage 1. It scores relevance, correctness
    and completeness in one separate call; short answers lose no points. The composite score is the
    weighted mean of the four scores, and a row passes if it is at least `pass_score`. Without a
    model the composite is the source score. An answer without claims, such as "I don't know", has
    no source score: a model judges it by the other three scores; without a model it is `unchecked`.

    A row that could not be checked is `unchecked` and never passes.

    The weights and the thresholds 0.75, 0.5 and 0.7 are common in two-stage pipelines for
    question-answer data; 0.75 and 0.5 fit sentence embeddings. Measure them on your data:
    `calibration` reads `settle_supported`, `settle_unsupported` and `support` from a file.

    The input is an `EvaluationRow`, or a mapping with question, answer and contexts under any of
    the names in `evals.columns.COLUMNS`.

    Example:
        >>> validator = AnswerValidator()
        >>> found = validator.invoke(
        ...     {
        ...         "question": "How old is the bridge?",
        ...         "answer": "The bridge was built in 1890.",
        ...         "contexts": ["The bridge was built in 1890 and restored in 1962."],
        ...     }
        ... )
        >>> found.outcome, found.scores
        ('passed', {'source': 1.0})
    """

    model: ChatModel | None = None
    """A chat model, or its name as `provider:name`, that judges claims between the thresholds, and
    the quality."""
    model_timeout: Seconds = DEFAULT_TIMEOUT
    """Seconds to wait for one reply of the model; `None` leaves it to the model's client."""
    embeddings: Embeddings | None = None
    """Measure the similarity; `None` for the probability of the embedded verifier."""
    verifier: AnyVerifier | None = None
    """Judges claims between the thresholds instead of the model."""
    extractor: AnyRunnable | None = None
    """Finds the claims; by default each sentence is one, which needs no model call."""
    quality: AnyRunnable | None = None
    """Scores the quality: from an `EvaluationRow` to a `RowScore` with `relevance`, `correctness`
    and `completeness` in its details; by default an `AnswerQualityEvaluator`, if there is a model.
    """
    calibration: Any = None
    """A `Calibration` or the path of its file; its thresholds replace `accept` and `reject`."""
    accept: float = Field(default=0.75, ge=-1, le=1)
    """Least similarity of a supported claim."""
    reject: float = Field(default=0.5, ge=-1, le=1)
    """Similarity below which a claim is not supported."""
    min_source: float = Field(default=0.5, ge=0, le=1)
    """Least share of supported claims to pass stage 1."""
    on_contradicted: Literal["reject", "count"] = "reject"
    """Whether a contradicted claim rejects the row or counts as not supported."""
    evidence: Literal["documents", "cited"] = "documents"
    """Which documents claims are compared with: all, or those that the answer cites. Paths match
    regardless of leading folders, case and encoding."""
    pass_score: float = Field(default=0.7, ge=0, le=1)
    """Least composite score of a row that passes."""
    composite: CompositeScore = CompositeScore()
    """Weights and minimums of the scores:
    `CompositeScore(minimums={"correctness": 0.5})`."""

    @model_validator(mode="after")
    def _usable(self) -> Self:
        known = {SOURCE, *QUALITY_DIMENSIONS}
        if not self.composite.weights.get(SOURCE) or not known.issuperset(self.composite.weights):
            names = ", ".join(sorted(known))
            msg = f"composite: weights may name {names}; that of {SOURCE} must be above 0"
            raise ValueError(msg)
        _ = self._stages
        return self

    @property
    def bands(self) -> Bands:
        """The thresholds of similarity in force, those of the calibration included."""
        return self._stages.bands

    @property
    def thresholds(self) -> Thresholds:
        """All thresholds in force."""
        judges = (self.model, self.verifier, self.embeddings)
        return Thresholds(
            self.bands,
            self.pass_score,
            self.min_source,
            self.on_contradicted,
            self.composite,
            has_judge=any(each is not None for each in judges),
            has_quality=self._stages.quality is not None,
        )

    @override
    def _flow(self, value: Any, /, **_: Any) -> Flow[RowValidation]:
        def failed(_: Exception, why: str) -> RowValidation:
            return _unchecked_because(_NOT_CHECKED, "failed", f"the validation failed: {why}")

        return (yield from run_row_flow(self._validated(read_row(value)), failed))

    def _validated(self, row: EvaluationRow) -> Flow[RowValidation]:
        answer, documents = row.answer or "", row.documents or ()
        if not answer.strip():
            return _unchecked_because(_NOT_CHECKED, "no_answer", "the row has no answer")
        if not has_text(documents):
            text = "the row has no documents to check against"
            return _unchecked_because(_NOT_CHECKED, "no_documents", text)
        index = DocumentIndex(documents)
        marks = citation_marks(answer, index.names)
        citations = {str(target): index.find(target) for mark in marks for target in mark.targets}
        if self.evidence == "cited":
            named = sorted({place for places in citations.values() for place in places})
            documents = tuple(documents[place] for place in named)
        if not has_text(documents):
            cited = ", ".join(citations) or "nothing"
            text = f"none of the documents is cited: the answer cites {cited}"
            return _unchecked_because(_NOT_CHECKED, "not_cited", text)
        # Marks state nothing; offsets stay those of the answer.
        source = CheckInput(
            question=row.question, answer=blank_out_marks(answer, marks), documents=documents
        )
        found = _NOT_CHECKED.model_copy(update={"citations": citations})
        return (yield from self._in_stages(found, row, source))

    def _in_stages(
        self, found: RowValidation, row: EvaluationRow, source: CheckInput
    ) -> Flow[RowValidation]:
        stages, first_stage = self._stages, _FirstStageVerdicts()
        checker = stages.checker.with_config(callbacks=[first_stage])
        result: GroundednessResult = yield ModelCall(checker, source)
        claims = tuple(
            _source_claim(verdict, first_stage.said.get(verdict.claim.id), stages.bands)
            for verdict in result.claims
        )
        labels = [verdict.verdict for verdict in result.claims]
        scores = {} if result.trust_score is None else {SOURCE: result.trust_score}
        found = found.model_copy(update={"claims": claims, "scores": scores})
        if (against := self.thresholds.against_source(labels)) is not None:
            return found.model_copy(update={"outcome": "rejected", "reasons": (against,)})
        if (unchecked := self._source_unchecked(result)) is not None:
            return found.model_copy(update={"reasons": (unchecked,)})
        if stages.quality is not None:
            found = yield from _with_quality(found, row, stages.quality)
        return found if found.reasons else self._decided(found)

    def _source_unchecked(self, result: GroundednessResult) -> ValidationReason | None:
        """Say why stage 1 could not check an answer, if so."""
        open_ones = [verdict for verdict in result.claims if verdict.verdict == "unchecked"]
        if open_ones:
            claims = format_count(len(result.claims), "claim")
            text = f"{len(open_ones)} of {claims} not checked: {open_ones[0].reason}"
            return ValidationReason(code="claims_unchecked", text=text)
        was_read = result.decision.action == "pass"
        if result.claims or (was_read and self._stages.quality is not None):
            return None
        text = "the answer makes no claim, and without a chat model there is no other score"
        if not was_read:
            text = "; ".join(result.decision.reasons) or "no claim was found in the answer"
        return ValidationReason(code="no_claims", text=text)

    def _decided(self, found: RowValidation) -> RowValidation:
        combined, against = self.thresholds.combined(found.scores)
        if combined.score is None:
            return _unchecked_because(found, "failed", f"no composite score: {combined.reason}")
        outcome = "rejected" if against else "passed"
        update = {"outcome": outcome, "reasons": against, "composite": combined.score}
        return found.model_copy(update=update)

    @property
    def _stages(self) -> "_ValidationStages":
        return memoized(self, self._make_stages)

    def _make_stages(self) -> "_ValidationStages":
        bands, quality = _bands(self), self.quality
        if quality is None and self.model is not None:
            quality = AnswerQualityEvaluator(model=self.model, model_timeout=self.model_timeout)
        extractor = self.extractor or SentenceClaimExtractor()
        checker = GroundednessRunnable(verifier=self._source_verifier(bands), extractor=extractor)
        return _ValidationStages(bands, checker, quality)

    def _source_verifier(self, bands: Bands) -> CascadeVerifier:
        judge = self.verifier
        if judge is None and self.model is not None:
            judge = LLMVerifier(model=self.model, timeout=self.model_timeout)
        if self.embeddings is not None:
            gate = EmbeddingVerifier(
                embeddings=self.embeddings, accept=bands.accept, reject=bands.reject
            )
            return CascadeVerifier([gate, judge or EmbeddedVerifier()])
        if judge is None:
            return CascadeVerifier([EmbeddedVerifier(threshold=bands.middle)])
        gated = Stage(verifier=EmbeddedVerifier(threshold=bands.reject), settles=bands.settles)
        return CascadeVerifier([gated, judge])


class _ValidationStages(NamedTuple):
    """What was made of the options."""

    bands: Bands
    checker: GroundednessRunnable
    quality: AnyRunnable | None


class _FirstStageVerdicts(BaseCallbackHandler):
    """Collects the first-stage verdicts on the claims of one row."""

    run_inline = True

    def __init__(self) -> None:
        self.said: dict[str, ClaimVerdict] = {}

    @override
    def on_chain_end(self, outputs: Any, *, tags: list[str] | None = None, **kwargs: Any) -> None:
        if _FIRST_STAGE in (tags or ()) and isinstance(outputs, list):
            found = {each.claim.id: each for each in outputs if isinstance(each, ClaimVerdict)}
            self.said = found | self.said


def _source_claim(verdict: ClaimVerdict, said: ClaimVerdict | None, bands: Bands) -> SourceClaim:
    """Join the final verdict on a claim and that of the first stage."""
    if said is None:
        return SourceClaim(verdict=verdict)
    differs = isinstance(said, SimilarityVerdict) and bool(said.differing)
    return SourceClaim(
        verdict=verdict,
        similarity=_similarity(said),
        band=bands.band(said),
        differs=differs or said.verdict == "contradicted",
    )


def _with_quality(
    found: RowValidation, row: EvaluationRow, quality: AnyRunnable
) -> Flow[RowValidation]:
    """Add what stage 2 finds; reasons say why it could not."""
    found = found.model_copy(update={"stage": "quality"})
    try:
        said: RowScore = yield ModelCall(quality, row)
    except (ConfigurationError, MissingDependencyError):
        raise
    except Exception as exc:  # noqa: BLE001  (what was found in stage 1 is kept)
        return _unchecked_because(found, "quality_unchecked", f"{_NOT_JUDGED}: {cause(exc)}")
    details = said.details
    numbers = {n: float(details[n]) for n in QUALITY_DIMENSIONS if _is_share(details.get(n))}
    rest = {name: value for name, value in details.items() if name not in numbers}
    found = found.model_copy(update={"quality": rest})
    if said.status != "scored" or len(numbers) < len(QUALITY_DIMENSIONS):
        text = f"{_NOT_JUDGED}: {said.reason or 'a score is missing'}"
        return _unchecked_because(found, "quality_unchecked", text)
    return found.model_copy(update={"scores": found.scores | numbers})


def _similarity(said: ClaimVerdict) -> float | None:
    if isinstance(said, SimilarityVerdict) and said.similarity is not None:
        return round(said.similarity, 2)
    return said.support_probability


def _is_share(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


_NOT_CHECKED = RowValidation(outcome="unchecked", stage="source")
_NOT_JUDGED = "the quality could not be judged"


def _unchecked_because(found: RowValidation, code: ReasonCode, text: str) -> RowValidation:
    """Say why a row could not be checked."""
    return found.model_copy(update={"reasons": (ValidationReason(code=code, text=text),)})


def _bands(validator: AnswerValidator) -> Bands:
    """Take the thresholds of the options, or of a calibration for the same similarity."""
    with_embeddings = validator.embeddings is not None
    bands = Bands(validator.accept, validator.reject)
    if validator.calibration is not None:
        calibration = _calibration(validator.calibration, with_embeddings=with_embeddings)
        chosen = {name: choice.threshold for name, choice in calibration.chosen.items()}
        bands = Bands(
            accept=chosen.get("settle_supported", bands.accept),
            reject=chosen.get("settle_unsupported", bands.reject),
            support=None if with_embeddings else chosen.get("support"),
        )
    if bands.reject > bands.accept:
        msg = f"reject must not be above accept, got {bands.reject:g} and {bands.accept:g}"
        raise ConfigurationError(msg)
    if not with_embeddings and bands.reject < 0:
        msg = f"reject must be from 0 to 1 without embeddings, got {bands.reject:g}"
        raise ConfigurationError(msg)
    return bands


def _calibration(given: Any, *, with_embeddings: bool) -> Calibration:
    """Load a calibration; refuse one of other probabilities."""
    if not isinstance(given, Calibration | str | Path):
        kind = type(given).__name__
        msg = f"calibration must be a Calibration or the path of its file, got {kind}"
        raise ConfigurationError(msg)
    found = given if isinstance(given, Calibration) else Calibration.load(given)
    if _THRESHOLDS.isdisjoint(found.chosen):
        missing = "; ".join(f"{n}: {why}" for n, why in found.not_chosen.items())
        names = ", ".join(sorted(_THRESHOLDS))
        msg = f"the calibration holds none of the thresholds {names}: {missing}"
        raise ConfigurationError(msg)
    if with_embeddings == (found.verifier == _EMBEDDED):
        theirs = "the embedded verifier" if with_embeddings else repr(found.verifier)
        msg = f"the calibration was made for {theirs}, not for the similarity here: calibrate again"
        raise ConfigurationError(msg)
    if not with_embeddings:
        require_installed_encoder(found)
    return found
