"""The embedded verifier: judges claims on the CPU, without a network, a key or a language model."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np
from langchain_core.documents import Document
from langchain_core.runnables import RunnableConfig
from pydantic import ConfigDict, Field
from typing_extensions import override

from langchain_groundedness._runtime.telemetry import record_error
from langchain_groundedness.inputs.formats import NO_DOCUMENTS, has_text
from langchain_groundedness.types import Claim, ClaimVerdict, VerificationTask
from langchain_groundedness.verification.base import FinalVerdicts, PooledVerifier, VerdictSteps
from langchain_groundedness.verification.embedded.batching import pair_scorer
from langchain_groundedness.verification.embedded.encoder import CLASSES, Floats, Pair, encoder
from langchain_groundedness.verification.embedded.index import EvidenceIndex
from langchain_groundedness.verification.embedded.judgement import (
    VERIFIER,
    ClaimEvidence,
    gather_evidence,
    judge,
)
from langchain_groundedness.verification.embedded.model_files import inverse_frequencies
from langchain_groundedness.verification.embedded.support_model import SupportModel, support_model

__all__ = ["EmbeddedVerifier", "concurrency_limit"]

_INDEXES_CACHED = 64

_LARGEST_CACHED = 50_000
"""Characters of documents whose index is kept: all that is kept stays below some 50 MB."""

_CLAIMS_AT_ONCE = 1024
"""What is known of a claim before its verdict takes some 10 KB."""

_NOTHING: Floats = np.zeros((0, len(CLASSES)), dtype=np.float32)

_Numbered = tuple[int, VerificationTask]

_T = TypeVar("_T")

_CHECKS_AT_ONCE = 32
"""500 checks of five claims at once kept the event loop waiting for 62 to 71 ms at the 99th
percentile with no limit, 60 to 73 with 64, 25 to 34 with 32, in as much time."""


class EmbeddedVerifier(PooledVerifier):
    """Judges each claim by the sentences of the documents that say the most about it.

    All text of all documents is searched. Five signals measure how much of the claim the sentences
    found say; a small encoder reads these sentences together with the claim; a calibrated model,
    trained on claims that people judged, weighs both. A claim below the threshold is `contradicted`
    if a sentence about the same thing differs in a value, name, date or polarity, or if the encoder
    is sure that it does, and `unverifiable` otherwise. Without documents, or with blank ones only,
    every claim is `unchecked`. It reads English: of claims or evidence in other languages, only
    what a sentence states word for word is `supported`; the rest is `unchecked`.

    Claims that are asked about at the same time, by `batch` or by many `ainvoke`, go through the
    encoder together, in a thread of its own.

    Example:
        >>> from langchain_groundedness.types import Claim
        >>> task = VerificationTask(
        ...     claims=(Claim(id="1", text="Revenue was $2.4B in Q3."),),
        ...     documents=(Document("Revenue was $2.1B in Q3 2024."),),
        ... )
        >>> verdict = EmbeddedVerifier().invoke(task)[0]
        >>> verdict.verdict, verdict.correction
        ('contradicted', '$2.1B')
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    _by_encoder: ClassVar[bool] = True  # audit records name the encoder

    threshold: float | None = Field(default=None, ge=0.0, le=1.0)
    """The probability from which a claim counts as supported; `None` for that of the profile."""
    profile: Literal["balanced", "strict"] = "balanced"
    """`balanced` makes the fewest mistakes of both kinds; with `strict`, at most a tenth of the
    unsupported claims pass in each set that people judged, held back from training, and it misses
    more of the supported ones."""
    threads: int | None = Field(default=None, ge=1, le=256)
    """Processor threads of the encoder; by default one per core, four at most."""

    @property
    def strict_threshold(self) -> float:
        """Minimum probability of support for what a correction says."""
        return max(self.threshold or 0.0, support_model().threshold_for(None, strict=True))

    def warm_up(self) -> None:
        """Load the model now instead of on first use; doing so again costs nothing."""
        support_model()
        inverse_frequencies()
        encoder(self.threads)

    @override
    async def _arun(
        self, tasks: Sequence[VerificationTask], config: Sequence[RunnableConfig]
    ) -> list[list[ClaimVerdict]]:
        async with (
            concurrency_limit()
        ):  # streams do not enter: who reads one may pause as long as he likes
            return await super()._arun(tasks, config)

    @override
    def _verdict_steps(self, tasks: Sequence[VerificationTask]) -> VerdictSteps:
        # Texts, not documents: those that differ in metadata alone are read once.
        indexes: dict[tuple[str, ...], EvidenceIndex] = {}
        for part in _parts(tasks):
            yield from self._verdict_steps_of_part(part, indexes)
            going_on = _texts(part[-1][1])
            for key in indexes.keys() - {going_on}:
                del indexes[key]

    def _verdict_steps_of_part(
        self, part: Sequence[_Numbered], indexes: dict[tuple[str, ...], EvidenceIndex]
    ) -> VerdictSteps:
        examined = [self._examined(task, indexes) for _, task in part]
        pairs = [pair for found in examined for evidence in found for pair in _pairs(evidence)]
        logits = (yield pairs) if pairs else _NOTHING
        model = support_model()
        ends = np.cumsum([len(_pairs(evidence)) for found in examined for evidence in found])
        of_claims = iter(np.split(logits, ends))
        for (place, _), found in zip(part, examined, strict=True):
            verdicts = [self._verdict(evidence, next(of_claims), model) for evidence in found]
            yield FinalVerdicts(place, verdicts)

    @override
    def _ask(self, request: list[Pair], configs: Sequence[RunnableConfig]) -> Floats:
        future = pair_scorer(self.threads).submit(request)
        try:
            return future.result()
        finally:
            future.cancel()  # when interrupted, nobody waits for the rest

    @override
    async def _aask(self, request: list[Pair], configs: Sequence[RunnableConfig]) -> Floats:
        return await asyncio.wrap_future(pair_scorer(self.threads).submit(request))

    def _examined(
        self, task: VerificationTask, indexes: dict[tuple[str, ...], EvidenceIndex]
    ) -> "list[ClaimEvidence | ClaimVerdict]":
        """Examine the claims of a task."""
        if not has_text(task.documents):
            return [_unchecked(claim, NO_DOCUMENTS) for claim in task.claims]
        key = _texts(task)
        try:
            if key not in indexes:
                indexes[key] = _index(task.documents)
        except Exception as exc:  # noqa: BLE001  (any text may come)
            return [_failed(claim, exc) for claim in task.claims]
        return [
            _unless_it_fails(claim, partial(gather_evidence, claim, task, indexes[key]))
            for claim in task.claims
        ]

    def _verdict(
        self, evidence: "ClaimEvidence | ClaimVerdict", logits: Floats, model: SupportModel
    ) -> ClaimVerdict:
        if isinstance(evidence, ClaimVerdict):
            return evidence
        options: Any = {"threshold": self.threshold, "strict": self.profile == "strict"}
        return _unless_it_fails(evidence.claim, partial(judge, evidence, logits, model, **options))


