"""Transforms that stop their upstream when their consumer stops reading.

When a transform ends before its input, or the consumer of a sync stream stops early, LangChain
reads the rest of the input for its trace. A model would keep generating text that nobody reads.
"""

import contextlib
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Iterator
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForChainRun, CallbackManagerForChainRun
from langchain_core.runnables import Runnable, RunnableConfig
from typing_extensions import override

__all__ = ["Closing", "atransformed", "transformed"]


class Closing(contextlib.aclosing["_Hidden"]):
    """Closes a stream at the end of a block. The block must be the first to read the stream."""

    def __init__(self, stream: AsyncIterator[Any]) -> None:
        """Take a stream that nobody has read yet."""
        super().__init__(_Hidden(stream))


class _Hidden(AsyncIterator[Any]):
    """A stream that its owner closes, and not the event loop.

    At its end the loop closes all async generators at once, and reports those that another one is
    closing.
    """

    def __init__(self, stream: AsyncIterator[Any]) -> None:
        self._stream: Any = stream
        self._begun = False

    @override
    def __anext__(self) -> Awaitable[Any]:
        return self._begin(self._stream.__anext__)

    async def aclose(self) -> None:
        if hasattr(self._stream, "aclose") and not getattr(self._stream, "ag_running", False):
            await self._begin(self._stream.aclose)

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


def transformed(
    runnable: Runnable[Any, Any],
    transform: Callable[..., Iterator[Any]],
    pieces: Iterator[Any],
    config: RunnableConfig | None,
    **kwargs: Any,
) -> Generator[Any]:
    """Run a transform with the callbacks of a config."""
    source = _Input(pieces)

    def run_and_stop(
        given: Iterator[Any],
        run_manager: CallbackManagerForChainRun,
        config: RunnableConfig,
        **kwargs: Any,
    ) -> Iterator[Any]:
        yield from transform(given, run_manager, config, **kwargs)
        source.stop()

    chunks: Any = runnable._transform_stream_with_config(source, run_and_stop, config, **kwargs)  # noqa: SLF001
    try:
        # `yield from` would close `chunks` first, which reads the rest of the source.
        for chunk in chunks:  # noqa: UP028  (see above)
            yield chunk
    finally:
        source.stop()
        chunks.close()


async def atransformed(
    runnable: Runnable[Any, Any],
    transform: Callable[..., AsyncGenerator[Any]],
    pieces: AsyncIterator[Any],
    config: RunnableConfig | None,
    **kwargs: Any,
) -> AsyncGenerator[Any]:
    """Run an async transform with the callbacks of a config."""
    source = _AsyncInput(pieces)

    async def run_and_stop(
        given: AsyncIterator[Any],
        run_manager: AsyncCallbackManagerForChainRun,
        config: RunnableConfig,
        **kwargs: Any,
    ) -> AsyncIterator[Any]:
        async with Closing(transform(given, run_manager, config, **kwargs)) as grown:
            async for chunk in grown:
                yield chunk
        await source.stop()

    def begin(
        given: AsyncIterator[Any],
        run_manager: AsyncCallbackManagerForChainRun,
        config: RunnableConfig,
        **kwargs: Any,
    ) -> _Hidden:
        return _Hidden(run_and_stop(given, run_manager, config, **kwargs))

    chunks: Any = runnable._atransform_stream_with_config(source, begin, config, **kwargs)  # noqa: SLF001
    try:
        async with Closing(chunks) as hidden:
            async for chunk in hidden:
                yield chunk
    finally:
        await source.stop()


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


class _AsyncInput(AsyncIterator[Any]):
    """An async iterator that can be stopped from outside while no item is awaited."""

    def __init__(self, pieces: AsyncIterator[Any]) -> None:
        self._pieces: _Hidden | None = _Hidden(pieces)

    @override
    async def __anext__(self) -> Any:
        if self._pieces is None:
            raise StopAsyncIteration
        return await anext(self._pieces)

    async def stop(self) -> None:
        pieces, self._pieces = self._pieces, None
        if pieces is not None:
            await pieces.aclose()
