"""How long a model is waited for, and how often it is asked again."""

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import Annotated, Any, TypeVar

from pydantic import Field

from langchain_groundedness.exceptions import ModelTimeoutError

__all__ = [
    "MOST_ABANDONED",
    "PATIENCE",
    "Abandoned",
    "Budget",
    "Seconds",
    "awithin",
    "calls_going_on",
    "within",
]

PATIENCE = 300.0
"""Seconds for one call of a model, unless told otherwise: long enough for a model on the processor,
which answers the calls of a check one after the other."""
MOST_ABANDONED = 100
"""Most calls in the process that may go on in threads though nobody waits for them any more."""

Seconds = Annotated[float | None, Field(gt=0, allow_inf_nan=False)]

_ResultT = TypeVar("_ResultT")


class Budget:
    """How many calls a check may make beyond those that it takes if every reply is right."""

    def __init__(self, calls: int) -> None:
        """Start with all of them."""
        self._left = calls
        self._lock = threading.Lock()

    def take(self) -> bool:
        """Take one of the calls."""
        with self._lock:
            self._left -= 1
            return self._left >= 0


class Abandoned:
    """Makes blocking calls that may only take so long; counts those that go on nevertheless.

    A thread cannot be interrupted: one whose time is up goes on until its client gives up, and its
    outcome is dropped. It ends with the process, which does not wait for it.
    """

    def __init__(self, most: int) -> None:
        """Begin."""
        self._most = most
        self._start_anew()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._start_anew)

    def _start_anew(self) -> None:
        """A forked child has none of its parent's threads: none of their calls ever ends."""
        self._calls: set[Future[object]] = set()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """Count the calls that go on."""
        return len(self._calls)

    @property
    def is_full(self) -> bool:
        """Whether so many go on that there should be no more."""
        return len(self._calls) >= self._most

    def call(self, seconds: float, call: Callable[[], _ResultT], name: str) -> _ResultT:
        """Make a call in a thread, under the context variables of the caller."""
        outcome = _begun(call, name)
        try:
            outcome.exception(seconds)
        except TimeoutError:
            raise WaitedTooLongError from None
        finally:
            self._add(outcome)
        return outcome.result()

    async def acall(self, seconds: float, call: Callable[[], _ResultT], name: str) -> _ResultT:
        """Make a call as `call` does, and await it."""
        outcome = _begun(call, name)
        ended = asyncio.get_running_loop().create_future()
        outcome.add_done_callback(partial(_tell, ended))
        try:
            async with asyncio.timeout(seconds):
                await ended
        except TimeoutError:
            raise WaitedTooLongError from None
        finally:
            self._add(outcome)
        return outcome.result()

    def _add(self, outcome: Future[_ResultT]) -> None:
        if outcome.done():
            return
        kept: Future[object] = outcome  # type: ignore[assignment]  # only told apart from others
        calls = self._calls
        with self._lock:
            calls.add(kept)
        outcome.add_done_callback(lambda _: calls.discard(kept))


def _begun(call: Callable[[], _ResultT], name: str) -> Future[_ResultT]:
    outcome: Future[_ResultT] = Future()
    context = copy_context()

    def work() -> None:
        try:
            outcome.set_result(context.run(call))
        except BaseException as exc:  # noqa: BLE001  (raised again by whoever waits)
            outcome.set_exception(exc)

    threading.Thread(target=work, name=name, daemon=True).start()
    return outcome


def _tell(ended: asyncio.Future[None], _: Future[Any]) -> None:
    """Wake whoever awaits a call; nobody may any more, and the event loop may be closed."""

    def end() -> None:
        if not ended.done():
            ended.set_result(None)

    with suppress(RuntimeError):
        ended.get_loop().call_soon_threadsafe(end)


class WaitedTooLongError(TimeoutError):
    """A call has taken longer than it may."""


_models = Abandoned(MOST_ABANDONED)


def calls_going_on() -> int:
    """Count the calls of models that go on in threads though nobody waits for them any more."""
    return len(_models)


def within(seconds: float | None, call: Callable[[], _ResultT]) -> _ResultT:
    """Make a blocking call of a model that may only take so long, as `Abandoned.call` does."""
    if seconds is None:
        return call()
    if _models.is_full:
        raise ModelTimeoutError(seconds, abandoned=len(_models))
    try:
        return _models.call(seconds, call, "model call")
    except WaitedTooLongError:
        raise ModelTimeoutError(seconds) from None


async def awithin(seconds: float | None, call: Callable[[], Awaitable[_ResultT]]) -> _ResultT:
    """Make a call that may only take so long; it is cancelled when its time is up."""
    try:
        async with asyncio.timeout(seconds) as limit:
            return await call()
    except TimeoutError:
        if seconds is None or not limit.expired():
            raise
        raise ModelTimeoutError(seconds) from None
