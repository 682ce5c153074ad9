"""Delivers a handler's findings: to functions, through iterators, and as results by run id."""

import asyncio
import inspect
import logging
import threading
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, Literal, TypeAlias
from uuid import UUID

from langchain_core.runnables import run_in_executor
from typing_extensions import override

from langchain_groundedness.types import ClaimVerdict, FrozenModel, GroundednessResult

__all__ = ["Channel", "GroundednessEvent", "Listener", "RecentResults"]

logger = logging.getLogger("langchain_groundedness")


class GroundednessEvent(FrozenModel):
    """An event about one root run.

    Each root run produces any number of `verdict` events, each as soon as it is final, then one
    `result`, or one `abandoned` if the run ended without an answer (an error, a cancellation, a
    consumer that stopped reading, an agent that was interrupted). A verdict on a text that was
    still being written is `retracted` if that text did not become the answer, for example because
    the agent called a tool.

    Example:
        >>> from uuid import UUID
        >>> GroundednessEvent(kind="abandoned", run_id=UUID(int=1)).is_last
        True
    """

    kind: Literal["verdict", "retracted", "result", "abandoned"]
    run_id: UUID
    """The root run: the chain or agent, or the inner runnable with the handler."""
    verdict: ClaimVerdict | None = None
    """Set for `verdict` and `retracted`."""
    result: GroundednessResult | None = None
    """Set for `result`."""

    @property
    def is_last(self) -> bool:
        """Whether no other event of this run follows."""
        return self.kind in ("result", "abandoned")


Listener: TypeAlias = Callable[[GroundednessEvent], Awaitable[None] | None]


class RecentResults(Mapping[UUID, GroundednessResult]):
    """The latest results by root run id, in order; the oldest are dropped first.

    Safe to read while other threads add to it.
    """

    def __init__(self, most: int) -> None:
        """Start empty."""
        self._most = most
        self._kept: OrderedDict[UUID, GroundednessResult] = OrderedDict()
        self._lock = threading.RLock()

    def add(self, run_id: UUID, result: GroundednessResult) -> None:
        """Add a result, and drop the oldest beyond the limit."""
        with self._lock:
            self._kept[run_id] = result
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)

    @override
    def __getitem__(self, run_id: UUID) -> GroundednessResult:
        return self._kept[run_id]

    @override
    def __iter__(self) -> Iterator[UUID]:
        with self._lock:
            return iter(list(self._kept))

    @override
    def __len__(self) -> int:
        return len(self._kept)


class Channel:
    """Publishes events to functions and iterators, and keeps the latest for late iterators.

    Each iterator reads all kept events and then new ones, independently of others. One that falls
    behind by more than is kept misses the oldest events, which is logged.
    """

    def __init__(
        self, *, on_verdict: Listener | None, on_event: Listener | None, max_events: int
    ) -> None:
        """Start without events."""
        self._on_verdict = on_verdict
        self._on_event = on_event
        self._kept: deque[GroundednessEvent] = deque(maxlen=max_events)
        self._count = 0
        self._closed = False
        self._changed = threading.Condition()
        self._wakers: set[Callable[[], Any]] = set()

    def close(self) -> None:
        """End the iterators once they have read everything."""
        with self._changed:
            self._closed = True
            self._wake()

    def publish(
        self, event: GroundednessEvent, *, loop: asyncio.AbstractEventLoop | None = None
    ) -> None:
        """Publish an event from a thread, and wait for the called functions."""
        self.keep(event)
        for listener in self._listeners(event):
            try:
                outcome = listener(event)
                if inspect.isawaitable(outcome):
                    _run(outcome, loop)
            except Exception as exc:  # noqa: BLE001  (a listener never breaks the user's chain)
                _log_listener_error(exc)

    async def apublish(self, event: GroundednessEvent) -> None:
        """Publish an event on an event loop, and wait for the called functions."""
        self.keep(event)
        for listener in self._listeners(event):
            try:
                outcome: Any
                if inspect.iscoroutinefunction(listener):
                    outcome = listener(event)
                else:
                    outcome = await run_in_executor(None, listener, event)
                if inspect.isawaitable(outcome):
                    await outcome
            except Exception as exc:  # noqa: BLE001  (a listener never breaks the user's chain)
                _log_listener_error(exc)

    def events(self, run_id: UUID | None) -> Iterator[GroundednessEvent]:
        """Read the events, and wait for more."""
        place, ended = 0, False
        while not ended:
            with self._changed:
                while self._count <= place and not self._closed:
                    self._changed.wait()
                place, new, ended = self._since(place, run_id)
            yield from new

    async def aevents(self, run_id: UUID | None) -> AsyncIterator[GroundednessEvent]:
        """Read the events, and wait for more without blocking the event loop."""
        loop, news = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            loop.call_soon_threadsafe(news.set)

        place, ended = 0, False
        with self._changed:
            self._wakers.add(wake)
        try:
            while not ended:
                news.clear()
                with self._changed:
                    place, new, ended = self._since(place, run_id)
                for event in new:
                    yield event
                if not new and not ended:
                    await news.wait()
        finally:
            with self._changed:
                self._wakers.discard(wake)

    def _since(self, place: int, run_id: UUID | None) -> tuple[int, list[GroundednessEvent], bool]:
        """Return the next place, the unread events, and whether no other follows."""
        missed = self._count - len(self._kept) - place
        if missed > 0 and place > 0:
            logger.warning("an iterator over events was too slow and missed %d events", missed)
        unread = min(self._count - place, len(self._kept))
        new = list(self._kept)[len(self._kept) - unread :]
        if run_id is not None:
            new = [event for event in new if event.run_id == run_id]
        ended = run_id is not None and any(event.is_last for event in new)
        return self._count, new, ended or self._closed

    def keep(self, event: GroundednessEvent) -> None:
        """Keep an event for the iterators without calling any function."""
        with self._changed:
            self._kept.append(event)
            self._count += 1
            self._wake()

    def _wake(self) -> None:
        self._changed.notify_all()
        for wake in list(self._wakers):
            try:
                wake()
            except RuntimeError:  # its loop was closed meanwhile
                self._wakers.discard(wake)

    def _listeners(self, event: GroundednessEvent) -> Iterator[Listener]:
        if self._on_verdict is not None and event.kind == "verdict":
            yield self._on_verdict
        if self._on_event is not None:
            yield self._on_event


def _log_listener_error(error: Exception) -> None:
    logger.warning("a function called with groundedness events raised %s", type(error).__name__)


def _run(outcome: Awaitable[None], loop: asyncio.AbstractEventLoop | None) -> None:
    """Await something from a thread: on a running loop if given, else on a new one."""

    async def wait() -> None:
        await outcome

    if loop is not None and loop.is_running():
        asyncio.run_coroutine_threadsafe(wait(), loop).result()
        return
    with ThreadPoolExecutor(1) as pool:
        pool.submit(copy_context().run, asyncio.run, wait()).result()
