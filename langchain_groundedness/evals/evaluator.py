"""Base class of all evaluators."""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any, ClassVar, Self, TypeVar, Unpack

from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import ContextThreadPoolExecutor, merge_configs
from pydantic import Field
from typing_extensions import override

from langchain_groundedness._runtime.flow import Flow, FlowRunnable, ModelCall, reraise_interrupts
from langchain_groundedness._runtime.installed import PACKAGE_VERSION
from langchain_groundedness._runtime.options import EqualByOptions, expand_options
from langchain_groundedness._runtime.timeouts import (
    DEFAULT_TIMEOUT,
    Seconds,
    acall_with_timeout,
    call_with_timeout,
)
from langchain_groundedness.display.counts import format_count
from langchain_groundedness.evals.columns import Example, RowColumns, read_columns, read_row
from langchain_groundedness.evals.fingerprint import describe
from langchain_groundedness.evals.progress import ProgressBar
from langchain_groundedness.evals.values import EvaluationRow, RowScore, add_usage
from langchain_groundedness.exceptions import (
    ConfigurationError,
    EvaluationError,
    GroundednessError,
    MissingDependencyError,
    cause,
)
from langchain_groundedness.llm.usage import UsageCounter
from langchain_groundedness.types import FrozenModel, Usage

__all__ = ["EvaluationResult", "Evaluator", "Flow", "ModelCall", "RowFailedError"]

_LOGGER = logging.getLogger(__name__)

_ROWS_PER_CALL = 2
"""Rows in progress per concurrent call: one waits for its call, one is next."""

_MAX_LISTED = 10

ResultT = TypeVar("ResultT", bound=FrozenModel)


class EvaluationResult(FrozenModel):
    """The scores of one evaluator over rows; `result["score"]` works as `result.score` does."""

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
    """In words, which rows the mean excludes and why; empty if none."""
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
            usage=add_usage(*(row.usage for row in rows)),
        )

    def __getitem__(self, name: str) -> Any:
        """Give a field by its name, as of a dict."""
        if name not in type(self).model_fields:
            raise KeyError(name)
        return getattr(self, name)

    def keys(self) -> tuple[str, ...]:
        """Name the fields, as of a dict."""
        return tuple(type(self).model_fields)


class RowFailedError(GroundednessError):
    """A row cannot be scored; the message says why."""


