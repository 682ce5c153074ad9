"""Which records a reviewer wants to see: read from an address, written into one; pure."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Self, get_args
from urllib.parse import urlencode

from langchain_groundedness.types import Action, AnswerVerdict

__all__ = ["CHOICES", "Filters"]

ANY = "any"
CHOICES: dict[str, tuple[str, ...]] = {
    "status": ("waiting", "decided", "none", ANY),
    "decision": ("", *get_args(Action)),
    "verdict": ("", *get_args(AnswerVerdict)),
}
"""Values of the filters that are chosen from a list; the first is the default."""

_LONGEST = 200


@dataclass(frozen=True, kw_only=True)
class Filters:
    """Filters of the queue, each as it stands in the address; empty where nothing is asked.

    Example:
        >>> Filters.read({"decision": "block", "status": "?", "page": "2"}).address
        'status=waiting&decision=block'
    """

    status: str = "waiting"
    decision: str = ""
    verdict: str = ""
    query_class: str = ""
    risk_tier: str = ""
    since: str = ""
    until: str = ""
    text: str = ""

    @classmethod
    def read(cls, given: Mapping[str, str]) -> Self:
        """Read filters; what cannot be read counts as not given.

        Args:
            given: Names and values, of any length and content.

        Returns:
            The filters.
        """
        known = {field.name: given.get(field.name, "")[:_LONGEST].strip() for field in fields(cls)}
        for name, accepted in CHOICES.items():
            known[name] = known[name] if known[name] in accepted else accepted[0]
        for name in ("since", "until"):
            known[name] = known[name] if _day(known[name]) else ""
        return cls(**known)

    @property
    def address(self) -> str:
        """The filters, as a query string."""
        return urlencode({name: value for name, value in asdict(self).items() if value})

    @property
    def narrowed(self) -> bool:
        """Whether anything but the status is asked for."""
        return self != type(self)(status=self.status)

    @property
    def of_store(self) -> dict[str, Any]:
        """The filters, as `SQLAuditLog.query` names them."""
        found = {
            "status": "" if self.status == ANY else self.status,
            "decision": self.decision,
            "verdict": self.verdict,
            "query_class": self.query_class,
            "risk_tier": self.risk_tier,
            "since": _day(self.since),
            "until": _next(_day(self.until)),
            "text": self.text,
        }
        return {name: value for name, value in found.items() if value}

    @property
    def newest_first(self) -> bool:
        """The order: who has waited longest is served first; else what is new is shown first."""
        return self.status != "waiting"


def _day(text: str) -> datetime | None:
    try:
        return datetime.combine(date.fromisoformat(text), time(), UTC)
    except ValueError:
        return None


def _next(day: datetime | None) -> datetime | None:
    try:
        return day and day + timedelta(days=1)
    except OverflowError:  # the last day there is
        return None
