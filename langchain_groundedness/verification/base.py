"""Base class of verifiers that judge many tasks together.

A verifier implements its logic once, as a generator without I/O. It yields requests (texts to
embed, pairs to score, tasks for another verifier) and receives each reply, or the error, at the
`yield`. It yields `FinalVerdicts` as soon as it has them. This module drives that generator for
`invoke`, `ainvoke`, `batch`, `abatch`, `stream` and `astream`.
"""

from abc import ABC, abstractmethod
from collections.abc import (
    AsyncIterator,
    Callable,
    Generator,
    Hashable,
    Iterable,
    Iterator,
    Sequence,
)
from typing import Any, NamedTuple, Self, TypeAlias, TypeVar, cast

from langchain_core.runnables import Runnable, RunnableConfig, RunnableSerializable
from langchain_core.runnables.config import merge_configs
from pydantic import ConfigDict, model_validator
from typing_extensions import override

from langchain_groundedness._runtime.executors import run_in_worker, total_characters
from langchain_groundedness._runtime.flow import JointBatch, reraise_interrupts
from langchain_groundedness._runtime.options import CheckedOptions
from langchain_groundedness._runtime.telemetry import record_error
from langchain_groundedness.exceptions import ConfigurationError, MissingDependencyError, cause
from langchain_groundedness.llm.usage import count_cached
from langchain_groundedness.types import ClaimVerdict, VerificationTask
from langchain_groundedness.verification.scoring import reconcile

__all__ = [
    "AskVerifier",
    "FinalVerdicts",
    "PooledVerifier",
    "StreamingVerifier",
    "VerdictSteps",
    "Verifier",
    "ask_in_batches",
    "checked_reply",
]

Verifier: TypeAlias = Runnable[VerificationTask, list[ClaimVerdict]]
"""Anything that judges claims: a verifier of this package, your own chain, a `RunnableLambda`.

Verdicts are matched to claims by id; a claim without a verdict becomes `unchecked`. A verifier that
streams yields lists, which are concatenated."""


class FinalVerdicts(NamedTuple):
    """Final verdicts on claims of one task; each claim appears at most once."""

    task: int
    """Index of the task."""
    verdicts: Sequence[ClaimVerdict]
    cached: int = 0
    """How many of them came from a cache."""

    def counted(self, configs: Sequence[RunnableConfig]) -> Self:
        """Report cached verdicts to the usage counter of the task."""
        if self.cached:
            count_cached(configs[self.task], self.cached)
        return self


class AskVerifier(NamedTuple):
    """A request to another verifier; the reply lists its verdicts, or its error, per task."""

    verifier: Runnable[Any, Any]
    places: Sequence[int]
    """Indexes of the tasks."""
    tasks: list[VerificationTask]
    config: RunnableConfig | None = None
    """Merged into the config of each task."""

    def ask(self, configs: Sequence[RunnableConfig]) -> list[Any]:
        """Send the request."""
        return _raise_permanent_errors(
            self.verifier.batch(self.tasks, self._configs(configs), return_exceptions=True)
        )

    async def aask(self, configs: Sequence[RunnableConfig]) -> list[Any]:
        """Send the request without blocking the event loop."""
        return _raise_permanent_errors(
            await self.verifier.abatch(self.tasks, self._configs(configs), return_exceptions=True)
        )

    def _configs(self, configs: Sequence[RunnableConfig]) -> list[RunnableConfig]:
        return [merge_configs(configs[place], self.config) for place in self.places]


def checked_reply(task: VerificationTask, reply: Any, verifier: str) -> list[ClaimVerdict]:
    """Validate the reply of another verifier; a failure leaves the claims unchecked."""
    if isinstance(reply, list) and all(isinstance(each, ClaimVerdict) for each in reply):
        return reconcile(task, reply, verifier=verifier)
    if isinstance(reply, Exception):
        reason = f"{verifier} failed with {cause(record_error(reply))}"
    else:
        reason = f"{verifier} must return a list of ClaimVerdict, got {type(reply).__name__}"
    return [ClaimVerdict.unchecked(claim, reason, verifier=verifier) for claim in task.claims]


def _raise_permanent_errors(replies: list[Any]) -> list[Any]:
    """Raise errors that neither another verifier nor a retry can fix."""
    for reply in reraise_interrupts(replies):
        if isinstance(reply, ConfigurationError | MissingDependencyError):
            raise reply
    return replies


