"""Awaits what a command asks of a model, and leaves behind what cannot be interrupted."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from langchain_groundedness._patience import calls_going_on

__all__ = ["awaited", "is_waiting"]

_ResultT = TypeVar("_ResultT")
_begun: set[Future[Any]] = set()
_MOST_THREADS = 256
"""So many that threads in which a silent model is waited for leave room for writing files."""


def awaited(work: Coroutine[Any, Any, _ResultT]) -> _ResultT:
    """Run a coroutine to its end, or until the user interrupts it.

    A model class without an asynchronous method works in a thread, which goes on when nobody
    waits for it any more: it is not waited for either.

    Args:
        work: The coroutine.

    Returns:
        What it returns.

    Raises:
        KeyboardInterrupt: The user has pressed Ctrl-C; the coroutine was cancelled.
    """

    async def run() -> _ResultT:
        asyncio.get_running_loop().set_default_executor(_LeftBehind(_MOST_THREADS))
        return await work

    return asyncio.run(run())


def is_waiting() -> bool:
    """Tell whether a thread still waits for a model: Python would wait for it at its end.

    Returns:
        True if so.
    """
    return calls_going_on() > 0 or any(not each.done() for each in _begun)


class _LeftBehind(ThreadPoolExecutor):
    """Threads that an event loop does not wait for when it is closed."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future = super().submit(fn, *args, **kwargs)
        _begun.add(future)
        future.add_done_callback(_begun.discard)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002  (as the base)
        super().shutdown(wait=False, cancel_futures=cancel_futures)
