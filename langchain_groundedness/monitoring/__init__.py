"""Summarizes an audit log: support rates, decisions, reviews and latency over time."""

import math
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import accumulate
from typing import Annotated, Any, ClassVar, get_args

from pydantic import AwareDatetime, Field

from langchain_groundedness.audit import AuditRecord
from langchain_groundedness.display.counts import format_ms
from langchain_groundedness.exceptions import ConfigurationError
from langchain_groundedness.types import Action, FrozenModel, VerdictLabel

__all__ = ["AuditSummary", "GroupFigures", "summarize"]

Whole = Annotated[int, Field(ge=0)]

_MOST_GROUPS = 1000
_OTHERS = "(others)"
_UNKNOWN = "(unknown)"
_PERCENTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
_ACTIONS: tuple[Action, ...] = ("pass", "flag", "review", "block")
_AGAINST = {"block": ("approve", "edit")} | dict.fromkeys(("pass", "flag"), ("edit", "reject"))
"""Decisions of reviewers that overrule those of the policy."""
_GROWTH = 1.02
"""Growth factor of the latency buckets, for an error of at most 1 %."""
_SHORTEST = 1e-3


class GroupFigures(FrozenModel):
    """Figures of one day, model or query class."""

    heads: ClassVar = ("answers", "supported", *_ACTIONS, "overruled", "ms", "ms 95%")
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
        """The name for a reader: a verifier's without what all of them are called."""
        return self.name.removesuffix("Verifier")

    def cells(self) -> tuple[str, ...]:
        """Write the figures, in the order of `heads`."""
        return (
            f"{self.answers:,}",
            "-" if self.supported_rate is None else f"{self.supported_rate:.1%}",
            *(f"{self.decisions.get(action, 0):,}" for action in _ACTIONS),
            f"{self.overruled:,}",
            *(format_ms(self.check_ms[name]) if self.check_ms else "-" for name in ("p50", "p95")),
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
    total = _ValueCounts()
    days: _Groups = {}
    models: _Groups = {}
    classes: _Groups = {}
    for record in records:
        if not isinstance(record, AuditRecord):
            kind = type(record).__name__
            msg = f"records must be AuditRecords, such as log.records() gives, got {kind}"
            raise ConfigurationError(msg)
        first, last = min(first or record.time, record.time), max(last or record.time, record.time)
        groups = (
            total,
            _group(days, record.time.astimezone(UTC).date().isoformat()),
            _group(models, record.versions.model or record.versions.verifier),
            _group(classes, record.query_class),
        )
        for what, value in _counted_values(record):
            for counts in groups:
                counts[what][value] += 1
    return AuditSummary(
        first=first,
        last=last,
        total=_figures("all", total),
        days=tuple(_figures(name, days[name]) for name in sorted(days)),
        models=_frequent_first(models),
        query_classes=_frequent_first(classes),
    )


class _ValueCounts(defaultdict[str, Counter[Any]]):
    """Counts, by what is counted, how often each value of it came."""

    def __init__(self) -> None:
        super().__init__(Counter)


_Groups = dict[str, _ValueCounts]


def _group(groups: _Groups, name: str | None) -> _ValueCounts:
    """Find the counts of a group; beyond the limit, new groups are counted together."""
    name = name or _UNKNOWN
    is_other = name not in groups and len(groups) >= _MOST_GROUPS
    return groups.setdefault(_OTHERS if is_other else name, _ValueCounts())


def _counted_values(record: AuditRecord) -> Iterator[tuple[str, Any]]:
    """Give what is counted of a record, with its values."""
    review, action = record.review, record.decision.action
    yield "decision", action
    yield "status", review.status
    yield from (("claim", found.verdict) for found in record.claims)
    if review.status == "decided" and review.action is not None:
        yield "review", review.action
        # A reviewer decided against the policy, which had not asked for a review.
        yield "overruled", review.action in _AGAINST.get(action, ())
        for found in record.claims:
            if found.claim.id in review.marks:
                yield "mark", (found.verdict, review.marks[found.claim.id])
    if "check" in record.timings:
        ms = record.timings["check"]
        ms = ms if math.isfinite(ms) and ms > _SHORTEST else _SHORTEST
        # Buckets grow with the durations (as DDSketch, Masson et al. 2019).
        yield "bucket", math.ceil(math.log(ms, _GROWTH))


def _figures(name: str, counts: _ValueCounts) -> GroupFigures:
    claims, reviews, marks = counts["claim"], counts["review"], counts["mark"]
    checked = claims.total() - claims["unchecked"]
    return GroupFigures(
        name=name,
        answers=counts["decision"].total(),
        claims=dict(claims),
        supported_rate=claims["supported"] / checked if checked else None,
        decisions=dict(counts["decision"]),
        approved=reviews["approve"],
        edited=reviews["edit"],
        rejected=reviews["reject"],
        waiting=counts["status"]["waiting"],
        marks={
            verdict: each
            for verdict in get_args(VerdictLabel)
            if any(each := (marks[verdict, True], marks[verdict, False]))
        },
        overruled=counts["overruled"][True],
        check_ms=_percentiles(counts["bucket"]),
    )


def _percentiles(found: Counter[int]) -> dict[str, float]:
    """Return the durations at each quantile."""
    buckets = sorted(found)
    seen = list(accumulate(found[bucket] for bucket in buckets))
    return {
        name: round(2 * _GROWTH ** buckets[bisect_left(seen, share * seen[-1])] / (_GROWTH + 1), 3)
        for name, share in (_PERCENTILES.items() if seen else ())
    }


def _frequent_first(groups: _Groups) -> tuple[GroupFigures, ...]:
    found = (_figures(name, counts) for name, counts in groups.items())
    return tuple(sorted(found, key=lambda group: (-group.answers, group.name)))
