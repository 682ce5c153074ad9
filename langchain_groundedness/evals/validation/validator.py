"""Whether an example may go into a data set: do its documents support it, then is it good."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

from langchain_core.callbacks import (
    AsyncCallbackManagerForChainRun,
    BaseCallbackHandler,
    BaseCallbackManager,
    CallbackManagerForChainRun,
)
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import Runnable, RunnableConfig, RunnableSerializable, patch_config
from pydantic import ConfigDict, Field, PrivateAttr, model_validator
from typing_extensions import override

from langchain_groundedness._runtime.flow import Flow, ModelCall, adrive, drive, quiet
from langchain_groundedness._runtime.options import AnyRunnable, OptionsAlone
from langchain_groundedness.calibration import Calibration
from langchain_groundedness.claims.extractors import SentenceClaimExtractor
from langchain_groundedness.evals.citation_marks import DocumentIndex, blanked, citation_marks
from langchain_groundedness.evals.columns import read_row
from langchain_groundedness.evals.composite import CompositeScore
from langchain_groundedness.evals.judged import QUALITY_DIMENSIONS, AnswerQualityEvaluator
from langchain_groundedness.evals.validation.values import (
    Band,
    Outcome,
    ReasonCode,
    RowValidation,
    SourceClaim,
    ValidationReason,
)
from langchain_groundedness.evals.values import EvaluationRow, RowScore
from langchain_groundedness.exceptions import (
    ConfigurationError,
    GroundednessError,
    MissingDependencyError,
    cause,
)
from langchain_groundedness.inputs.formats import CheckInput, has_text
from langchain_groundedness.llm.timeouts import PATIENCE, Seconds
from langchain_groundedness.llm.usage import UsageCounter, counted
from langchain_groundedness.pipeline.recording import encoder_checksum
from langchain_groundedness.runnable import GroundednessRunnable
from langchain_groundedness.types import ClaimVerdict, GroundednessResult, VerdictLabel
from langchain_groundedness.verification import (
    CascadeVerifier,
    EmbeddedVerifier,
    EmbeddingVerifier,
    LLMVerifier,
    Stage,
)

__all__ = ["SOURCE", "AnswerValidator", "Bands", "Criteria"]


class Bands(NamedTuple):
    """Where similarity settles a claim."""

    accept: float
    """From there on it is supported."""
    reject: float
    """Below that, it is not."""
    support: float | None = None
    """Without a judge, the probability from which a claim between the two is supported; `None` for
    all of them."""

    @property
    def middle(self) -> float:
        """The probability from which a claim is supported where there is no judge."""
        return (
            self.reject
            if self.support is None
            else min(max(self.support, self.reject), self.accept)
        )


class Criteria(NamedTuple):
    """The thresholds of a row as a whole."""

    pass_score: float
    min_source: float
    on_contradicted: Literal["reject", "count"]
    composite: CompositeScore

    def source_score(self, labels: Sequence[VerdictLabel]) -> float | None:
        """Give the share of claims that is supported."""
        return labels.count("supported") / len(labels) if labels else None

    def against_source(self, labels: Sequence[VerdictLabel]) -> ValidationReason | None:
        """Tell what in the verdicts rejects a row, if anything does."""
        contradicted, total = labels.count("contradicted"), len(labels)
        if contradicted and self.on_contradicted == "reject":
            text = f"the documents contradict {contradicted} of {total} claims"
            return ValidationReason(code="contradicted", text=text)
        checked = [label for label in labels if label != "unchecked"]
        share = self.source_score(checked)
        if len(checked) < total or share is None or share >= self.min_source - _SLACK:
            return None
        text = (
            f"{labels.count('supported')} of {total} claims are supported: {share:.2f} is less "
            f"than {self.min_source:.2f}"
        )
        return ValidationReason(code="source", text=text)

    def of_scores(self, scores: Mapping[str, float]) -> RowScore:
        """Combine the scores there are."""
        known = {n: w for n, w in self.composite.weights.items() if n in scores}
        minimums = {n: least for n, least in self.composite.minimums.items() if n in known}
        narrowed = {"weights": known, "minimums": minimums}
        return self.composite.model_copy(update=narrowed).of(scores)

    def against_scores(
        self, scores: Mapping[str, float], composite: float
    ) -> Iterator[ValidationReason]:
        """Tell what in the scores rejects a row."""
        for name, least in self.composite.minimums.items():
            if name in scores and scores[name] < least:
                text = f"{name}: {scores[name]:.2f} is less than its minimum {least:.2f}"
                yield ValidationReason(code="minimum", text=text)
        if composite < self.pass_score - _SLACK:
            text = f"the composite score {composite:.2f} is less than {self.pass_score:.2f}"
            yield ValidationReason(code="composite", text=text)


class GateListener(BaseCallbackHandler):
    """Hears what the first stage has said about each claim of one row, before the judge."""

    run_inline = True
    ignore_llm = True
    ignore_chat_model = True
    ignore_retriever = True
    ignore_agent = True
    ignore_custom_event = True

    def __init__(self) -> None:
        """Start with nothing heard."""
        self._heard: dict[str, ClaimVerdict] = {}

    @override
    def on_chain_end(self, outputs: Any, *, tags: list[str] | None = None, **kwargs: Any) -> None:
        if _FIRST_STAGE in (tags or ()) and isinstance(outputs, list):
            for verdict in outputs:
                if isinstance(verdict, ClaimVerdict):
                    self._heard.setdefault(verdict.claim.id, verdict)

    def claims(self, verdicts: Sequence[ClaimVerdict], bands: Bands) -> tuple[SourceClaim, ...]:
        """Put what was heard beside the last word."""
        return tuple(
            SourceClaim(
                verdict=verdict,
                similarity=_similarity(said),
                band=None if said is None else _band_heard(said, bands.accept, bands.reject),
                differs=said is not None and _differs(said),
            )
            for verdict in verdicts
            for said in [self._heard.get(verdict.claim.id)]
        )


class AnswerValidator(OptionsAlone, RunnableSerializable[Any, RowValidation]):
    """Validates an example of question, answer and documents in two stages.

    Stage 1 looks for each claim of the answer in the documents. At a similarity from `accept` on
    it is supported, below `reject` it is not, and between the two the judge decides; numbers, names
    and negations that differ are never settled by the similarity of embeddings. Without
    `embeddings`, the probability that the embedded verifier gives takes the place of the
    similarity: it is calibrated, and compares numbers, names and negations itself. A contradiction
    that it sees goes to the judge all the same, since it costs the row. The judge is the model, or
    `verifier`; without either the embedded verifier has the last word, and what lies between is
    supported.

    An answer that the documents contradict is rejected. Else its source score is the share of
    claims that is supported, and half of them are enough to go on: a part that is not covered makes
    the score lower, not the row a failure.

    Stage 2, for rows that passed the first and only with a model, scores relevance, correctness and
    completeness in a call of its own; brevity costs nothing. The composite is the weighted mean of
    the four scores, and the row passes from `pass_score` on. Without a model it is the source score
    alone. An answer without claims, such as "I don't know", has no source score; a model judges it
    by the other three, and without a model it is `unchecked`.

    What could not be checked, for whatever reason, is `unchecked`, and has not passed.

    Bands, weights and the 0.7 are those of the two-stage pipelines in use for question-answer data;
    0.75 and 0.5 fit sentence embeddings. Measure on yours: `calibration` takes its thresholds
    `settle_supported`, `settle_unsupported` and `support` from a file.

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

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    model: AnyRunnable | None = None
    """Chat model: judges what similarity leaves open, and the quality."""
    model_timeout: Seconds = PATIENCE
    """Seconds to wait for one reply of the model; `None` leaves it to the model's client."""
    embeddings: Embeddings | None = None
    """Give the similarity; `None` for the embedded verifier's probability."""
    verifier: AnyRunnable | None = None
    """Judges what similarity leaves open instead of the model."""
    extractor: AnyRunnable | None = None
    """Finds the claims; by default sentences, which costs no call."""
    quality: AnyRunnable | None = None
    """Scores the quality: from an `EvaluationRow` to a `RowScore` with `relevance`, `correctness`
    and `completeness` in its details; by default an `AnswerQualityEvaluator`, if there is a model.
    """
    calibration: Any = None
    """A `Calibration`, or the path of its file: its thresholds take the place of those below."""
    accept: float = Field(default=0.75, ge=-1, le=1)
    """Similarity from which a claim is supported."""
    reject: float = Field(default=0.5, ge=-1, le=1)
    """Similarity below which it is not."""
    min_source: float = Field(default=0.5, ge=0, le=1)
    """Least share of supported claims to pass stage 1."""
    on_contradicted: Literal["reject", "count"] = "reject"
    """What a contradicted claim does: reject the row, or count as one that is not supported."""
    evidence: Literal["documents", "cited"] = "documents"
    """What claims are looked for in: all documents, or only those that the answer cites. Paths are
    compared without leading folders, case and encoding."""
    pass_score: float = Field(default=0.7, ge=0, le=1)
    """Composite score from which a row passes."""
    composite: CompositeScore = CompositeScore()
    """Weights of the scores, and least values of single ones:
    `CompositeScore(minimums={"correctness": 0.5})`."""

    _made: "_Stages | None" = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _usable(self) -> Self:
        known = {SOURCE, *QUALITY_DIMENSIONS}
        if not self.composite.weights.get(SOURCE) or not known.issuperset(self.composite.weights):
            names = ", ".join(sorted(known))
            msg = f"composite: weights may name {names}; that of {SOURCE} must be above 0"
            raise ValueError(msg)
        self._stages()
        return self

    @property
    def bands(self) -> Bands:
        """The thresholds of similarity in force, those of the calibration included."""
        return self._stages().bands

    @property
    def criteria(self) -> Criteria:
        """The thresholds of a row as a whole."""
        return Criteria(
            pass_score=self.pass_score,
            min_source=self.min_source,
            on_contradicted=self.on_contradicted,
            composite=self.composite,
        )

    @property
    def has_judge(self) -> bool:
        """Whether another verifier decides what similarity leaves open."""
        return any(each is not None for each in (self.model, self.verifier, self.embeddings))

    @property
    def has_quality(self) -> bool:
        """Whether there is a second stage."""
        return self._stages().quality is not None

    @override
    def invoke(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> RowValidation:
        """Validate a row.

        Args:
            input: An `EvaluationRow`, or a mapping with question, answer and contexts under any
                of the names in `evals.columns.COLUMNS`.
            config: Config for the calls.
            **kwargs: None.

        Returns:
            What was found.

        Raises:
            ConfigurationError: The installation is broken.
        """
        return self._call_with_config(self._run, input, config, **kwargs)

    @override
    async def ainvoke(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> RowValidation:
        return await self._acall_with_config(self._arun, input, config, **kwargs)

    def _run(
        self, value: Any, run_manager: CallbackManagerForChainRun, config: RunnableConfig
    ) -> RowValidation:
        row = read_row(value)
        heard = _Heard.below(patch_config(config, callbacks=run_manager.get_child()))
        found = drive(self._flow(row, heard.gate), heard.config)
        return found.model_copy(update={"usage": heard.counter.usage})

    async def _arun(
        self, value: Any, run_manager: AsyncCallbackManagerForChainRun, config: RunnableConfig
    ) -> RowValidation:
        row = read_row(value)
        heard = _Heard.below(patch_config(config, callbacks=run_manager.get_child()))
        found = await adrive(self._flow(row, heard.gate), heard.config)
        return found.model_copy(update={"usage": heard.counter.usage})

    def _flow(self, row: EvaluationRow, gate: GateListener) -> Flow[RowValidation]:
        try:
            return (yield from self._validated(row, gate))
        except (ConfigurationError, MissingDependencyError):
            raise  # a broken installation fails every row: whoever called hears
        except Exception as exc:  # noqa: BLE001  (a model may fail in any way)
            why = str(exc) if isinstance(exc, GroundednessError) else cause(exc)
            return _unchecked("failed", f"the validation failed: {why}")

    def _validated(self, row: EvaluationRow, gate: GateListener) -> Flow[RowValidation]:
        if not (row.answer or "").strip():
            return _unchecked("no_answer", "the row has no answer")
        evidence = cited(row, only_cited=self.evidence == "cited")
        if isinstance(evidence, ValidationReason):
            return _unchecked(evidence.code, evidence.text)
        stages = self._stages()
        source = CheckInput(
            question=row.question, answer=evidence.answer, documents=evidence.documents
        )
        result: GroundednessResult = yield ModelCall(stages.checker, source)
        found = RowValidation(
            outcome="unchecked",
            stage="source",
            claims=gate.claims(result.claims, stages.bands),
            citations=evidence.citations,
        )
        told = self._source_score(result)
        if isinstance(told, _Ruling):
            score = result.trust_score
            scores = {} if score is None else {SOURCE: score}
            return _ruled(found, told, scores=scores)
        scores = {} if told is None else {SOURCE: told}
        if stages.quality is None:
            return self._composed(found, scores)
        return (yield from self._judged(found, scores, row))

    def _source_score(self, result: GroundednessResult) -> "float | _Ruling | None":
        """Give the score of the first stage, or what the row is there already."""
        labels = [verdict.verdict for verdict in result.claims]
        against = self.criteria.against_source(labels)
        if against is not None:
            return _Ruling("rejected", against)
        if "unchecked" in labels:
            first = next(v.reason for v in result.claims if v.verdict == "unchecked")
            text = f"{labels.count('unchecked')} of {len(labels)} claims not checked: {first}"
            return _Ruling("unchecked", ValidationReason(code="claims_unchecked", text=text))
        if labels:
            return self.criteria.source_score(labels)
        if result.decision.action != "pass":
            text = "; ".join(result.decision.reasons) or "no claim was found in the answer"
            return _Ruling("unchecked", ValidationReason(code="no_claims", text=text))
        if self._stages().quality is None:
            text = "the answer makes no claim, and without a chat model there is no other score"
            return _Ruling("unchecked", ValidationReason(code="no_claims", text=text))
        return None

    def _judged(
        self, found: RowValidation, scores: dict[str, float], row: EvaluationRow
    ) -> Flow[RowValidation]:
        found = found.model_copy(update={"stage": "quality"})
        quality = self._stages().quality
        assert quality is not None  # noqa: S101  (nobody asks without)
        try:
            said: RowScore = yield ModelCall(quality, row)
        except (ConfigurationError, MissingDependencyError):
            raise
        except Exception as exc:  # noqa: BLE001  (what was found in stage 1 is kept)
            text = f"the quality could not be judged: {cause(exc)}"
            return _ruled(
                found,
                _Ruling("unchecked", ValidationReason(code="quality_unchecked", text=text)),
                scores,
            )
        known = {name: said.details.get(name) for name in QUALITY_DIMENSIONS}
        numbers = {name: share for name, v in known.items() if (share := _share(v)) is not None}
        rest = {name: value for name, value in said.details.items() if name not in numbers}
        found = found.model_copy(update={"quality": rest})
        if said.status != "scored" or len(numbers) < len(QUALITY_DIMENSIONS):
            text = f"the quality could not be judged: {said.reason or 'a score is missing'}"
            return _ruled(
                found,
                _Ruling("unchecked", ValidationReason(code="quality_unchecked", text=text)),
                scores,
            )
        return self._composed(found, {**scores, **numbers})

    def _composed(self, found: RowValidation, scores: dict[str, float]) -> RowValidation:
        combined = self.criteria.of_scores(scores)
        if combined.score is None:
            reason = ValidationReason(code="failed", text=f"no composite score: {combined.reason}")
            return _ruled(found, _Ruling("unchecked", reason), scores)
        against = tuple(self.criteria.against_scores(scores, combined.score))
        return found.model_copy(
            update={
                "outcome": "rejected" if against else "passed",
                "reasons": against,
                "scores": scores,
                "composite": combined.score,
            }
        )

    def _stages(self) -> "_Stages":
        if self._made is None:
            bands = calibrated(
                self.calibration,
                Bands(self.accept, self.reject, None),
                with_embeddings=self.embeddings is not None,
            )
            verifier = source_verifier(
                bands=bands,
                embeddings=self.embeddings,
                model=self.model,
                verifier=self.verifier,
                timeout=self.model_timeout,
            )
            checker = GroundednessRunnable(
                verifier=verifier, extractor=self.extractor or SentenceClaimExtractor()
            )
            self._made = _Stages(bands, checker, self._quality())
        return self._made

    def _quality(self) -> AnyRunnable | None:
        if self.quality is not None or self.model is None:
            return self.quality
        return AnswerQualityEvaluator(model=self.model, model_timeout=self.model_timeout)


class _Stages(NamedTuple):
    """What was made of the options."""

    bands: Bands
    checker: GroundednessRunnable
    quality: AnyRunnable | None


class _Ruling(NamedTuple):
    outcome: Outcome
    reason: ValidationReason


class _Heard(NamedTuple):
    """What listens to the calls for one row."""

    config: RunnableConfig
    gate: GateListener
    counter: UsageCounter

    @classmethod
    def below(cls, config: RunnableConfig) -> "_Heard":
        gate = GateListener()
        child, counter = counted(quiet(listening(config, gate)))
        return cls(child, gate, counter)


def _share(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and 0 <= value <= 1 else None


def _ruled(found: RowValidation, ruling: _Ruling, scores: dict[str, float]) -> RowValidation:
    return found.model_copy(
        update={"outcome": ruling.outcome, "reasons": (ruling.reason,), "scores": scores}
    )


def _unchecked(code: ReasonCode, text: str) -> RowValidation:
    reason = ValidationReason(code=code, text=text)
    return RowValidation(outcome="unchecked", stage="source", reasons=(reason,))


_FIRST_STAGE = "stage:1"

_COSINE = re.compile(r"cosine similarity of (-?\d+\.\d+)")
"""How `EmbeddingVerifier` tells it: a cosine is no probability, and a verdict has no other place
for it. A test holds the two together."""


def source_verifier(
    *,
    bands: Bands,
    embeddings: Embeddings | None,
    model: Runnable[Any, Any] | None,
    verifier: Runnable[Any, Any] | None,
    timeout: float | None,
) -> CascadeVerifier:
    """Make the verifier of the first stage."""
    judge = verifier
    if judge is None and model is not None:
        judge = LLMVerifier(model=model, timeout=timeout)
    if embeddings is not None:
        gate = EmbeddingVerifier(embeddings=embeddings, accept=bands.accept, reject=bands.reject)
        return CascadeVerifier([gate, judge or EmbeddedVerifier()])
    if judge is None:
        return CascadeVerifier([EmbeddedVerifier(threshold=bands.middle)])
    settles = partial(_is_clear, bands.accept, bands.reject)
    gated = Stage(verifier=EmbeddedVerifier(threshold=bands.reject), settles=settles)
    return CascadeVerifier([gated, judge])


def _is_clear(accept: float, reject: float, verdict: ClaimVerdict) -> bool:
    """Tell whether a probability settles a claim.

    A contradiction rejects the whole row, so that the judge sees it first.
    """
    return _band(verdict.support_probability, verdict, accept, reject) != "judge"


def listening(config: RunnableConfig, listener: BaseCallbackHandler) -> RunnableConfig:
    """Attach a listener to the runs below a config."""
    callbacks = config.get("callbacks")
    if isinstance(callbacks, BaseCallbackManager):
        manager = callbacks.copy()
        manager.add_handler(listener)
        return {**config, "callbacks": manager}
    return {**config, "callbacks": [*(callbacks or []), listener]}


def _similarity(said: ClaimVerdict | None) -> float | None:
    if said is None:
        return None
    if said.support_probability is not None:
        return said.support_probability
    told = _COSINE.search(said.explanation) or _COSINE.search(said.reason or "")
    return float(told[1]) if told else None


def _differs(said: ClaimVerdict) -> bool:
    return said.verdict == "contradicted" or "what differs" in (said.reason or "")


def _band_heard(said: ClaimVerdict, accept: float, reject: float) -> Band:
    if said.support_probability is not None:
        return _band(said.support_probability, said, accept, reject)
    if said.verdict == "supported":
        return "accept"
    return "reject" if said.verdict == "unverifiable" and _similarity(said) is not None else "judge"


def _band(similarity: float | None, said: ClaimVerdict, accept: float, reject: float) -> Band:
    if similarity is None or said.verdict in ("contradicted", "unchecked"):
        return "judge"
    if said.verdict == "supported" and similarity >= accept:
        return "accept"
    return "reject" if said.verdict == "unverifiable" and similarity < reject else "judge"


SOURCE = "source"

_SLACK = 1e-9
"""0.3 + 0.15 + 0.25 is less than 0.7 to a computer."""


class Cited(NamedTuple):
    """An answer to check, and what to check it against."""

    answer: str
    """Without its marks of citations, which say nothing about the world; of the same length."""
    documents: tuple[Document, ...]
    citations: dict[str, tuple[int, ...]]
    """What is cited, and the places of the documents that it names."""


def cited(row: EvaluationRow, *, only_cited: bool) -> Cited | ValidationReason:
    """Find the evidence for an answer."""
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


_EMBEDDED = "embedded"


def calibrated(given: Any, bands: Bands, *, with_embeddings: bool) -> Bands:
    """Take thresholds from a calibration."""
    if given is not None:
        calibration = given if isinstance(given, Calibration) else _loaded(given)
        _require_fit(calibration, with_embeddings=with_embeddings)
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


def _loaded(given: Any) -> Calibration:
    if not isinstance(given, str | Path):
        kind = type(given).__name__
        msg = f"calibration must be a Calibration or the path of its file, got {kind}"
        raise ConfigurationError(msg)
    return Calibration.load(given)


def _require_fit(calibration: Calibration, *, with_embeddings: bool) -> None:
    usable = {"settle_supported", "settle_unsupported", "support"} & calibration.chosen.keys()
    if not usable:
        msg = (
            "the calibration holds none of the thresholds settle_supported, settle_unsupported and "
            "support: " + "; ".join(f"{n}: {why}" for n, why in calibration.not_chosen.items())
        )
        raise ConfigurationError(msg)
    if with_embeddings == (calibration.verifier == _EMBEDDED):
        theirs = "the embedded verifier" if with_embeddings else repr(calibration.verifier)
        ours = "embeddings give" if with_embeddings else "the embedded verifier gives"
        msg = f"the calibration was made for {theirs}, and here {ours} the similarity: make another"
        raise ConfigurationError(msg)
    encoder = calibration.encoder
    if not with_embeddings and encoder is not None and encoder != encoder_checksum():
        msg = (
            "the calibration was made with another encoder than the one installed, whose "
            "probabilities differ: calibrate again"
        )
        raise ConfigurationError(msg)
