"""Rows on their way to workers and back: a few at a time, as JSON."""

import json
from collections.abc import Iterable, Mapping, Sequence
from time import perf_counter
from typing import Any, NamedTuple, Protocol

from langchain_core.runnables import RunnableConfig

from langchain_groundedness._causes import cause
from langchain_groundedness.evals._evaluation import Done, Evaluation, Job
from langchain_groundedness.evals._parcels import Parcel
from langchain_groundedness.evals._run_progress import RunProgress
from langchain_groundedness.evals._schedule import Broken, drive_jobs, schedule
from langchain_groundedness.evals.datasets import LocatedRow, open_dataset
from langchain_groundedness.evals.evaluator import Evaluator
from langchain_groundedness.evals.run_files import as_json
from langchain_groundedness.evals.values import EvaluatedRow, EvaluationRow, RowScore
from langchain_groundedness.exceptions import ConfigurationError, GroundednessError

__all__ = [
    "COLUMN",
    "Answer",
    "Attempts",
    "ChunkWorker",
    "read_answer",
    "write_row",
    "written_chunk",
]

_CHUNK_DEATHS, _ROW_DEATHS = 1, 2
"""How often a process may die of a chunk before its rows are evaluated one by one, and then of a
row before that row counts as failed: machines go away without the fault of any row."""
COLUMN = "chunk"
"""The column of Ray's tables; each of their rows is a chunk of rows."""


class Answer(NamedTuple):
    """What came back for a chunk."""

    number: int
    rows: Mapping[int, tuple[tuple[RowScore, ...], float | None]]
    """Scores and seconds, by place."""
    seconds: float
    """How long the worker took."""
    fault: str | None
    """Why the run cannot go on."""


def write_row(job: Job) -> str:
    """Write a row for a worker.

    Args:
        job: The row.

    Returns:
        It, and scores that are known already, as JSON.
    """
    known = {key: score.model_dump() for key, score in job.known.items()}
    return as_json({"place": job.place, "row": job.located.row.model_dump(), "known": known})


def written_chunk(number: int, rows: Iterable[str]) -> str:
    """Write a chunk.

    Args:
        number: Its number.
        rows: Rows as `write_row` gives them.

    Returns:
        The chunk as JSON.
    """
    return f'{{"number": {number}, "rows": [{", ".join(rows)}]}}'


def read_answer(text: str) -> Answer | None:
    """Read what a worker gave.

    Args:
        text: The text.

    Returns:
        The answer; `None` if there was nothing to do.
    """
    if not text:
        return None
    found = json.loads(text)
    rows = {
        row["place"]: (tuple(map(RowScore.model_validate, row["scores"])), row["seconds"])
        for row in found["rows"]
    }
    return Answer(found["number"], rows, found["seconds"], found["fault"])


class Attempts(Protocol):
    """Counts what workers begin and do not survive, across their deaths."""

    def begin(self, name: str) -> int:
        """Count a beginning.

        Args:
            name: What is begun.

        Returns:
            How often it was begun and not survived, now included.
        """

    def survive(self, name: str) -> None:
        """Take note of an end.

        Args:
            name: What was begun.
        """


class ChunkWorker:
    """Evaluates chunks, in a process of its own; makes its evaluators once."""

    def __init__(
        self,
        attempts: Attempts,
        parcels: Sequence[Parcel],
        config: RunnableConfig,
        max_concurrency: int,
    ) -> None:
        """Make the evaluators.

        Args:
            attempts: Counts what was begun and not survived.
            parcels: The evaluators.
            config: Config for the calls.
            max_concurrency: Most rows at a time.
        """
        self._attempts = attempts
        self._fault: str | None = None
        self._at_once = max_concurrency
        try:
            evaluators = [parcel.unpack() for parcel in parcels]
        except ConfigurationError as exc:  # told with the first chunk: Ray would try for ever
            self._fault = str(exc)
            return
        self._evaluation = Evaluation(
            dataset=open_dataset([]),  # rows come in chunks
            evaluators=evaluators,
            name="",
            open_journal=None,
            cache=None,
            progress=RunProgress(wanted=False),
            max_concurrency=max_concurrency,
            retry_failed=False,
            config=config,
        )

    def __call__(self, table: Mapping[str, Any]) -> dict[str, list[str]]:
        """Evaluate.

        Args:
            table: Chunks.

        Returns:
            An answer to each.
        """
        return {COLUMN: [self._answer(str(text)) for text in table[COLUMN]]}

    def _answer(self, text: str) -> str:
        if not text:
            return ""
        begun, fault = perf_counter(), self._fault
        chunk = json.loads(text)
        done: list[Done] = []
        if fault is None:
            try:
                self._evaluate(str(chunk["number"]), [_job(row) for row in chunk["rows"]], done)
            except Exception as exc:  # noqa: BLE001  (told where the run was begun, which ends it)
                fault = str(exc) if isinstance(exc, GroundednessError) else cause(exc)
        rows = [
            {
                "place": job.place,
                "scores": [score.model_dump() for score in row.scores],
                "seconds": row.seconds,
            }
            for job, row in done
        ]
        seconds = perf_counter() - begun
        return as_json(
            {"number": chunk["number"], "rows": rows, "seconds": seconds, "fault": fault}
        )

    def _evaluate(self, number: str, jobs: Sequence[Job], done: list[Done]) -> None:
        if self._attempts.begin(number) <= _CHUNK_DEATHS:
            plan = schedule(iter(jobs), self._at_once)
            drive_jobs(plan, self._evaluation.work, done.extend, self._at_once)
            return
        for job in jobs:  # one of them kills the process: find out which
            if self._attempts.begin(f"{number}/{job.place}") > _ROW_DEATHS:
                done.append(_condemned(job, self._evaluation.evaluators))
                continue
            found = self._evaluation.work(job)
            self._attempts.survive(f"{number}/{job.place}")
            if isinstance(found, Broken):
                raise found.error
            done.append(found)


def _condemned(job: Job, evaluators: Sequence[Evaluator]) -> Done:
    reason = f"the process of the worker died {_ROW_DEATHS} times while it evaluated this row alone"
    scores = tuple(
        job.known.get(each.key) or RowScore(key=each.key, status="failed", reason=reason)
        for each in evaluators
    )
    return Done(job, EvaluatedRow(row=job.located.row, scores=scores))


def _job(found: Mapping[str, Any]) -> Job:
    known = {key: RowScore.model_validate(score) for key, score in found["known"].items()}
    row = EvaluationRow.model_validate(found["row"])
    return Job(found["place"], LocatedRow(row, None), known)
