"""Evaluates data sets; a run can be resumed at any point.

Rows are scored with bounded concurrency: the next one starts as soon as one is done.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, TypeVar, Unpack

from langchain_groundedness._runtime.options import expand_options, require_positive
from langchain_groundedness.display.counts import format_count
from langchain_groundedness.evals.evaluation import (
    EvaluatedTask,
    Evaluation,
    EvaluationOptions,
    run_in_threads,
)
from langchain_groundedness.evals.evaluator import Evaluator
from langchain_groundedness.evals.ray_engine import make_engine
from langchain_groundedness.evals.values import EvaluationRun

__all__ = ["EvaluationInterrupted", "aevaluate", "arun_evaluation", "evaluate"]

_MAX_CONCURRENCY = 16
ResultT = TypeVar("ResultT")


class EvaluationInterrupted(KeyboardInterrupt):
    """The user interrupted an evaluation with Ctrl-C; finished rows are kept.

    Attributes:
        run: The rows that were done; `complete` is false.
    """

    def __init__(self, run: EvaluationRun) -> None:
        """Keep what was done."""
        super().__init__(f"interrupted after {format_count(len(run.rows))}")
        self.run = run


def evaluate(  # noqa: PLR0913  (each is an option of its own)
    dataset: Any,
    evaluators: Evaluator | Sequence[Evaluator],
    *,
    max_concurrency: int = _MAX_CONCURRENCY,
    engine: Literal["local", "ray"] = "local",
    workers: int | None = None,
    address: str | None = None,
    **options: Unpack[EvaluationOptions],
) -> EvaluationRun:
    """Evaluate all rows of a data set.

    Args:
        dataset: Anything that `open_dataset` takes, or its result.
        evaluators: One or more, with different keys.
        columns: Which column holds which field, where its name does not say:
            `{"answer": "my_column"}`.
        journal: A run file, to which each row is written as soon as it is done. If it exists, the
            run continues where it stopped; `load_run` reads it.
        fresh: Start again even if the journal exists; its content is lost.
        retry_failed: Evaluate rows that failed once more when a run is resumed.
        fsync: Wait after each row until it is on disk.
        max_concurrency: Most rows at a time.
        cache: A folder or a cache with scores of other runs, which are not computed again.
        progress: Show a bar on stderr, if that is a terminal and rich is installed.
        price: What a million tokens cost, of prompts and of replies; for the bar.
        name: Name of the run, which reports show; by default that of the data set. Give one to
            runs over rows in memory, which otherwise differ only in their time.
        config: Config for the calls, such as callbacks and tags.
        engine: `local`: threads of this process. `ray`: processes, on this machine or on many
            (extra `ray`, see `evals.ray_engine`); then `max_concurrency` counts in each of them.
        workers: How many processes Ray starts; by default one.
        address: Address of a Ray cluster; `auto` for the one that this machine belongs to. By
            default one is started on this machine for the run.

    Returns:
        The rows in the order of the data set with their scores, and those that could not be read.

    Raises:
        ConfigurationError: An option has an invalid value, or the journal is of another
            evaluation; the message says what differs.
        InputFormatError: The data set cannot be read, has no rows, or lacks columns that the
            evaluators need.
        EvaluationError: Rows failed, and an evaluator has `raise_on_failure` set.
        EvaluationInterrupted: The user pressed Ctrl-C.

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
    require_positive(max_concurrency=max_concurrency)
    ray = make_engine(engine, workers, address, max_concurrency)
    evaluation = Evaluation(dataset, evaluators, **options)
    try:
        with evaluation:
            if ray is None:
                jobs = evaluation.advance([], max_concurrency)
                run_in_threads(jobs, evaluation.advance, evaluation.work, max_concurrency)
            else:
                ray.run(evaluation)
    except KeyboardInterrupt:
        raise EvaluationInterrupted(evaluation.result(complete=False)) from None
    return evaluation.result(complete=True)


async def aevaluate(
    dataset: Any,
    evaluators: Evaluator | Sequence[Evaluator],
    *,
    max_concurrency: int = _MAX_CONCURRENCY,
    **options: Unpack[EvaluationOptions],
) -> EvaluationRun:
    """Evaluate all rows of a data set without blocking the event loop.

    A cancelled evaluation stops at once; the journal has what was done. There is no `engine`
    option: Ray processes do not stop with a task, so run `evaluate` with `engine="ray"` in a
    thread (`asyncio.to_thread`).

    Args:
        dataset: As for `evaluate`.
        evaluators: As for `evaluate`.
        max_concurrency: As for `evaluate`.
        **options: As for `evaluate`, without `engine`, `workers` and `address`.

    Returns:
        As `evaluate`.

    Raises:
        ConfigurationError: As `evaluate`.
        InputFormatError: As `evaluate`.
        EvaluationError: As `evaluate`.
    """
    evaluation = await asyncio.to_thread(Evaluation, dataset, evaluators, **options)
    await arun_evaluation(evaluation, max_concurrency)
    return evaluation.result(complete=True)


for _function in (evaluate, aevaluate):
    expand_options(_function, Evaluation)


async def arun_evaluation(evaluation: Evaluation, max_concurrency: int) -> None:
    """Run an evaluation on the event loop; files are read and written in threads."""
    running: set[asyncio.Future[EvaluatedTask]] = set()
    complete = False
    try:
        require_positive(max_concurrency=max_concurrency)
        jobs = await _in_thread(evaluation.advance, [], max_concurrency)
        while jobs or running:
            running |= {asyncio.ensure_future(evaluation.awork(job)) for job in jobs}
            done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            outcomes = [each.exception() or each.result() for each in done]
            jobs = await _in_thread(evaluation.advance, outcomes, max_concurrency - len(running))
        complete = True
    finally:
        for each in running:
            each.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await _in_thread(partial(evaluation.end, complete=complete))


async def _in_thread(work: Callable[..., ResultT], *given: Any) -> ResultT:
    """Finish work even if the task is cancelled, so that lines are written completely."""
    running = asyncio.ensure_future(asyncio.to_thread(work, *given))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        raise
