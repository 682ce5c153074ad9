"""Threads for CPU-bound work off the event loop: one for ordinary texts, one for very long ones.

Under the GIL, more busy threads do not finish the work sooner, and the event loop waits up to five
milliseconds for each. A second thread keeps a document that takes seconds from delaying short ones.
"""

import asyncio
import os
import weakref
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import cache, partial
from typing import ParamSpec, TypeVar

from langchain_core.documents import Document

from langchain_groundedness.exceptions import GroundednessError

__all__ = ["run_in_worker", "total_characters", "wait_for_admission"]

_P = ParamSpec("_P")

_T = TypeVar("_T")

_OFF_LOOP_SIZE = 200_000
"""Characters of documents that take about a second to process."""


def total_characters(documents: Iterable[Document]) -> int:
    """Count the characters of documents."""
    return sum(len(document.page_content) for document in documents)


async def run_in_worker(
    size: int, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs
) -> _T:
    """Run a function in a worker thread, and await its result."""
    work = partial(copy_context().run, _called, partial(function, *args, **kwargs))
    try:
        future = _executor("long" if size > _OFF_LOOP_SIZE else "short").submit(work)
    except RuntimeError as exc:
        msg = (
            "a check started while Python was shutting down, when no threads can start: finish "
            "all checks before the program exits"
        )
        raise GroundednessError(msg) from exc
    return await asyncio.wrap_future(future)


def _called(function: Callable[[], _T]) -> _T:
    try:
        return function()
    except StopIteration as exc:  # a future cannot hold it
        raise RuntimeError(*exc.args) from exc


@cache
def _executor(name: str) -> ThreadPoolExecutor:
    """Return the worker thread for `short` or for `long` texts."""
    return ThreadPoolExecutor(1, thread_name_prefix=f"groundedness-{name}")


if hasattr(os, "register_at_fork"):  # a child has none of its parent's threads
    os.register_at_fork(after_in_child=_executor.cache_clear)

_ITERATIONS_BETWEEN = 32
"""Event loop iterations between two admissions. With 500 concurrent checks by a chat model, the
99th percentile of loop latency was 60 ms with 1 iteration, 22 with 4, 18 with 8, 12 with 16 and
more."""

_MAX_SECONDS_BETWEEN = 0.02
"""Most seconds between two admissions, in case other tasks keep the loop busy."""


async def wait_for_admission() -> None:
    """Wait until a check may start on this event loop; a single check does not wait."""
    loop = asyncio.get_running_loop()
    if loop not in _ADMISSIONS:
        _ADMISSIONS[loop] = _Admission()
    await _ADMISSIONS[loop].wait(loop)


class _Admission:
    """Admits the checks of one event loop, one at a time."""

    def __init__(self) -> None:
        self._pausing = False
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def wait(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._pausing:
            mine: asyncio.Future[None] = loop.create_future()
            self._waiting.append(mine)
            await mine
        else:
            self._pause(loop)

    def _pause(self, loop: asyncio.AbstractEventLoop) -> None:
        self._pausing = True
        loop.call_soon(self._next, loop, _ITERATIONS_BETWEEN, loop.time() + _MAX_SECONDS_BETWEEN)

    def _next(self, loop: asyncio.AbstractEventLoop, rounds: int, latest: float) -> None:
        while self._waiting and self._waiting[0].done():  # it was cancelled
            self._waiting.popleft()
        if not self._waiting:
            self._pausing = False
        elif rounds > 1 and loop.time() < latest:
            loop.call_soon(self._next, loop, rounds - 1, latest)
        else:
            self._waiting.popleft().set_result(None)
            self._pause(loop)


_ADMISSIONS: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Admission] = (
    weakref.WeakKeyDictionary()
)
