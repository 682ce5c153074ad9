"""One evaluation from its options to its end; `runner` drives it, with threads or on the loop."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from time import perf_counter
from typing import NamedTuple

from langchain_core.runnables import RunnableConfig

from langchain_groundedness._runtime.flow import Flow, ModelCall, adrive, drive
from langchain_groundedness._runtime.version import PACKAGE_VERSION
from langchain_groundedness.evals.cache import ResultCache
from langchain_groundedness.evals.datasets import DataSet, LocatedRow, Outline
from langchain_groundedness.evals.evaluator import Evaluator
from langchain_groundedness.evals.progress import RunProgress, Tally
from langchain_groundedness.evals.run_files import Journal, RunEnd
from langchain_groundedness.evals.schedule import Broken, Do, Schedule, schedule
from langchain_groundedness.evals.values import (
    BadRow,
    EvaluatedRow,
    EvaluationRun,
    RowScore,
    RunHeader,
)
from langchain_groundedness.exceptions import ConfigurationError, EvaluationError
from langchain_groundedness.types import Usage

__all__ = ["Done", "Evaluation", "Job"]

_NOTHING_READ = Outline(0, (), "")
_SHOWN = 10


class Job(NamedTuple):
    """A row that is to be evaluated."""

    place: int
    located: LocatedRow
    known: Mapping[str, RowScore]
    """Scores that are there already, by key."""
    before: EvaluatedRow | None = None
    """What the row got when it was evaluated first, if it is evaluated again."""


class Done(NamedTuple):
    """A row that was evaluated."""

    job: Job
    row: EvaluatedRow


@dataclass(kw_only=True)
class Evaluation:
    """All that an evaluation knows while it goes on."""

    dataset: DataSet
    evaluators: Sequence[Evaluator]
    name: str
    open_journal: Callable[[], Journal] | None
    cache: ResultCache | None
    progress: RunProgress
    max_concurrency: int
    retry_failed: bool
    config: RunnableConfig
    keep_rows: bool = True
    """Whether all rows stay in memory, to be returned in the end."""

    header: RunHeader | None = None
    journal: Journal | None = None
    """The run file, once it is open."""
    outline: Outline = _NOTHING_READ
    tally: Tally = field(init=False)
    earlier_seconds: float = 0.0
    new_rows: int = 0
    """How many rows were evaluated in this session."""
    _was_complete: bool = False
    """Whether the journal says so, and nothing was added."""
    _begun: float = field(default_factory=perf_counter)
    _ended: float = 0.0
    _rows: dict[int, EvaluatedRow] = field(default_factory=dict)
    _finished: dict[str, EvaluatedRow | None] = field(default_factory=dict)
    """Rows that stand in the journal, by id; kept whole only if they are to be tried again."""

    def __post_init__(self) -> None:
        """Refuse evaluators that cannot be told apart."""
        keys = [evaluator.key for evaluator in self.evaluators]
        if not keys or len(set(keys)) < len(keys):
            msg = f"evaluators need different keys, and at least one is needed; got {keys}"
            raise ConfigurationError(msg)
        self.tally = Tally(keys)
        self._asked = [(each.key, each.bind(raise_on_failure=False)) for each in self.evaluators]
        self._fingerprints = {each.key: each.fingerprint() for each in self.evaluators}

    def flow(self) -> Schedule[Job]:
        """Evaluate all rows that are not done yet."""
        yield Do(self._prepare)
        yield from schedule(self._jobs(), self.max_concurrency)

    def work(self, job: Job) -> Done | Broken:
        """Evaluate a row."""
        try:
            return drive(self._scored(job), self.config)
        except Exception as exc:  # noqa: BLE001  (raised when what is done is recorded)
            return Broken(exc)

    async def awork(self, job: Job) -> Done | Broken:
        """Evaluate a row without blocking the event loop."""
        try:
            return await adrive(self._scored(job), self.config)
        except Exception as exc:  # noqa: BLE001  (raised when what is done is recorded)
            return Broken(exc)

    def record(self, done: Sequence[Done]) -> None:
        """Write down what is done."""
        if self.journal is not None:
            self.journal.add((job.place, row) for job, row in done)
        for job, row in done:
            self._keep(job.place, row, instead_of=job.before)
            if self.cache is not None:
                for score in row.scores:
                    if score.key not in job.known:
                        self.cache.put(row.row, self._fingerprints[score.key], score)
        self.new_rows += len(done)
        self._was_complete = self._was_complete and not done
        self.progress.show(self.tally.rows, self.tally.usage)

    def end(self, *, complete: bool) -> None:
        """Write the end, and close what is open."""
        self.progress.end()
        self._ended = perf_counter()
        if self.journal is None:
            return
        try:
            if self.header is not None and not (complete and self._was_complete):
                end = RunEnd(complete=complete, seconds=self.seconds, usage=self.tally.usage)
                self.journal.finish(end)
        finally:
            self.journal.close()

    @property
    def seconds(self) -> float:
        """How long it took, earlier sessions included as far as they came to an end."""
        return self.earlier_seconds + self.session_seconds

    @property
    def session_seconds(self) -> float:
        """How long this session took, until now or its end."""
        return (self._ended or perf_counter()) - self._begun

    def run(self, *, complete: bool) -> EvaluationRun:
        """Give all that is there."""
        header = self.header or self._header()
        run = EvaluationRun(
            header=header,
            rows=tuple(self._rows[place] for place in sorted(self._rows)),
            bad_rows=self.outline.bad_rows,
            complete=complete,
            seconds=self.seconds,
            usage=self.tally.usage,
        )
        if complete:
            self._raise_on_failure(run)
        return run

    def _prepare(self) -> None:
        """Read the data set once, and the journal; nothing is evaluated yet."""
        self.dataset.require(_needs(self.evaluators))
        self.outline = self.dataset.outline()
        self.outline.require_rows(self.dataset.name)
        header = self._header()
        if self.open_journal is not None:
            self.journal = self.open_journal()
            self.journal.start(header)
            header = self.journal.header or header
            self._resume(self.journal)
        self.header = header
        self.progress.begin(self.name, self.outline.rows, self.tally.rows)

    def _resume(self, journal: Journal) -> None:
        """Take what stands in the journal as done; write down what is bad, if it is not yet."""
        bad: set[BadRow] = set()
        for line in journal.lines():
            self._was_complete = isinstance(line.value, RunEnd) and line.value.complete
            if isinstance(line.value, EvaluatedRow):
                self._take_over(line.value, line.place or 0)
            elif isinstance(line.value, BadRow):
                bad.add(line.value)
            elif isinstance(line.value, RunEnd):
                self.earlier_seconds = line.value.seconds or 0.0
        journal.add_bad(row for row in self.outline.bad_rows if row not in bad)

    def _take_over(self, row: EvaluatedRow, place: int) -> None:
        before = self._finished.get(row.row.id)
        if before is None and row.row.id in self._finished:
            return
        self._keep(place, row, instead_of=before)
        self._finished[row.row.id] = row if _failed(row) else None

    def _keep(self, place: int, row: EvaluatedRow, *, instead_of: EvaluatedRow | None) -> None:
        self.tally.add(row, instead_of=instead_of)
        if self.keep_rows:
            self._rows[place] = row

    def _header(self) -> RunHeader:
        return RunHeader(
            name=self.name,
            made=datetime.now(UTC),
            dataset=self.dataset.name,
            digest=self.outline.digest,
            evaluators=self._fingerprints,
            version=PACKAGE_VERSION,
        )

    def _jobs(self) -> Iterator[Job]:
        rows = (found for found in self.dataset if isinstance(found, LocatedRow))
        for place, located in enumerate(rows):
            identity = located.row.id
            if identity not in self._finished:
                yield Job(place, located, self._cached(located))
                continue
            before = self._finished[identity]
            if before is not None and self.retry_failed:
                known = {each.key: each for each in before.scores if each.status != "failed"}
                free = {
                    key: each.model_copy(update={"usage": Usage()}) for key, each in known.items()
                }
                yield Job(place, located, free, before)

    def _cached(self, located: LocatedRow) -> Mapping[str, RowScore]:
        if self.cache is None:
            return {}
        found = {key: self.cache.get(located.row, told) for key, told in self._fingerprints.items()}
        return {key: score for key, score in found.items() if score is not None}

    def _scored(self, job: Job) -> Flow[Done]:
        begun = perf_counter()
        scores: list[RowScore] = []
        for key, evaluator in self._asked:
            known = job.known.get(key)
            scores.append(known or (yield ModelCall(evaluator, job.located.row)))
        row = EvaluatedRow(
            row=job.located.row,
            scores=tuple(scores),
            line=job.located.line,
            seconds=perf_counter() - begun,
        )
        return Done(job, row)

    def _raise_on_failure(self, run: EvaluationRun) -> None:
        keys = {each.key for each in self.evaluators if each.raise_on_failure}
        failed = [
            row.row.id
            for row in run.rows
            if any(each.status == "failed" and each.key in keys for each in row.scores)
        ]
        if failed:
            listed = ", ".join(failed[:_SHOWN]) + (" …" if len(failed) > _SHOWN else "")
            msg = f"{len(failed)} of {len(run.rows)} rows failed (rows {listed})"
            raise EvaluationError(msg, row_ids=tuple(failed), result=run)


def _needs(evaluators: Sequence[Evaluator]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for evaluator in evaluators:
        for name in evaluator.needs:
            found.setdefault(name, []).append(evaluator.key)
    return found


def _failed(row: EvaluatedRow) -> bool:
    return any(score.status == "failed" for score in row.scores)
