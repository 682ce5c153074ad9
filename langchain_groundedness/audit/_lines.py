"""Records as lines of JSON: written, and read back while others write."""

import logging
import os
from collections.abc import Iterable, Iterator

from langchain_groundedness.audit.record import AuditEntry, AuditRecord
from langchain_groundedness.exceptions import AuditError

__all__ = ["Damage", "as_lines", "read_lines"]

_BLOCK = 1 << 20

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
    position, rest = 0, b""
    while block := os.pread(descriptor, _BLOCK, position):
        position += len(block)
        *lines, rest = (rest + block).split(b"\n")
        for line in lines:
            try:
                yield AuditEntry(AuditRecord.from_json(line), line.decode("ascii"))
            except (AuditError, UnicodeDecodeError):
                damage.lines += [line] if line.strip() else []
    damage.torn += bool(rest.strip())
