"""Where records wait on disk while the store is away, and how they get there from any process.

A folder with one file per process. A process holds a lock on its file for as long as it lives, so
a file that can be locked belongs to a process that has ended: whoever gets the lock brings its
records to the store, and deletes it. Records are written by id, so bringing them twice, after a
crash in between, changes nothing.
"""

import json
import logging
import os
import re
import threading
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple, TypeAlias

from langchain_groundedness._runtime.files import (
    is_same_file,
    open_private,
    private_folder,
    try_lock,
    write_all,
)
from langchain_groundedness.audit.record import AuditEntry, AuditRecord, new_id
from langchain_groundedness.exceptions import AuditError

__all__ = ["Damage", "SpillFolder", "as_lines", "found_in", "read_lines"]

Write = Callable[[Sequence[AuditEntry]], None]

_BATCH = 500

_SUFFIX = ".jsonl"

_DAMAGED = ".damaged"

logger = logging.getLogger("langchain_groundedness")


class _Own(NamedTuple):
    """A file that this process has made, open and locked."""

    path: Path
    descriptor: int


class SpillFolder:
    """The spilled records of one store."""

    def __init__(self, folder: Path) -> None:
        """Name the folder; it is made when something has to be kept in it."""
        self._folder = folder
        self._lock = threading.Lock()
        self._replaying = threading.Lock()
        self._current: _Own | None = None
        self._full: list[_Own] = []
        self._own = 0

    @property
    def own(self) -> int:
        """How many records of this process wait here."""
        return self._own

    @property
    def any_file(self) -> bool:
        """Whether records of any process may wait here."""
        return next(self._files(), None) is not None

    def append(self, entries: Sequence[AuditEntry]) -> None:
        """Keep records on disk."""
        with self._lock:
            if self._current is None:
                self._current = self._begun()
            write_all(self._current.descriptor, as_lines(entries))
            os.fsync(self._current.descriptor)
            self._own += len(entries)

    def replay(self, write: Write) -> int:
        """Bring all records that wait to the store, in order, unless a living process has them."""
        with self._replaying:
            with self._lock:  # what is spilled from now on goes into another file
                self._full += [] if self._current is None else [self._current]
                self._current = None
            try:
                return self._bring_all(write)
            finally:
                with self._lock:  # a store that is tried in vain leaves no file for each trial
                    if self._current is None and self._full:
                        self._current = self._full.pop()

    def close(self) -> None:
        """Let go of the files of this process, which another may then bring to the store."""
        with self._replaying, self._lock:
            self._let_go()

    def forked(self) -> None:
        """Leave the files to the parent process; to be called in the child of a fork."""
        self._lock, self._replaying = threading.Lock(), threading.Lock()
        self._let_go()

    def _let_go(self) -> None:
        own = [*self._full, *([] if self._current is None else [self._current])]
        self._current, self._full, self._own = None, [], 0
        for each in own:
            os.close(each.descriptor)  # not unlocked: in a child, that would unlock the parent's

    def _begun(self) -> _Own:
        private_folder(self._folder)
        path = self._folder / f"{new_id()}-{os.getpid()}{_SUFFIX}"
        descriptor = open_private(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL)
        # Another process may look at the file before it is locked here, and delete it as empty.
        if not try_lock(descriptor) or not is_same_file(descriptor, path):
            os.close(descriptor)
            return self._begun()
        _sync_folder(self._folder)
        return _Own(path, descriptor)

    def _bring_all(self, write: Write) -> int:
        brought, own = 0, {each.path: each for each in self._full}
        for path in sorted({*self._files(), *own}):
            if path in own:
                brought += self._bring_own(own[path], write)
            else:
                brought += _adopt(path, write)
        return brought

    def _bring_own(self, own: _Own, write: Write) -> int:
        brought = _bring(own.descriptor, own.path, write)
        os.close(own.descriptor)
        with self._lock:
            self._full.remove(own)
            self._own -= brought
        return brought

    def _files(self) -> Iterator[Path]:
        with suppress(OSError):
            if not self._folder.is_symlink():
                yield from self._folder.glob(f"*{_SUFFIX}")


def _adopt(path: Path, write: Write) -> int:
    """Bring the records of a process that has ended."""
    try:
        descriptor = open_private(path, os.O_RDWR)
    except OSError:
        return 0  # gone, or not ours to read
    try:
        if not try_lock(descriptor) or not is_same_file(descriptor, path):
            return 0
        return _bring(descriptor, path, write)
    finally:
        os.close(descriptor)


def _bring(descriptor: int, path: Path, write: Write) -> int:
    damage, brought = Damage(), 0
    entries = read_lines(descriptor, damage)
    while some := tuple(islice(entries, _BATCH)):
        write(some)
        brought += len(some)
    damage.report("a spill file")
    if damage.unreadable:  # kept for a person to look at
        path.rename(path.with_suffix(_DAMAGED))
    else:
        path.unlink(missing_ok=True)
    if brought:
        logger.info("audit: %d spilled records were brought to the store", brought)
    return brought


def _sync_folder(folder: Path) -> None:
    """Make the name of a new file outlast a loss of power."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


Key: TypeAlias = tuple[str, int]
"""Id and revision of a record."""

_BLOCK = 1 << 20

_HEAD = re.compile(rb'\{"schema_version":\d+,"id":("(?:[^"\\]|\\.)*"),"revision":(\d+)')


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
        """Tell the log, if there is anything to tell."""
        if self.torn or self.unreadable:
            told = (where, self.torn, self.unreadable)
            logger.warning(
                "audit: %s holds %d torn last line(s) and %d other line(s) that are no records; "
                "they were skipped",
                *told,
            )


def as_lines(entries: Iterable[AuditEntry]) -> bytes:
    """Write records."""
    return "".join(f"{entry.line}\n" for entry in entries).encode("ascii")


def read_lines(descriptor: int, damage: Damage) -> Iterator[AuditEntry]:
    """Read records from the start of a file that others may be appending to."""
    for line in _whole_lines(descriptor, damage):
        try:
            yield AuditEntry(AuditRecord.from_json(line), line.decode("ascii"))
        except (AuditError, UnicodeDecodeError):
            damage.lines += [line] if line.strip() else []


def found_in(descriptor: int, wanted: Container[Key]) -> Iterator[Key]:
    """Tell which of some records a file holds, without reading the others whole."""
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
