"""Bounds how many calls of all rows are under way, so that a row that waits holds up no other."""

import asyncio
from collections import deque
from threading import Lock
from typing import Any, Self, TypeVar

from langchain_core.runnables import Runnable, RunnableConfig
from typing_extensions import override

from langchain_groundedness._flow import Flow, ModelCall
from langchain_groundedness._patience import awithin, within

__all__ = ["Gate"]

_ROWS_PER_CALL = 2
"""Rows that have begun for each call that may be under way: one is asking, one is next."""

ResultT = TypeVar("ResultT")


class Gate:
    """Lets so many calls through at a time; belongs to one run over many rows.

    Calls go through in the order in which they are asked for. If rows were bounded and not their
    calls, the last rows would wait until all calls of a row before them were made: 20 rows of two
    calls, 16 at a time, would take four rounds, not three.
    """

    def __init__(self, calls: int) -> None:
        """Open it.

        Args:
            calls: How many may be under way.
        """
        self.calls = calls
        self._threads = _Turnstile(calls)
        self._tasks = asyncio.Semaphore(calls)

    @property
    def rows(self) -> int:
        """How many rows to begin at a time; no more, so that they end one after the other."""
        return _ROWS_PER_CALL * self.calls

    @property
    def waiting(self) -> int:
        """How many threads wait to be let through."""
        return len(self._threads.waiting)

    def guard(self, flow: Flow[ResultT]) -> Flow[ResultT]:
        """Let the calls of a flow through when there is room.

        Args:
            flow: The flow.

        Returns:
            What the flow returns.
        """
        try:
            call = next(flow)
            while True:
                try:
                    reply = yield ModelCall(_Guarded(call, self), call.input)
                except Exception as exc:  # noqa: BLE001  (the flow decides what it means)
                    call = flow.throw(exc)
                else:
                    call = flow.send(reply)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]  # untyped


class _Turnstile:
    """A semaphore for threads that lets them through in the order in which they came.

    One of the standard library would let the row that has just made a call make its next one, and
    rows that wait for their first would come last.
    """

    def __init__(self, free: int) -> None:
        self._lock = Lock()
        self._free = free
        self.waiting: deque[Lock] = deque()

    def __enter__(self) -> Self:
        turn = Lock()
        turn.acquire()
        with self._lock:
            if self._free:
                self._free -= 1
                return self
            self.waiting.append(turn)
        turn.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            if self.waiting:
                self.waiting.popleft().release()
            else:
                self._free += 1


class _Guarded(Runnable[Any, Any]):
    """A call behind a gate, whose time begins when it is let through; leaves no run of its own."""

    def __init__(self, call: ModelCall, gate: Gate) -> None:
        self._call = call
        self._gate = gate

    @override
    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Any:
        with self._gate._threads:  # noqa: SLF001  (both are one thing)
            return within(self._call.seconds, self._call.bound("invoke", config or {}))

    @override
    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Any:
        async with self._gate._tasks:  # noqa: SLF001  (as above)
            return await awithin(self._call.seconds, self._call.bound("ainvoke", config or {}))
