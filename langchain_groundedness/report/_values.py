"""The figures of a report, before it is written down."""

from collections.abc import Mapping
from typing import NamedTuple

__all__ = [
    "ComparedMetric",
    "Difference",
    "Estimate",
    "MetricFigures",
    "Reason",
    "RunComparison",
    "Slice",
    "SliceGroup",
]


class Estimate(NamedTuple):
    """A mean, and what it could be by chance."""

    mean: float
    low: float
    """Lower end of the 95 % interval."""
    high: float
    rows: int
    """How many it is the mean of."""


class Difference(NamedTuple):
    """How much a mean has changed, over the rows that have a score in both runs."""

    mean: float
    low: float
    high: float
    rows: int
    p_value: float
    """How often chance alone makes a change as large."""


class Reason(NamedTuple):
    """Why rows have no score."""

    status: str
    """`failed` or `skipped`."""
    text: str
    rows: int


class MetricFigures(NamedTuple):
    """What a metric says about a run."""

    key: str
    about: str
    """What has measured it: the class of the evaluator."""
    scores: tuple[float, ...]
    estimate: Estimate | None
    """`None` if no row has a score."""
    failed: int
    skipped: int
    reasons: tuple[Reason, ...]
    """The commonest first."""

    @property
    def bounds(self) -> tuple[float, float]:
        """Between which values it is drawn: 0 and 1, unless a score lies outside."""
        return min((0.0, *self.scores)), max((1.0, *self.scores))


class SliceGroup(NamedTuple):
    """The rows with the same value of a column."""

    name: str
    rows: int
    metrics: Mapping[str, Estimate]
    """By key; those with scores only."""


class Slice(NamedTuple):
    """A run by one column of its data set."""

    column: str
    groups: tuple[SliceGroup, ...]
    """The largest first."""


class ComparedMetric(NamedTuple):
    """A metric before and now."""

    key: str
    before: Estimate | None
    """Over all rows of the baseline that have a score."""
    now: Estimate | None
    difference: Difference | None
    """Over the rows that have a score in both; `None` if none has."""
    higher: int
    lower: int
    same: int
    lost: int
    """Rows that had a score, and have none now."""
    gained: int


class RunComparison(NamedTuple):
    """A run beside its baseline."""

    baseline: str
    """Its name."""
    metrics: tuple[ComparedMetric, ...]
    both: int
    """Rows that are in both, by their ids."""
    only_now: int
    only_before: int
    same_data: bool | None
    """Whether both say that their data sets are the same; `None` if one of them does not say."""
