"""Files with one record per line: reading them, appending to them, and the spool on disk."""

import json
import logging
import os
import re
import stat
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TypeAlias

from langchain_groundedness._runtime import files
from langchain_groundedness.audit.record import AuditEntry, AuditRecord
from langchain_groundedness.display.counts import format_count
from langchain_groundedness.exceptions import AuditError, ConfigurationError

__all__ = [
    "Spool",
    "UnreadableLines",
    "append_lines",
    "as_lines",
    "read_records",
    "records_found_in",
    "sibling_path",
]

_BATCH = 500
_BLOCK = 1 << 20
_HEAD = re.compile(rb'\{"schema_version":\d+,"id":("(?:[^"\\]|\\.)*"),"revision":(\d+)')

logger = logging.getLogger("langchain_groundedness")

Key: TypeAlias = tuple[str, int]
"""Id and revision of a record."""


class Spool:
    """The file that keeps records while the store is down.

    All processes that name the same path share the file. Appending takes a short lock on it.
    The process that moves its records to the store holds the lock file beside it, so only one does;
    the file is emptied when all are stored. If that process is killed, the next one writes all
    records again, by id.
    """

    def __init__(self, path: str | Path | None) -> None:
        """Name the file; it is made when a record has to wait."""
        if not isinstance(path, str | Path) or not str(path):
            msg = (
                "spool_path must name a file for records that wait while the store is down; or "
                'set on_store_down="raise" and on_full="wait"'
            )
            raise ConfigurationError(msg)
        files.require_file_locks(
            'records that wait on disk need locks (without: on_store_down="raise")'
        )
        self.path = Path(path).absolute()
        self._lock_path = sibling_path(self.path, ".lock")
        files.refuse_symlink(self.path, "spool_path")
        files.refuse_symlink(self._lock_path, "the lock beside spool_path")

    @property
    def is_empty(self) -> bool:
        """Whether the file has no record that this process may read."""
        try:
            found = self.path.lstat()
        except OSError:
            return True
        readable = stat.S_ISREG(found.st_mode) and os.access(self.path, os.R_OK | os.W_OK)
        return not (readable and found.st_size)

    def __len__(self) -> int:
        """Count the records that wait."""
        if self.is_empty:
            return 0
        with files.opened_private(self.path, os.O_RDONLY) as descriptor:
            return sum(1 for _ in _whole_lines(descriptor, UnreadableLines()))

    def append(self, entries: Sequence[AuditEntry]) -> None:
        """Keep records on disk."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with files.opened_private(self.path) as descriptor, files.locked_descriptor(descriptor):
            append_lines(descriptor, as_lines(entries))
            os.fsync(descriptor)
        _sync_folder(self.path.parent)

    def drain(self, write: Callable[[Sequence[AuditEntry]], None]) -> bool:
        """Write all records to the store, in order; `False` if another process is doing so."""
        damage, moved, start = UnreadableLines(), 0, 0
        with files.lock_file(self._lock_path, wait=False) as held:
            if not held:
                return False
            with files.opened_private(self.path, os.O_RDWR) as descriptor:
                while (end := self._end(descriptor, start, damage)) > start:
                    entries = read_records(descriptor, damage, start=start, end=end)
                    while batch := tuple(islice(entries, _BATCH)):
                        write(batch)
                        moved += len(batch)
                    start = end
        if moved:
            logger.info("audit: %d spooled records were written to the store", moved)
        return True

    def _end(self, descriptor: int, start: int, damage: "UnreadableLines") -> int:
        """Give the end of the file; empty it if nothing came after `start`."""
        with files.locked_descriptor(descriptor):  # no process is writing a line
            end = os.fstat(descriptor).st_size
            if end == start:
                damage.report("the spool")
                if damage.lines:  # kept for inspection
                    with files.opened_private(sibling_path(self.path, ".damaged")) as damaged:
                        files.write_all(damaged, b"".join(line + b"\n" for line in damage.lines))
                os.ftruncate(descriptor, 0)
            return end


@dataclass
class UnreadableLines:
    """Counts what could not be read."""

    torn: int = 0
    """Incomplete last lines, left by a process that ended while writing."""
    lines: list[bytes] = field(default_factory=list)
    """Other lines that are not records, or of a newer version."""

    def report(self, where: str) -> None:
        """Log the damage, if any."""
        if self.torn or self.lines:
            skipped = []
            if self.torn:
                one = self.torn == 1
                skipped.append(
                    f"{'an' if one else self.torn} incomplete last line{'s' * (not one)}"
                )
            if self.lines:
                one = len(self.lines) == 1
                bad = "is not a record" if one else "are not records"
                skipped.append(f"{format_count(len(self.lines), 'line')} that {bad}")
            logger.warning("audit: %s: skipped %s", where, " and ".join(skipped))


def as_lines(entries: Iterable[AuditEntry]) -> bytes:
    """Write records, one per line."""
    return "".join(f"{entry.line}\n" for entry in entries).encode("ascii")


def append_lines(descriptor: int, lines: bytes) -> None:
    """Append lines to a file that the caller has locked: all of them, or none."""
    size = os.fstat(descriptor).st_size
    torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
    # End the incomplete line of a killed process; readers skip it.
    files.write_all(descriptor, b"\n" * torn + lines)


def read_records(
    descriptor: int, damage: UnreadableLines, *, start: int = 0, end: int | None = None
) -> Iterator[AuditEntry]:
    """Read the records of a file that others may be appending to."""
    for line in _whole_lines(descriptor, damage, start, end):
        try:
            yield AuditEntry(AuditRecord.from_json(line), line.decode("ascii"))
        except (AuditError, UnicodeDecodeError):
            damage.lines += [line] if line.strip() else []


def records_found_in(descriptor: int, wanted: Container[Key]) -> Iterator[Key]:
    """Find which of some records a file holds, without parsing the others."""
    for line in _whole_lines(descriptor, UnreadableLines()):
        head = _HEAD.match(line)
        if head is None or (json.loads(head[1]), int(head[2])) in wanted:
            with suppress(AuditError, UnicodeDecodeError):  # an incomplete record counts as missing
                record = AuditRecord.from_json(line)
                if (record.id, record.revision) in wanted:
                    yield record.id, record.revision


def sibling_path(path: Path, suffix: str) -> Path:
    """Name a file beside another one."""
    return path.with_name(path.name + suffix)


def _whole_lines(
    descriptor: int, damage: UnreadableLines, start: int = 0, end: int | None = None
) -> Iterator[bytes]:
    position, rest = start, b""
    end = os.fstat(descriptor).st_size if end is None else end
    while block := os.pread(descriptor, min(_BLOCK, end - position), position):
        position += len(block)
        *lines, rest = (rest + block).split(b"\n")
        yield from lines
    damage.torn += bool(rest.strip())


def _sync_folder(folder: Path) -> None:
    """Sync the folder, so that a new file survives a power loss."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
