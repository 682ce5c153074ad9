"""The mean of scores, and how far it may be from that of all rows there could be."""

import math
from collections.abc import Iterable, Iterator, Sequence
from os import PathLike
from statistics import NormalDist
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from langchain_groundedness.calibration.threshold_choice import numbered, wilson
from langchain_groundedness.evals.readers import listed
from langchain_groundedness.evals.values import EvaluatedRow, EvaluationRun
from langchain_groundedness.exceptions import ConfigurationError

__all__ = [
    "Estimate",
    "Grouped",
    "estimate_mean",
    "require_column",
    "require_metric",
    "require_run",
    "require_share",
    "rows_of",
]

Floats = NDArray[np.float64]

Method = Literal["bca", "percentile"]

_NORMAL = NormalDist()

_MOST_DRAWN = 50_000
"""Groups from which on the distribution of a mean is normal for all purposes."""

_DRAWN_AT_ONCE = 2_000_000

_FEWEST_RESAMPLES = 100

_SLACK = 1e-12


class Estimate(BaseModel):
    """A mean with its interval."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    n: int = Field(ge=1)
    """Scores that it is the mean of."""
    groups: int = Field(ge=1)
    """How many of them are independent of each other."""
    mean: float = Field(allow_inf_nan=False)
    low: float | None = Field(default=None, allow_inf_nan=False)
    """Lower end of the interval; `None` with a single group, which tells nothing about others."""
    high: float | None = Field(default=None, allow_inf_nan=False)
    confidence: float = Field(default=0.95, gt=0, lt=1)
    """Share of intervals made like this one that hold the true mean."""


def estimate_mean(  # noqa: PLR0913  (options by keyword)
    values: Sequence[float],
    *,
    groups: Sequence[str] | None = None,
    confidence: float = 0.95,
    method: Method = "bca",
    resamples: int = 2000,
    seed: int = 0,
) -> Estimate | None:
    """Estimate a mean, and between what it lies, by drawing the rows again with replacement.

    Rows that share their documents are no independent evidence: name their group, and whole groups
    are drawn (Davison and Hinkley 1997, section 3.8); the mean stays that of the rows. The interval
    is `bca`, corrected for bias and acceleration (Efron 1987; the acceleration by leaving out one
    group at a time), or `percentile` (Efron and Tibshirani 1993, chapter 13). Of zeros and ones it
    is at least Wilson's interval (1927), since drawing sees no doubt where all rows are the same.
    From 50,000 groups on, it is the normal interval with the standard error of a ratio
    (Cochran 1977, section 2.11), which is the same by then, and takes no draws.

    Args:
        values: The scores, finite, in any order: it makes no difference.
        groups: The group of each; an empty one stands alone. By default, all do.
        confidence: Share of such intervals that are to hold the true mean, between 0 and 1.
        method: Which interval.
        resamples: How often to draw, 100 at least.
        seed: Of the draws: the same scores give the same interval.

    Returns:
        The estimate; `None` without scores.

    Raises:
        ConfigurationError: An option has a value that cannot work, or a score is not finite.

    Example:
        >>> found = estimate_mean([0.0, 0.5, 1.0, 1.0])
        >>> found.mean, found.low < 0.625 < found.high
        (0.625, True)
    """
    require_share("confidence", confidence)
    if method not in {"bca", "percentile"}:
        msg = f"method must be 'bca' or 'percentile', got {method!r}"
        raise ConfigurationError(msg)
    require_resamples(resamples)
    found = Grouped.of(values, groups)
    if found is None:
        return None
    low, high = _interval(found, confidence, method, resamples, seed)
    return Estimate(
        n=int(found.counts.sum()),
        groups=len(found.sums),
        mean=found.mean,
        low=low,
        high=high,
        confidence=confidence,
    )


def require_share(name: str, value: float) -> None:
    """Refuse a number that is not between 0 and 1."""
    if isinstance(value, bool) or not 0 < value < 1:
        msg = f"{name} must be between 0 and 1, got {value!r}"
        raise ConfigurationError(msg)


def require_resamples(number: int) -> None:
    """Refuse too few draws."""
    if isinstance(number, bool) or not isinstance(number, int) or number < _FEWEST_RESAMPLES:
        msg = f"resamples must be {_FEWEST_RESAMPLES} at least, got {number!r}"
        raise ConfigurationError(msg)


class Grouped(NamedTuple):
    """Scores summed up by group, in an order that does not depend on that of the rows."""

    sums: Floats
    counts: Floats
    is_binary: bool
    """Whether every score is 0 or 1."""

    @classmethod
    def of(cls, values: Sequence[float], groups: Sequence[str] | None) -> "Grouped | None":
        """Sum up scores."""
        scores = np.array(values, dtype=np.float64)
        if scores.ndim != 1 or not np.isfinite(scores).all():
            msg = "values must be a list of finite numbers: leave out what has no score"
            raise ConfigurationError(msg)
        if groups is not None and len(groups) != len(scores):
            msg = f"groups must be one per value: {len(groups)} of them for {len(scores)} values"
            raise ConfigurationError(msg)
        if not len(scores):
            return None
        binary = bool(np.isin(scores, (0.0, 1.0)).all())
        if groups is None:
            return cls(np.sort(scores), np.ones(len(scores)), binary)
        numbers = numbered(list(groups))
        sums = np.zeros(int(numbers.max()) + 1)
        # Sorted before they are added, so that rounding does not depend on the order either.
        order = np.argsort(scores, kind="stable")
        np.add.at(sums, numbers[order], scores[order])
        counts = np.bincount(numbers).astype(np.float64)
        order = np.lexsort((counts, sums))
        return cls(sums[order], counts[order], binary)

    @property
    def mean(self) -> float:
        """The mean of all scores."""
        return float(math.fsum(self.sums) / self.counts.sum())


def _interval(
    found: Grouped, confidence: float, method: Method, resamples: int, seed: int
) -> tuple[float | None, float | None]:
    number = len(found.sums)
    if number == 1:
        return None, None
    tail = (1 - confidence) / 2
    if number >= _MOST_DRAWN:
        reach = -_NORMAL.inv_cdf(tail) * _standard_error(found)
        low, high = found.mean - reach, found.mean + reach
    else:
        drawn = np.concatenate(list(_drawn_means(found, resamples, seed)))
        ends = _corrected(found, drawn, tail) if method == "bca" else (tail, 1 - tail)
        low, high = np.quantile(drawn, ends).tolist()
    if found.is_binary:
        sure = wilson(round(found.mean * number), number, z=-_NORMAL.inv_cdf(tail))
        low, high = min(low, sure[0]), max(high, sure[1])
    return min(low, found.mean), max(high, found.mean)


def _standard_error(found: Grouped) -> float:
    number = len(found.sums)
    residuals = found.sums - found.mean * found.counts
    variance = number / (number - 1) * float(residuals @ residuals)
    return math.sqrt(variance) / float(found.counts.sum())


def _drawn_means(found: Grouped, resamples: int, seed: int) -> Iterator[Floats]:
    chance = np.random.default_rng(seed)
    number = len(found.sums)
    at_once = max(_DRAWN_AT_ONCE // number, 1)
    for first in range(0, resamples, at_once):
        places = chance.integers(number, size=(min(at_once, resamples - first), number))
        yield found.sums[places].sum(axis=1) / found.counts[places].sum(axis=1)


def _corrected(found: Grouped, drawn: Floats, tail: float) -> tuple[float, float]:
    """Give which quantiles of the draws are the ends: equations 6.8 and 7.3 of Efron (1987)."""
    mean = found.mean
    slack = _SLACK * max(abs(mean), 1.0)
    below = float(np.mean((drawn < mean - slack) + 0.5 * (np.abs(drawn - mean) <= slack)))
    if not 0 < below < 1:
        return tail, 1 - tail
    bias = _NORMAL.inv_cdf(below)
    without = (found.sums.sum() - found.sums) / (found.counts.sum() - found.counts)
    away = without.mean() - without
    spread = float((away**2).sum())
    acceleration = float((away**3).sum()) / (6 * spread**1.5) if spread > _SLACK**2 else 0.0
    ends = []
    for share in (tail, 1 - tail):
        shifted = bias + _NORMAL.inv_cdf(share)
        stretch = 1 - acceleration * shifted
        if stretch <= 0:
            return tail, 1 - tail
        ends.append(_NORMAL.cdf(bias + shifted / stretch))
    return ends[0], ends[1]


def rows_of(given: EvaluationRun | Iterable[EvaluatedRow]) -> list[EvaluatedRow]:
    """Take the rows of a run."""
    if isinstance(given, EvaluationRun):
        return list(given.rows)
    if isinstance(given, str) or not isinstance(given, Iterable):
        require_run(given, "rows")
    rows = list(given)
    wrong = next((each for each in rows if not isinstance(each, EvaluatedRow)), None)
    if wrong is not None:
        msg = f"an EvaluationRun or its rows are needed, got a list of {type(wrong).__name__}"
        raise ConfigurationError(msg)
    return rows


def require_run(given: object, name: str) -> None:
    """Refuse what is no run.

    Args:
        given: What was given.
        name: The argument.

    Raises:
        ConfigurationError: It is no run; of a file name, the message says how to read it.
    """
    if isinstance(given, EvaluationRun):
        return
    is_path = isinstance(given, str | PathLike)
    advice = "; load_run reads one from its file" if is_path else ""
    msg = f"{name}: an EvaluationRun is needed, got {type(given).__name__}{advice}"
    raise ConfigurationError(msg)


def require_metric(rows: Sequence[EvaluatedRow], key: str, which: str = "") -> None:
    """Refuse a metric that no row has."""
    known = {score.key for row in rows for score in row.scores}
    if rows and key not in known:
        run = f"the {which} run" if which else "the run"
        msg = f"{run} has no metric {key!r}; it has: {', '.join(sorted(known)) or 'none'}"
        raise ConfigurationError(msg)


def require_column(rows: Sequence[EvaluatedRow], column: str) -> None:
    """Refuse a column that no row has."""
    known = {name for row in rows for name in row.row.metadata}
    if rows and column not in known:
        msg = f"the rows have no column {column!r}; they have {listed(tuple(sorted(known)))}"
        raise ConfigurationError(msg)
