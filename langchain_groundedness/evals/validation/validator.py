"""Validates an example for a data set: support by its documents, then quality."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self, TypeAlias

from langchain_core.callbacks import (
    AsyncCallbackManagerForChainRun,
    BaseCallbackHandler,
    CallbackManagerForChainRun,
)
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import RunnableConfig, RunnableSerializable, patch_config
from langchain_core.runnables.config import merge_configs
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, model_validator
from typing_extensions import override

from langchain_groundedness._runtime.flow import Flow, ModelCall, adrive, drive, quiet
from langchain_groundedness._runtime.options import AnyRunnable, OptionsAlone
from langchain_groundedness._runtime.timeouts import DEFAULT_TIMEOUT, Seconds
from langchain_groundedness.calibration import Calibration
from langchain_groundedness.claims.extractors import SentenceClaimExtractor
from langchain_groundedness.evals.citation_marks import DocumentIndex, blanked, citation_marks
from langchain_groundedness.evals.columns import read_row
from langchain_groundedness.evals.composite import CompositeScore
from langchain_groundedness.evals.judged import QUALITY_DIMENSIONS, AnswerQualityEvaluator
from langchain_groundedness.evals.values import EvaluationRow, RowScore
from langchain_groundedness.exceptions import (
    ConfigurationError,
    GroundednessError,
    MissingDependencyError,
    cause,
)
from langchain_groundedness.inputs.formats import CheckInput, has_text
from langchain_groundedness.llm.chat_models import ChatModel
from langchain_groundedness.llm.usage import counted
from langchain_groundedness.pipeline.recording import encoder_checksum
from langchain_groundedness.runnable import GroundednessRunnable
from langchain_groundedness.types import ClaimVerdict, GroundednessResult, Usage, VerdictLabel
from langchain_groundedness.verification import (
    CascadeVerifier,
    EmbeddedVerifier,
    EmbeddingVerifier,
    LLMVerifier,
    Stage,
)
from langchain_groundedness.verification.by_name import AnyVerifier

__all__ = [
    "SOURCE",
    "AnswerValidator",
    "Bands",
    "Criteria",
    "Outcome",
    "ReasonCode",
    "RowValidation",
    "SourceClaim",
    "ValidatedRow",
    "ValidationReason",
]

SOURCE = "source"
"""Name of the score of the first stage."""

_FIRST_STAGE = "stage:1"
"""Tag of the runs of a cascade's first stage."""
_EMBEDDED = "embedded"
_SLACK = 1e-9
"""0.3 + 0.15 + 0.25 is less than 0.7 to a computer."""
_COSINE = re.compile(r"cosine similarity of (-?\d+\.\d+)")
"""How `EmbeddingVerifier` says it: a cosine is no probability, and a verdict has no other place
for it. A test holds the two together."""

Outcome: TypeAlias = Literal["passed", "rejected", "unchecked"]
"""`unchecked`: the row could not be checked. Such a row never passes."""

Band: TypeAlias = Literal["accept", "judge", "reject"]
"""What the similarity of a claim to the documents says: that it is supported, that the judge is to
be asked, that it is not supported."""

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


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ValidationReason(_Value):
    """Why a row has not passed."""

    code: ReasonCode
    """`contradicted`: the documents say otherwise; `source`: too small a share of the claims is
    supported; `minimum`: one score is below its minimum; `composite`: all scores together are too
    low. The others say why a row could not be checked."""
    text: str
    """The same, for a reader."""


class SourceClaim(_Value):
    """A claim of the answer, and what decided it."""

    verdict: ClaimVerdict
    """The final verdict."""
    similarity: float | None = None
    """How close it lies to the documents: with embeddings a cosine, rounded to two digits, without
    them the probability of support that the embedded verifier gives; `None` if not known."""
    band: Band | None = None
    """Where that lies."""
    differs: bool = False
    """Whether the documents have other numbers, names or negations, which similarity alone never
    settles: the judge was asked."""


class RowValidation(_Value):
    """What validation found in one row."""

    outcome: Outcome
    stage: Literal["source", "quality"]
    """How far the row came: `source`, if it never came to the second stage."""
    reasons: tuple[ValidationReason, ...] = ()
    """Why it has not passed; empty exactly if it has."""
    composite: float | None = Field(default=None, ge=0, le=1, allow_inf_nan=False)
    """Weighted mean of the scores; `None` if the row was rejected before all of them were known."""
    scores: dict[str, float] = Field(default_factory=dict)
    """`source`: the share of claims that is supported; with a chat model `relevance`,
    `correctness` and `completeness`."""
    claims: tuple[SourceClaim, ...] = ()
    quality: dict[str, Any] = Field(default_factory=dict)
    """What the second stage found besides its scores, such as its reasoning."""
    citations: dict[str, tuple[int, ...]] = Field(default_factory=dict)
    """What the answer cites by path, number or name, and which of the documents that is, counted
    from 0; empty where it is none of them."""
    usage: Usage = Usage()


