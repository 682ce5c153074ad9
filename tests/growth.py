"""How processor time grows with the length of an input: a ratio, however busy the machine is."""

from collections.abc import Callable
from time import process_time

__all__ = ["assert_linear"]

TIMES = 8
"""Times the input; linear work takes 8 times as long, quadratic work 64 times, cubic work 512."""
LEAST = 0.005
"""Seconds of processor time below which a ratio says nothing."""


def assert_linear(call: Callable[[int], object], largest: int, *, degree: int = 1) -> None:
    """Call with an eighth of a size, and with all of it; compare the best of a few runs.

    Where the size is bounded, the work may be of a higher degree.
    """
    call(largest // TIMES)
    small, large = [], []
    for _ in range(5):
        small.append(seconds(call, largest // TIMES))
        large.append(seconds(call, largest))
        if min(large) <= 3 * TIMES**degree * max(min(small), LEAST):
            return
    raise AssertionError(small, large)


def seconds(call: Callable[[int], object], size: int) -> float:
    begun = process_time()
    call(size)
    return process_time() - begun
