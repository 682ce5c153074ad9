"""Runs a live check: reads the upstream and works on its jobs, several at once, bounded.

Both drivers yield whenever there may be something new to take, raise what a job or the upstream
raises, and leave nothing running behind when they end, for whatever reason.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Generator, Iterator
from queue import SimpleQueue
from threading import Event
from typing import Any, Literal, NamedTuple

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ContextThreadPoolExecutor, run_in_executor

from langchain_groundedness.pipeline.live import Job, LiveCheck
from langchain_groundedness.text.sentences import is_loaded, load

__all__ = ["arun_live", "in_flight", "run_live"]

_IN_FLIGHT = 8
_BUFFERED = 64


def in_flight(config: RunnableConfig) -> int:
    """Tell how many checks may run at once: `max_concurrency` of the config, or 8."""
    return config.get("max_concurrency") or _IN_FLIGHT


class _Note(NamedTuple):
    """What happened while a check runs."""

    kind: Literal["piece", "end", "state", "finished", "error"]
    value: Any = None
    job: Job | None = None


def run_live(pieces: Iterator[Any], live: LiveCheck, config: RunnableConfig) -> Generator[None]:
    """Run a live check; jobs run in threads while the upstream is read in this one.

    A thread whose job waits for a model when the check is given up ends when that call does.
    """
    threads = _Threads(live, config)
    try:
        for piece in pieces:
            live.feed(piece)
            threads.start()
            # No further ahead than the limit: then the upstream waits for the checks.
            threads.collect(wait=bool(live.jobs))
            yield
        live.end()
        while live.jobs or threads.running:
            if len(live.jobs) == 1 and not threads.running:
                yield from _run_here(live, config)
            else:
                threads.start()
                threads.take()
                yield
        yield
    finally:
        threads.stop()


def _run_here(live: LiveCheck, config: RunnableConfig) -> Iterator[None]:
    job = live.jobs.popleft()
    for state in job.runnable.stream(job.value, config):
        live.grow(job, state)
        yield
    live.finish(job)


class _Threads:
    """The jobs of one check that run in threads."""

    def __init__(self, live: LiveCheck, config: RunnableConfig) -> None:
        self.running = 0
        self._live = live
        self._config = config
        self._limit = in_flight(config)
        self._notes: SimpleQueue[_Note] = SimpleQueue()
        self._stopped = Event()
        self._pool: ContextThreadPoolExecutor | None = None

    def start(self) -> None:
        while self._live.jobs and self.running < self._limit:
            if self._pool is None:
                self._pool = ContextThreadPoolExecutor(max_workers=self._limit)
            self.running += 1
            self._pool.submit(self._work, self._live.jobs.popleft())

    def take(self) -> None:
        """Wait for one thing to happen."""
        self.running -= _apply(self._live, self._notes.get())

    def collect(self, *, wait: bool) -> None:
        """Take what has happened; wait, if asked to, until no job is due any more."""
        while not self._notes.empty() or (wait and self._live.jobs):
            self.take()
            self.start()

    def stop(self) -> None:
        self._stopped.set()
        if self._pool is not None:
            self._pool.shutdown(wait=not self.running, cancel_futures=True)

    def _work(self, job: Job) -> None:
        try:
            for state in job.runnable.stream(job.value, self._config):
                if self._stopped.is_set():
                    return
                self._notes.put(_Note("state", state, job))
        except BaseException as exc:  # noqa: BLE001  (raised again where the check is read)
            self._notes.put(_Note("error", exc))
        else:
            self._notes.put(_Note("finished", job=job))


async def arun_live(
    pieces: AsyncIterator[Any], live: LiveCheck, config: RunnableConfig
) -> AsyncGenerator[None]:
    """Run a live check; the upstream and every job are tasks of their own."""
    if not is_loaded():
        await run_in_executor(None, load)
    tasks = _Tasks(live, config)
    try:
        tasks.read(pieces)
        while not live.closed or live.jobs or tasks.running:
            await tasks.take()
            tasks.start()
            yield
        yield
    finally:
        await tasks.stop()


class _Tasks:
    """The tasks of one check: the reader of the upstream, and the jobs."""

    def __init__(self, live: LiveCheck, config: RunnableConfig) -> None:
        self.running = 0
        self._live = live
        self._config = config
        self._limit = in_flight(config)
        self._notes: asyncio.Queue[_Note] = asyncio.Queue()
        self._space = asyncio.Semaphore(_BUFFERED)
        self._room = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    def read(self, pieces: AsyncIterator[Any]) -> None:
        self._room.set()
        self._spawn(self._read(pieces))

    def start(self) -> None:
        while self._live.jobs and self.running < self._limit:
            self.running += 1
            self._spawn(self._work(self._live.jobs.popleft()))
        # No further ahead than the limit: then the upstream waits for the checks.
        if self._live.jobs:
            self._room.clear()
        else:
            self._room.set()

    async def take(self) -> None:
        """Wait for one thing to happen."""
        note = await self._notes.get()
        if note.kind == "piece":
            self._space.release()
        self.running -= _apply(self._live, note)

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _read(self, pieces: AsyncIterator[Any]) -> None:
        try:
            async for piece in pieces:
                await self._space.acquire()
                self._notes.put_nowait(_Note("piece", piece))
                await self._room.wait()
        except BaseException as exc:  # noqa: BLE001  (raised again where the check is read)
            self._notes.put_nowait(_Note("error", exc))
        else:
            self._notes.put_nowait(_Note("end"))

    async def _work(self, job: Job) -> None:
        try:
            async for state in job.runnable.astream(job.value, self._config):
                self._notes.put_nowait(_Note("state", state, job))
        except BaseException as exc:  # noqa: BLE001  (raised again where the check is read)
            self._notes.put_nowait(_Note("error", exc))
        else:
            self._notes.put_nowait(_Note("finished", job=job))


def _apply(live: LiveCheck, note: _Note) -> int:
    """Tell the check what happened; give the number of jobs that ended by it."""
    if note.kind == "error":
        raise note.value
    if note.kind == "piece":
        live.feed(note.value)
    elif note.kind == "end":
        live.end()
    elif note.job is not None and note.kind == "state":
        live.grow(note.job, note.value)
    elif note.job is not None:
        live.finish(note.job)
        return 1
    return 0
