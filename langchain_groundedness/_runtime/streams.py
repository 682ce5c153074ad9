"""Transforms that stop their upstream when their consumer stops reading.

When a transform ends before its input, or the consumer of a sync stream stops early, LangChain
reads the rest of the input for its trace. A model would keep generating text that nobody reads.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from contextlib import aclosing
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForChainRun, CallbackManagerForChainRun
from langchain_core.runnables import Runnable, RunnableConfig
from typing_extensions import override

__all__ = ["atransformed", "transformed"]


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
        async with aclosing(transform(given, run_manager, config, **kwargs)) as grown:
            async for chunk in grown:
                yield chunk
        await source.stop()

    chunks: Any = runnable._atransform_stream_with_config(source, run_and_stop, config, **kwargs)  # noqa: SLF001
    try:
        async with aclosing(chunks):
            async for chunk in chunks:
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
        self._pieces: AsyncIterator[Any] | None = pieces

    @override
    async def __anext__(self) -> Any:
        if self._pieces is None:
            raise StopAsyncIteration
        return await anext(self._pieces)

    async def stop(self) -> None:
        pieces, self._pieces = self._pieces, None
        close = getattr(pieces, "aclose", None)
        if callable(close):
            await close()
