"""What all evaluators share: how they read rows, run, fail, and are called."""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any, ClassVar, Literal, Self, TypeVar

from langchain_core.callbacks import AsyncCallbackManagerForChainRun, CallbackManagerForChainRun
from langchain_core.runnables import Runnable, RunnableConfig, RunnableSerializable, patch_config
from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import override

from langchain_groundedness._runtime.flow import (
    Flow,
    ModelCall,
    adrive,
    drive,
    exceptions_at_most,
    quiet,
)
from langchain_groundedness._runtime.options import OptionsAlone
from langchain_groundedness._runtime.version import PACKAGE_VERSION
from langchain_groundedness.evals.columns import Example, read_columns, read_row
from langchain_groundedness.evals.fingerprint import describe
from langchain_groundedness.evals.progress import progress
from langchain_groundedness.evals.values import EvaluationRow, RowScore
from langchain_groundedness.exceptions import (
    ConfigurationError,
    EvaluationError,
    GroundednessError,
    MissingDependencyError,
    cause,
)
from langchain_groundedness.llm.timeouts import (
    DEFAULT_TIMEOUT,
    Seconds,
    acall_with_timeout,
    call_with_timeout,
)
from langchain_groundedness.llm.usage import counted
from langchain_groundedness.types import GroundednessResult, Usage

__all__ = ["EvaluationResult", "Evaluator", "Gate"]

_LOGGER = logging.getLogger(__name__)

_SHOWN = 10


class EvaluationResult(BaseModel):
    """The scores of one evaluator over rows; `result["score"]` works as `result.score` does."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: str
    """Name of the metric."""
    score: float | None
    """Mean of the rows that have a score; `None` if none has."""
    individual_scores: list[float | None]
    """One per row, `None` where there is no score."""
    results: list[dict[str, Any]]
    """One per row: the evaluator's details, `score`, `status` and `reason`."""
    scored: int
    """How many rows the mean is of."""
    failed: int
    """How many rows could not be scored because something went wrong."""
    skipped: int
    """How many rows the metric does not apply to."""
    note: str
    """In words, which rows are not part of the mean and why; empty if all are."""
    rows: tuple[RowScore, ...]
    """The same in full."""
    usage: Usage = Usage()

    @classmethod
    def of(cls, key: str, rows: Sequence[RowScore]) -> Self:
        """Sum rows up.

        Args:
            key: Name of the metric.
            rows: Their scores.

        Returns:
            The sum.
        """
        scores = [row.score for row in rows]
        known = [score for score in scores if score is not None]
        return cls(
            key=key,
            score=sum(known) / len(known) if known else None,
            individual_scores=scores,
            results=[
                {**row.details, "score": row.score, "status": row.status, "reason": row.reason}
                for row in rows
            ],
            scored=len(known),
            failed=sum(row.status == "failed" for row in rows),
            skipped=sum(row.status == "skipped" for row in rows),
            note=_note(rows),
            rows=tuple(rows),
            usage=total_usage(row.usage for row in rows),
        )

    def __getitem__(self, name: str) -> Any:
        """Give a field by its name, as of a dict."""
        if name not in type(self).model_fields:
            raise KeyError(name)
        return getattr(self, name)

    def keys(self) -> tuple[str, ...]:
        """Name the fields, as of a dict."""
        return tuple(type(self).model_fields)


ResultT = TypeVar("ResultT")


