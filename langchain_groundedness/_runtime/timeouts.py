"""How long to wait for a model, and how often to ask it again."""

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import suppress
from contextvars import copy_context
from typing import Annotated, Any, TypeVar

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
"""Seconds for one call of a model, unless told otherwise: long enough for a model on the processor,
which answers the calls of a check one after the other."""
MAX_TIMED_OUT_CALLS = 100
"""Most calls in the process that may go on in threads after their timeout."""

Seconds = Annotated[float | None, Field(gt=0, allow_inf_nan=False)]

_ResultT = TypeVar("_ResultT")


class RetryBudget:
    """How many calls a check may make beyond those that it takes if every reply is right."""

    def __init__(self, calls: int) -> None:
        """Start with all of them."""
        self._left = calls
        self._lock = threading.Lock()

    def take(self) -> bool:
        """Take one of the calls; `False` if none is left."""
        with self._lock:
            self._left -= 1
            return self._left >= 0


class CallTimeoutError(TimeoutError):
    """A call has taken longer than it may, or was not made because too many others have."""

    def __init__(self, others: int = 0) -> None:
        """Say how many others keep the call from being made."""
        super().__init__()
        self.others = others


class TimedCalls:
    """Makes blocking calls with a timeout; counts those that go on after it.

    A thread cannot be interrupted: one whose time is up goes on until its client gives up, and its
    outcome is dropped. It ends with the process, which does not wait for it.
    """

    def __init__(self, most: int) -> None:
        """Say how many may go on; with more, no call is made."""
        self._most = most
        self._reset()
        if hasattr(os, "register_at_fork"):
            # A forked child has none of its parent's threads: none of their calls ever ends.
            os.register_at_fork(after_in_child=self._reset)

    def _reset(self) -> None:
        self._timed_out: set[Future[Any]] = set()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """Count the calls that go on after their timeout."""
        return len(self._timed_out)

    def call(self, seconds: float, call: Callable[[], _ResultT], thread_name: str) -> _ResultT:
        """Make a call in a thread, under the context variables of the caller."""
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
        """Make a call as `call` does, and await it."""
        outcome = self._start(call, thread_name)
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()

        def tell(_: Future[_ResultT]) -> None:
            with suppress(RuntimeError):  # nobody may wait any more, and the loop be closed
                loop.call_soon_threadsafe(ended.set)

        outcome.add_done_callback(tell)
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
            except BaseException as exc:  # noqa: BLE001  (raised again by whoever waits)
                outcome.set_exception(exc)

        threading.Thread(target=work, name=thread_name, daemon=True).start()
        return outcome

    def _count(self, outcome: Future[Any]) -> None:
        """Count a call for as long as it goes on."""
        if not outcome.done():
            timed_out = self._timed_out
            with self._lock:
                timed_out.add(outcome)
            outcome.add_done_callback(timed_out.discard)


_model_calls = TimedCalls(MAX_TIMED_OUT_CALLS)


def timed_out_calls() -> int:
    """Count the calls of models that go on in threads after their timeout."""
    return len(_model_calls)


def call_with_timeout(seconds: float | None, call: Callable[[], _ResultT]) -> _ResultT:
    """Make a blocking call of a model that may only take so long."""
    if seconds is None:
        return call()
    try:
        return _model_calls.call(seconds, call, "model call")
    except CallTimeoutError as exc:
        raise ModelTimeoutError(seconds, abandoned=exc.others) from None


async def acall_with_timeout(
    seconds: float | None, call: Callable[[], Awaitable[_ResultT]]
) -> _ResultT:
    """Make a call that may only take so long; it is cancelled when its time is up."""
    try:
        async with asyncio.timeout(seconds) as limit:
            return await call()
    except TimeoutError:
        if seconds is None or not limit.expired():
            raise
        raise ModelTimeoutError(seconds) from None
