"""Which records a reviewer wants to see: read from an address, written into one; pure."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Self, get_args
from urllib.parse import urlencode

from langchain_groundedness.audit.record import AuditRecord, ReviewStatus
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
        known = {field.name: given.get(field.name, "").strip()[:_LONGEST] for field in fields(cls)}
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
        """What the store can filter by, as it is named there."""
        status: ReviewStatus | None = None if self.status == ANY else self.status  # type: ignore[assignment]  # checked by `read`
        until = _day(self.until)
        found = {
            "status": status,
            "decision": self.decision,
            "query_class": self.query_class,
            "risk_tier": self.risk_tier,
            "since": _day(self.since),
            "until": until and until + timedelta(days=1),
        }
        return {name: value for name, value in found.items() if value}

    @property
    def newest_first(self) -> bool:
        """The order: who has waited longest is served first; else what is new is shown first."""
        return self.status != "waiting"

    @property
    def needs_reading(self) -> bool:
        """Whether the store cannot tell without the records being read."""
        return bool(self.verdict or self.text)

    def match(self, record: AuditRecord) -> bool:
        """Tell what the store cannot.

        Args:
            record: A record that the store has found.

        Returns:
            Whether it is wanted.
        """
        if self.verdict and record.verdict != self.verdict:
            return False
        texts = (record.question, record.original_answer, record.shown_answer, record.id)
        text = "\n".join(filter(None, texts)).casefold()
        return all(word in text for word in self.text.casefold().split())


def _day(text: str) -> datetime | None:
    try:
        return datetime.combine(date.fromisoformat(text), time(), UTC)
    except ValueError:
        return None
