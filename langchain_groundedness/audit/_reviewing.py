"""What readers and reviewers of an audit log may ask, and what they are told; pure."""

from datetime import UTC, datetime
from typing import get_args

from langchain_groundedness.audit.record import AuditRecord, ReviewAction
from langchain_groundedness.exceptions import ConfigurationError, ReviewConflictError

__all__ = [
    "aware",
    "conflict",
    "cursor",
    "place_in",
    "require_decision",
    "require_limit",
    "searched",
    "storable",
]

_MOST = 10_000


def require_limit(limit: int) -> None:
    """Refuse a page that cannot be.

    Args:
        limit: How many records at most.

    Raises:
        ConfigurationError: It is no whole number, or too small or too large.
    """
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= _MOST:
        msg = f"limit must be a whole number from 1 to {_MOST}, got {limit!r}"
        raise ConfigurationError(msg)


def require_decision(reviewer: str, action: str, answer: str | None) -> None:
    """Refuse a decision that cannot be.

    Args:
        reviewer: Who it is.
        action: What is done with the answer.
        answer: The reviewer's text.

    Raises:
        ConfigurationError: One of them has a value that cannot work.
    """
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
    """Say that a decision came too late.

    Args:
        record: The record as it is now.
        seen: The revision that the reviewer has seen.

    Returns:
        The error to raise.
    """
    review = record.review
    decided = review.status == "decided"
    who = review.reviewer if decided else None
    said = "was decided already" if decided else "has changed"
    msg = (
        f"the record {said}: it is at revision {record.revision}, and the review was of "
        f"revision {seen}; read it again"
    )
    return ReviewConflictError(msg, record_id=record.id, revision=record.revision, reviewer=who)


def aware(name: str, moment: datetime | None) -> datetime | None:
    """Refuse a moment without a time zone.

    Args:
        name: What to call it in the error.
        moment: The moment.

    Returns:
        The moment.

    Raises:
        ConfigurationError: It has no time zone.
    """
    if moment is not None and moment.tzinfo is None:
        msg = f"{name} must have a time zone, such as datetime.now(UTC)"
        raise ConfigurationError(msg)
    return moment


def cursor(record: AuditRecord) -> str:
    """Name the place behind a record.

    Args:
        record: The record.

    Returns:
        What `place_in` reads.
    """
    return f"{record.time.astimezone(UTC).isoformat()}|{record.id}"


def place_in(cursor: str | None) -> tuple[datetime, str] | None:
    """Read the place behind a record.

    Args:
        cursor: From `cursor`.

    Returns:
        Time and id of the record; `None` for the beginning.

    Raises:
        ConfigurationError: It cannot be read.
    """
    if cursor is None:
        return None
    moment, _, identity = cursor.partition("|")
    try:
        return datetime.fromisoformat(moment), identity
    except ValueError:
        msg = "after must be the `next` of a page"
        raise ConfigurationError(msg) from None


def searched(record: AuditRecord) -> str:
    """Give the text in which words are searched, without regard to case.

    Args:
        record: The record, as it is kept.

    Returns:
        Question, answer, what was shown and id.
    """
    texts = (record.question, record.original_answer, record.shown_answer, record.id)
    return storable("\n".join(filter(None, texts)).casefold())


def storable(text: str) -> str:
    """Give what databases can hold of a text: no character 0 and no halves of characters.

    Args:
        text: The text.

    Returns:
        The text, with signs in their place.
    """
    return text.replace("\0", "\ufffd").encode("utf-8", errors="replace").decode()
