"""Transforms that end with their reader: whoever stops reading stops the upstream as well.

`Runnable._transform_stream_with_config` reads the rest of its input when the reader of a sync
stream stops early, to trace it. A model would go on writing for nobody.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from contextlib import aclosing
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig

__all__ = ["atransformed", "transformed"]


class _Input(Iterator[Any]):
    """An iterator that can be ended from outside."""

    def __init__(self, pieces: Iterator[Any]) -> None:
        self._pieces = pieces

    def __next__(self) -> Any:
        return next(self._pieces)

    def stop(self) -> None:
        pieces, self._pieces = self._pieces, iter(())
        close = getattr(pieces, "close", None)
        if callable(close):
            close()


def transformed(
    runnable: Runnable[Any, Any],
    grow: Callable[..., Iterator[Any]],
    pieces: Iterator[Any],
    config: RunnableConfig | None,
    **kwargs: Any,
) -> Generator[Any]:
    """Run a transform under the callbacks of a config.

    Args:
        runnable: Whose run it is.
        grow: Turns pieces into pieces; gets a run manager and a config.
        pieces: The upstream.
        config: The config.
        **kwargs: For `grow`.

    Yields:
        What `grow` yields.
    """
    source = _Input(pieces)
    chunks: Any = runnable._transform_stream_with_config(source, grow, config, **kwargs)  # noqa: SLF001
    try:
        # Not `yield from`: that would close `chunks` first, which reads the rest of the source.
        for chunk in chunks:  # noqa: UP028
            yield chunk
    finally:
        source.stop()
        chunks.close()


async def atransformed(
    runnable: Runnable[Any, Any],
    grow: Callable[..., AsyncIterator[Any]],
    pieces: AsyncIterator[Any],
    config: RunnableConfig | None,
    **kwargs: Any,
) -> AsyncGenerator[Any]:
    """Run an async transform under the callbacks of a config.

    Args:
        runnable: Whose run it is.
        grow: Turns pieces into pieces; gets a run manager and a config.
        pieces: The upstream.
        config: The config.
        **kwargs: For `grow`.

    Yields:
        What `grow` yields.
    """
    try:
        chunks: Any = runnable._atransform_stream_with_config(pieces, grow, config, **kwargs)  # noqa: SLF001
        async with aclosing(chunks):
            async for chunk in chunks:
                yield chunk
    finally:
        close = getattr(pieces, "aclose", None)
        if callable(close):
            await close()
