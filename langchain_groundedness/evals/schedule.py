"""Runs jobs with bounded concurrency: the next one starts as soon as one finishes."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from functools import partial
from typing import TypeAlias, TypeVar

from langchain_core.runnables.config import ContextThreadPoolExecutor

from langchain_groundedness._runtime.options import require_positive

__all__ = ["in_thread", "run_in_threads", "run_on_loop"]

_GRACE_SECONDS = 2.0
"""Seconds to wait for running rows after an interruption; threads cannot be stopped."""

_POLL_SECONDS = 0.5

JobT = TypeVar("JobT")
DoneT = TypeVar("DoneT")

Advance: TypeAlias = Callable[[Sequence[DoneT | Exception], int], Sequence[JobT]]
"""Records finished jobs, raises any exception among them, and returns the next jobs."""


def run_in_threads(
    advance: Advance[DoneT, JobT], work: Callable[[JobT], DoneT | Exception], limit: int
) -> None:
    """Run jobs in threads; `advance` runs in the calling thread."""
    require_positive(max_concurrency=limit)
    pool = ContextThreadPoolExecutor(limit, thread_name_prefix="groundedness-evaluate")
    running: set[Future[DoneT | Exception]] = set()
    try:
        jobs = advance([], limit)
        while jobs or running:
            running |= {pool.submit(work, job) for job in jobs}
            done, running = _first_done(running)
            jobs = advance([each.result() for each in done], limit - len(running))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        done, _ = wait(running, _GRACE_SECONDS)
        outcomes = [each.result() for each in done if not each.cancelled()]
        advance([each for each in outcomes if not isinstance(each, Exception)], 0)


async def run_on_loop(
    advance: Advance[DoneT, JobT], work: Callable[[JobT], Awaitable[DoneT | Exception]], limit: int
) -> None:
    """Run jobs on the event loop; `advance` runs in a thread."""
    require_positive(max_concurrency=limit)
    running: set[asyncio.Future[DoneT | Exception]] = set()
    try:
        jobs = await in_thread(partial(advance, [], limit))
        while jobs or running:
            running |= {asyncio.ensure_future(work(job)) for job in jobs}
            done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            outcomes = [each.result() for each in done]
            jobs = await in_thread(partial(advance, outcomes, limit - len(running)))
    finally:
        for each in running:
            each.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def in_thread(work: Callable[[], DoneT]) -> DoneT:
    """Finish work even if the task is cancelled, so that lines are written completely."""
    running = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        raise


def _first_done(
    running: Collection[Future[DoneT]],
) -> tuple[set[Future[DoneT]], set[Future[DoneT]]]:
    """Wait until at least one of several jobs is done; Ctrl-C interrupts the wait."""
    while True:
        # On Windows, a wait without a timeout cannot be interrupted.
        done, others = wait(running, _POLL_SECONDS, return_when=FIRST_COMPLETED)
        if done:
            return done, others
