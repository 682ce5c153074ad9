"""Records as lines of JSON: written, and read back while others write."""

import json
import logging
import os
import re
from collections.abc import Container, Iterable, Iterator
from contextlib import suppress
from typing import TypeAlias

from langchain_groundedness.audit.record import AuditEntry, AuditRecord
from langchain_groundedness.exceptions import AuditError

__all__ = ["Damage", "Key", "as_lines", "found_in", "read_lines"]

Key: TypeAlias = tuple[str, int]
"""Id and revision of a record."""

_BLOCK = 1 << 20
_HEAD = re.compile(rb'\{"schema_version":\d+,"id":("(?:[^"\\]|\\.)*"),"revision":(\d+)')

logger = logging.getLogger("langchain_groundedness")


class Damage:
    """Counts what could not be read."""

    def __init__(self) -> None:
        """Start with nothing."""
        self.torn = 0
        """Last lines that were cut off: what was being written when a process ended."""
        self.lines: list[bytes] = []
        """Other lines that are no records, or records of a newer version."""

    @property
    def unreadable(self) -> int:
        """How many of those there are."""
        return len(self.lines)

    def report(self, where: str) -> None:
        """Tell the log, if there is anything to tell.

        Args:
            where: What was read.
        """
        if self.torn or self.unreadable:
            told = (where, self.torn, self.unreadable)
            logger.warning(
                "audit: %s holds %d torn last line(s) and %d other line(s) that are no records; "
                "they were skipped",
                *told,
            )


def as_lines(entries: Iterable[AuditEntry]) -> bytes:
    """Write records.

    Args:
        entries: The records.

    Returns:
        One line each.
    """
    return "".join(f"{entry.line}\n" for entry in entries).encode("ascii")


def read_lines(descriptor: int, damage: Damage) -> Iterator[AuditEntry]:
    """Read records from the start of a file that others may be appending to.

    Args:
        descriptor: The open file; its position is neither used nor changed.
        damage: Told what could not be read.

    Yields:
        The records, in order.
    """
    for line in _whole_lines(descriptor, damage):
        try:
            yield AuditEntry(AuditRecord.from_json(line), line.decode("ascii"))
        except (AuditError, UnicodeDecodeError):
            damage.lines += [line] if line.strip() else []


def found_in(descriptor: int, wanted: Container[Key]) -> Iterator[Key]:
    """Tell which of some records a file holds, without reading the others whole.

    Args:
        descriptor: As for `read_lines`.
        wanted: Ids with revisions.

    Yields:
        Those that the file holds.
    """
    for line in _whole_lines(descriptor, Damage()):
        head = _HEAD.match(line)
        if head is None or (json.loads(head[1]), int(head[2])) in wanted:
            with suppress(AuditError, UnicodeDecodeError):  # torn behind its head, it is not there
                record = AuditRecord.from_json(line)
                if (record.id, record.revision) in wanted:
                    yield record.id, record.revision


def _whole_lines(descriptor: int, damage: Damage) -> Iterator[bytes]:
    position, rest = 0, b""
    while block := os.pread(descriptor, _BLOCK, position):
        position += len(block)
        *lines, rest = (rest + block).split(b"\n")
        yield from lines
    damage.torn += bool(rest.strip())