VerdictSteps = Generator[Any, Any, None]
"""Yields requests and `FinalVerdicts`; receives the reply to each request."""

_ItemT = TypeVar("_ItemT", bound=Hashable)
_FoundT = TypeVar("_FoundT")


def ask_in_batches(
    items: Iterable[_ItemT],
    size: int,
    read: Callable[[Any, int], list[_FoundT]],
    failed: Callable[[Exception], _FoundT],
) -> Generator[list[_ItemT], Any, dict[_ItemT, _FoundT]]:
    """Request what is found for each distinct item; a failure is found for its whole batch."""
    distinct = list(dict.fromkeys(items))
    found: dict[_ItemT, _FoundT] = {}
    for first in range(0, len(distinct), size):
        batch = distinct[first : first + size]
        try:
            results = read((yield batch), len(batch))
        except Exception as exc:  # noqa: BLE001  (a model or service may fail in any way)
            results = [failed(record_error(exc))] * len(batch)
        found.update(zip(batch, results, strict=True))
    return found


class StreamingVerifier(
    CheckedOptions, RunnableSerializable[VerificationTask, list[ClaimVerdict]], ABC
):
    """Judges a task; its stream yields verdicts as they become final."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)
    _can_be_saved = True

    @abstractmethod
    def _judge(self, task: VerificationTask, config: RunnableConfig) -> list[ClaimVerdict]:
        """Return one verdict per claim."""

    @abstractmethod
    async def _ajudge(self, task: VerificationTask, config: RunnableConfig) -> list[ClaimVerdict]:
        """Do what `_judge` does without blocking the event loop."""

    @abstractmethod
    def _stream(
        self, tasks: Iterator[VerificationTask], config: RunnableConfig
    ) -> Iterator[list[ClaimVerdict]]:
        """Yield verdicts as they become final."""

    @abstractmethod
    def _astream(
        self, tasks: AsyncIterator[VerificationTask], config: RunnableConfig
    ) -> AsyncIterator[list[ClaimVerdict]]:
        """Do what `_stream` does without blocking the event loop."""

    # Casts to Any: LangChain passes the config by keyword, which its annotations do not show.

    @override
    def invoke(
        self, input: VerificationTask, config: RunnableConfig | None = None, **_: Any
    ) -> list[ClaimVerdict]:
        return self._call_with_config(cast("Any", self._judge), input, config)

    @override
    async def ainvoke(
        self, input: VerificationTask, config: RunnableConfig | None = None, **_: Any
    ) -> list[ClaimVerdict]:
        return await self._acall_with_config(cast("Any", self._ajudge), input, config)

    @override
    def stream(
        self, input: VerificationTask, config: RunnableConfig | None = None, **_: Any
    ) -> Iterator[list[ClaimVerdict]]:
        run = cast("Any", self._stream)
        yield from self._transform_stream_with_config(iter([input]), run, config)

    @override
    async def astream(
        self, input: VerificationTask, config: RunnableConfig | None = None, **_: Any
    ) -> AsyncIterator[list[ClaimVerdict]]:
        async def inputs() -> AsyncIterator[VerificationTask]:
            yield input

        run = cast("Any", self._astream)
        async for verdicts in self._atransform_stream_with_config(inputs(), run, config):
            yield verdicts


class PooledVerifier(StreamingVerifier, JointBatch[VerificationTask, list[ClaimVerdict]], ABC):
    """Judges the claims of all its tasks together; returns exactly one verdict per claim.

    A stream yields verdicts as they become final, in any order; together its lists contain what
    `invoke` returns.
    """

    @model_validator(mode="after")
    def _options_fit(self) -> Self:
        self._check_options()
        return self

    def _check_options(self) -> None:
        """Raise `ConfigurationError` if the options contradict each other."""

    @abstractmethod
    def _verdict_steps(self, tasks: Sequence[VerificationTask]) -> VerdictSteps:
        """Judge the tasks without I/O."""

    def _ask(self, request: Any, configs: Sequence[RunnableConfig]) -> Any:
        """Answer a request of `_verdict_steps`, given the child config of each task."""
        raise NotImplementedError

    async def _aask(self, request: Any, configs: Sequence[RunnableConfig]) -> Any:
        """Answer a request without blocking the event loop."""
        return self._ask(request, configs)

    @override
    def _judge(self, task: VerificationTask, config: RunnableConfig) -> list[ClaimVerdict]:
        return self._run([task], [config])[0]

    @override
    async def _ajudge(self, task: VerificationTask, config: RunnableConfig) -> list[ClaimVerdict]:
        return (await self._arun([task], [config]))[0]

    def _run(
        self, tasks: Sequence[VerificationTask], config: Sequence[RunnableConfig]
    ) -> list[list[ClaimVerdict]]:
        return self._by_task(tasks, self._final_verdicts(tasks, config))

    async def _arun(
        self, tasks: Sequence[VerificationTask], config: Sequence[RunnableConfig]
    ) -> list[list[ClaimVerdict]]:
        return self._by_task(tasks, [found async for found in self._afinal_verdicts(tasks, config)])

    def _by_task(
        self, tasks: Sequence[VerificationTask], found: Iterable[FinalVerdicts]
    ) -> list[list[ClaimVerdict]]:
        by_task: list[list[ClaimVerdict]] = [[] for _ in tasks]
        for each in found:
            by_task[each.task].extend(each.verdicts)
        return [
            reconcile(task, verdicts, verifier=self.get_name())
            for task, verdicts in zip(tasks, by_task, strict=True)
        ]

    @override
    def _stream(
        self, tasks: Iterator[VerificationTask], config: RunnableConfig
    ) -> Iterator[list[ClaimVerdict]]:
        for task in tasks:
            missing = task
            for found in self._final_verdicts([task], [config]):
                final, missing = self._newly_final(missing, found.verdicts)
                yield final
            if missing.claims:
                yield reconcile(missing, (), verifier=self.get_name())

    @override
    async def _astream(
        self, tasks: AsyncIterator[VerificationTask], config: RunnableConfig
    ) -> AsyncIterator[list[ClaimVerdict]]:
        async for task in tasks:
            missing = task
            async for found in self._afinal_verdicts([task], [config]):
                final, missing = self._newly_final(missing, found.verdicts)
                yield final
            if missing.claims:
                yield reconcile(missing, (), verifier=self.get_name())

    def _newly_final(
        self, missing: VerificationTask, verdicts: Sequence[ClaimVerdict]
    ) -> tuple[list[ClaimVerdict], VerificationTask]:
        """Reconcile verdicts on missing claims; return them and what is missing now."""
        named = {verdict.claim.id for verdict in verdicts}
        final = missing.only(claim for claim in missing.claims if claim.id in named)
        missing = missing.only(claim for claim in missing.claims if claim.id not in named)
        return reconcile(final, verdicts, verifier=self.get_name()), missing

    def _final_verdicts(
        self, tasks: Sequence[VerificationTask], configs: Sequence[RunnableConfig]
    ) -> Iterator[FinalVerdicts]:
        judging = self._verdict_steps(tasks)
        reply: Any = None
        error: Exception | None = None
        while (item := _step(judging, reply, error)) is not None:
            reply = error = None
            if isinstance(item, FinalVerdicts):
                yield item.counted(configs)
                continue
            try:
                asks = isinstance(item, AskVerifier)
                reply = item.ask(configs) if asks else self._ask(item, configs)
            except Exception as exc:  # noqa: BLE001  (the logic decides what an error means)
                error = exc

    async def _afinal_verdicts(
        self, tasks: Sequence[VerificationTask], configs: Sequence[RunnableConfig]
    ) -> AsyncIterator[FinalVerdicts]:
        judging = self._verdict_steps(tasks)
        size = sum(total_characters(task.documents) for task in tasks)
        reply: Any = None
        error: Exception | None = None
        while (item := await run_in_worker(size, _step, judging, reply, error)) is not None:
            reply = error = None
            if isinstance(item, FinalVerdicts):
                yield item.counted(configs)
                continue
            try:
                asks = isinstance(item, AskVerifier)
                reply = await (item.aask(configs) if asks else self._aask(item, configs))
            except Exception as exc:  # noqa: BLE001  (the logic decides what an error means)
                error = exc


def _step(judging: VerdictSteps, reply: Any, error: Exception | None) -> Any:
    """Resume the generator; return its next item, or `None` at the end."""
    try:
        return judging.send(reply) if error is None else judging.throw(error)
    except StopIteration:
        return None
