"""Runs checks: on many inputs at once, or on one answer while it is written.

Live runs yield whenever new chunks may be available, raise errors of jobs and of the upstream, and
stop all their threads and tasks when they end, for any reason.
"""

import asyncio
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Coroutine,
    Generator,
    Iterator,
    Sequence,
)
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from queue import SimpleQueue
from threading import Event
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import ContextThreadPoolExecutor, run_in_executor

from langchain_groundedness._runtime.executors import wait_for_admission
from langchain_groundedness._runtime.flow import reraise_interrupts
from langchain_groundedness._runtime.streams import ClosingStream
from langchain_groundedness._runtime.telemetry import CheckSpan, check_span
from langchain_groundedness.inputs.formats import InputReader
from langchain_groundedness.llm.usage import UsageCounter, with_usage_counter
from langchain_groundedness.pipeline.check import Check, CheckState
from langchain_groundedness.pipeline.events import ChunkMaker, EventStream
from langchain_groundedness.pipeline.live import Job, LiveCheck
from langchain_groundedness.pipeline.recording import PendingRecord, Recorder
from langchain_groundedness.text.sentences import is_loaded, load
from langchain_groundedness.types import GroundednessResult, GroundednessResultChunk

__all__ = ["BatchRun", "arun_live", "arun_pieces", "run_live", "run_pieces"]

_CONCURRENCY = 8
"""Concurrent jobs of one live check, unless the config sets `max_concurrency`."""

_BUFFERED = 64


@dataclass(frozen=True)
class BatchRun:
    """Checks many inputs; an error is returned as the outcome of its input."""

    check: Check
    read: InputReader
    recorder: Recorder

    def run(
        self, values: list[Any], config: list[RunnableConfig], runs: Sequence[Any]
    ) -> list[Exception | GroundednessResult]:
        """Check the inputs."""
        pending = list(map(self.recorder.begin, runs, config))
        configs, counters = map(list, zip(*map(with_usage_counter, config), strict=True))
        with check_span() as check:
            states = self.check.pipeline(self.read).batch(values, configs, return_exceptions=True)
            results = self._results(states, counters, check)
        done = _successful(results, states, pending, configs)
        for result, state, record, _ in done:
            record.queue(result, timings=state.timings)
        self.recorder.confirm()
        for result, _, _, each in done:
            EventStream(each).publish(ChunkMaker().close(result))
        return results

    async def arun(
        self, values: list[Any], config: list[RunnableConfig], runs: Sequence[Any]
    ) -> list[Exception | GroundednessResult]:
        """Check the inputs without blocking the event loop."""
        pending = list(map(self.recorder.begin, runs, config))
        configs, counters = map(list, zip(*map(with_usage_counter, config), strict=True))
        with check_span() as check:
            states = await self._states(values, configs, config[0].get("max_concurrency"))
            results = self._results(states, counters, check)
        done = _successful(results, states, pending, configs)
        for result, state, record, _ in done:
            await record.aqueue(result, timings=state.timings)
        await self.recorder.aconfirm()
        for result, _, _, each in done:
            await EventStream(each).apublish(ChunkMaker().close(result))
        return results

    async def _states(
        self, values: list[Any], configs: list[RunnableConfig], most: int | None
    ) -> list[Any]:
        """Return the final state of each input, or the error that ended its check."""
        if len(values) == 1 or self.check.judges_together:
            pipeline = self.check.pipeline(self.read)
            return await pipeline.abatch(values, configs, return_exceptions=True)
        # Each answer goes through its steps independently; the limit bounds how many steps of
        # all answers wait for a model.
        limited = replace(self.check, limit=asyncio.Semaphore(most or len(values)))
        async with asyncio.TaskGroup() as group:
            work = map(partial(_outcome, limited.pipeline(self.read)), values, configs)
            tasks = list(map(group.create_task, work))
        return [task.result() for task in tasks]

    def _results(
        self, states: list[Any], counters: Sequence[UsageCounter], check: CheckSpan
    ) -> list[Exception | GroundednessResult]:
        results: list[Exception | GroundednessResult] = []
        for state, counter in zip(reraise_interrupts(states), counters, strict=True):
            if isinstance(state, Exception):
                results.append(state)
                check.failed(state)
            else:
                results.append(result := self.check.result(state, counter.usage))
                check.count(result)
        return results


