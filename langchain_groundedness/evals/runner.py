"""Evaluates data sets: rows in, scores out, resumable at any moment."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

from langchain_core.runnables import RunnableConfig

from langchain_groundedness.evals.cache import ResultCache
from langchain_groundedness.evals.datasets import DataSet, open_dataset
from langchain_groundedness.evals.evaluation import Evaluation
from langchain_groundedness.evals.evaluator import Evaluator
from langchain_groundedness.evals.progress import Price, RunProgress
from langchain_groundedness.evals.ray_engine import make_engine
from langchain_groundedness.evals.run_files import Journal
from langchain_groundedness.evals.schedule import adrive_jobs, drive_jobs
from langchain_groundedness.evals.values import EvaluationRun
from langchain_groundedness.exceptions import ConfigurationError

__all__ = ["EvaluationInterrupted", "aevaluate", "evaluate", "prepare"]

_AT_ONCE = 16


class EvaluationInterrupted(KeyboardInterrupt):
    """The user has interrupted an evaluation with Ctrl-C; what was done by then is not lost.

    Attributes:
        run: The rows that were done; `complete` is false.
    """

    def __init__(self, run: EvaluationRun) -> None:
        """Keep what was done."""
        super().__init__(f"interrupted after {len(run.rows)} rows")
        self.run = run


def evaluate(  # noqa: PLR0913  (each is an option of its own)
    dataset: Any,
    evaluators: Evaluator | Sequence[Evaluator],
    *,
    columns: Mapping[str, str] | None = None,
    journal: str | Path | None = None,
    fresh: bool = False,
    retry_failed: bool = False,
    fsync: bool = False,
    max_concurrency: int = _AT_ONCE,
    cache: ResultCache | str | Path | None = None,
    progress: bool = False,
    price: tuple[float, float] | None = None,
    name: str | None = None,
    config: RunnableConfig | None = None,
    engine: Literal["local", "ray"] = "local",
    workers: int | None = None,
    address: str | None = None,
) -> EvaluationRun:
    """Evaluate all rows of a data set.

    Args:
        dataset: Anything that `open_dataset` takes, or what it gives.
        evaluators: One or more, with different keys.
        columns: The column of a part of the row, where its name does not say it:
            `{"answer": "my_column"}`.
        journal: A run file, into which every row is written as soon as it is done. If it is there
            already, the run goes on where it ended, however it did; `load_run` reads it.
        fresh: Begin anew although the journal is there; what stands in it is lost.
        retry_failed: Try rows that have failed again, when a run is resumed.
        fsync: Wait after each row until it is on the disk.
        max_concurrency: Most rows at a time.
        cache: A folder, or a cache, from which scores are taken that were paid for in other runs.
        progress: Show a bar on stderr, if that is a terminal and rich is installed.
        price: What a million tokens cost, of prompts and of replies; for the bar.
        name: Name of the run, which reports show; by default that of the data set. Give one to
            runs over rows in memory, which are told apart by their time alone otherwise.
        config: Config for the calls, such as callbacks and tags.
        engine: `local`: threads of this process. `ray`: processes, on this machine or on many
            (extra `ray`, see `evals.ray_engine`); then `max_concurrency` counts in each of them.
        workers: How many processes Ray starts; by default one.
        address: Where a Ray cluster is; `auto` for one that this machine belongs to. By default
            one is started on this machine, and ended after the run.

    Returns:
        The rows in the order of the data set with their scores, and those that could not be read.

    Raises:
        ConfigurationError: An option has a value that cannot work, or the journal is of another
            evaluation; the message says what differs.
        InputFormatError: The data set cannot be read, has no rows, or not the columns that the
            evaluators need.
        EvaluationError: Rows failed, and an evaluator has `raise_on_failure` set.
        EvaluationInterrupted: The user has pressed Ctrl-C.

    Example:
        >>> from langchain_groundedness.evals import FaithfulnessEvaluator
        >>> rows = [
        ...     {
        ...         "question": "Capital?",
        ...         "answer": "Rome is the capital of Italy.",
        ...         "contexts": ["Rome is the capital of Italy."],
        ...     },
        ...     {
        ...         "question": "Age?",
        ...         "answer": "It was founded in 1950.",
        ...         "contexts": ["Rome is the capital of Italy."],
        ...     },
        ... ]
        >>> run = evaluate(rows, FaithfulnessEvaluator())
        >>> [row.scores[0].score for row in run.rows]
        [1.0, 0.0]
    """
    ray = make_engine(engine, workers, address, max_concurrency)
    evaluation = prepare(
        dataset,
        evaluators,
        columns=columns,
        journal=journal,
        fresh=fresh,
        retry_failed=retry_failed,
        fsync=fsync,
        max_concurrency=max_concurrency if ray is None else ray.rows_on_their_way,
        cache=cache,
        progress=progress,
        price=price,
        name=name,
        config=config,
    )
    complete = False
    try:
        if ray is None:
            drive_jobs(evaluation.flow(), evaluation.work, evaluation.record, max_concurrency)
        else:
            ray.drive(evaluation)
        complete = True
    except KeyboardInterrupt:
        raise EvaluationInterrupted(evaluation.run(complete=False)) from None
    finally:
        evaluation.end(complete=complete)
    return evaluation.run(complete=True)


async def aevaluate(  # noqa: PLR0913  (each is an option of its own)
    dataset: Any,
    evaluators: Evaluator | Sequence[Evaluator],
    *,
    columns: Mapping[str, str] | None = None,
    journal: str | Path | None = None,
    fresh: bool = False,
    retry_failed: bool = False,
    fsync: bool = False,
    max_concurrency: int = _AT_ONCE,
    cache: ResultCache | str | Path | None = None,
    progress: bool = False,
    price: tuple[float, float] | None = None,
    name: str | None = None,
    config: RunnableConfig | None = None,
) -> EvaluationRun:
    """Evaluate all rows of a data set without blocking the event loop.

    A cancelled evaluation stops at once; what is done stands in the journal. There is no engine to
    choose: processes of Ray do not stop with a task, so run `evaluate` with `engine="ray"` in a
    thread (`asyncio.to_thread`).

    Args:
        dataset: As for `evaluate`.
        evaluators: As for `evaluate`.
        columns: As for `evaluate`.
        journal: As for `evaluate`.
        fresh: As for `evaluate`.
        retry_failed: As for `evaluate`.
        fsync: As for `evaluate`.
        max_concurrency: As for `evaluate`.
        cache: As for `evaluate`.
        progress: As for `evaluate`.
        price: As for `evaluate`.
        name: As for `evaluate`.
        config: As for `evaluate`.

    Returns:
        As `evaluate`.

    Raises:
        ConfigurationError: As `evaluate`.
        InputFormatError: As `evaluate`.
        EvaluationError: As `evaluate`.
    """
    evaluation = await asyncio.to_thread(
        prepare,
        dataset,
        evaluators,
        columns=columns,
        journal=journal,
        fresh=fresh,
        retry_failed=retry_failed,
        fsync=fsync,
        max_concurrency=max_concurrency,
        cache=cache,
        progress=progress,
        price=price,
        name=name,
        config=config,
    )
    await drive_to_the_end(evaluation)
    return evaluation.run(complete=True)


async def drive_to_the_end(evaluation: Evaluation) -> None:
    """Carry an evaluation out on the event loop."""
    complete = False
    try:
        await adrive_jobs(evaluation.flow(), evaluation.awork, evaluation.record)
        complete = True
    finally:
        ending = asyncio.ensure_future(asyncio.to_thread(evaluation.end, complete=complete))
        await asyncio.wait([ending])
        ending.result()


def prepare(  # noqa: PLR0913  (as `evaluate`)
    dataset: Any,
    evaluators: Evaluator | Sequence[Evaluator],
    *,
    columns: Mapping[str, str] | None,
    journal: str | Path | None,
    fresh: bool,
    retry_failed: bool,
    fsync: bool,
    max_concurrency: int,
    cache: ResultCache | str | Path | None,
    progress: bool,
    price: tuple[float, float] | None,
    name: str | None,
    config: RunnableConfig | None,
    keep_rows: bool = True,
) -> Evaluation:
    """Check the options of an evaluation, and open its files."""
    if max_concurrency < 1:
        msg = f"max_concurrency must be 1 or more, got {max_concurrency}"
        raise ConfigurationError(msg)
    chosen = _evaluators(dataset, evaluators)
    data = dataset if isinstance(dataset, DataSet) else open_dataset(dataset, columns=columns)
    if isinstance(dataset, DataSet) and columns:
        msg = "columns belong to open_dataset when the data set is opened by it"
        raise ConfigurationError(msg)
    return Evaluation(
        dataset=data,
        evaluators=chosen,
        name=name or data.name,
        open_journal=None
        if journal is None
        else partial(Journal, journal, fresh=fresh, fsync=fsync),
        cache=ResultCache(cache) if isinstance(cache, str | Path) else cache,
        progress=RunProgress(wanted=progress, price=None if price is None else Price(*price)),
        max_concurrency=max_concurrency,
        retry_failed=retry_failed,
        config=config or {},
        keep_rows=keep_rows,
    )


def _evaluators(dataset: object, given: object) -> list[Evaluator]:
    if isinstance(dataset, Evaluator):
        msg = "the data set comes first, then the evaluators: evaluate(rows, evaluator)"
        raise ConfigurationError(msg)
    if isinstance(given, Evaluator):
        return [given]
    several = isinstance(given, Iterable) and not isinstance(given, str | Mapping)
    found: list[Any] = list(given) if several and isinstance(given, Iterable) else [given]
    for each in found:
        if not isinstance(each, Evaluator):
            raise ConfigurationError(_no_evaluator(each))
    return found


def _no_evaluator(given: object) -> str:
    if isinstance(given, str):
        return f"an Evaluator is needed, got a text; make one by name: make_metric({given[:40]!r})"
    if isinstance(given, type) and issubclass(given, Evaluator):
        return f"an Evaluator is needed, got its class; call it: {given.__name__}()"
    return f"an Evaluator is needed, got {type(given).__name__}; derive a class from it"
