"""Summarizes an audit log: support rates, decisions, reviews and latency over time."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, get_args

from pydantic import AwareDatetime, Field

from langchain_groundedness.audit import AuditRecord
from langchain_groundedness.display.svg import Plot
from langchain_groundedness.display.templates import FEWEST_POINTS, page
from langchain_groundedness.exceptions import ConfigurationError
from langchain_groundedness.types import Action, FrozenModel, VerdictLabel

__all__ = ["AuditSummary", "GroupFigures", "summarize"]

Whole = Annotated[int, Field(ge=0)]

_MOST_GROUPS = 1000
_OTHERS = "(others)"
_UNKNOWN = "(unknown)"
_PERCENTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
_COLOURS: dict[Action, str] = {"pass": "a", "flag": "b", "review": "c", "block": "d"}
_MOST_TICKS = 4
_SIZE: dict[str, Any] = {"width": 340, "height": 220}
_WHOLE_FROM = 100
"""Milliseconds above which fractions are not shown."""
_GROWTH = 1.02
"""Growth factor of the latency buckets, for an error of at most 1 %."""
_SHORTEST = 1e-3


class GroupFigures(FrozenModel):
    """Figures of one day, model or query class."""

    heads: ClassVar = ("answers", "supported", *_COLOURS, "overruled", "ms", "ms 95%")
    """What `cells` are."""

    name: str
    answers: Whole
    claims: dict[VerdictLabel, int]
    """Number of claims by verdict."""
    supported_rate: float | None
    """Share of the checked claims that are supported; `None` if none was checked."""
    decisions: dict[Action, int]
    approved: Whole
    edited: Whole
    rejected: Whole
    waiting: Whole
    """How many answers wait for a reviewer."""
    marks: dict[VerdictLabel, tuple[Whole, Whole]] = Field(default_factory=dict)
    """Claims that reviewers have marked, by verdict: how many right, and how many wrong."""
    overruled: Whole
    """How often a reviewer released what the policy blocked, or withheld or edited what it
    released."""
    check_ms: dict[str, float]
    """Percentiles (`p50`, `p95`, `p99`) of the time that a check took, in milliseconds, at most
    1 % off; empty if no time is known."""

    def agreement(self, verdict: VerdictLabel) -> float | None:
        """Give how often reviewers agree with a verdict.

        Args:
            verdict: The verdict.

        Returns:
            The share of marked claims with this verdict that are marked right, for `supported`, or
            wrong, for `contradicted` and `unverifiable`; `None` without marks and for `unchecked`.
        """
        right, wrong = self.marks.get(verdict, (0, 0))
        if not right + wrong or verdict == "unchecked":
            return None
        return (right if verdict == "supported" else wrong) / (right + wrong)

    @property
    def title(self) -> str:
        """The name for a reader; that of a verifier without the word "Verifier"."""
        return self.name.removesuffix("Verifier")

    def cells(self) -> tuple[str, ...]:
        """Write the figures, in the order of `heads`."""
        return (
            f"{self.answers:,}",
            "-" if self.supported_rate is None else f"{self.supported_rate:.1%}",
            *(f"{self.decisions.get(action, 0):,}" for action in _COLOURS),
            f"{self.overruled:,}",
            *(_ms(self.check_ms[name]) if self.check_ms else "-" for name in ("p50", "p95")),
        )


class AuditSummary(FrozenModel):
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
        """Draw a page: tables and, from five days on, plots, in one file that loads nothing.

        Args:
            title: Its heading.

        Returns:
            The text of an HTML file.

        Raises:
            MissingDependencyError: jinja2 is not installed; the extra `report` brings it.
        """
        days = self.days if len(self.days) >= FEWEST_POINTS else ()
        values = {
            **dict(self),
            "title": title,
            "kind": "Groundedness statistics",
            "groups": {"Day": self.days, "Model": self.models, "Query class": self.query_classes},
            "heads": GroupFigures.heads,
            "verdicts": get_args(VerdictLabel),
            "actions": list(_COLOURS),
            "cells": lambda group: zip(group.heads, group.cells(), strict=True),
            "plots": {plot.title: plot.drawn() for plot in _plots(days)},
        }
        return page("langchain_groundedness.monitoring", "statistics.html", values)


def summarize(records: Iterable[AuditRecord]) -> AuditSummary:
    """Sum up audit records; they may be more than the memory holds.

    Args:
        records: The records, in any order.

    Returns:
        The figures.

    Raises:
        ConfigurationError: One of them is not an `AuditRecord`.

    Example:
        >>> from langchain_groundedness import Decision
        >>> record = AuditRecord(verdict="no_claims", decision=Decision(action="pass"))
        >>> summarize([record]).total.decisions["pass"]
        1
    """
    first: datetime | None = None
    last: datetime | None = None
    total, days, models, classes = _Counts(), _Groups(), _Groups(), _Groups()
    for record in records:
        if not isinstance(record, AuditRecord):
            kind = type(record).__name__
            msg = f"records must be AuditRecords, such as log.records() gives, got {kind}"
            raise ConfigurationError(msg)
        first = record.time if first is None else min(first, record.time)
        last = record.time if last is None else max(last, record.time)
        model = record.versions.model or record.versions.verifier or _UNKNOWN
        day = record.time.astimezone(UTC).date().isoformat()
        for counts in (
            total,
            days.group(day),
            models.group(model),
            classes.group(record.query_class or _UNKNOWN),
        ):
            counts.add(record)
    return AuditSummary(
        first=first,
        last=last,
        total=total.figures("all"),
        days=tuple(sorted(days.figures(), key=lambda group: group.name)),
        models=tuple(sorted(models.figures(), key=_frequent_first)),
        query_classes=tuple(sorted(classes.figures(), key=_frequent_first)),
    )


class _Counts:
    """Counts what happened in one group."""

    def __init__(self) -> None:
        self._answers = self._overruled = self._waiting = 0
        self._claims: Counter[VerdictLabel] = Counter()
        self._decisions: Counter[Action] = Counter()
        self._reviews: Counter[str] = Counter()
        self._marks: Counter[tuple[VerdictLabel, bool]] = Counter()
        self._check_ms = _LatencySketch()

    def add(self, record: AuditRecord) -> None:
        self._answers += 1
        self._claims.update(claim.verdict for claim in record.claims)
        self._decisions[record.decision.action] += 1
        self._overruled += _is_overruled(record)
        self._waiting += record.review.status == "waiting"
        if record.review.status == "decided" and record.review.action is not None:
            self._reviews[record.review.action] += 1
            marks = record.review.marks
            known = (found for found in record.claims if found.claim.id in marks)
            self._marks.update((found.verdict, marks[found.claim.id]) for found in known)
        if "check" in record.timings:
            self._check_ms.add(record.timings["check"])

    def figures(self, name: str) -> GroupFigures:
        checked = sum(n for verdict, n in self._claims.items() if verdict != "unchecked")
        times = {name: self._check_ms.percentile(share) for name, share in _PERCENTILES.items()}
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
            marks={
                verdict: (self._marks[verdict, True], self._marks[verdict, False])
                for verdict in get_args(VerdictLabel)
                if self._marks[verdict, True] or self._marks[verdict, False]
            },
            overruled=self._overruled,
            check_ms={name: round(ms, 3) for name, ms in times.items() if ms is not None},
        )


class _Groups:
    """Counts by group; beyond the limit, new groups are counted together."""

    def __init__(self) -> None:
        self._groups: dict[str, _Counts] = {}

    def group(self, name: str) -> _Counts:
        if name not in self._groups and len(self._groups) >= _MOST_GROUPS:
            name = _OTHERS
        return self._groups.setdefault(name, _Counts())

    def figures(self) -> Iterator[GroupFigures]:
        return (counts.figures(name) for name, counts in self._groups.items())


class _LatencySketch:
    """Counts durations in buckets that grow with them (as DDSketch, Masson et al. 2019)."""

    def __init__(self) -> None:
        self._buckets: Counter[int] = Counter()

    def add(self, duration: float) -> None:
        value = duration if math.isfinite(duration) and duration > _SHORTEST else _SHORTEST
        self._buckets[math.ceil(math.log(value, _GROWTH))] += 1

    def percentile(self, share: float) -> float | None:
        """Return the duration at this quantile."""
        wanted, seen = share * self._buckets.total(), 0
        for place in sorted(self._buckets):
            seen += self._buckets[place]
            if seen >= wanted:
                return 2 * _GROWTH**place / (_GROWTH + 1)
        return None


def _is_overruled(record: AuditRecord) -> bool:
    """Tell whether a reviewer decided against the policy, which had not asked for a review."""
    action = record.review.action
    if record.review.status != "decided" or action is None:
        return False
    if record.decision.action == "block":
        return action in ("approve", "edit")
    return record.decision.action in ("pass", "flag") and action in ("edit", "reject")


def _ms(number: float) -> str:
    return f"{number:.1f}" if number < _WHOLE_FROM else f"{number:,.0f}"


def _frequent_first(group: GroupFigures) -> tuple[int, str]:
    return -group.answers, group.name


def _plots(days: Sequence[GroupFigures]) -> Iterator[Plot]:
    if not days:
        return
    step = -(-len(days) // _MOST_TICKS)
    ticks = [
        ((place + 0.5) / len(days), day.name) for place, day in enumerate(days) if place % step == 0
    ]
    most = float(max(day.answers for day in days))
    decisions = Plot(title="Decisions per day", highest=most, y_label="answers", **_SIZE)
    decisions.ticks(ticks, [(0.0, "0"), (most, f"{most:,.0f}")])
    decisions.legend([(colour, action) for action, colour in _COLOURS.items()])
    for place, day in enumerate(days):
        low = 0
        for action, colour in _COLOURS.items():
            number = day.decisions.get(action, 0)
            left, tooltip = (place + 0.1) / len(days), f"{day.name}: {number} {action}"
            if number:
                decisions.bar(left, 0.8 / len(days), low, low + number, colour, tooltip)
            low += number
    yield decisions
    rate = Plot(title="Supported claims per day", y_label="share", **_SIZE)
    rate.ticks(ticks, [(n / 4, f"{n / 4:.0%}") for n in range(5)])
    rate.legend([("a", "supported")])
    _curve(rate, [(day.name, day.supported_rate) for day in days], "a", ".1%")
    yield rate
    timed = [day.check_ms["p95"] for day in days if day.check_ms]
    if len(timed) < FEWEST_POINTS:
        return
    slowest = max(timed) or 1.0
    time = Plot(title="Time of a check per day", highest=slowest, y_label="milliseconds", **_SIZE)
    time.ticks(ticks, [(0.0, "0"), (slowest, _ms(slowest))])
    time.legend([("e", "median"), ("c", "95 of 100 at most")])
    for name, colour in (("p50", "e"), ("p95", "c")):
        _curve(time, [(day.name, day.check_ms.get(name)) for day in days], colour, ".1f")
    yield time


def _curve(plot: Plot, values: Sequence[tuple[str, float | None]], kind: str, form: str) -> None:
    points = [
        ((place + 0.5) / len(values), value, f"{name}: {value:{form}}")
        for place, (name, value) in enumerate(values)
        if value is not None
    ]
    if len(points) > 1:
        plot.line([(x, y) for x, y, _ in points], kind)
    for x, y, tooltip in points:
        plot.dot(x, y, kind, tooltip)
