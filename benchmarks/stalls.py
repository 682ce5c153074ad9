"""How long an event loop keeps others waiting, and how much memory there is: for `load.py`.

A task sleeps two milliseconds again and again. Whenever it comes back late, whatever else had been
due would have come as late. The percentiles are over time, not over sleeps: `p99` is what somebody
who comes at any moment waits at most, but for one moment in a hundred. One stall of a second counts
as a second, though it delays a single sleep. Delays are counted in classes of one percent: a list
of them would grow by more than the memory that is measured beside it.

On a machine that other programs use, a loop comes back late without any doing of its own. Of each
delay, only so much is counted as `own` as the process computed meanwhile.
"""

import asyncio
import gc
import json
import math
import subprocess
import sys
from array import array
from asyncio.events import Handle
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from resource import getpagesize
from threading import get_ident
from time import perf_counter, process_time, thread_time
from typing import Any, Self

__all__ = ["Control", "Delays", "Ticker", "longest_step", "resident_mib"]

_SLEEP_S = 0.002
_LEAST_S, _MOST_S = 1e-6, 1000.0
_STEP = math.log(1.01)


class Delays:
    """How late each of many sleeps ended, in a memory of fixed size."""

    def __init__(self) -> None:
        """Begin with none."""
        size = math.ceil(math.log(_MOST_S / _LEAST_S) / _STEP) + 1
        self._counts = array("q", bytes(8 * size))
        self._sums = array("d", bytes(8 * size))
        self.longest = 0.0
        """In seconds."""

    def note(self, late: float) -> None:
        """Count a delay, in seconds."""
        place = math.ceil(math.log(min(max(late, _LEAST_S), _MOST_S) / _LEAST_S) / _STEP)
        self._counts[place] += 1
        self._sums[place] += late
        self.longest = max(self.longest, late)

    def wait_at(self, share: float) -> float:
        """Give the wait, in milliseconds, that is not exceeded at a share of all moments.

        Args:
            share: The share of the moments, 0 to 1.
        """
        over = (1 - share) * (sum(self._sums) + _SLEEP_S * sum(self._counts))
        count, total = 0, 0.0  # of the delays of this class and longer ones
        for place in range(len(self._counts) - 1, -1, -1):
            count, total = count + self._counts[place], total + self._sums[place]
            bound = _LEAST_S * math.exp(_STEP * (place - 1))  # of what is shorter
            if total - bound * count > over:
                return 1000 * (total - over) / count
        return 0.0


class Ticker:
    """Notes how late the loop comes back, while it is entered."""

    def __init__(self) -> None:
        """Begin with nothing noted."""
        self.late = Delays()
        """By the clock."""
        self.own = Delays()
        """The part of it that this process, all its threads together, spent computing."""
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        """Start to note."""
        self._task = asyncio.create_task(self._tick())
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _tick(self) -> None:
        while True:
            begun, spent = perf_counter(), process_time()
            await asyncio.sleep(_SLEEP_S)
            late = max(0.0, perf_counter() - begun - _SLEEP_S)
            self.late.note(late)
            self.own.note(min(late, process_time() - spent))


@contextmanager
def longest_step() -> Iterator[list[float]]:
    """Note the most processor time of a step of the event loop in ms, without the collector's."""
    longest, collecting = [0.0], [0.0]
    original = Handle._run  # noqa: SLF001  (the one place where all steps come by)

    def timed(handle: Any) -> None:
        collecting[0], start = 0.0, thread_time()
        original(handle)
        longest[0] = max(longest[0], 1000 * (thread_time() - start - collecting[0]))

    here = get_ident()

    def note(phase: str, _: Any) -> None:
        if get_ident() != here:
            return  # another thread's
        collecting[0] += thread_time() if phase == "stop" else -thread_time()

    Handle._run = timed  # type: ignore[assignment,method-assign]  # noqa: SLF001  (as above)
    gc.callbacks.append(note)
    try:
        yield longest
    finally:
        gc.callbacks.remove(note)
        Handle._run = original  # type: ignore[method-assign]  # noqa: SLF001  (as above)


class Control:
    """A loop without any load, in a process of its own, at the same time: what the machine adds."""

    def __enter__(self) -> Self:
        """Start it."""
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.p99 = 0.0
        return self

    def __exit__(self, *_: object) -> None:
        """Stop it, and read what it noted."""
        self.p99 = json.loads(self._process.communicate()[0] or "0")


def resident_mib() -> float:
    """Read how much memory this process has; Linux says it here."""
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * getpagesize() / 2**20


async def _idle() -> None:
    """Tick until the standard input is closed."""
    async with Ticker() as ticker:
        await asyncio.to_thread(sys.stdin.read)
    print(json.dumps(ticker.late.wait_at(0.99)))


if __name__ == "__main__":
    asyncio.run(_idle())
