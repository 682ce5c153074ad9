"""Runs a check on one input, on many at once, or on pieces, under a config that counts its cost."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import aclosing, closing
from functools import partial
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig

from langchain_groundedness._runtime.executors import turn
from langchain_groundedness._runtime.flow import exceptions_at_most
from langchain_groundedness._runtime.telemetry import Checking, checking
from langchain_groundedness.inputs.schema import InputReader
from langchain_groundedness.llm.usage import UsageCounter, counted
from langchain_groundedness.pipeline.chunks import ChunkMaker
from langchain_groundedness.pipeline.events import EventStream
from langchain_groundedness.pipeline.live import LiveCheck
from langchain_groundedness.pipeline.live_drivers import arun_live, run_live
from langchain_groundedness.pipeline.recording import Pending, Recorder
from langchain_groundedness.pipeline.steps import Check, CheckState
from langchain_groundedness.types import GroundednessResult, GroundednessResultChunk

__all__ = ["Runs", "arun_pieces", "run_pieces"]


class Runs:
    """One check with one way to read inputs."""

    def __init__(self, check: Check, read: InputReader, recorder: Recorder) -> None:
        """Bind the three."""
        self._check = check
        self._read = read
        self._recorder = recorder

    def one(self, value: Any, config: RunnableConfig, run: Any) -> GroundednessResult:
        """Check one input."""
        pending = self._recorder.begin(run, config)
        config, counter = counted(config)
        with checking() as check:
            state = self._check.pipeline(self._read).invoke(value, config)
            result = self._check.result(state, counter.usage)
            check.told(result)
        pending.end(result, state.timings)
        EventStream(config).publish(ChunkMaker().close(result))
        return result

    async def aone(self, value: Any, config: RunnableConfig, run: Any) -> GroundednessResult:
        """Check one input."""
        pending = self._recorder.begin(run, config)
        config, counter = counted(config)
        with checking() as check:
            state = await self._check.pipeline(self._read).ainvoke(value, config)
            result = self._check.result(state, counter.usage)
            check.told(result)
        await pending.aend(result, state.timings)
        await EventStream(config).apublish(ChunkMaker().close(result))
        return result

    def many(
        self, values: list[Any], config: list[RunnableConfig], runs: Sequence[Any]
    ) -> list[Exception | GroundednessResult]:
        """Check many inputs at once; an error is the outcome of its input."""
        pending = list(map(self._recorder.begin, runs, config))
        configs, counters = zip(*map(counted, config), strict=True)
        pipeline = self._check.pipeline(self._read)
        with checking() as check:
            states = exceptions_at_most(
                pipeline.batch(values, list(configs), return_exceptions=True)
            )
            results = self._results(states, counters, check)
        for state, result, record in zip(states, results, pending, strict=True):
            if not isinstance(state, Exception) and not isinstance(result, Exception):
                record.hand_over(result, state.timings)
        self._recorder.confirm()
        for result, each in zip(results, configs, strict=True):
            if not isinstance(result, Exception):
                EventStream(each).publish(ChunkMaker().close(result))
        return results

    async def amany(
        self, values: list[Any], config: list[RunnableConfig], runs: Sequence[Any]
    ) -> list[Exception | GroundednessResult]:
        """Check many inputs at once; an error is the outcome of its input."""
        pending = list(map(self._recorder.begin, runs, config))
        configs, counters = zip(*map(counted, config), strict=True)
        with checking() as check:
            states = await self._states(values, list(configs), config[0].get("max_concurrency"))
            results = self._results(states, counters, check)
        for state, result, record in zip(states, results, pending, strict=True):
            if not isinstance(state, Exception) and not isinstance(result, Exception):
                await record.ahand_over(result, state.timings)
        await self._recorder.aconfirm()
        for result, each in zip(results, configs, strict=True):
            if not isinstance(result, Exception):
                await EventStream(each).apublish(ChunkMaker().close(result))
        return results

    async def _states(
        self, values: list[Any], configs: list[RunnableConfig], most: int | None
    ) -> Sequence[CheckState | Exception]:
        if self._check.judges_together:
            pipeline = self._check.pipeline(self._read)
            outcomes = await pipeline.abatch(values, configs, return_exceptions=True)
            exceptions_at_most(outcomes)
            return outcomes
        # Each answer goes through its steps at its own pace; what is bounded is how many
        # of the steps of all answers wait for a model.
        limit = asyncio.Semaphore(most or len(values))
        pipeline = self._check.pipeline(self._read, limit=limit)
        async with asyncio.TaskGroup() as group:
            work = map(partial(_outcome, pipeline), values, configs)
            tasks = list(map(group.create_task, work))
        return [task.result() for task in tasks]

    def _results(
        self,
        states: Sequence[CheckState | Exception],
        counters: Sequence[UsageCounter],
        check: Checking,
    ) -> list[Exception | GroundednessResult]:
        results: list[Exception | GroundednessResult] = []
        for state, counter in zip(states, counters, strict=True):
            if isinstance(state, Exception):
                results.append(state)
            else:
                result = self._check.result(state, counter.usage)
                results.append(result)
                check.told(result)
        return results


def run_pieces(
    live: LiveCheck, pieces: Iterator[Any], config: RunnableConfig, pending: Pending
) -> Iterator[GroundednessResultChunk]:
    """Check an answer while it is written."""
    config, counter = counted(config)
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
    live: LiveCheck, pieces: AsyncIterator[Any], config: RunnableConfig, pending: Pending
) -> AsyncGenerator[GroundednessResultChunk]:
    """Check an answer while it is written."""
    config, counter = counted(config)
    events = EventStream(config)
    async with aclosing(arun_live(pieces, live, config)) as steps:
        async for _ in steps:
            for chunk in live.take():
                await events.apublish(chunk)
                yield chunk
    await pending.aend(live.conclude(counter.usage))
    for chunk in live.take():
        await events.apublish(chunk)
        yield chunk


async def _outcome(
    pipeline: Runnable[Any, CheckState], value: Any, config: RunnableConfig
) -> CheckState | Exception:
    await turn()
    try:
        return await pipeline.ainvoke(value, config)
    except Exception as exc:  # noqa: BLE001  (handed over as this input's outcome, not lost)
        return exc