def _parts(tasks: Sequence[VerificationTask]) -> Iterator[list[_Numbered]]:
    """Split tasks into parts whose claims take little memory; at least one task each."""
    part: list[_Numbered] = []
    left = _CLAIMS_AT_ONCE
    for place, task in enumerate(tasks):
        rest = task
        while len(rest.claims) > left:
            part.append((place, rest.only(rest.claims[:left])))
            rest = rest.only(rest.claims[left:])
            yield part
            part, left = [], _CLAIMS_AT_ONCE
        part.append((place, rest))
        left -= len(rest.claims)
    if part:
        yield part


def _texts(task: VerificationTask) -> tuple[str, ...]:
    return tuple(document.page_content for document in task.documents)


def _pairs(evidence: ClaimEvidence | ClaimVerdict) -> tuple[Pair, ...]:
    return evidence.pairs if isinstance(evidence, ClaimEvidence) else ()


def _unless_it_fails(claim: Claim, step: Callable[[], _T]) -> _T | ClaimVerdict:
    """Carry out a step for a claim; one that fails must not make the others fail."""
    try:
        return step()
    except Exception as exc:  # noqa: BLE001  (any text may come)
        return _failed(claim, exc)


def _unchecked(claim: Claim, reason: str) -> ClaimVerdict:
    return ClaimVerdict.unchecked(claim, reason, verifier=VERIFIER)


def _failed(claim: Claim, error: Exception) -> ClaimVerdict:
    kind = type(record_error(error)).__name__
    return _unchecked(claim, f"the claim could not be examined ({kind})")


def _index(documents: Sequence[Document]) -> EvidenceIndex:
    """Read documents, unless they were read a moment ago for another sentence."""
    texts = tuple(document.page_content for document in documents)
    return _recent(texts) if sum(map(len, texts)) <= _LARGEST_CACHED else EvidenceIndex(documents)


@lru_cache(maxsize=_INDEXES_CACHED)
def _recent(texts: tuple[str, ...]) -> EvidenceIndex:
    return EvidenceIndex([Document(page_content=text) for text in texts])


@dataclass
class _Limit:
    places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_CHECKS_AT_ONCE))
    users: int = 0
    """Checks that hold a place or wait for one."""


@asynccontextmanager
async def concurrency_limit() -> AsyncIterator[None]:
    """Wait for a place in the running event loop.

    The caller must not enter again while it holds a place: the two would wait for each other.
    """
    loop = asyncio.get_running_loop()
    limit = _LIMITS.setdefault(loop, _Limit())
    limit.users += 1
    try:
        async with limit.places:
            yield
    finally:
        limit.users -= 1
        if not limit.users:
            del _LIMITS[loop]


_LIMITS: dict[asyncio.AbstractEventLoop, _Limit] = {}
"""Only of event loops in which a check holds or awaits a place."""
