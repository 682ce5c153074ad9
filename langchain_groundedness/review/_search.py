"""How the queue searches in an audit log."""

from typing import NamedTuple

from langchain_groundedness.audit._reviewing import cursor
from langchain_groundedness.audit.record import AuditRecord
from langchain_groundedness.audit.sql import SQLAuditLog
from langchain_groundedness.review._filters import Filters

__all__ = ["Found", "place_of", "search"]

_READ_AT_ONCE = 200
_MOST_READ = 2_000


class Found(NamedTuple):
    """A page of the queue."""

    records: tuple[AuditRecord, ...]
    next: str | None
    """Where to go on; `None` if there are no more."""
    unfinished: bool
    """Whether the search has ended before the page was full, not to take too long."""


def place_of(record: AuditRecord) -> str:
    """Give the place of a record in the order of the queue, to go on behind it.

    Args:
        record: The record.

    Returns:
        For `after` of `search`.
    """
    return cursor(record)


def search(store: SQLAuditLog, filters: Filters, *, after: str | None, limit: int) -> Found:
    """Find records.

    Args:
        store: The audit log.
        filters: Which ones.
        after: `next` of the page before.
        limit: How many at most.

    Returns:
        The page.

    Raises:
        ConfigurationError: `after` cannot be read.
        AuditError: The store is down.
    """
    asked = {**filters.of_store, "newest_first": filters.newest_first}
    if not filters.needs_reading:
        page = store.query(**asked, after=after, limit=limit)
        return Found(page.records, page.next, unfinished=False)
    kept: list[AuditRecord] = []
    for _ in range(_MOST_READ // _READ_AT_ONCE):
        page = store.query(**asked, after=after, limit=_READ_AT_ONCE)
        for record in page.records:
            if filters.match(record):
                kept.append(record)
            if len(kept) == limit:
                last = page.next is None and record is page.records[-1]
                return Found(tuple(kept), None if last else place_of(record), unfinished=False)
        after = page.next
        if after is None:
            return Found(tuple(kept), None, unfinished=False)
    return Found(tuple(kept), after, unfinished=True)
