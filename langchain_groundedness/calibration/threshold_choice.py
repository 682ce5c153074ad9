"""Chooses a threshold on scored samples, and estimates its performance on others; pure."""

import math
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from langchain_groundedness.exceptions import ConfigurationError

__all__ = [
    "ScoredSamples",
    "Target",
    "bootstrap_threshold",
    "choose_threshold",
    "fold_numbers",
    "group_numbers",
    "highest_share",
    "parse_target",
    "precision_and_recall",
    "roundest_between",
    "wilson_interval",
]

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Share = tuple[float | None, tuple[float, float] | None]

_Z = 1.959963984540054
"""Of the normal distribution, for 95 %."""
_TAILS = (2.5, 97.5)
_MOST_DIGITS = 12


Kind = Literal["precision", "recall"]


class Target(NamedTuple):
    """The target of a threshold."""

    kind: Kind
    value: float
    """Least share, above 0, at most 1."""


def parse_target(precision: float | None, recall: float | None, *, prefix: str = "") -> Target:
    """Read the one of two options that was given."""
    if (precision is None) == (recall is None):
        msg = f"give either {prefix}precision= or {prefix}recall="
        raise ConfigurationError(msg)
    target = Target("recall", recall) if recall is not None else Target("precision", precision or 0)
    if isinstance(target.value, bool) or not 0 < target.value <= 1:
        msg = f"{prefix}{target.kind} must be above 0 and at most 1, got {target.value!r}"
        raise ConfigurationError(msg)
    return target


class ScoredSamples(NamedTuple):
    """Samples as far as one threshold is concerned; a sample passes at or above it."""

    scores: Floats
    """One per sample; minus infinity for one that no threshold lets through."""
    good: Flags
    """Whether each should pass."""
    groups: NDArray[np.int64]
    """Samples of one group, such as the claims on one document, are not independent."""


def group_numbers(names: Sequence[str]) -> NDArray[np.int64]:
    """Number groups in the order in which they come."""
    numbers: dict[object, int] = {}
    keys = ((name or (place,)) for place, name in enumerate(names))
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)


def choose_threshold(found: ScoredSamples, target: Target) -> float | None:
    """Choose the threshold that reaches a target and costs least.

    For a precision that is, of those at which enough of what passes is good, the highest of the
    highest recall; for a recall, the highest one that lets enough of the good ones pass.
    """
    return _SortedSamples(found).choose(np.ones(len(found.scores)), target)


def highest_share(found: ScoredSamples, kind: Kind) -> float:
    """Give the highest precision or recall that any threshold reaches."""
    lined_up = _SortedSamples(found)
    return float(lined_up.shares(np.ones(len(found.scores)), kind).max(initial=0.0))


def bootstrap_threshold(
    found: ScoredSamples, target: Target, *, times: int, seed: int
) -> tuple[tuple[float, float] | None, float]:
    """Bootstrap a threshold by drawing groups with replacement."""
    lined_up = _SortedSamples(found)
    draws = _bootstrap_draws(found.groups, times, seed)
    drawn = [lined_up.choose(counts[found.groups], target) for counts in draws]
    reached = [threshold for threshold in drawn if threshold is not None]
    missed = 1 - len(reached) / max(len(drawn), 1)
    return (_interval(reached) if reached else None), missed


def fold_numbers(groups: NDArray[np.int64], *, folds: int, seed: int) -> NDArray[np.int64]:
    """Assign folds for cross-validation; samples of one group stay together."""
    order = np.random.default_rng(seed).permutation(int(groups.max(initial=-1)) + 1)
    fold_of = np.empty(len(order), dtype=np.int64)
    fold_of[order] = np.arange(len(order)) % folds
    found: NDArray[np.int64] = fold_of[groups]
    return found


def precision_and_recall(
    passes: Flags, good: Flags, groups: NDArray[np.int64], *, times: int, seed: int
) -> tuple[Share, Share]:
    """Give precision and recall with their intervals."""
    hits = (passes & good).astype(np.float64)
    columns = np.array([np.bincount(groups, weights=each) for each in (hits, passes, good)])
    drawn = [(columns @ counts).tolist() for counts in _bootstrap_draws(groups, times, seed)]
    precision = [hit / all_passing for hit, all_passing, _ in drawn if all_passing]
    recall = [hit / all_good for hit, _, all_good in drawn if all_good]
    right = int(hits.sum())
    return _share(right, int(passes.sum()), precision), _share(right, int(good.sum()), recall)


def wilson_interval(hits: int, of: int, *, z: float = _Z) -> tuple[float, float]:
    """Give the score interval of a share (Wilson 1927)."""
    share, square = hits / of, z * z
    middle = (share + square / (2 * of)) / (1 + square / of)
    wide = z * math.sqrt(share * (1 - share) / of + square / (4 * of * of)) / (1 + square / of)
    return max(middle - wide, 0.0), min(middle + wide, 1.0)


class _SortedSamples:
    """Samples in descending order of score, to choose by any weights."""

    def __init__(self, found: ScoredSamples) -> None:
        order = np.argsort(-found.scores, kind="stable")
        self._order = order[np.isfinite(found.scores[order])]
        self._scores = found.scores[self._order]
        self._good = found.good
        # The last place of each score: all samples of one score pass together.
        self._ends = np.flatnonzero(np.diff(self._scores, append=-np.inf))

    def choose(self, weights: Floats, target: Target) -> float | None:
        # Compared as shares: 0.95 * 20 exceeds 19 in floating point, but 19 / 20 is 0.95.
        enough = np.flatnonzero(self.shares(weights, target.kind) >= target.value)
        if not len(enough):
            return None
        if target.kind == "precision":  # the highest that loses none of the good ones
            recall = self.shares(weights, "recall")[enough]
            enough = enough[recall == recall[-1]]
        place = int(enough[0])
        level, *below = self._scores[self._ends[place : place + 2]].tolist()
        return roundest_between(below[0], level) if below else float(level)

    def shares(self, weights: Floats, kind: Kind) -> Floats:
        """Give precision or recall at each end, 0 where there is nothing to take a share of."""
        here = weights[self._order]
        hits = np.cumsum(here * self._good[self._order])[self._ends]
        of = np.cumsum(here)[self._ends]
        if kind == "recall":
            of = np.full_like(hits, weights @ self._good)
        return np.divide(hits, of, out=np.zeros_like(hits), where=of > 0)


def roundest_between(low: float, high: float) -> float:
    """Give the number with the fewest digits above one number and not above another."""
    middle = (low + high) / 2
    for digits in range(2, _MOST_DIGITS):
        rounded = round(middle, digits)
        if low < rounded <= high:
            return rounded
    return middle if low < middle <= high else high


def _bootstrap_draws(groups: NDArray[np.int64], times: int, seed: int) -> Iterator[Floats]:
    """Draw groups with replacement; yield how often each was drawn."""
    chance = np.random.default_rng(seed)
    number = int(groups.max(initial=-1)) + 1
    for _ in range(times if number else 0):
        drawn = chance.integers(number, size=number)
        yield np.bincount(drawn, minlength=number).astype(np.float64)


def _share(hits: int, of: int, drawn: Sequence[float]) -> Share:
    if not of:
        return None, None
    low, high = wilson_interval(hits, of)
    if drawn:
        ends = _interval(drawn)
        low, high = min(low, ends[0]), max(high, ends[1])
    return hits / of, (low, high)


def _interval(values: Sequence[float]) -> tuple[float, float]:
    low, high = np.percentile(np.array(values), _TAILS).tolist()
    return float(low), float(high)
