"""The state of one evaluation; `runner` and `ray_engine` execute it."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import KW_ONLY, dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, Self, TypedDict, TypeVar

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ContextThreadPoolExecutor

from langchain_groundedness._runtime.flow import Flow, ModelCall, adrive, drive
from langchain_groundedness._runtime.installed import PACKAGE_VERSION
from langchain_groundedness.display.counts import format_count
from langchain_groundedness.evals.datasets import DataSetScan, LocatedRow, as_dataset
from langchain_groundedness.evals.evaluator import Evaluator, listed_ids
from langchain_groundedness.evals.progress import Price, ProgressBar
from langchain_groundedness.evals.run_files import Journal, ResultCache, RunEnd, as_line
from langchain_groundedness.evals.values import (
    BadRow,
    EvaluatedRow,
    EvaluationRun,
    RowScore,
    RunHeader,
    RunTotals,
)
from langchain_groundedness.exceptions import ConfigurationError, EvaluationError
from langchain_groundedness.types import Usage

__all__ = ["EvaluatedTask", "Evaluation", "EvaluationOptions", "RowTask", "run_in_threads"]


class RowTask(NamedTuple):
    """A row that is to be evaluated."""

    place: int
    located: LocatedRow
    known: Mapping[str, RowScore]
    """Scores that are there already, by key."""
    before: EvaluatedRow | None = None
    """The first result of a row that is evaluated again."""

    def evaluated(self, scores: Iterable[RowScore], seconds: float | None = None) -> EvaluatedRow:
        """Join the row and its scores."""
        row, line, _ = self.located
        return EvaluatedRow(row=row, scores=tuple(scores), line=line, seconds=seconds)


class EvaluatedTask(NamedTuple):
    """A row that was evaluated."""

    job: RowTask
    row: EvaluatedRow


class EvaluationOptions(TypedDict, total=False):
    """Options of `evaluate` and `aevaluate`."""

    columns: Mapping[str, str] | None
    journal: str | Path | None
    fresh: bool
    retry_failed: bool
    fsync: bool
    cache: ResultCache | str | Path | None
    progress: bool
    price: tuple[float, float] | None
    name: str | None
    config: RunnableConfig | None


@dataclass
class Evaluation:
    """The state of a running evaluation; a context manager that writes the end of the journal.

    `advance` takes outcomes, which `work` and `awork` make, and returns the next rows; the
    options are those of `evaluate`. No file is opened before the first call of `advance`.
    """

    dataset: Any
    evaluators: Any
    _: KW_ONLY
    columns: Mapping[str, str] | None = None
    journal: str | Path | None = None
    fresh: bool = False
    retry_failed: bool = False
    fsync: bool = False
    cache: ResultCache | str | Path | None = None
    progress: bool = False
    price: tuple[float, float] | None = None
    name: str | None = None
    config: RunnableConfig | None = None
    keep_rows: bool = True
    """Whether `result` has the rows."""

    def __post_init__(self) -> None:
        """Check the options."""
        self.evaluators = _require_evaluators(self.evaluators)
        self.dataset = as_dataset(self.dataset, self.columns)
        cache = self.cache
        self._cache = ResultCache(cache) if isinstance(cache, str | Path) else cache
        self._name: str = self.name or self.dataset.name
        self.header: RunHeader | None = None
        self.outline = DataSetScan(0, (), "")
        self.totals = RunTotals(each.key for each in self.evaluators)
        self.new_rows = 0
        price = None if self.price is None else Price(*self.price)
        self._bar = ProgressBar(wanted=self.progress, price=price)
        self._fingerprints = {each.key: each.fingerprint() for each in self.evaluators}
        self._bound = [(each.key, each.bind(raise_on_failure=False)) for each in self.evaluators]
        self._jobs = self._open_jobs()
        self._journal: Journal | None = None
        self._rows: dict[int, EvaluatedRow] = {}
        self._in_journal: dict[str, EvaluatedRow | None] = {}  # the row only if it has failed
        self._is_complete = False  # according to the journal, to which nothing was added
        self._earlier_seconds = 0.0
        self._begun, self._ended = perf_counter(), 0.0

    def __enter__(self) -> Self:
        """Give the evaluation."""
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """End it."""
        self.end(complete=kind is None)

    def advance(
        self, outcomes: Sequence[EvaluatedTask | BaseException], count: int
    ) -> list[RowTask]:
        """Record finished rows, raise an error, or return up to `count` rows to evaluate next."""
        if done := [each for each in outcomes if isinstance(each, EvaluatedTask)]:
            self._record(done)
        for each in outcomes:
            if isinstance(each, BaseException):
                raise each
        return list(islice(self._jobs, count))

    def work(self, job: RowTask) -> EvaluatedTask:
        """Evaluate a row."""
        return drive(self._scored(job), self.config or {})

    async def awork(self, job: RowTask) -> EvaluatedTask:
        """Evaluate a row without blocking the event loop."""
        return await adrive(self._scored(job), self.config or {})

    def end(self, *, complete: bool) -> None:
        """Write the end, and close what is open."""
        self._bar.stop()
        self._ended = perf_counter()
        if self._journal is None:
            return
        try:
            if self.header is not None and not (complete and self._is_complete):
                end = RunEnd(complete=complete, seconds=self.seconds, usage=self.totals.usage)
                self._journal.write(as_line(end))
        finally:
            self._journal.close()

    @property
    def seconds(self) -> float:
        """Duration, including earlier sessions that ended."""
        return self._earlier_seconds + self.session_seconds

    @property
    def session_seconds(self) -> float:
        """How long this session took, until now or its end."""
        return (self._ended or perf_counter()) - self._begun

    def result(self, *, complete: bool) -> EvaluationRun:
        """Return the run so far; raise if it is complete and `raise_on_failure` rows failed."""
        run = EvaluationRun(
            header=self.header or self._make_header(),
            rows=tuple(self._rows[place] for place in sorted(self._rows)),
            bad_rows=self.outline.bad_rows,
            complete=complete,
            seconds=self.seconds,
            usage=self.totals.usage,
        )
        strict = {each.key for each in self.evaluators if each.raise_on_failure}
        failed = tuple(row.row.id for row in run.rows if _failed(row, strict))
        if complete and failed:
            of = format_count(len(run.rows))
            msg = f"{len(failed)} of {of} failed (rows {listed_ids(failed)})"
            raise EvaluationError(msg, row_ids=failed, result=run)
        return run

    def _open_jobs(self) -> Iterator[RowTask]:
        """Read the data set and the journal once, then give the rows that are not done yet."""
        fields = dict.fromkeys(field for each in self.evaluators for field in each.needs)
        self.dataset.require(
            {field: [e.key for e in self.evaluators if field in e.needs] for field in fields}
        )
        self.outline = self.dataset.outline()
        self.outline.require_rows(self.dataset.name)
        header = self._make_header()
        if self.journal is not None:
            self._journal = Journal(self.journal, fresh=self.fresh, fsync=self.fsync)
            self._journal.start(header)
            header = self._journal.header or header
            self._resume(self._journal)
        self.header = header
        self._bar.start(self._name, self.outline.rows, self.totals.rows)
        rows = (found for found in self.dataset if isinstance(found, LocatedRow))
        for place, located in enumerate(rows):
            if located.row.id not in self._in_journal:
                yield RowTask(place, located, self._cached(located))
            elif self.retry_failed and (before := self._in_journal[located.row.id]) is not None:
                kept = (each for each in before.scores if each.status != "failed")
                known = {each.key: each.model_copy(update={"usage": Usage()}) for each in kept}
                yield RowTask(place, located, known, before)

    def _resume(self, journal: Journal) -> None:
        """Count rows of the journal as done; add bad rows that it does not have."""
        bad: set[BadRow] = set()
        for line in journal.lines():
            value = line.value
            self._is_complete = isinstance(value, RunEnd) and value.complete
            if isinstance(value, EvaluatedRow):
                before = self._in_journal.get(value.row.id)
                if before is not None or value.row.id not in self._in_journal:
                    self._keep(line.place or 0, value, instead_of=before)
                    self._in_journal[value.row.id] = value if _failed(value) else None
            elif isinstance(value, BadRow):
                bad.add(value)
            elif isinstance(value, RunEnd):
                self._earlier_seconds = value.seconds or 0.0
        journal.write(*(as_line(row) for row in self.outline.bad_rows if row not in bad))

    def _record(self, done: Sequence[EvaluatedTask]) -> None:
        if self._journal is not None:
            self._journal.write(*(as_line(row, place=job.place) for job, row in done))
        for job, row in done:
            self._keep(job.place, row, instead_of=job.before)
            if self._cache is not None:
                for score in row.scores:
                    if score.key not in job.known:
                        self._cache.put(row.row, self._fingerprints[score.key], score)
        self.new_rows += len(done)
        self._is_complete = False
        self._bar.show(self.totals.rows, self.totals.usage)

    def _keep(self, place: int, row: EvaluatedRow, *, instead_of: EvaluatedRow | None) -> None:
        self.totals.add(row, instead_of=instead_of)
        if self.keep_rows:
            self._rows[place] = row

    def _make_header(self) -> RunHeader:
        return RunHeader(
            name=self._name,
            made=datetime.now(UTC),
            dataset=self.dataset.name,
            digest=self.outline.digest,
            evaluators=self._fingerprints,
            version=PACKAGE_VERSION,
        )

    def _cached(self, located: LocatedRow) -> Mapping[str, RowScore]:
        return {
            key: score
            for key, fingerprint in self._fingerprints.items()
            if self._cache is not None
            and (score := self._cache.get(located.row, fingerprint)) is not None
        }

    def _scored(self, job: RowTask) -> Flow[EvaluatedTask]:
        begun = perf_counter()
        scores: list[RowScore] = []
        for key, evaluator in self._bound:
            known = job.known.get(key)
            scores.append(known or (yield ModelCall(evaluator, job.located.row)))
        return EvaluatedTask(job, job.evaluated(scores, perf_counter() - begun))


def _failed(row: EvaluatedRow, keys: set[str] | None = None) -> bool:
    return any(s.status == "failed" and (keys is None or s.key in keys) for s in row.scores)


def _require_evaluators(given: Any) -> list[Evaluator]:
    is_list = isinstance(given, Iterable) and not isinstance(given, Evaluator | str)
    evaluators = list(given) if is_list else [given]
    for each in evaluators:
        if not isinstance(each, Evaluator):
            msg = (
                f"an Evaluator is needed, got {type(each).__name__}: call its class, or "
                "make_metric(name), and give the data set first: evaluate(rows, evaluator)"
            )
            raise ConfigurationError(msg)
    keys = [each.key for each in evaluators]
    if not keys or len(set(keys)) < len(keys):
        msg = f"pass at least one evaluator, each with a different key; got {keys}"
        raise ConfigurationError(msg)
    return evaluators


_GRACE_SECONDS = 2.0
"""Seconds to wait for running rows after an interruption; threads cannot be stopped."""

_POLL_SECONDS = 0.5

JobT = TypeVar("JobT")
DoneT = TypeVar("DoneT")


def run_in_threads(
    jobs: Sequence[JobT],
    advance: Callable[[Sequence[DoneT | BaseException], int], Sequence[JobT]],
    work: Callable[[JobT], DoneT],
    limit: int,
) -> None:
    """Run these jobs, and those that `advance` returns, in threads.

    `advance` records finished jobs, raises any exception among them, and returns the next ones; it
    runs in the calling thread.
    """
    pool = ContextThreadPoolExecutor(limit, thread_name_prefix="groundedness-evaluate")
    running: set[Future[DoneT]] = set()
    done: set[Future[DoneT]]
    try:
        while jobs or running:
            running |= {pool.submit(work, job) for job in jobs}
            done = set()
            while not done:  # on Windows, a wait without a timeout cannot be interrupted
                done, running = wait(running, _POLL_SECONDS, return_when=FIRST_COMPLETED)
            jobs = advance(
                [each.exception() or each.result() for each in done], limit - len(running)
            )
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        done, _ = wait(running, _GRACE_SECONDS)
        ended = [each for each in done if not each.cancelled()]
        advance([each.result() for each in ended if each.exception() is None], 0)