class Gate:
    """Lets so many calls through at a time; belongs to one run over many rows.

    Calls go through in the order in which they are asked for. If rows were bounded and not their
    calls, the last rows would wait until all calls of a row before them were made: 20 rows of two
    calls, 16 at a time, would take four rounds, not three.
    """

    def __init__(self, calls: int) -> None:
        """Open it."""
        self.calls = calls
        self._threads = _Turnstile(calls)
        self._tasks = asyncio.Semaphore(calls)

    @property
    def rows(self) -> int:
        """How many rows to begin at a time; no more, so that they end one after the other."""
        return _ROWS_PER_CALL * self.calls

    @property
    def waiting(self) -> int:
        """How many threads wait to be let through."""
        return len(self._threads.waiting)

    def guard(self, flow: Flow[ResultT]) -> Flow[ResultT]:
        """Let the calls of a flow through when there is room."""
        try:
            call = next(flow)
            while True:
                try:
                    reply = yield ModelCall(_Guarded(call, self), call.input)
                except Exception as exc:  # noqa: BLE001  (the flow decides what it means)
                    call = flow.throw(exc)
                else:
                    call = flow.send(reply)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]  # untyped


class RowEvaluator(OptionsAlone, RunnableSerializable[Any, RowScore], ABC):
    """A runnable from a row to its score; what goes wrong ends as `failed`."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    needs: ClassVar[tuple[str, ...]] = ()
    """Fields of `EvaluationRow` without which a row is skipped."""

    key: str = Field(min_length=1)
    """Name of the metric."""
    raise_on_failure: bool = False
    """Raise `EvaluationError`, after the last row, if rows failed; its `result` has all rows."""
    progress_bar: bool = False
    """Show how far `run` is: on stderr, if that is a terminal and rich is installed."""
    max_concurrency: int = Field(default=32, ge=1)
    """Most rows at a time, if the config of the run does not say."""
    model_timeout: Seconds = DEFAULT_TIMEOUT
    """Seconds to wait for one reply of a model, where the evaluator asks one; a row that waits in
    vain fails. `None` leaves it to the model's client."""

    @abstractmethod
    def _score(self, row: EvaluationRow) -> Flow[RowScore]:
        """Score a row that has what is needed.

        Calls of models are yielded as `ModelCall`s, so that one method serves `invoke` and
        `ainvoke`. What is raised makes the row `failed`. Make the score with `_scored`, `_failed`
        or `_skipped`.
        """

    @override
    @classmethod
    def is_lc_serializable(cls) -> bool:
        return True

    @override
    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> RowScore:
        """Score a row."""
        return self._call_with_config(self._run, input, config, **kwargs)

    @override
    async def ainvoke(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> RowScore:
        return await self._acall_with_config(self._arun, input, config, **kwargs)

    @override
    def batch(
        self,
        inputs: list[Any],
        config: RunnableConfig | list[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **kwargs: Any,
    ) -> list[RowScore]:
        outputs = super().batch(
            inputs, self._bounded(config), return_exceptions=return_exceptions, **kwargs
        )
        return exceptions_at_most(outputs)

    @override
    async def abatch(
        self,
        inputs: list[Any],
        config: RunnableConfig | list[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **kwargs: Any,
    ) -> list[RowScore]:
        outputs = await super().abatch(
            inputs, self._bounded(config), return_exceptions=return_exceptions, **kwargs
        )
        return exceptions_at_most(outputs)

    def _scored(
        self,
        score: float,
        *,
        comment: str = "",
        details: Mapping[str, Any] | None = None,
        result: GroundednessResult | None = None,
    ) -> RowScore:
        return RowScore(
            key=self.key,
            score=score,
            status="scored",
            comment=comment,
            details=dict(details or {}),
            result=result,
        )

    def _failed(self, reason: str, **found: Any) -> RowScore:
        return self._without_score("failed", reason, **found)

    def _skipped(self, reason: str, **found: Any) -> RowScore:
        return self._without_score("skipped", reason, **found)

    def _without_score(
        self,
        status: Literal["failed", "skipped"],
        reason: str,
        *,
        details: Mapping[str, Any] | None = None,
        result: GroundednessResult | None = None,
    ) -> RowScore:
        given = dict(details or {})
        return RowScore(key=self.key, status=status, reason=reason, details=given, result=result)

    def _run(
        self,
        value: Any,
        run_manager: CallbackManagerForChainRun,
        config: RunnableConfig,
        *,
        raise_on_failure: bool | None = None,
        gate: Gate | None = None,
    ) -> RowScore:
        child, counter = counted(_child(config, run_manager.get_child(), gate))
        found = drive(self._flow(value, gate), child)
        return self._told(*found, counter.usage, raise_on_failure)

    async def _arun(
        self,
        value: Any,
        run_manager: AsyncCallbackManagerForChainRun,
        config: RunnableConfig,
        *,
        raise_on_failure: bool | None = None,
        gate: Gate | None = None,
    ) -> RowScore:
        child, counter = counted(_child(config, run_manager.get_child(), gate))
        found = await adrive(self._flow(value, gate), child)
        return self._told(*found, counter.usage, raise_on_failure)

    def _flow(self, value: Any, gate: Gate | None) -> Flow[tuple[RowScore, Exception | None]]:
        """Score a row; give also what was raised, if that is why there is no score."""
        try:
            row = read_row(value)
            if lacking := [name for name in self.needs if _lacks(row, name)]:
                return self._skipped(f"the row has no {' and no '.join(lacking)}"), None
            scored = self._score(row)
            return (yield from scored if gate is None else gate.guard(scored)), None
        except (ConfigurationError, MissingDependencyError):
            raise  # a broken installation fails every row: whoever called hears
        except Exception as exc:  # noqa: BLE001  (a model may fail in any way)
            reason = str(exc) if isinstance(exc, GroundednessError) else cause(exc)
            return self._failed(reason), exc

    def _told(
        self,
        score: RowScore,
        raised: Exception | None,
        usage: Usage,
        raise_on_failure: bool | None,  # noqa: FBT001  (an option handed on)
    ) -> RowScore:
        raises = self.raise_on_failure if raise_on_failure is None else raise_on_failure
        score = score.model_copy(update={"usage": usage})
        if raises and score.status == "failed":
            msg = f"{self.key}: the row failed: {score.reason}"
            raise EvaluationError(msg, result=EvaluationResult.of(self.key, [score])) from raised
        return score

    def _bounded(self, config: Any) -> Any:
        if isinstance(config, list):
            return [self._bounded(each) for each in config]
        given = dict(config or {})
        return {**given, "max_concurrency": given.get("max_concurrency") or self.max_concurrency}


class Evaluator(RowEvaluator):
    """Scores rows, each for itself; a row that cannot be scored says why, and has no number.

    Three ways to call one: `invoke` and its kin take an `EvaluationRow`, or a mapping with
    `question`, `answer`, `contexts` …, and give a `RowScore`; `run` takes columns; the evaluator
    itself is a function `(inputs, outputs, reference_outputs)` for LangSmith's `evaluate` and
    for those who use openevals.

    To write one, say what it needs and write `_score`.
    """

    def run(
        self,
        *,
        questions: Sequence[str] | None = None,
        contexts: Sequence[Any] | None = None,
        predicted_answers: Sequence[str] | None = None,
        reference_answers: Sequence[str] | None = None,
        config: RunnableConfig | None = None,
    ) -> EvaluationResult:
        """Score rows that are given as columns of one length.

        Args:
            questions: Questions.
            contexts: For each row a list of texts or `Document`s.
            predicted_answers: Answers.
            reference_answers: The right answers.
            config: Config for the calls; `max_concurrency` bounds how many rows are being judged
                at once.

        Returns:
            The mean over the rows that have a score, and what there is about each row.

        Raises:
            InputFormatError: The columns do not fit together.
            EvaluationError: Rows failed, and `raise_on_failure` is set.
        """
        rows = read_columns(
            questions=questions,
            contexts=contexts,
            predicted_answers=predicted_answers,
            reference_answers=reference_answers,
        )
        scores: dict[int, RowScore] = {}
        bounded, gate = self._gated(config)
        with progress(self.key, len(rows), shown=self.progress_bar) as advance:
            done = self.batch_as_completed(rows, bounded, raise_on_failure=False, gate=gate)
            for place, score in done:
                scores[place] = score
                advance()
        return self._summed(rows, [scores[place] for place in range(len(rows))])

    async def arun(
        self,
        *,
        questions: Sequence[str] | None = None,
        contexts: Sequence[Any] | None = None,
        predicted_answers: Sequence[str] | None = None,
        reference_answers: Sequence[str] | None = None,
        config: RunnableConfig | None = None,
    ) -> EvaluationResult:
        """Score rows that are given as columns, without blocking the event loop.

        Args:
            questions: As for `run`.
            contexts: As for `run`.
            predicted_answers: As for `run`.
            reference_answers: As for `run`.
            config: As for `run`.

        Returns:
            As `run`.

        Raises:
            InputFormatError: As `run`.
            EvaluationError: As `run`.
        """
        rows = read_columns(
            questions=questions,
            contexts=contexts,
            predicted_answers=predicted_answers,
            reference_answers=reference_answers,
        )
        bounded, gate = self._gated(config)
        limit = asyncio.Semaphore(gate.rows)
        with progress(self.key, len(rows), shown=self.progress_bar) as advance:

            async def outcome(row: EvaluationRow) -> RowScore | Exception:
                async with limit:
                    try:
                        return await self.ainvoke(row, bounded, raise_on_failure=False, gate=gate)
                    except Exception as exc:  # noqa: BLE001  (raised below, outside the group)
                        return exc
                    finally:
                        advance()

            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(outcome(row)) for row in rows]
        scores = [task.result() for task in tasks]
        if broken := [score for score in scores if isinstance(score, Exception)]:
            raise broken[0]
        return self._summed(rows, [score for score in scores if isinstance(score, RowScore)])

    def __call__(
        self,
        inputs: Any = None,
        outputs: Any = None,
        reference_outputs: Any = None,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """Score an example as LangSmith's `evaluate` and openevals have it."""
        with _kept_local():
            return _feedback(self.invoke(Example(inputs, outputs, reference_outputs, kwargs)))

    async def acall(
        self,
        inputs: Any = None,
        outputs: Any = None,
        reference_outputs: Any = None,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """Score an example for LangSmith's `aevaluate`: `evaluators=[evaluator.acall]`.

        Args:
            inputs: As when the evaluator is called.
            outputs: As when the evaluator is called.
            reference_outputs: As when the evaluator is called.
            **kwargs: As when the evaluator is called.

        Returns:
            As when the evaluator is called.
        """
        with _kept_local():
            example = Example(inputs, outputs, reference_outputs, kwargs)
            return _feedback(await self.ainvoke(example))

    def fingerprint(self) -> dict[str, Any]:
        """Say what the scores depend on.

        Returns:
            The class, the options that count, and the version of this package; plain data,
            without keys and without texts.
        """
        told = describe(self)
        return {**told, **describe(self._defaults()), "version": PACKAGE_VERSION}

    def _defaults(self) -> Mapping[str, Any]:
        """Give what stands in for options that are `None`, as far as the scores depend on it."""
        return {}

    def _gated(self, config: RunnableConfig | None) -> tuple[RunnableConfig, Gate]:
        """Give what bounds the calls of a run, and a config that begins rows enough for it."""
        gate = Gate(self._bounded(config)["max_concurrency"])
        return {**(config or {}), "max_concurrency": gate.rows}, gate

    def _summed(
        self, rows: Sequence[EvaluationRow], scores: Sequence[RowScore]
    ) -> EvaluationResult:
        result = EvaluationResult.of(self.key, scores)
        failed = [r.id for r, s in zip(rows, scores, strict=True) if s.status == "failed"]
        if self.raise_on_failure and failed:
            listed = ", ".join(failed[:_SHOWN]) + (" …" if len(failed) > _SHOWN else "")
            msg = f"{self.key}: {len(failed)} of {len(rows)} rows failed (rows {listed})"
            raise EvaluationError(msg, row_ids=tuple(failed), result=result)
        if result.note:
            _LOGGER.warning("%s: %s", self.key, result.note)
        return result


def _feedback(score: RowScore) -> dict[str, Any]:
    metadata = {
        "status": score.status,
        **score.details,
        "usage": score.usage.model_dump(),
    }
    comment = score.comment if score.reason is None else f"{score.status}: {score.reason}"
    return {"key": score.key, "score": score.score, "comment": comment, "metadata": metadata}


@contextmanager
def _kept_local() -> Iterator[None]:
    """Trace nothing where LangSmith is told to upload nothing.

    `evaluate(..., upload_results=False)` keeps its own runs on this machine, but langchain-core
    takes that for tracing, and would send ours.
    """
    from langsmith.run_helpers import tracing_context  # noqa: PLC0415  (slow to import)
    from langsmith.utils import tracing_is_enabled  # noqa: PLC0415  (slow to import)

    if tracing_is_enabled() != "local":
        yield
        return
    with tracing_context(enabled=False):
        yield


def total_usage(usages: Iterable[Usage]) -> Usage:
    """Add usages up."""
    listed = list(usages)
    inputs = [u.input_tokens for u in listed if u.input_tokens is not None]
    outputs = [u.output_tokens for u in listed if u.output_tokens is not None]
    return Usage(
        model_calls=sum(u.model_calls for u in listed),
        input_tokens=sum(inputs) if inputs else None,
        output_tokens=sum(outputs) if outputs else None,
        cached_verdicts=sum(u.cached_verdicts for u in listed),
    )


def _note(rows: Sequence[RowScore]) -> str:
    parts = []
    for status in ("failed", "skipped"):
        reasons = Counter(row.reason or "" for row in rows if row.status == status)
        if reasons:
            [(common, _)] = reasons.most_common(1)
            most = "" if len(reasons) == 1 else ", most often"
            parts.append(f"{reasons.total()} {status}{most}: {common}")
    if not parts:
        return ""
    return f"of {len(rows)} rows, these are not part of the score: {'; '.join(parts)}"


def _child(config: RunnableConfig, callbacks: Any, gate: Gate | None) -> RunnableConfig:
    child = quiet(patch_config(config, callbacks=callbacks))
    return child if gate is None else {**child, "max_concurrency": gate.calls}


def _lacks(row: EvaluationRow, name: str) -> bool:
    value = getattr(row, name)
    blank = name in {"question", "reference"} and not str(value).strip()
    return value is None or blank


_ROWS_PER_CALL = 2
"""Rows that have begun for each call that may be under way: one is asking, one is next."""


class _Turnstile:
    """A semaphore for threads that lets them through in the order in which they came.

    One of the standard library would let the row that has just made a call make its next one, and
    rows that wait for their first would come last.
    """

    def __init__(self, free: int) -> None:
        self._lock = Lock()
        self._free = free
        self.waiting: deque[Lock] = deque()

    def __enter__(self) -> Self:
        turn = Lock()
        turn.acquire()
        with self._lock:
            if self._free:
                self._free -= 1
                return self
            self.waiting.append(turn)
        turn.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            if self.waiting:
                self.waiting.popleft().release()
            else:
                self._free += 1


class _Guarded(Runnable[Any, Any]):
    """A call behind a gate, whose time begins when it is let through; leaves no run of its own."""

    def __init__(self, call: ModelCall, gate: Gate) -> None:
        self._call = call
        self._gate = gate

    @override
    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Any:
        with self._gate._threads:  # noqa: SLF001  (both are one thing)
            return call_with_timeout(self._call.seconds, self._call.bound("invoke", config or {}))

    @override
    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Any:
        async with self._gate._tasks:  # noqa: SLF001  (as above)
            return await acall_with_timeout(
                self._call.seconds, self._call.bound("ainvoke", config or {})
            )
