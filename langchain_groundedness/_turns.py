"""Turns: of checks that are begun at the same moment, one begins each time the event loop comes by.

Each step of a check takes a millisecond or less of the event loop, but hundreds that are due at
once take it for as long as all of them together. Begun one after the other, with everything else
that is due in between, they stay apart.
"""

import asyncio
import weakref
from collections import deque

__all__ = ["turn"]


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
            self._taken = True
            loop.call_soon(self._next, loop)

    def _next(self, loop: asyncio.AbstractEventLoop) -> None:
        while self._waiting:
            mine = self._waiting.popleft()
            if not mine.done():  # else it was cancelled
                mine.set_result(None)
                loop.call_soon(self._next, loop)
                return
        self._taken = False


_TURNS: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Turns] = weakref.WeakKeyDictionary()
