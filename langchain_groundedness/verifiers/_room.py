"""Room: how many tasks of an event loop are examined and read at a time; the others wait.

All that is known of a claim is kept until the encoder has read it. The encoder is by far the
slowest part, and fully busy with what a few dozen answers give it: to examine hundreds before it
comes to them only fills memory, and gives the garbage collector more to look at.
"""

import asyncio
import weakref

__all__ = ["room"]

_TASKS = 32
"""500 checks of five claims at once kept the event loop waiting for 62 to 71 ms at the 99th
percentile with no limit, 60 to 73 with 64, 25 to 34 with 32, in as much time."""


def room() -> asyncio.Semaphore:
    """Give what a task enters while it is judged, in the event loop that runs."""
    loop = asyncio.get_running_loop()
    if loop not in _ROOMS:
        _ROOMS[loop] = asyncio.Semaphore(_TASKS)
    return _ROOMS[loop]


_ROOMS: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = (
    weakref.WeakKeyDictionary()
)
