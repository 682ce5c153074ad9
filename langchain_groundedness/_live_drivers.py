"""Runs a live check: reads the upstream and works on its jobs, several at once, bounded.

Both drivers yield whenever there may be something new to take, raise what a job or the upstream
raises, and leave nothing running behind when they end, for whatever reason.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from queue import SimpleQueue
from threading import Event
from typing import Any, Literal, TypeAlias

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ContextThreadPoolExecutor

from langchain_groundedness._live import Job, LiveCheck
from langchain_groundedness._steps import CheckState

__all__ = ["arun_live", "run_live"]

_Note: TypeAlias = (
    tuple[Literal["piece"], Any]
    | tuple[Literal["end"], None]
    | tuple[Literal["state"], tuple[Job, CheckState]]
    | tuple[Literal["finished"], Job]
    | tuple[Literal["error"], BaseException]
)
_BUFFERED = 64


def run_live(
    pieces: Iterator[Any], live: LiveCheck, config: RunnableConfig, *, limit: int
) -> Iterator[None]:
    """Run a live check; jobs run in threads while the upstream is read in this one.

    A thread whose job waits for a model when the check is given up ends when that call does.

    Args:
        pieces: The upstream.
        live: The check.
        config: Config of the jobs.
        limit: Most jobs at once.

    Yields:
        `None` whenever something may be new.
    """
    threads = _Threads(live, config, limit)
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
                threads.collect(wait=True)
                yield
    finally:
        threads.stop()


def _run_here(live: LiveCheck, config: RunnableConfig) -> Iterator[None]:
    job = live.jobs.popleft()
    for state in job.runnable.stream(job.value, config):
        live.grow(job, state)
        yield
    live.finish(job)
    yield


class _Threads:
    """The jobs of one check that run in threads."""

    def __init__(self, live: LiveCheck, config: RunnableConfig, limit: int) -> None:
        self.running = 0
        self._live = live
        self._config = config
        self._limit = limit
        self._notes: SimpleQueue[_Note] = SimpleQueue()
        self._stopped = Event()
        self._pool: ContextThreadPoolExecutor | None = None

    def start(self) -> None:
        while self._live.jobs and self.running < self._limit:
            if self._pool is None:
                self._pool = ContextThreadPoolExecutor(max_workers=self._limit)
            self.running += 1
            self._pool.submit(self._work, self._live.jobs.popleft())

    def collect(self, *, wait: bool) -> None:
        """Take what is there; wait until a job ends, and start the next, as long as any is due."""
        while (wait and self.running) or not self._notes.empty():
            kind, value = self._notes.get()
            if kind == "error":
                raise value
            self.running -= _apply(self._live, (kind, value))
            if kind == "finished":
                self.start()
                wait = wait and bool(self._live.jobs)

    def stop(self) -> None:
        self._stopped.set()
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def _work(self, job: Job) -> None:
        try:
            for state in job.runnable.stream(job.value, self._config):
                if self._stopped.is_set():
                    return
                self._notes.put(("state", (job, state)))
        except BaseException as exc:  # noqa: BLE001  (raised again where the check is read)
            self._notes.put(("error", exc))
        else:
            self._notes.put(("finished", job))
