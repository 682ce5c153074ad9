"""Timeouts of model calls, and the retry budget of a check."""

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import suppress
from contextvars import copy_context
from typing import Annotated, Any, Self, TypeVar

from pydantic import Field

from langchain_groundedness.exceptions import ModelTimeoutError

__all__ = [
    "DEFAULT_TIMEOUT",
    "MAX_TIMED_OUT_CALLS",
    "RetryBudget",
    "Seconds",
    "TimedCalls",
    "acall_with_timeout",
    "call_with_timeout",
    "timed_out_calls",
]

DEFAULT_TIMEOUT = 300.0
"""Default timeout of one model call in seconds: long enough for a model on the CPU, which answers
the calls of a check one after the other."""
MAX_TIMED_OUT_CALLS = 100
"""Most calls per process that may still run in threads after their timeout."""

Seconds = Annotated[float | None, Field(gt=0, allow_inf_nan=False)]

_ResultT = TypeVar("_ResultT")


class RetryBudget:
    """The number of extra calls that a check may make after invalid replies."""

    def __init__(self, calls: int) -> None:
        """Start with a number of calls."""
        self._left = calls
        self._lock = threading.Lock()

    def __deepcopy__(self, _memo: Any) -> Self:
        """Return the budget itself: tracers copy inputs, and a lock cannot be copied."""
        return self

    def take(self) -> bool:
        """Use one call; return `False` if none is left."""
        with self._lock:
            self._left -= 1
            return self._left >= 0


class CallTimeoutError(TimeoutError):
    """A call timed out, or was not made because too many timed-out calls still run."""

    def __init__(self, others: int = 0) -> None:
        """Store how many timed-out calls still run."""
        super().__init__()
        self.others = others


class TimedCalls:
    """Makes blocking calls with a timeout; counts those that still run after it.

    A thread cannot be interrupted: after the timeout it runs until the call returns; its outcome
    is dropped. It is a daemon thread, so the process can exit.
    """

    def __init__(self, most: int) -> None:
        """Set how many timed-out calls may still run before new calls are refused."""
        self._most = most
        self._reset()
        if hasattr(os, "register_at_fork"):
            # A forked child has none of its parent's threads, so their calls would never end.
            os.register_at_fork(after_in_child=self._reset)

    def _reset(self) -> None:
        self._timed_out: set[Future[Any]] = set()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """Count the timed-out calls that still run."""
        return len(self._timed_out)

    def call(self, seconds: float, call: Callable[[], _ResultT], thread_name: str) -> _ResultT:
        """Make a call in a thread, with the caller's context variables."""
        outcome = self._start(call, thread_name)
        try:
            outcome.exception(seconds)
        except TimeoutError:
            raise CallTimeoutError from None
        finally:
            self._count(outcome)
        return outcome.result()

    async def acall(
        self, seconds: float, call: Callable[[], _ResultT], thread_name: str
    ) -> _ResultT:
        """Make a call like `call`, without blocking the event loop."""
        outcome = self._start(call, thread_name)
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()

        def notify(_: Future[_ResultT]) -> None:
            with suppress(RuntimeError):  # the loop may be closed
                loop.call_soon_threadsafe(ended.set)

        outcome.add_done_callback(notify)
        try:
            async with asyncio.timeout(seconds):
                await ended.wait()
        except TimeoutError:
            raise CallTimeoutError from None
        finally:
            self._count(outcome)
        return outcome.result()

    def _start(self, call: Callable[[], _ResultT], thread_name: str) -> Future[_ResultT]:
        if len(self) >= self._most:
            raise CallTimeoutError(len(self))
        outcome: Future[_ResultT] = Future()
        context = copy_context()

        def work() -> None:
            try:
                outcome.set_result(context.run(call))
            except BaseException as exc:  # noqa: BLE001  (raised again in the waiting caller)
                outcome.set_exception(exc)

        threading.Thread(target=work, name=thread_name, daemon=True).start()
        return outcome

    def _count(self, outcome: Future[Any]) -> None:
        """Count a call until it ends, if it still runs."""
        if not outcome.done():
            timed_out = self._timed_out
            with self._lock:
                timed_out.add(outcome)
            outcome.add_done_callback(timed_out.discard)


_model_calls = TimedCalls(MAX_TIMED_OUT_CALLS)


def timed_out_calls() -> int:
    """Count the model calls that still run in threads after their timeout."""
    return len(_model_calls)


def call_with_timeout(seconds: float | None, call: Callable[[], _ResultT]) -> _ResultT:
    """Make a blocking model call with a timeout."""
    if seconds is None:
        return call()
    try:
        return _model_calls.call(seconds, call, "model call")
    except CallTimeoutError as exc:
        raise ModelTimeoutError(seconds, still_running=exc.others) from None


async def acall_with_timeout(
    seconds: float | None, call: Callable[[], Awaitable[_ResultT]]
) -> _ResultT:
    """Await a model call with a timeout, which cancels it."""
    try:
        async with asyncio.timeout(seconds) as limit:
            return await call()
    except TimeoutError:
        if seconds is None or not limit.expired():
            raise
        raise ModelTimeoutError(seconds) from None
