"""Which row runs when: at most so many at once, the next one as soon as one is done.

The order of things is a generator without input or output, so it is written once; two drivers
carry it out, one with threads, one on the event loop.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from functools import partial
from itertools import islice
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from langchain_core.runnables.config import ContextThreadPoolExecutor

__all__ = [
    "GRACE_SECONDS",
    "Broken",
    "Do",
    "Schedule",
    "adrive_jobs",
    "drive_jobs",
    "first_done",
    "schedule",
]

GRACE_SECONDS = 2.0
"""How long rows that are running are waited for after an interruption; threads cannot be ended."""

JobT = TypeVar("JobT")
DoneT = TypeVar("DoneT")


class Do(NamedTuple):
    """Asks for input or output, which must not block the event loop."""

    work: Callable[[], Any]


class Start(NamedTuple, Generic[JobT]):
    """Asks for a job to be begun."""

    job: JobT


class Await(NamedTuple):
    """Asks to wait until at least one job is done; the reply is how many are."""


class Broken(NamedTuple):
    """What a job gives that can give nothing else: the run must end."""

    error: Exception


Schedule: TypeAlias = Generator[Do | Start[JobT] | Await, Any, None]


def schedule(jobs: Iterator[JobT], at_once: int) -> Schedule[JobT]:
    """Run all jobs."""
    waiting: deque[JobT] = deque()
    running, is_last = 0, False
    while True:
        if not waiting and not is_last:
            some = yield Do(partial(_take, jobs, at_once))
            is_last = len(some) < at_once
            waiting.extend(some)
        while waiting and running < at_once:
            yield Start(waiting.popleft())
            running += 1
        if not running:
            return
        running -= yield Await()


def _take(jobs: Iterator[JobT], count: int) -> list[JobT]:
    return list(islice(jobs, count))


def drive_jobs(
    plan: Schedule[JobT],
    work: Callable[[JobT], DoneT | Broken],
    record: Callable[[Sequence[DoneT]], None],
    at_once: int,
) -> None:
    """Carry a schedule out with threads."""
    pool = ContextThreadPoolExecutor(at_once, thread_name_prefix="groundedness-evaluate")
    running: set[Future[DoneT | Broken]] = set()
    reply: Any = None
    try:
        while True:
            request = plan.send(reply)
            reply = None
            if isinstance(request, Do):
                reply = request.work()
            elif isinstance(request, Start):
                running.add(pool.submit(work, request.job))
            else:
                done, running = first_done(running)
                reply = len(done)
                _record([each.result() for each in done], record)
    except StopIteration:
        return
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        done, _ = wait(running, GRACE_SECONDS)
        record([found for each in done if (found := _found(each)) is not None])


def first_done(
    running: Collection[Future[DoneT]],
) -> tuple[set[Future[DoneT]], set[Future[DoneT]]]:
    """Wait until at least one of several jobs is done; Ctrl-C is heard of meanwhile."""
    while True:
        # A wait without end is not interrupted everywhere: on Windows it never is.
        done, others = wait(running, _HEARD_SECONDS, return_when=FIRST_COMPLETED)
        if done:
            return done, others


_HEARD_SECONDS = 0.5


def _found(job: "Future[DoneT | Broken]") -> DoneT | None:
    result = None if job.cancelled() else job.result()
    return None if isinstance(result, Broken) else result


async def adrive_jobs(
    plan: Schedule[JobT],
    work: Callable[[JobT], Awaitable[DoneT | Broken]],
    record: Callable[[Sequence[DoneT]], None],
) -> None:
    """Carry a schedule out on the event loop; input and output in a thread."""
    running: set[asyncio.Future[DoneT | Broken]] = set()
    reply: Any = None
    try:
        while True:
            request = plan.send(reply)
            reply = None
            if isinstance(request, Do):
                reply = await _in_thread(request.work)
            elif isinstance(request, Start):
                running.add(asyncio.ensure_future(work(request.job)))
            else:
                done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                reply = len(done)
                await _in_thread(partial(_record, [each.result() for each in done], record))
    except StopIteration:
        return
    finally:
        for each in running:
            each.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def _in_thread(work: Callable[[], Any]) -> Any:
    """Do what must be finished once it is begun: a line is written whole, or not at all."""
    doing = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(doing)
    except asyncio.CancelledError:
        await asyncio.wait([doing])
        raise


def _record(done: Sequence[DoneT | Broken], record: Callable[[Sequence[DoneT]], None]) -> None:
    record([each for each in done if not isinstance(each, Broken)])
    for each in done:
        if isinstance(each, Broken):
            raise each.error
