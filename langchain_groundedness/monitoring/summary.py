"""What an audit log says about a system over time: how much is supported, decided, overruled."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Annotated

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from langchain_groundedness.audit import AuditRecord
from langchain_groundedness.exceptions import ConfigurationError
from langchain_groundedness.monitoring.page import Row, page
from langchain_groundedness.types import Action, VerdictLabel

__all__ = ["AuditSummary", "GroupFigures", "Latency", "summarize"]

Whole = Annotated[int, Field(ge=0)]

_MOST_GROUPS = 1000

_OTHERS = "(others)"

_UNKNOWN = "(unknown)"

_PERCENTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class GroupFigures(_Part):
    """What happened on a day, with a model, or to questions of a class."""

    name: str
    answers: Whole
    claims: dict[VerdictLabel, int]
    """How many claims were found to be what."""
    supported_rate: float | None
    """Share of the checked claims that are supported; `None` if none was checked."""
    decisions: dict[Action, int]
    approved: Whole
    edited: Whole
    rejected: Whole
    waiting: Whole
    """How many answers wait for a reviewer."""
    overruled: Whole
    """How often a reviewer has let out what was to be blocked, or withheld or edited what was to
    be let out."""
    check_ms: dict[str, float]
    """Percentiles (`p50`, `p95`, `p99`) of the time that a check took, in milliseconds, at most
    1 % off; empty if no time is known."""


class AuditSummary(_Part):
    """Figures of all records, and by day (in UTC), model and query class.

    `summarize` makes one, `langchain-groundedness stats` shows one.
    """

    first: AwareDatetime | None
    last: AwareDatetime | None
    total: GroupFigures
    days: tuple[GroupFigures, ...]
    """In order."""
    models: tuple[GroupFigures, ...]
    """By chat model, or by the class of the verifier; the most frequent first."""
    query_classes: tuple[GroupFigures, ...]
    """The most frequent first."""

    def to_html(self, *, title: str = "Groundedness") -> str:
        """Draw a page: tables and plots, in one file that loads nothing and runs nothing.

        Args:
            title: Its heading.

        Returns:
            The text of an HTML file.
        """
        tables = {
            "Day": self.days,
            "Model": self.models,
            "Query class": self.query_classes,
        }
        rows = {name: list(map(_row, groups)) for name, groups in tables.items()}
        return page(title, _row(self.total), rows)


def summarize(records: Iterable[AuditRecord]) -> AuditSummary:
    """Sum up audit records; they may be more than the memory holds.

    Args:
        records: The records, in any order.

    Returns:
        The figures.

    Raises:
        ConfigurationError: One of them is something else.

    Example:
        >>> from langchain_groundedness import Decision
        >>> record = AuditRecord(verdict="no_claims", decision=Decision(action="pass"))
        >>> summarize([record]).total.decisions["pass"]
        1
    """
    first: datetime | None = None
    last: datetime | None = None
    total, days, models, classes = _Tally(), _Tallies(), _Tallies(), _Tallies()
    for record in records:
        if not isinstance(record, AuditRecord):
            kind = type(record).__name__
            msg = f"records must be AuditRecords, such as log.records() gives, got {kind}"
            raise ConfigurationError(msg)
        first = record.time if first is None else min(first, record.time)
        last = record.time if last is None else max(last, record.time)
        model = record.versions.model or record.versions.verifier or _UNKNOWN
        total.add(record)
        days.of(record.time.astimezone(UTC).date().isoformat()).add(record)
        models.of(model).add(record)
        classes.of(record.query_class or _UNKNOWN).add(record)
    return AuditSummary(
        first=first,
        last=last,
        total=total.figures("all"),
        days=tuple(sorted(days.figures(), key=lambda group: group.name)),
        models=tuple(sorted(models.figures(), key=_frequent_first)),
        query_classes=tuple(sorted(classes.figures(), key=_frequent_first)),
    )


class _Tally:
    """Counts what happened in one group."""

    def __init__(self) -> None:
        self._answers = self._overruled = self._waiting = 0
        self._claims: Counter[VerdictLabel] = Counter()
        self._decisions: Counter[Action] = Counter()
        self._reviews: Counter[str] = Counter()
        self._latency = Latency()

    def add(self, record: AuditRecord) -> None:
        self._answers += 1
        self._claims.update(claim.verdict for claim in record.claims)
        self._decisions[record.decision.action] += 1
        self._overruled += _overruled(record)
        self._waiting += record.review.status == "waiting"
        if record.review.status == "decided" and record.review.action is not None:
            self._reviews[record.review.action] += 1
        if "check" in record.timings:
            self._latency.add(record.timings["check"])

    def figures(self, name: str) -> GroupFigures:
        checked = sum(n for verdict, n in self._claims.items() if verdict != "unchecked")
        known = {name: self._latency.percentile(share) for name, share in _PERCENTILES.items()}
        return GroupFigures(
            name=name,
            answers=self._answers,
            claims=dict(self._claims),
            supported_rate=self._claims["supported"] / checked if checked else None,
            decisions=dict(self._decisions),
            approved=self._reviews["approve"],
            edited=self._reviews["edit"],
            rejected=self._reviews["reject"],
            waiting=self._waiting,
            overruled=self._overruled,
            check_ms={name: round(ms, 3) for name, ms in known.items() if ms is not None},
        )


class _Tallies:
    """Counts by group; groups that come too late to be counted alone are counted together."""

    def __init__(self) -> None:
        self._groups: dict[str, _Tally] = {}

    def of(self, name: str) -> _Tally:
        if name not in self._groups and len(self._groups) >= _MOST_GROUPS:
            name = _OTHERS
        return self._groups.setdefault(name, _Tally())

    def figures(self) -> Iterator[GroupFigures]:
        for name, tally in self._groups.items():
            yield tally.figures(name)


def _overruled(record: AuditRecord) -> bool:
    """Tell whether a reviewer has decided against what the policy has.

    That is so if an answer that was to be blocked was approved or edited, or one that was to be let
        out was edited or rejected. Where the policy has asked for a reviewer, nobody is overruled.
    """
    action = record.review.action
    if record.review.status != "decided" or action is None:
        return False
    if record.decision.action == "block":
        return action in ("approve", "edit")
    return record.decision.action in ("pass", "flag") and action in ("edit", "reject")


def _frequent_first(group: GroupFigures) -> tuple[int, str]:
    return -group.answers, group.name


def _row(group: GroupFigures) -> Row:
    return Row(
        name=group.name,
        answers=group.answers,
        claims=sum(group.claims.values()),
        supported=group.supported_rate,
        decisions=dict(group.decisions),
        reviewed=group.approved + group.edited + group.rejected,
        overruled=group.overruled,
        p50=group.check_ms.get("p50"),
        p95=group.check_ms.get("p95"),
    )


_GROWTH = 1.02
"""Each bucket is so much wider than the one before: percentiles are at most 1 % off."""

_LEAST = 1e-3


class Latency:
    """Counts durations in buckets that grow with them (as DDSketch, Masson et al. 2019)."""

    def __init__(self) -> None:
        """Begin with none."""
        self.count = 0
        self._buckets: dict[int, int] = {}

    def add(self, duration: float) -> None:
        """Count one."""
        value = duration if math.isfinite(duration) and duration > _LEAST else _LEAST
        place = math.ceil(math.log(value, _GROWTH))
        self._buckets[place] = self._buckets.get(place, 0) + 1
        self.count += 1

    def percentile(self, share: float) -> float | None:
        """Give the duration that so many stay at or below."""
        wanted, seen = share * self.count, 0
        for place in sorted(self._buckets):
            seen += self._buckets[place]
            if seen >= wanted:
                return 2 * _GROWTH**place / (_GROWTH + 1)
        return None
