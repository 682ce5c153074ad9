"""A stream through Ray Data: chunks go in while others come out, in any order."""

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

from langchain_groundedness.evals._chunks import COLUMN, ChunkWorker
from langchain_groundedness.exceptions import require

__all__ = ["ChunkStream"]

_WAITING_PER_WORKER = 2
"""Chunks that a worker is given, the one that it works on among them."""


class Feed:
    """Holds chunks that are not answered yet; an actor beside whoever puts them in.

    Ray asks again for all chunks, from the first, if the task that reads them has died.
    """

    def __init__(self) -> None:
        """Start with nothing."""
        self._chunks: dict[int, str] = {}
        self._put = 0
        self._begun: Counter[str] = Counter()
        self._is_last = False
        self._changed = asyncio.Condition()

    async def put(self, number: int, chunk: str) -> None:
        """Add a chunk.

        Args:
            number: Its number; they come in order, from 0.
            chunk: The chunk.
        """
        async with self._changed:
            self._chunks[number] = chunk
            self._put = number + 1
            self._changed.notify_all()

    async def forget(self, number: int) -> None:
        """Let go of a chunk that is answered.

        Args:
            number: Its number.
        """
        self._chunks.pop(number, None)
        for name in [each for each in self._begun if each.partition("/")[0] == str(number)]:
            del self._begun[name]

    async def begin(self, name: str) -> int:
        """Count how often a worker has begun with something and not come to its end.

        Args:
            name: Number of the chunk, or that and the place of a row: `12/3041`.

        Returns:
            How often, now included.
        """
        self._begun[name] += 1
        return self._begun[name]

    async def survive(self, name: str) -> None:
        """Take note that a worker came to the end of something.

        Args:
            name: As for `begin`.
        """
        del self._begun[name]

    async def end(self) -> None:
        """Say that no more chunks will come."""
        async with self._changed:
            self._is_last = True
            self._changed.notify_all()

    async def chunk(self, number: int) -> str | None:
        """Give a chunk, as soon as it is there.

        Args:
            number: Its number.

        Returns:
            The chunk, empty if it is answered already; `None` after the last one.
        """
        async with self._changed:
            await self._changed.wait_for(lambda: self._is_last or number < self._put)
        return self._chunks.get(number, "") if number < self._put else None


class ChunkStream:
    """The way through Ray Data, from `put` to `answers`."""

    def __init__(
        self, ray: Any, workers: int, arguments: tuple[Any, ...], cpus_per_worker: float
    ) -> None:
        """Start the workers.

        Args:
            ray: The module, connected to a cluster.
            workers: How many workers.
            arguments: What a `ChunkWorker` is made with, after `attempts`.
            cpus_per_worker: Processors that each is given.
        """
        self._ray = ray
        data: Any = require("ray.data", extra="ray")
        self._feed = ray.remote(Feed).options(**_on_this_machine(ray)).remote()
        context = data.DataContext.get_current().copy()
        context.enable_progress_bars = False
        context.target_max_block_size = 1  # no chunk waits for another one
        with data.DataContext.current(context):
            chunks = data.read_datasource(
                _source(self._feed),
                override_num_blocks=1,
                num_cpus=0,
            )
            answers = chunks.map_batches(
                ChunkWorker,
                fn_constructor_args=(_ToFeed(self._feed), *arguments),
                batch_size=1,
                compute=data.ActorPoolStrategy(
                    size=workers, max_tasks_in_flight_per_actor=_WAITING_PER_WORKER
                ),
                num_cpus=cpus_per_worker,
            )
            self._tables: Iterator[Mapping[str, Sequence[Any]]] = iter(
                answers.iter_batches(batch_size=None, prefetch_batches=0)
            )

    def __enter__(self) -> Self:
        """Give the stream."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the workers."""
        close = getattr(self._tables, "close", None)
        if close is not None:
            close()
        self._ray.kill(self._feed)

    def put(self, number: int, chunk: str) -> None:
        """Send a chunk.

        Args:
            number: Its number; they come in order, from 0.
            chunk: The chunk.
        """
        self._ray.get(self._feed.put.remote(number, chunk))

    def forget(self, number: int) -> None:
        """Say that the answer to a chunk is written down.

        Args:
            number: Its number.
        """
        self._feed.forget.remote(number)

    def answers(self) -> Iterator[str]:
        """Wait for answers.

        Yields:
            What the workers give, as it comes.
        """
        for table in self._tables:
            yield from map(str, table[COLUMN])

    def end(self) -> None:
        """Say that there will be no more chunks."""
        self._ray.get(self._feed.end.remote())


class _ToFeed:
    """Tells the feed what a worker begins with, and what it survives."""

    def __init__(self, feed: Any) -> None:
        self._feed = feed

    def begin(self, name: str) -> int:
        ray: Any = require("ray", extra="ray")
        return int(ray.get(self._feed.begin.remote(name)))

    def survive(self, name: str) -> None:
        ray: Any = require("ray", extra="ray")
        ray.get(self._feed.survive.remote(name))


def _on_this_machine(ray: Any) -> dict[str, Any]:
    strategies: Any = require("ray.util.scheduling_strategies", extra="ray")
    node = ray.get_runtime_context().get_node_id()
    strategy = strategies.NodeAffinitySchedulingStrategy(node, soft=False)
    return {"num_cpus": 0, "scheduling_strategy": strategy}


def _source(feed: Any) -> Any:
    """Make what Ray Data reads: chunks, as the feed gives them."""
    sources: Any = require("ray.data.datasource", extra="ray")
    blocks: Any = require("ray.data.block", extra="ray")
    arrow: Any = require("pyarrow", extra="ray")

    def read() -> Iterator[Any]:
        ray: Any = require("ray", extra="ray")
        number = 0
        while (chunk := ray.get(feed.chunk.remote(number))) is not None:
            yield arrow.table({COLUMN: arrow.array([chunk], arrow.large_string())})
            number += 1

    class Chunks(sources.Datasource):  # type: ignore[misc]  # Ray is optional
        def estimate_inmemory_data_size(self) -> int | None:
            return None

        def get_read_tasks(self, parallelism: int, *_: Any, **__: Any) -> list[Any]:
            unknown = blocks.BlockMetadata(
                num_rows=None, size_bytes=None, input_files=None, exec_stats=None
            )
            return [sources.ReadTask(read, unknown)]

    return Chunks()
