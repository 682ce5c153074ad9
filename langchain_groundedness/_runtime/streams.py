"""Streams that stop their upstream when their consumer stops reading.

When a transform ends before its input, or the consumer of a sync stream stops early, LangChain
reads the rest of the input for its trace. A model would keep generating text that nobody reads.
"""

import contextlib
import sys
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Iterator
from typing import Any, Generic, TypeVar

from langchain_core.runnables import Runnable, RunnableConfig
from typing_extensions import override

from langchain_groundedness._runtime.executors import wait_for_admission

__all__ = ["ClosingStream", "StreamingTransform"]


class ClosingStream(contextlib.aclosing["_OwnedStream"]):
    """Closes a stream at the end of a block. The block must be the first to read the stream."""

    def __init__(self, stream: AsyncIterator[Any]) -> None:
        """Take a stream that nobody has read yet."""
        super().__init__(_OwnedStream(stream))


class _OwnedStream(AsyncIterator[Any]):
    """A stream that its owner closes instead of the event loop; a closed stream has no items."""

    # On shutdown, the loop closes all async generators at once and reports an error for each one
    # that another generator is closing.

    def __init__(self, stream: AsyncIterator[Any]) -> None:
        self._stream: Any = stream
        self._begun = False

    @override
    async def __anext__(self) -> Any:
        if self._stream is None:
            raise StopAsyncIteration
        return await self._begin(self._stream.__anext__)

    async def aclose(self) -> None:
        stream, self._stream = self._stream, None
        if hasattr(stream, "aclose") and not getattr(stream, "ag_running", False):
            await self._begin(stream.aclose)

    def _begin(self, method: Callable[[], Awaitable[Any]]) -> Awaitable[Any]:
        if self._begun:
            return method()
        self._begun = True
        hooks = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(None, None)  # the loop learns of generators by these
        try:
            return method()
        finally:
            sys.set_asyncgen_hooks(*hooks)


ChunkT = TypeVar("ChunkT")


class StreamingTransform(Runnable[Any, Any], ABC, Generic[ChunkT]):
    """A runnable that works while its input arrives; a whole input is a single piece."""

    @abstractmethod
    def _stream(self, *args: Any, **kwargs: Any) -> Iterator[ChunkT]:
        """Yield output for pieces of an input."""

    @abstractmethod
    def _astream(self, *args: Any, **kwargs: Any) -> AsyncIterator[ChunkT]:
        """Do what `_stream` does without blocking the event loop."""

    @override
    def stream(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Iterator[ChunkT]:
        """Check an answer, and yield output as soon as it is final.

        Args:
            input: As for `invoke`.
            config: As for `invoke`.
            **kwargs: As for `invoke`.

        Yields:
            As `transform`.
        """
        yield from self.transform(iter([input]), config, **kwargs)

    @override
    async def astream(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[ChunkT]:
        """Check an answer like `stream`, without blocking the event loop.

        Args:
            input: As for `ainvoke`.
            config: As for `ainvoke`.
            **kwargs: As for `ainvoke`.

        Yields:
            As `transform`.
        """

        async def inputs() -> AsyncIterator[Any]:
            yield input

        async with ClosingStream(self.atransform(inputs(), config, **kwargs)) as chunks:
            async for chunk in chunks:
                yield chunk

    @override
    def transform(
        self, input: Iterator[Any], config: RunnableConfig | None = None, **kwargs: Any
    ) -> Generator[ChunkT]:
        """Check an answer while it is written.

        Args:
            input: Pieces of an input of `invoke`: partial mappings, as retrieval chains stream
                them, texts, or message chunks.
            config: As for `invoke`; `max_concurrency` bounds how many sentences are checked at
                once (8 by default).
            **kwargs: As for `invoke`.

        Yields:
            Chunks of the output; the class says what they add up to.
        """
        source = _Input(input)

        def run_and_stop(
            given: Any, run_manager: Any, config: Any, **kwargs: Any
        ) -> Iterator[ChunkT]:
            yield from self._stream(given, run_manager, config, **kwargs)
            source.stop()

        chunks: Any = self._transform_stream_with_config(source, run_and_stop, config, **kwargs)
        try:
            # `yield from` would close `chunks` first, which reads the rest of the source.
            for chunk in chunks:  # noqa: UP028  (see above)
                yield chunk
        finally:
            source.stop()
            chunks.close()

    @override
    async def atransform(
        self, input: AsyncIterator[Any], config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncGenerator[ChunkT]:
        """Check an answer while it is written, without blocking the event loop.

        Args:
            input: As for `transform`.
            config: As for `transform`.
            **kwargs: As for `transform`.

        Yields:
            As `transform`.
        """
        await wait_for_admission()
        source = _OwnedStream(input)

        async def run_and_stop(*given: Any, **kwargs: Any) -> AsyncIterator[ChunkT]:
            async with ClosingStream(self._astream(*given, **kwargs)) as chunks:
                async for chunk in chunks:
                    yield chunk
            await source.aclose()

        def begin(given: Any, run_manager: Any, config: Any, **kwargs: Any) -> _OwnedStream:
            return _OwnedStream(run_and_stop(given, run_manager, config, **kwargs))

        chunks: Any = self._atransform_stream_with_config(source, begin, config, **kwargs)
        try:
            async with ClosingStream(chunks) as hidden:
                async for chunk in hidden:
                    yield chunk
        finally:
            await source.aclose()


class _Input(Iterator[Any]):
    """An iterator that can be stopped from outside."""

    def __init__(self, pieces: Iterator[Any]) -> None:
        self._pieces = pieces

    @override
    def __next__(self) -> Any:
        return next(self._pieces)

    def stop(self) -> None:
        pieces, self._pieces = self._pieces, iter(())
        close = getattr(pieces, "close", None)
        if callable(close):
            close()