class ValidatedRow(RowValidation):
    """What stands beside a row in `passed.jsonl` and `rejected.jsonl`, under `validation`."""

    id: str
    """Of the row: its own, or its line."""
    label: str | bool | float | None = None
    """The label that a person gave the row."""
    digest: str = ""
    """Of question, answer and documents: whether it is the same row when a run is resumed."""
    group: str = ""
    """Of the documents: rows with the same ones are not independent evidence."""


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
        if self.support is None:
            return self.reject
        return min(max(self.support, self.reject), self.accept)

    def band(self, said: ClaimVerdict) -> Band:
        """Tell where a verdict of the first stage lies.

        A contradiction rejects the whole row, so that the judge sees it first.
        """
        near = _similarity(said)
        # A cosine is rounded where it stands, so that the verdict decides.
        is_exact = said.support_probability is not None
        if said.verdict == "supported" and (near is None or not is_exact or near >= self.accept):
            return "accept"
        if said.verdict != "unverifiable" or near is None:
            return "judge"
        return "reject" if not is_exact or near < self.reject else "judge"

    def settles(self, said: ClaimVerdict) -> bool:
        """Tell whether a probability settles a claim."""
        return said.support_probability is not None and self.band(said) != "judge"


class Criteria(NamedTuple):
    """The thresholds of a row as a whole."""

    pass_score: float
    min_source: float
    on_contradicted: Literal["reject", "count"]
    composite: CompositeScore

    def against_source(self, labels: Sequence[VerdictLabel]) -> ValidationReason | None:
        """Tell what in the verdicts rejects a row, if anything does."""
        contradicted, total = labels.count("contradicted"), len(labels)
        if contradicted and self.on_contradicted == "reject":
            text = f"the documents contradict {contradicted} of {total} claims"
            return ValidationReason(code="contradicted", text=text)
        share = _supported_share(labels)
        if "unchecked" in labels or share is None or share >= self.min_source - _SLACK:
            return None
        text = (
            f"{labels.count('supported')} of {total} claims are supported: {share:.2f} is less "
            f"than {self.min_source:.2f}"
        )
        return ValidationReason(code="source", text=text)

    def of_scores(self, scores: Mapping[str, float]) -> RowScore:
        """Combine the scores there are."""
        weights = {n: w for n, w in self.composite.weights.items() if n in scores}
        minimums = {n: least for n, least in self.composite.minimums.items() if n in weights}
        narrowed = {"weights": weights, "minimums": minimums}
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


