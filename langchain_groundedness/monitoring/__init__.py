"""Summarizes an audit log: support rates, decisions, reviews and latency over time."""

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import accumulate
from typing import Annotated, ClassVar, get_args

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
    total = _Counts()
    days: _Groups = {}
    models: _Groups = {}
    classes: _Groups = {}
    for record in records:
        if not isinstance(record, AuditRecord):
            kind = type(record).__name__
            msg = f"records must be AuditRecords, such as log.records() gives, got {kind}"
            raise ConfigurationError(msg)
        first, last = min(first or record.time, record.time), max(last or record.time, record.time)
        total.add(record)
        for groups, name in (
            (days, record.time.astimezone(UTC).date().isoformat()),
            (models, record.versions.model or record.versions.verifier),
            (classes, record.query_class),
        ):
            _group(groups, name or _UNKNOWN).add(record)
    return AuditSummary(
        first=first,
        last=last,
        total=total.figures("all"),
        days=tuple(days[name].figures(name) for name in sorted(days)),
        models=_frequent_first(models),
        query_classes=_frequent_first(classes),
    )


class _Counts:
    """Counts what happened in one group."""

    def __init__(self) -> None:
        self._answers = self._overruled = self._waiting = 0
        self._claims: Counter[VerdictLabel] = Counter()
        self._decisions: Counter[Action] = Counter()
        self._reviews: Counter[str] = Counter()
        self._marks: Counter[tuple[VerdictLabel, bool]] = Counter()
        self._check_ms: Counter[int] = Counter()
        """Durations in buckets that grow with them (as DDSketch, Masson et al. 2019)."""

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
            ms = record.timings["check"]
            ms = ms if math.isfinite(ms) and ms > _SHORTEST else _SHORTEST
            self._check_ms[math.ceil(math.log(ms, _GROWTH))] += 1

    def figures(self, name: str) -> GroupFigures:
        checked = sum(n for verdict, n in self._claims.items() if verdict != "unchecked")
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
                verdict: marks
                for verdict in get_args(VerdictLabel)
                if any(marks := (self._marks[verdict, True], self._marks[verdict, False]))
            },
            overruled=self._overruled,
            check_ms={n: self._percentile(share) for n, share in _PERCENTILES.items()}
            if self._check_ms
            else {},
        )

    def _percentile(self, share: float) -> float:
        """Return the duration at this quantile."""
        buckets = sorted(self._check_ms)
        seen = list(accumulate(self._check_ms[bucket] for bucket in buckets))
        return round(2 * _GROWTH ** buckets[bisect_left(seen, share * seen[-1])] / (_GROWTH + 1), 3)


_Groups = dict[str, _Counts]


def _group(groups: _Groups, name: str) -> _Counts:
    """Find the counts of a group; beyond the limit, new groups are counted together."""
    is_other = name not in groups and len(groups) >= _MOST_GROUPS
    return groups.setdefault(_OTHERS if is_other else name, _Counts())


def _frequent_first(groups: _Groups) -> tuple[GroupFigures, ...]:
    found = (counts.figures(name) for name, counts in groups.items())
    return tuple(sorted(found, key=lambda group: (-group.answers, group.name)))


def _is_overruled(record: AuditRecord) -> bool:
    """Tell whether a reviewer decided against the policy, which had not asked for a review."""
    against = _AGAINST.get(record.decision.action, ())
    return record.review.status == "decided" and record.review.action in against
