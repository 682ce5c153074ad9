"""The figures of a report, before it is written down."""

from collections.abc import Mapping
from typing import NamedTuple

from langchain_groundedness.evals.statistics import Estimate, LabelAgreement, PairedComparison

__all__ = [
    "ComparedMetric",
    "MetricFigures",
    "Reason",
    "RunComparison",
    "SliceGroup",
    "SlicedColumn",
]


class Reason(NamedTuple):
    """Why rows have no score."""

    status: str
    """`failed` or `skipped`."""
    text: str
    rows: int


class MetricFigures(NamedTuple):
    """What a metric says about a run."""

    key: str
    scores: tuple[float, ...]
    estimate: Estimate | None
    """`None` if no row has a score."""
    failed: int
    skipped: int
    reasons: tuple[Reason, ...]
    """The commonest first."""
    agreement: LabelAgreement | None
    """With the labels of people; `None` unless some say right and some wrong, and for scores that
    go beyond 0 to 1."""

    @property
    def bounds(self) -> tuple[float, float]:
        """Between which values it is drawn: 0 and 1, unless a score lies outside."""
        return min((0.0, *self.scores)), max((1.0, *self.scores))


class SliceGroup(NamedTuple):
    """The rows with the same value of a column."""

    name: str
    is_value: bool
    """False for those without a value, and for the rest."""
    rows: int
    metrics: Mapping[str, Estimate]
    """By key; those with scores only."""


class SlicedColumn(NamedTuple):
    """A run by one column of its data set."""

    column: str
    groups: tuple[SliceGroup, ...]
    """The largest first."""


class ComparedMetric(NamedTuple):
    """A metric in both runs."""

    key: str
    found: PairedComparison
    lost: int
    """Rows that had a score, and have none now."""


class RunComparison(NamedTuple):
    """A run beside its baseline."""

    baseline: str
    """Its name."""
    metrics: tuple[ComparedMetric, ...]
    """Those that both have."""
    both: int
    """Rows that are in both: the same id, and the same question."""
    only_now: int
    only_before: int
    other_question: int
    """Rows with the same id in which something else is asked."""
    other_answer: int
    """Rows that are in both, to which another answer was given, or which had other documents."""