class AnswerValidator(OptionsAlone, RunnableSerializable[Any, RowValidation]):
    """Validates an example of question, answer and documents in two stages.

    Stage 1 looks for each claim of the answer in the documents. At a similarity from `accept` on
    it is supported, below `reject` it is not, and between the two the judge decides; numbers, names
    and negations that differ are never settled by the similarity of embeddings. Without
    `embeddings`, the probability that the embedded verifier gives takes the place of the
    similarity: it is calibrated, and compares numbers, names and negations itself. A contradiction
    that it sees goes to the judge all the same, since it costs the row. The judge is the model, or
    `verifier`; without either the embedded verifier decides, and what lies between is supported.

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

    model: ChatModel | None = None
    """Chat model: judges what similarity leaves open, and the quality."""
    model_timeout: Seconds = DEFAULT_TIMEOUT
    """Seconds to wait for one reply of the model; `None` leaves it to the model's client."""
    embeddings: Embeddings | None = None
    """Give the similarity; `None` for the embedded verifier's probability."""
    verifier: AnyVerifier | None = None
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
        return Criteria(self.pass_score, self.min_source, self.on_contradicted, self.composite)

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
        row, first_stage = read_row(value), _FirstStage()
        child, counter = counted(_below(config, run_manager.get_child(), first_stage))
        found = drive(self._flow(row, first_stage), child)
        return found.model_copy(update={"usage": counter.usage})

    async def _arun(
        self, value: Any, run_manager: AsyncCallbackManagerForChainRun, config: RunnableConfig
    ) -> RowValidation:
        row, first_stage = read_row(value), _FirstStage()
        child, counter = counted(_below(config, run_manager.get_child(), first_stage))
        found = await adrive(self._flow(row, first_stage), child)
        return found.model_copy(update={"usage": counter.usage})

    def _flow(self, row: EvaluationRow, first_stage: "_FirstStage") -> Flow[RowValidation]:
        try:
            return (yield from self._validated(row, first_stage))
        except (ConfigurationError, MissingDependencyError):
            raise  # a broken installation fails every row, so the caller must hear of it
        except Exception as exc:  # noqa: BLE001  (a model may fail in any way)
            why = str(exc) if isinstance(exc, GroundednessError) else cause(exc)
            return _unchecked_because(_NOT_CHECKED, "failed", f"the validation failed: {why}")

    def _validated(self, row: EvaluationRow, first_stage: "_FirstStage") -> Flow[RowValidation]:
        if not (row.answer or "").strip():
            return _unchecked_because(_NOT_CHECKED, "no_answer", "the row has no answer")
        evidence = _evidence(row, only_cited=self.evidence == "cited")
        if isinstance(evidence, ValidationReason):
            return _NOT_CHECKED.model_copy(update={"reasons": (evidence,)})
        stages = self._stages()
        source = CheckInput(
            question=row.question, answer=evidence.answer, documents=evidence.documents
        )
        result: GroundednessResult = yield ModelCall(stages.checker, source)
        claims = tuple(first_stage.claim(verdict, stages.bands) for verdict in result.claims)
        labels = [verdict.verdict for verdict in result.claims]
        share = _supported_share([label for label in labels if label != "unchecked"])
        scores = {} if share is None else {SOURCE: share}
        found = _NOT_CHECKED.model_copy(
            update={"claims": claims, "citations": evidence.citations, "scores": scores}
        )
        against = self.criteria.against_source(labels)
        if against is not None:
            return found.model_copy(update={"outcome": "rejected", "reasons": (against,)})
        if (unchecked := self._source_unchecked(result)) is not None:
            return found.model_copy(update={"reasons": (unchecked,)})
        if stages.quality is None:
            return self._decided(found)
        return (yield from self._with_quality(found, row, stages.quality))

    def _source_unchecked(self, result: GroundednessResult) -> ValidationReason | None:
        """Say why stage 1 could not check an answer, if so."""
        open_ones = [verdict for verdict in result.claims if verdict.verdict == "unchecked"]
        if open_ones:
            number, why = len(open_ones), open_ones[0].reason
            text = f"{number} of {len(result.claims)} claims not checked: {why}"
            return ValidationReason(code="claims_unchecked", text=text)
        if result.claims:
            return None
        text = "the answer makes no claim, and without a chat model there is no other score"
        if result.decision.action != "pass":
            text = "; ".join(result.decision.reasons) or "no claim was found in the answer"
        elif self.has_quality:
            return None
        return ValidationReason(code="no_claims", text=text)

    def _with_quality(
        self, found: RowValidation, row: EvaluationRow, quality: AnyRunnable
    ) -> Flow[RowValidation]:
        found = found.model_copy(update={"stage": "quality"})
        try:
            said: RowScore = yield ModelCall(quality, row)
        except (ConfigurationError, MissingDependencyError):
            raise
        except Exception as exc:  # noqa: BLE001  (what was found in stage 1 is kept)
            text = f"the quality could not be judged: {cause(exc)}"
            return _unchecked_because(found, "quality_unchecked", text)
        details = said.details
        numbers = {n: float(details[n]) for n in QUALITY_DIMENSIONS if _is_share(details.get(n))}
        rest = {name: value for name, value in details.items() if name not in numbers}
        found = found.model_copy(update={"quality": rest})
        if said.status != "scored" or len(numbers) < len(QUALITY_DIMENSIONS):
            text = f"the quality could not be judged: {said.reason or 'a score is missing'}"
            return _unchecked_because(found, "quality_unchecked", text)
        return self._decided(found.model_copy(update={"scores": found.scores | numbers}))

    def _decided(self, found: RowValidation) -> RowValidation:
        combined = self.criteria.of_scores(found.scores)
        if combined.score is None:
            return _unchecked_because(found, "failed", f"no composite score: {combined.reason}")
        against = tuple(self.criteria.against_scores(found.scores, combined.score))
        outcome = "rejected" if against else "passed"
        update = {"outcome": outcome, "reasons": against, "composite": combined.score}
        return found.model_copy(update=update)

    def _stages(self) -> "_Stages":
        if self._made is None:
            bands = _calibrated(
                self.calibration,
                Bands(self.accept, self.reject),
                with_embeddings=self.embeddings is not None,
            )
            checker = GroundednessRunnable(
                verifier=self._source_verifier(bands),
                extractor=self.extractor or SentenceClaimExtractor(),
            )
            quality = self.quality
            if quality is None and self.model is not None:
                quality = AnswerQualityEvaluator(model=self.model, model_timeout=self.model_timeout)
            self._made = _Stages(bands, checker, quality)
        return self._made

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