class Evaluator(EqualByOptions, FlowRunnable[Any, RowScore], ABC):
    """Scores rows one by one; a row that cannot be scored has a reason instead of a number.

    Three ways to call one: `invoke`, `batch` and the like take an `EvaluationRow`, or a mapping
    with `question`, `answer`, `contexts` …, and return a `RowScore`; `run` takes columns; the
    evaluator itself is a function `(inputs, outputs, reference_outputs)` for LangSmith's `evaluate`
    and for those who use openevals.

    To write one, say what it needs and write `_score`.

    Example:
        >>> from langchain_core.runnables import RunnableLambda
        >>> from langchain_groundedness.evals import EvaluationRow, Flow, ModelCall, RowScore
        >>> class Politeness(Evaluator):
        ...     needs = ("answer",)
        ...     key: str = "politeness"
        ...     judge: Runnable[str, float]
        ...
        ...     def _score(self, row: EvaluationRow) -> Flow[RowScore]:
        ...         return self._scored((yield ModelCall(self.judge, row.answer)))
        >>> judge = RunnableLambda(lambda answer: float("please" in answer))
        >>> Politeness(judge=judge).run(predicted_answers=["Wait, please.", "Wait."])["score"]
        0.5
    """

    _can_be_saved = True
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
    """Seconds to wait for one reply of a model, where the evaluator asks one; a row whose call
    times out fails. `None` leaves it to the model's client."""

    @abstractmethod
    def _score(self, row: EvaluationRow) -> Flow[RowScore]:
        """Score a row that has all fields in `needs`."""
        # Calls of models are yielded as ModelCalls, so that one method serves invoke and ainvoke.
        # An exception makes the row failed. Make the score with _scored, _failed or _skipped,
        # which also take the comment, details and result of a RowScore.

    @override
    def batch(self, inputs: list[Any], config: Any = None, **kwargs: Any) -> list[RowScore]:
        return reraise_interrupts(super().batch(inputs, self._bounded(config), **kwargs))

    @override
    async def abatch(self, inputs: list[Any], config: Any = None, **kwargs: Any) -> list[RowScore]:
        return reraise_interrupts(await super().abatch(inputs, self._bounded(config), **kwargs))

    def run(
        self, *, config: RunnableConfig | None = None, **columns: Unpack[RowColumns]
    ) -> EvaluationResult:
        """Score rows that are given as columns of one length.

        Args:
            config: Config for the calls; `max_concurrency` limits how many run at the same time.
            **columns: `questions`, `contexts` (a list of texts or `Document`s per row),
                `predicted_answers` and `reference_answers`.

        Returns:
            The mean over the rows that have a score, and the result of each row.

        Raises:
            InputFormatError: The columns do not fit together.
            EvaluationError: Rows failed, and `raise_on_failure` is set.
        """
        rows = read_columns(**columns)
        with _Schedule(self, config, len(rows)) as schedule:
            scores = self.batch(rows, schedule.config, raise_on_failure=False, schedule=schedule)
        return self._summarize_rows(rows, scores)

    async def arun(
        self, *, config: RunnableConfig | None = None, **columns: Unpack[RowColumns]
    ) -> EvaluationResult:
        """Score rows that are given as columns, without blocking the event loop.

        Args:
            config: As for `run`.
            **columns: As for `run`.

        Returns:
            As `run`.

        Raises:
            InputFormatError: As `run`.
            EvaluationError: As `run`.
        """
        rows = read_columns(**columns)
        with _Schedule(self, config, len(rows)) as schedule:
            # `abatch_as_completed` leaves rows running when the run is cancelled.
            scores = await self.abatch(
                rows, schedule.config, raise_on_failure=False, schedule=schedule
            )
        return self._summarize_rows(rows, scores)

    def __call__(
        self, inputs: Any = None, outputs: Any = None, reference_outputs: Any = None, **kwargs: Any
    ) -> dict[str, Any]:
        """Score an example as LangSmith's `evaluate` and openevals pass it."""
        with _without_local_tracing():
            return _feedback(self.invoke(Example(inputs, outputs, reference_outputs, kwargs)))

    async def acall(
        self, inputs: Any = None, outputs: Any = None, reference_outputs: Any = None, **kwargs: Any
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
        with _without_local_tracing():
            example = Example(inputs, outputs, reference_outputs, kwargs)
            return _feedback(await self.ainvoke(example))

    def fingerprint(self) -> dict[str, Any]:
        """Describe what the scores depend on.

        Returns:
            The class, the options that count, and the version of this package; plain data,
            without keys and without texts.
        """
        return {**describe(self), **describe(self._defaults()), "version": PACKAGE_VERSION}

    def _defaults(self) -> Mapping[str, Any]:
        """Return what replaces options that are `None`, if scores depend on it."""
        return {}

    def _scored(self, score: float, **found: Any) -> RowScore:
        return RowScore(key=self.key, score=score, status="scored", **found)

    def _failed(self, reason: str, **found: Any) -> RowScore:
        return RowScore(key=self.key, status="failed", reason=reason, **found)

    def _skipped(self, reason: str, **found: Any) -> RowScore:
        return RowScore(key=self.key, status="skipped", reason=reason, **found)

    @override
    def _flow(self, value: Any, /, **options: Any) -> Flow[RowScore]:
        errors: list[Exception] = []

        def failed(error: Exception, why: str) -> RowScore:
            errors.append(error)
            return self._failed(why)

        schedule: _Schedule | None = options.get("schedule")
        score = yield from run_row_flow(self._read_and_scored(value), failed, schedule)
        if options.get("raise_on_failure", self.raise_on_failure) and score.status == "failed":
            msg = f"{self.key}: the row failed: {score.reason}"
            result = EvaluationResult.of(self.key, [score])
            raise EvaluationError(msg, result=result) from next(iter(errors), None)
        if schedule is not None:
            schedule.row_is_done()
        return score

    def _read_and_scored(self, value: Any) -> Flow[RowScore]:
        row = read_row(value)
        if missing := [name for name in self.needs if _is_missing(row, name)]:
            return self._skipped(f"the row has no {' and no '.join(missing)}")
        return (yield from self._score(row))

    def _bounded(self, config: Any) -> Any:
        if isinstance(config, list):
            return [self._bounded(each) for each in config]
        given = dict(config or {})
        return {**given, "max_concurrency": given.get("max_concurrency") or self.max_concurrency}

    def _summarize_rows(
        self, rows: Sequence[EvaluationRow], scores: Sequence[RowScore]
    ) -> EvaluationResult:
        result = EvaluationResult.of(self.key, scores)
        failed = [r.id for r, s in zip(rows, scores, strict=True) if s.status == "failed"]
        if self.raise_on_failure and failed:
            of = format_count(len(rows))
            msg = f"{self.key}: {len(failed)} of {of} failed (rows {listed_ids(failed)})"
            raise EvaluationError(msg, row_ids=tuple(failed), result=result)
        if result.note:
            _LOGGER.warning("%s: %s", self.key, result.note)
        return result


expand_options(Evaluator.run)
expand_options(Evaluator.arun)


class _Schedule:
    """Limits the concurrent calls of a run, first come, first served, and shows its progress."""

    # A limit on rows would be slower: 20 rows of two calls, 16 at a time, would take four rounds
    # instead of three.

    def __init__(self, evaluator: Evaluator, config: RunnableConfig | None, rows: int) -> None:
        self.calls: int = (config or {}).get("max_concurrency") or evaluator.max_concurrency
        self.config = RunnableConfig(
            **{**(config or {}), "max_concurrency": _ROWS_PER_CALL * self.calls}
        )
        # Threads of an executor take calls in order; a semaphore of threads would prefer the row
        # that has just made a call.
        self.executor = ContextThreadPoolExecutor(self.calls)
        self.semaphore = asyncio.Semaphore(self.calls)
        self.is_over = False
        self._bar = ProgressBar(wanted=evaluator.progress_bar)
        self._bar.start(evaluator.key, rows)
        self._done = count(1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.is_over = True
        self.executor.shutdown()
        self._bar.stop()

    def row_is_done(self) -> None:
        self._bar.show(next(self._done), Usage())


def run_row_flow(
    flow: Flow[ResultT],
    failed: Callable[[Exception, str], ResultT],
    schedule: _Schedule | None = None,
) -> Flow[ResultT]:
    """Run the flow of a row, and record its usage; an error becomes a result."""
    counter = UsageCounter()
    resume: Callable[[], ModelCall] = partial(next, flow)
    try:
        while True:
            call = resume()
            try:
                reply = yield ModelCall(_MeteredCall(call, counter, schedule), call.input)
            except Exception as exc:  # noqa: BLE001  (the flow decides what it means)
                resume = partial(flow.throw, exc)
            else:
                resume = partial(flow.send, reply)
    except StopIteration as end:
        found: ResultT = end.value
    except (ConfigurationError, MissingDependencyError):
        raise  # a broken installation fails every row, so the caller must see it
    except Exception as exc:  # noqa: BLE001  (a model may fail in any way)
        found = failed(exc, str(exc) if isinstance(exc, GroundednessError) else cause(exc))
    return found.model_copy(update={"usage": counter.usage})


@dataclass
class _MeteredCall(Runnable[Any, Any]):
    """A call whose usage is recorded; its timeout starts when the schedule admits it."""

    call: ModelCall
    counter: UsageCounter
    schedule: _Schedule | None

    @override
    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Any:
        timed = partial(call_with_timeout, self.call.seconds, self._bound("invoke", config))
        return timed() if self.schedule is None else self.schedule.executor.submit(timed).result()

    @override
    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Any:
        async with nullcontext() if self.schedule is None else self.schedule.semaphore:
            if self.schedule is not None and self.schedule.is_over:
                raise asyncio.CancelledError  # another row has ended the run
            return await acall_with_timeout(self.call.seconds, self._bound("ainvoke", config))

    def _bound(self, method: str, config: RunnableConfig | None) -> Callable[[], Any]:
        config = merge_configs(config, {"callbacks": [self.counter]})
        if self.schedule is not None:
            config["max_concurrency"] = self.schedule.calls
        return self.call.bound(method, config)


def listed_ids(ids: Sequence[str]) -> str:
    """Name rows in an error, the first ones."""
    return ", ".join(ids[:_MAX_LISTED]) + (" …" if len(ids) > _MAX_LISTED else "")


def _feedback(score: RowScore) -> dict[str, Any]:
    metadata = {"status": score.status, **score.details, "usage": score.usage.model_dump()}
    comment = score.comment if score.reason is None else f"{score.status}: {score.reason}"
    return {"key": score.key, "score": score.score, "comment": comment, "metadata": metadata}


def _without_local_tracing() -> AbstractContextManager[Any]:
    """Disable tracing where LangSmith's upload is disabled."""
    # With evaluate(..., upload_results=False), LangSmith keeps its own runs local, but
    # langchain-core still considers tracing enabled and would upload ours.
    from langsmith.run_helpers import tracing_context  # noqa: PLC0415  (slow to import)
    from langsmith.utils import tracing_is_enabled  # noqa: PLC0415  (slow to import)

    return tracing_context(enabled=False) if tracing_is_enabled() == "local" else nullcontext()


def _note(rows: Sequence[RowScore]) -> str:
    parts = []
    for status in ("failed", "skipped"):
        reasons = Counter(row.reason or "" for row in rows if row.status == status)
        if reasons:
            [(common, _)] = reasons.most_common(1)
            most = "" if len(reasons) == 1 else ", most often"
            parts.append(f"{reasons.total()} {status}{most}: {common}")
    of = format_count(len(rows))
    return f"The score leaves out (of {of}): {'; '.join(parts)}" if parts else ""


def _is_missing(row: EvaluationRow, name: str) -> bool:
    value = getattr(row, name)
    return value is None or (name in {"question", "reference"} and not str(value).strip())
