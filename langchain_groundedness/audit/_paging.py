"""Pages of records in order of time, and the places between them; pure."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple, Protocol

from langchain_groundedness.audit.record import AuditRecord
from langchain_groundedness.exceptions import ConfigurationError

__all__ = ["AuditPage", "Placed", "Row", "cursor", "filled_page", "place_in"]


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
    """Read rows until there are enough that can be read, or no more.

    Args:
        read: Gives rows behind a place.
        limit: How many records at most.
        after: Where to begin, from `cursor`.

    Returns:
        The page.
    """
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
    """Name the place behind a record.

    Args:
        record: The record, or whatever has its time and id.

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