class _Stages(NamedTuple):
    """What was made of the options."""

    bands: Bands
    checker: GroundednessRunnable
    quality: AnyRunnable | None


class _FirstStage(BaseCallbackHandler):
    """Collects the first-stage verdicts on the claims of one row."""

    run_inline = True
    ignore_llm = True
    ignore_chat_model = True
    ignore_retriever = True
    ignore_agent = True
    ignore_custom_event = True

    def __init__(self) -> None:
        self._said: dict[str, ClaimVerdict] = {}

    @override
    def on_chain_end(self, outputs: Any, *, tags: list[str] | None = None, **kwargs: Any) -> None:
        if _FIRST_STAGE in (tags or ()) and isinstance(outputs, list):
            for verdict in outputs:
                if isinstance(verdict, ClaimVerdict):
                    self._said.setdefault(verdict.claim.id, verdict)

    def claim(self, verdict: ClaimVerdict, bands: Bands) -> SourceClaim:
        said = self._said.get(verdict.claim.id)
        if said is None:
            return SourceClaim(verdict=verdict)
        return SourceClaim(
            verdict=verdict,
            similarity=_similarity(said),
            band=bands.band(said),
            differs=said.verdict == "contradicted" or "what differs" in (said.reason or ""),
        )


def _below(config: RunnableConfig, callbacks: Any, listener: BaseCallbackHandler) -> RunnableConfig:
    child = patch_config(config, callbacks=callbacks)
    return quiet(merge_configs(child, {"callbacks": [listener]}))


def _similarity(said: ClaimVerdict) -> float | None:
    if said.support_probability is not None:
        return said.support_probability
    found = _COSINE.search(said.explanation) or _COSINE.search(said.reason or "")
    return float(found[1]) if found else None


def _supported_share(labels: Sequence[VerdictLabel]) -> float | None:
    return labels.count("supported") / len(labels) if labels else None


def _is_share(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


_NOT_CHECKED = RowValidation(outcome="unchecked", stage="source")


def _unchecked_because(found: RowValidation, code: ReasonCode, text: str) -> RowValidation:
    """Say why a row could not be checked."""
    return found.model_copy(update={"reasons": (ValidationReason(code=code, text=text),)})


class _Evidence(NamedTuple):
    """An answer to check, and what to check it against."""

    answer: str
    """With citation marks blanked, which state nothing; of the same length."""
    documents: tuple[Document, ...]
    citations: dict[str, tuple[int, ...]]
    """What is cited, and the indices of the documents that it names."""


def _evidence(row: EvaluationRow, *, only_cited: bool) -> _Evidence | ValidationReason:
    documents = row.documents or ()
    if not has_text(documents):
        text = "the row has no documents to check against"
        return ValidationReason(code="no_documents", text=text)
    index = DocumentIndex(documents)
    marks = citation_marks(row.answer or "", index.names)
    citations = {str(target): index.find(target) for mark in marks for target in mark.targets}
    if only_cited:
        named = sorted({place for places in citations.values() for place in places})
        documents = tuple(documents[place] for place in named)
    if not has_text(documents):
        text = (
            "the answer cites nothing, and only what it cites was to count"
            if not citations
            else f"none of what the answer cites is among the documents: {', '.join(citations)}"
        )
        return ValidationReason(code="not_cited", text=text)
    return _Evidence(blanked(row.answer or "", marks), documents, citations)


def _calibrated(given: Any, bands: Bands, *, with_embeddings: bool) -> Bands:
    """Take thresholds from a calibration."""
    if given is not None:
        calibration = _calibration(given, with_embeddings=with_embeddings)
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
    if not {"settle_supported", "settle_unsupported", "support"} & found.chosen.keys():
        msg = (
            "the calibration holds none of the thresholds settle_supported, settle_unsupported and "
            "support: " + "; ".join(f"{n}: {why}" for n, why in found.not_chosen.items())
        )
        raise ConfigurationError(msg)
    if with_embeddings == (found.verifier == _EMBEDDED):
        theirs = "the embedded verifier" if with_embeddings else repr(found.verifier)
        ours = "embeddings give" if with_embeddings else "the embedded verifier gives"
        made = f"the calibration was made for {theirs}"
        msg = f"{made}, and here {ours} the similarity: calibrate again"
        raise ConfigurationError(msg)
    if not with_embeddings and found.encoder not in (None, encoder_checksum()):
        msg = (
            "the calibration was made with another encoder than the one installed, whose "
            "probabilities differ: calibrate again"
        )
        raise ConfigurationError(msg)
    return found
