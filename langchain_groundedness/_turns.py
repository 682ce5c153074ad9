"""Turns: checks that are begun at the same moment begin one after the other, with time in between.

Each step of a check takes a millisecond or less of the event loop, but hundreds that are due at
once take it for as long as all of them together. A check has some dozens of steps: if the next one
begins only when the event loop has come by that often, few steps are due at once. All together
take no longer: a loop that is busy with checks does the same work, and an idle one comes by in no
time.
"""

import asyncio
import weakref
from collections import deque

__all__ = ["turn"]

_ROUNDS = 32
"""Of the event loop, from one beginning to the next. 500 checks with a chat model at once made it
wait for 60 ms at the 99th percentile with 1 round, 22 with 4, 18 with 8, 12 with 16 and more."""

_LONGEST_S = 0.02
"""After so long the next one begins in any case: others may keep the loop busy for ever."""


async def turn() -> None:
    """Wait until it is this task's turn to begin a check; alone, it need not wait."""
    loop = asyncio.get_running_loop()
    if loop not in _TURNS:
        _TURNS[loop] = _Turns()
    await _TURNS[loop].take(loop)


class _Turns:
    """Those of one event loop."""

    def __init__(self) -> None:
        self._taken = False
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def take(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._taken:
            mine: asyncio.Future[None] = loop.create_future()
            self._waiting.append(mine)
            await mine
        else:
            self._begin(loop)

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        self._taken = True
        loop.call_soon(self._next, loop, _ROUNDS, loop.time() + _LONGEST_S)

    def _next(self, loop: asyncio.AbstractEventLoop, rounds: int, latest: float) -> None:
        while self._waiting and self._waiting[0].done():  # it was cancelled
            self._waiting.popleft()
        if not self._waiting:
            self._taken = False
        elif rounds > 1 and loop.time() < latest:
            loop.call_soon(self._next, loop, rounds - 1, latest)
        else:
            self._waiting.popleft().set_result(None)
            self._begin(loop)


_TURNS: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Turns] = weakref.WeakKeyDictionary()
