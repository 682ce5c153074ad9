"""Work that is done later, by a few threads, with a bound on how much of it may wait."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import Context, ContextVar, copy_context
from typing import Any

from langchain_core.runnables.config import var_child_runnable_config

from langchain_groundedness.exceptions import GroundednessError

__all__ = ["CHECK_TAG", "Backlog", "apart", "collecting"]


class Backlog:
    """A few threads and what waits for them.

    The threads start with the first work, and end with the backlog itself; at the end of the
    process what is left is still done.
    """

    def __init__(self, *, workers: int, most: int | None = None) -> None:
        """Start with no work and no thread."""
        self._workers = workers
        self._most = most
        self._unfinished = 0
        self._changed = threading.Condition()
        self._pool: ThreadPoolExecutor | None = None

    def add(self, work: Callable[[], Any]) -> "Future[Any] | None":
        """Have something done, in a context of its own, apart from the caller's chain."""
        with self._changed:
            if self._most is not None and self._unfinished >= self._most:
                return None
            if self._pool is None:
                name = "groundedness"
                self._pool = ThreadPoolExecutor(self._workers, thread_name_prefix=name)
            self._unfinished += 1
            future = self._pool.submit(apart().run, work)
        future.add_done_callback(self._finished)
        return future

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until all is done."""
        if _in_loop():
            msg = "flush() would hold up the running event loop: use `await handler.aflush()`"
            raise GroundednessError(msg)
        return self.settled(timeout)

    def settled(self, timeout: float | None = None) -> bool:
        """Wait in whatever thread this is."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._unfinished, timeout)

    def close(self) -> None:
        """Let the threads end when what was added is done."""
        with self._changed:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=False)

    def _finished(self, future: "Future[Any]") -> None:
        del future
        with self._changed:
            self._unfinished -= 1
            self._changed.notify_all()


def _in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


CHECK_TAG = "groundedness:check"
"""Tag of every run of a check that a handler has started."""

collecting: ContextVar[Any] = ContextVar("groundedness_collecting", default=None)
"""The handler of the `collect_groundedness` block that the code runs in."""


def apart() -> Context:
    """Copy the context, without what ties new runs to the chain that is watched."""
    context = copy_context()
    context.run(var_child_runnable_config.set, None)
    context.run(collecting.set, None)
    return context