def _successful(results: Sequence[Any], *others: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return each result that is no error, with what belongs to it."""
    every = zip(results, *others, strict=True)
    return [each for each in every if not isinstance(each[0], Exception)]


async def _outcome(
    pipeline: Runnable[Any, CheckState], value: Any, config: RunnableConfig
) -> CheckState | Exception:
    await wait_for_admission()
    try:
        return await pipeline.ainvoke(value, config)
    except Exception as exc:  # noqa: BLE001  (returned as this input's outcome)
        return exc


def run_pieces(
    live: LiveCheck, pieces: Iterator[Any], config: RunnableConfig, pending: PendingRecord
) -> Iterator[GroundednessResultChunk]:
    """Check an answer while it is written."""
    config, counter = with_usage_counter(config)
    events = EventStream(config)
    with closing(run_live(pieces, live, config)) as steps:
        for _ in steps:
            for chunk in live.take():
                events.publish(chunk)
                yield chunk
    pending.end(live.conclude(counter.usage))
    for chunk in live.take():
        events.publish(chunk)
        yield chunk


async def arun_pieces(
    live: LiveCheck, pieces: AsyncIterator[Any], config: RunnableConfig, pending: PendingRecord
) -> AsyncGenerator[GroundednessResultChunk]:
    """Check an answer while it is written, without blocking the event loop."""
    config, counter = with_usage_counter(config)
    events = EventStream(config)
    async with ClosingStream(arun_live(pieces, live, config)) as steps:
        async for _ in steps:
            for chunk in live.take():
                await events.apublish(chunk)
                yield chunk
    await pending.aend(live.conclude(counter.usage))
    for chunk in live.take():
        await events.apublish(chunk)
        yield chunk


def run_live(pieces: Iterator[Any], live: LiveCheck, config: RunnableConfig) -> Generator[None]:
    """Run a live check; jobs run in threads while this thread reads the upstream.

    If the check is abandoned, a thread that waits for a model ends when that call does.
    """
    jobs = _Threads(live, config)
    try:
        for piece in pieces:
            live.feed(piece)
            jobs.start()
            # Backpressure: read no further while jobs are queued.
            jobs.collect(wait=bool(live.jobs))
            yield
        live.end()
        while live.jobs or jobs.running:
            if len(live.jobs) == 1 and not jobs.running:
                job = live.jobs.popleft()
                for state in job.runnable.stream(job.value, config):
                    live.add_state(job, state)
                    yield
                live.finish(job)
            else:
                jobs.start()
                jobs.take()
                yield
        yield
    finally:
        jobs.stop()


class _Threads:
    """Runs the jobs of one live check in threads."""

    def __init__(self, live: LiveCheck, config: RunnableConfig) -> None:
        self.running = 0
        self._live = live
        self._config = config
        self._limit = config.get("max_concurrency") or _CONCURRENCY
        self._updates: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._stopped = Event()
        self._pool: ContextThreadPoolExecutor | None = None

    def start(self) -> None:
        while self._live.jobs and self.running < self._limit:
            if self._pool is None:
                self._pool = ContextThreadPoolExecutor(max_workers=self._limit)
            self.running += 1
            self._pool.submit(self._work, self._live.jobs.popleft())

    def take(self) -> None:
        """Wait for one update, and apply it."""
        self._updates.get()()

    def collect(self, *, wait: bool) -> None:
        """Apply all updates; with `wait`, until every queued job has started."""
        while not self._updates.empty() or (wait and self._live.jobs):
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
                self._updates.put(partial(self._live.add_state, job, state))
        except BaseException as exc:  # noqa: BLE001  (raised again in the consumer)
            self._updates.put(partial(_raise, exc))
        else:
            self._updates.put(partial(self._finish, job))

    def _finish(self, job: Job) -> None:
        self.running -= 1
        self._live.finish(job)


async def arun_live(
    pieces: AsyncIterator[Any], live: LiveCheck, config: RunnableConfig
) -> AsyncGenerator[None]:
    """Run a live check; the upstream reader and every job are separate tasks."""
    if not is_loaded():
        await run_in_executor(None, load)
    jobs = _Tasks(live, config)
    try:
        jobs.read(pieces)
        while not live.closed or live.jobs or jobs.running:
            await jobs.take()
            jobs.start()
            yield
        yield
    finally:
        await jobs.stop()


class _Tasks:
    """Runs the upstream reader and the jobs of one live check as tasks."""

    def __init__(self, live: LiveCheck, config: RunnableConfig) -> None:
        self.running = 0
        self._live = live
        self._config = config
        self._limit = config.get("max_concurrency") or _CONCURRENCY
        self._updates: asyncio.Queue[Callable[[], None]] = asyncio.Queue()
        self._buffer = asyncio.Semaphore(_BUFFERED)
        self._may_read = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    def read(self, pieces: AsyncIterator[Any]) -> None:
        self._may_read.set()
        self._spawn(self._read(pieces))

    def start(self) -> None:
        while self._live.jobs and self.running < self._limit:
            self.running += 1
            self._spawn(self._work(self._live.jobs.popleft()))
        # Backpressure: read no further while jobs are queued.
        if self._live.jobs:
            self._may_read.clear()
        else:
            self._may_read.set()

    async def take(self) -> None:
        """Wait for one update, and apply it."""
        (await self._updates.get())()

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
                await self._buffer.acquire()
                self._updates.put_nowait(partial(self._feed, piece))
                await self._may_read.wait()
        except BaseException as exc:  # noqa: BLE001  (raised again in the consumer)
            self._updates.put_nowait(partial(_raise, exc))
        else:
            self._updates.put_nowait(self._live.end)

    async def _work(self, job: Job) -> None:
        try:
            async for state in job.runnable.astream(job.value, self._config):
                self._updates.put_nowait(partial(self._live.add_state, job, state))
        except BaseException as exc:  # noqa: BLE001  (raised again in the consumer)
            self._updates.put_nowait(partial(_raise, exc))
        else:
            self._updates.put_nowait(partial(self._finish, job))

    def _feed(self, piece: Any) -> None:
        self._buffer.release()
        self._live.feed(piece)

    def _finish(self, job: Job) -> None:
        self.running -= 1
        self._live.finish(job)


def _raise(error: BaseException) -> None:
    raise error
