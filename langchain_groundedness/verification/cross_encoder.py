"""Verification with a cross-encoder, a model that reads a claim and a passage together."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, Final, Literal, NamedTuple, cast, get_args

import numpy as np
from langchain_core.cross_encoders import BaseCrossEncoder
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import run_in_executor
from numpy.typing import NDArray
from pydantic import Field, model_validator
from typing_extensions import override

from langchain_groundedness._runtime.telemetry import record_error
from langchain_groundedness.evidence.windows import encoder_tokens, evidence_windows
from langchain_groundedness.exceptions import ConfigurationError, MissingDependencyError, cause
from langchain_groundedness.text.words import content_words
from langchain_groundedness.types import Citation, Claim, ClaimVerdict, Passage, VerificationTask
from langchain_groundedness.verification.base import (
    FinalVerdicts,
    PooledVerifier,
    VerdictSteps,
    ask_in_batches,
)
from langchain_groundedness.verification.public_models import (
    LoadedModel,
    load_public_model,
    public_model,
)
from langchain_groundedness.verification.scoring import halfway, merge_verdicts

__all__ = ["CrossEncoderVerifier"]

ScoreKind = Literal["probability", "logit", "relevance"]
ScoreClass = Literal["supported", "contradicted", "unverifiable"]
Pair = tuple[str, ...]
"""The texts that a model reads together; a public model may have them in one."""
_LEAST_EVIDENCE = 32
"""Minimum number of tokens of evidence that a public model must be able to read beside a claim."""
_LOAD: Final = "load"
"""The request to load a public model."""
_EXPLANATIONS: dict[ScoreClass, str] = {
    "supported": "A passage reads as supporting the claim.",
    "contradicted": "A passage reads as contradicting the claim.",
}


class CrossEncoderVerifier(PooledVerifier):
    """Judges claims with any LangChain `BaseCrossEncoder`, such as a local reranker or NLI model.

    Every claim is paired with every window of the documents. The pairs of all claims and tasks of
    a batch are scored together, at most `batch_size` per call. A claim is `supported` if the best
    window that shares a content word with it reaches the threshold; that window is the quote.
    Otherwise it is `unverifiable`: one score per pair cannot distinguish a contradiction from
    missing evidence. For a model that returns one score per class, name the classes with `classes`
    and contradictions are detected too. Support in one window then outweighs contradiction in
    another, and the verdict is marked `conflicting`. If a score is missing and no other window
    supports the claim, the claim is `unchecked`.

    Several public verification models are known by name, such as `cross_encoder="hhem"` (extra
    `transformers`). They are loaded on first use, without code from their repository, and kept in
    memory; input, labels and token counts are those of the model. No text is cut: documents are
    read in windows that fit, and a claim that leaves no room for evidence is `unchecked`.

    Example:
        >>> from langchain_core.cross_encoders import BaseCrossEncoder
        >>> from langchain_core.documents import Document
        >>> from langchain_groundedness.types import Claim, VerificationTask
        >>> class Same(BaseCrossEncoder):
        ...     def score(self, text_pairs):
        ...         return [float(claim in passage) for claim, passage in text_pairs]
        >>> task = VerificationTask(
        ...     claims=(Claim(id="1", text="Rome is old."), Claim(id="2", text="Rome is new.")),
        ...     documents=(Document(page_content="Rome is old. Oslo is not."),),
        ... )
        >>> verdicts = CrossEncoderVerifier(cross_encoder=Same()).invoke(task)
        >>> [(v.verdict, v.support_probability) for v in verdicts]
        [('supported', 1.0), ('unverifiable', 0.0)]
    """

    cross_encoder: BaseCrossEncoder | str
    """A cross-encoder, or the name of a public model: `hhem`, `minicheck-roberta`,
    `minicheck-deberta`, `minicheck-flan-t5`, `lettucedetect-base`, `lettucedetect-large` or
    `deberta-nli`. With a name, the model decides on `scores`, `classes`, `evidence_first` and
    `count_tokens`, and has its own defaults for the sizes below."""
    path: str | None = None
    """Folder with the files of the public model, instead of its repository on the hub. A
    `CachedVerifier` needs another `key` when the files change."""
    revision: str | None = None
    """Commit, tag or branch of the public model's repository. By default the commit that this
    version of the package was written for; for LettuceDetect the newest."""
    scores: ScoreKind = "probability"
    """What the scores mean: the `probability` of support; a `logit`, converted by the sigmoid (the
    softmax for several classes); or a `relevance` that is only compared with the threshold, so that
    `support_probability` stays `None`."""
    threshold: float | None = None
    """Minimum score for `supported` or `contradicted`. Defaults to a probability of 0.5; required
    for `relevance`."""
    classes: tuple[ScoreClass, ...] = ()
    """For a model that returns one score per class: the classes, in order."""
    evidence_first: bool | None = None
    """Order in a pair: NLI models read (evidence, claim), rerankers (claim, evidence). By default
    evidence first exactly when `classes` are given."""
    window_sentences: int = Field(default=3, ge=1)
    """Maximum number of sentences in a window. Windows of a public model are filled up to
    `max_tokens`."""
    max_tokens: int = Field(default=256, ge=8)
    """Maximum number of tokens in a window; with the claim it must fit what the model reads."""
    count_tokens: Callable[[str], int] | None = None
    """Size of a text in tokens; give the model's own tokenizer to be exact. By default, one token
    per three bytes."""
    batch_size: int = Field(default=1024, ge=1)
    """Maximum number of pairs in one call."""

    @model_validator(mode="before")
    @classmethod
    def _options_of_the_model(cls, options: Any) -> Any:
        """Set the options that a public model decides; its packages must be installed."""
        name = options.get("cross_encoder") if isinstance(options, Mapping) else None
        if not isinstance(name, str):
            return options
        model = public_model(name)
        decided = {"scores": "probability", "classes": model.family.classes, "evidence_first": True}
        for option, value in {**decided, "count_tokens": None}.items():
            given = options.get(option, value)
            if (tuple(given) if isinstance(given, list) else given) != value:
                msg = f"{option} is decided by the model {name}: leave it out"
                raise ConfigurationError(msg)
        sizes = {"window_sentences": 1000, "max_tokens": model.window, "batch_size": 64}
        return {"name": name, **sizes, **options, **decided}

    @override
    def _check_options(self) -> None:
        public = isinstance(self.cross_encoder, str)
        if not public and (self.path is not None or self.revision is not None):
            msg = "path= and revision= are for a public model, given by name as cross_encoder="
            raise ConfigurationError(msg)
        if self.path is not None and self.revision is not None:
            msg = "path excludes revision, which belongs to the model's repository: omit one"
            raise ConfigurationError(msg)
        if self.scores == "relevance":
            if self.threshold is None or not math.isfinite(self.threshold) or self.classes:
                msg = "scores='relevance' needs a finite threshold= and excludes classes="
                raise ConfigurationError(msg)
        elif self.threshold is not None and not 0 < self.threshold <= 1:
            msg = f"threshold must be above 0 and at most 1, got {self.threshold}"
            raise ConfigurationError(msg)
        if self.classes and (
            "supported" not in self.classes or len(set(self.classes)) < len(self.classes)
        ):
            msg = (
                f"classes must contain 'supported', and each of {get_args(ScoreClass)} at most "
                f"once, got {self.classes}"
            )
            raise ConfigurationError(msg)

    @property
    def strict_threshold(self) -> float:
        """Minimum probability of support for what a correction says."""
        return halfway(self._threshold)

    def warm_up(self) -> None:
        """Load a public model now instead of on first use; raises whatever prevents it."""
        if isinstance(self.cross_encoder, str):
            load_public_model(self.cross_encoder, self.path, self.revision)

    @override
    def _verdict_steps(self, tasks: Sequence[VerificationTask]) -> VerdictSteps:
        public: LoadedModel | None = None
        if isinstance(self.cross_encoder, str) and any(task.claims for task in tasks):
            try:
                public = yield _LOAD
            except (ConfigurationError, MissingDependencyError):
                raise
            except Exception as exc:  # noqa: BLE001  (files or a network may fail in any way)
                why = cause(record_error(exc))
                reason = (
                    f"the model {self.cross_encoder} could not be loaded: {why}; "
                    "warm_up() raises the error itself"
                )
                for place, task in enumerate(tasks):
                    yield FinalVerdicts(place, [self._unchecked(c, reason) for c in task.claims])
                return
        evidence = [self._evidence(task, public) for task in tasks]
        pairs = (pair for each in evidence for paired in each.values() for pair, _ in paired)
        readings = yield from ask_in_batches(pairs, self.batch_size, self._read_scores, _failed)
        for place, (task, each) in enumerate(zip(tasks, evidence, strict=True)):
            verdicts = []
            for claim in task.claims:
                if claim.id in each:
                    read = [(readings[pair], window) for pair, window in each[claim.id]]
                    verdicts.append(self._verdict(task, claim, read))
                else:
                    reason = (
                        f"the claim leaves no room for evidence: {self.cross_encoder} reads "
                        f"{public.model.limit if public else 0} tokens"
                    )
                    verdicts.append(self._unchecked(claim, reason))
            yield FinalVerdicts(place, verdicts)

    @override
    def _ask(self, request: list[Pair] | str, configs: Sequence[RunnableConfig]) -> Any:
        model: Any = self.cross_encoder
        if isinstance(model, str):
            model = load_public_model(model, self.path, self.revision)
        return model if request == _LOAD else model.score(request)

    @override
    async def _aask(self, request: list[Pair] | str, configs: Sequence[RunnableConfig]) -> Any:
        return await run_in_executor(None, self._ask, request, configs)

    def _evidence(
        self, task: VerificationTask, public: LoadedModel | None
    ) -> dict[str, list[tuple[Pair, Passage]]]:
        """Pair claims, by id, with the windows that fit beside them; leave out those too long."""
        claims = dict.fromkeys(task.claims, self.max_tokens)
        if public is not None:
            left = {claim: public.tokens_left(claim.text, task.question) for claim in task.claims}
            claims = {claim: tokens for claim, tokens in left.items() if tokens >= _LEAST_EVIDENCE}
        windows = evidence_windows(
            task.documents if claims else (),
            sentences=self.window_sentences,
            max_tokens=min([self.max_tokens, *claims.values()]),
            overlap=None if public is None else 1,
            count_tokens=public.count_tokens if public else self.count_tokens or encoder_tokens,
        )
        evidence_first = bool(self.classes) if self.evidence_first is None else self.evidence_first

        def pair(claim: str, window: str) -> Pair:
            if public is not None:
                return public.texts(window, claim, task.question)
            return (window, claim) if evidence_first else (claim, window)

        return {c.id: [(pair(c.text, w.text), w) for w in windows] for c in claims}

    @property
    def _threshold(self) -> float:
        return 0.5 if self.threshold is None else self.threshold

    def _unchecked(self, claim: Claim, reason: str) -> ClaimVerdict:
        return ClaimVerdict.unchecked(claim, reason, verifier=self.get_name())

    def _read_scores(self, reply: Any, pairs: int) -> list["_Reading"]:
        rows = np.asarray(reply, dtype=np.float64)
        columns = len(self.classes) or 1
        if rows.shape == (pairs,):
            rows = rows[:, None]
        if rows.shape != (pairs, columns):
            msg = f"{pairs} pairs need scores of shape ({pairs}, {columns}), got shape {rows.shape}"
            raise _ScoreError(msg)
        if self.scores == "logit":
            # The sigmoid is the softmax against a logit of zero.
            rows = _probabilities(rows if self.classes else np.hstack([rows, np.zeros_like(rows)]))
        elif self.scores == "probability" and ((rows < 0) | (rows > 1)).any():
            msg = "scores lie outside 0..1: set scores='logit' or scores='relevance'"
            raise _ScoreError(msg)
        support = self.classes.index("supported") if self.classes else 0
        against = self.classes.index("contradicted") if "contradicted" in self.classes else None
        return [
            _Reading(row[support], None if against is None else row[against])
            if all(map(math.isfinite, row))
            else _Reading(failure="a score is not a number")
            for row in rows.tolist()
        ]

    def _verdict(
        self, task: VerificationTask, claim: Claim, read: Sequence[tuple["_Reading", Passage]]
    ) -> ClaimVerdict:
        support = self._best(claim, [(r.supported, window) for r, window in read])
        against = self._best(claim, [(r.contradicted, window) for r, window in read])
        failure = next((r.failure for r, _ in read if r.failure), None)
        if not read:
            failure = "the documents hold no text to check against"
        if failure is not None and support is None:
            return self._unchecked(claim, failure)
        best = max(r.supported for r, _ in read if r.supported is not None)
        probability = None if self.scores == "relevance" else best
        verdict = partial(ClaimVerdict, claim=claim, verifier=self.get_name())
        stated: dict[ScoreClass, Passage | None] = {"supported": support, "contradicted": against}
        verdicts = [
            verdict(
                verdict=label,
                support_probability=probability,
                explanation=_EXPLANATIONS[label],
                citations=(Citation.from_document(task.documents, w.document, w.start, w.end),),
            )
            for label, w in stated.items()
            if w is not None
        ]
        if verdicts:
            return merge_verdicts(verdicts)
        explanation = "The passages that score high share no content word with the claim."
        if best >= self._threshold:
            probability = None
        else:
            least = f"the threshold of {self._threshold:g}"
            explanation = f"No passage reaches {least}; the best has {best:.2f}."
        return verdict(
            verdict="unverifiable", support_probability=probability, explanation=explanation
        )

    def _best(self, claim: Claim, scored: Sequence[tuple[float | None, Passage]]) -> Passage | None:
        """Return the best window that reaches the threshold and shares a content word."""
        words, least = content_words(claim.text), self._threshold
        enough = [(score, w) for score, w in scored if score is not None and score >= least]
        best_first = sorted(enough, key=itemgetter(0), reverse=True)
        return next((w for _, w in best_first if words & content_words(w.text)), None)


class _Reading(NamedTuple):
    """The scores of one pair, or why there are none."""

    supported: float | None = None
    contradicted: float | None = None
    failure: str | None = None


class _ScoreError(ValueError):
    """The scores do not match the options."""


def _failed(error: Exception) -> _Reading:
    is_known = isinstance(error, _ScoreError)
    return _Reading(failure=str(error) if is_known else f"failed with {type(error).__name__}")


def _probabilities(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return cast("NDArray[np.float64]", powers / powers.sum(axis=1, keepdims=True))
