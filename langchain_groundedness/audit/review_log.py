"""What readers and reviewers of an audit log may ask, and what they are told; pure."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, Protocol, get_args

from langchain_groundedness.audit.record import AuditRecord, ReviewAction, ReviewStatus
from langchain_groundedness.exceptions import ConfigurationError, ReviewConflictError
from langchain_groundedness.types import Action, AnswerVerdict

__all__ = [
    "AuditPage",
    "Row",
    "checked_filters",
    "conflict",
    "cursor",
    "filled_page",
    "place_in",
    "require_age",
    "require_decision",
    "require_limit",
    "searched",
    "storable",
]

_MOST = 10_000

_CLOSED = {
    "decision": get_args(Action),
    "verdict": get_args(AnswerVerdict),
    "status": get_args(ReviewStatus),
}

_OPEN = ("query_class", "risk_tier", "model", "thread_id", "text")


def require_limit(limit: int) -> None:
    """Refuse a page that cannot be."""
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= _MOST:
        msg = f"limit must be a whole number from 1 to {_MOST}, got {limit!r}"
        raise ConfigurationError(msg)


def require_decision(reviewer: str, action: str, answer: str | None) -> None:
    """Refuse a decision that cannot be."""
    if not isinstance(reviewer, str) or not reviewer.strip():
        msg = "reviewer must be a text that says who has decided"
        raise ConfigurationError(msg)
    if action not in get_args(ReviewAction):
        accepted = ", ".join(map(repr, get_args(ReviewAction)))
        msg = f"action must be one of {accepted}"
        raise ConfigurationError(msg)
    if (action == "edit") != (answer is not None):
        msg = "answer is the reviewer's text: it is needed with action='edit', and only then"
        raise ConfigurationError(msg)


def conflict(record: AuditRecord, seen: int) -> ReviewConflictError:
    """Say that a decision came too late."""
    review = record.review
    decided = review.status == "decided"
    who = review.reviewer if decided else None
    said = "was decided already" if decided else "has changed"
    msg = (
        f"the record {said}: it is at revision {record.revision}, and the review was of "
        f"revision {seen}; read it again"
    )
    return ReviewConflictError(msg, record_id=record.id, revision=record.revision, reviewer=who)


def checked_filters(filters: Mapping[str, Any]) -> dict[str, Any]:
    """Refuse filters that would find nothing, whatever there is."""
    for name, accepted in _CLOSED.items():
        value = filters.get(name)
        if value is not None and value not in accepted:
            msg = f"{name} must be one of {', '.join(map(repr, accepted))}, got {value!r:.60}"
            raise ConfigurationError(msg)
    for name in _OPEN:
        value = filters.get(name)
        if value is not None and not isinstance(value, str):
            msg = f"{name} must be a text, got {type(value).__name__}"
            raise ConfigurationError(msg)
    for name in ("since", "until"):
        _require_moment(name, filters.get(name))
    return {("review_status" if k == "status" else k): value for k, value in filters.items()}


def require_age(older_than: timedelta) -> None:
    """Refuse an age from which on no record can be deleted."""
    if not isinstance(older_than, timedelta):
        kind = type(older_than).__name__
        msg = f"older_than must be a timedelta, such as timedelta(days=90), got {kind}"
        raise ConfigurationError(msg)
    if older_than < timedelta(0):
        msg = "older_than must not be negative"
        raise ConfigurationError(msg)


def _require_moment(name: str, moment: object) -> None:
    if moment is None:
        return
    accepted = "such as datetime(2026, 1, 31, tzinfo=UTC)"
    if not isinstance(moment, datetime):
        msg = f"{name} must be a datetime with a time zone, {accepted}, got {type(moment).__name__}"
        raise ConfigurationError(msg)
    if moment.tzinfo is None:
        msg = f"{name} must have a time zone, {accepted}"
        raise ConfigurationError(msg)


def searched(record: AuditRecord) -> str:
    """Give the text in which words are searched, without regard to case."""
    texts = (record.question, record.original_answer, record.shown_answer, record.id)
    return storable("\n".join(filter(None, texts)).casefold())


def storable(text: str) -> str:
    """Give what databases can hold of a text: no character 0 and no halves of characters."""
    return text.replace("\0", "\ufffd").encode("utf-8", errors="replace").decode()


class AuditPage(NamedTuple):
    """Some records, and where the next ones begin."""

    records: tuple[AuditRecord, ...]
    next: str | None
    """For `after=` of the next call; `None` if there are no more."""
    unreadable: tuple[str, ...] = ()
    """Ids of records among these that are damaged, or of a newer version; `get` says how."""


class Placed(Protocol):
    """What has a place in the order of records."""

    @property
    def time(self) -> datetime:
        """The moment."""

    @property
    def id(self) -> str:
        """The id, which orders what is of the same moment."""


class Row(NamedTuple):
    """What a store has of one record, in order of time."""

    time: datetime
    id: str
    record: AuditRecord | None
    """`None` if what is there is damaged, or of a newer version."""


class _Read(Protocol):
    def __call__(self, *, limit: int, after: str | None) -> Sequence[Row]: ...


def filled_page(read: _Read, *, limit: int, after: str | None) -> AuditPage:
    """Read rows until there are enough that can be read, or no more."""
    found: list[AuditRecord] = []
    unreadable: list[str] = []
    more = True
    while more and len(found) < limit:
        wanted = limit - len(found)
        rows = read(limit=wanted + 1, after=after)
        more, rows = len(rows) > wanted, rows[:wanted]
        found += [row.record for row in rows if row.record is not None]
        unreadable += [row.id for row in rows if row.record is None]
        after = cursor(rows[-1]) if more else None
    return AuditPage(tuple(found), after, tuple(unreadable))


def cursor(record: Placed) -> str:
    """Name the place behind a record."""
    return f"{record.time.astimezone(UTC).isoformat()}|{record.id}"


def place_in(cursor: str | None) -> tuple[datetime, str] | None:
    """Read the place behind a record."""
    if cursor is None:
        return None
    moment, _, identity = cursor.partition("|")
    try:
        return datetime.fromisoformat(moment), identity
    except ValueError:
        msg = "after must be the `next` of a page"
        raise ConfigurationError(msg) from None
