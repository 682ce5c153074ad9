"""Percentiles of any number of durations in little memory; pure."""

import math

__all__ = ["Latency"]

_GROWTH = 1.02
"""Each bucket is so much wider than the one before: percentiles are at most 1 % off."""
_LEAST = 1e-3


class Latency:
    """Counts durations in buckets that grow with them (as DDSketch, Masson et al. 2019).

    Example:
        >>> seen = Latency()
        >>> for number in range(1, 101):
        ...     seen.add(float(number))
        >>> 49.5 <= seen.percentile(0.5) <= 50.5
        True
    """

    def __init__(self) -> None:
        """Begin with none."""
        self.count = 0
        self._buckets: dict[int, int] = {}

    def add(self, duration: float) -> None:
        """Count one.

        Args:
            duration: In any unit; what is no positive number counts as almost nothing.
        """
        value = duration if math.isfinite(duration) and duration > _LEAST else _LEAST
        place = math.ceil(math.log(value, _GROWTH))
        self._buckets[place] = self._buckets.get(place, 0) + 1
        self.count += 1

    def percentile(self, share: float) -> float | None:
        """Give the duration that so many stay at or below.

        Args:
            share: Their share, 0 to 1.

        Returns:
            The duration; `None` without any.
        """
        wanted, seen = share * self.count, 0
        for place in sorted(self._buckets):
            seen += self._buckets[place]
            if seen >= wanted:
                return 2 * _GROWTH**place / (_GROWTH + 1)
        return None
