"""An audit log in a file, one JSON record per line."""

import glob
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime, timedelta
from functools import partial
from os.path import sameopenfile
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar, Unpack

from typing_extensions import override

from langchain_groundedness._runtime import files
from langchain_groundedness._runtime.options import expand_options, require_bool, require_positive
from langchain_groundedness.audit.log import (
    AuditLog,
    AuditLogOptions,
    refuse_unknown_options,
    require_age,
)
from langchain_groundedness.audit.record import AuditEntry, AuditRecord, new_id
from langchain_groundedness.audit.record_files import (
    UnreadableLines,
    append_lines,
    as_lines,
    read_records,
    records_found_in,
    sibling_path,
)
from langchain_groundedness.exceptions import AuditError, ConfigurationError

__all__ = ["JsonlAuditLog"]

_DATABASE_METHODS = ("query", "waiting", "count", "decide", "export", "upgrade")
_T = TypeVar("_T")


class JsonlAuditLog(AuditLog):
    """Appends records to a file that only its owner can read.

    Several processes can append to one file. When a file reaches `rotate_bytes`, it is renamed with
    the time appended to its name, and a new file begins. Needs POSIX locks and a local disk.

    Example:
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from langchain_groundedness import Decision
        >>> record = AuditRecord(verdict="no_claims", decision=Decision(action="pass"))
        >>> with TemporaryDirectory() as folder, JsonlAuditLog(Path(folder) / "audit.jsonl") as log:
        ...     log.record(record)
        ...     log.flush()
        ...     [kept.decision.action for kept in log.records()]
        True
        ['pass']
    """

    def __init__(
        self,
        path: str | Path,
        *,
        rotate_bytes: int | None = 100_000_000,
        keep: int | None = None,
        fsync: bool = True,
        **options: Unpack[AuditLogOptions],
    ) -> None:
        """Choose the file.

        Args:
            path: The file; the spool is beside it by default.
            rotate_bytes: Size at which a new file begins; `None` for one file.
            keep: How many rotated files are kept; all by default.
            fsync: Whether a record counts as durable only when the disk has it.
            **options: As for `AuditLog`.

        Raises:
            ConfigurationError: An option has an invalid value.
        """
        refuse_unknown_options(JsonlAuditLog, options)
        files.require_file_locks("JsonlAuditLog (use SQLAuditLog instead)")
        if "://" in str(path):
            msg = "path must be a file path; for the URL of a database, use SQLAuditLog(url)"
            raise ConfigurationError(msg)
        self._path = Path(path).absolute()
        if self._path.is_dir():
            msg = f"path must name a file, not a folder, such as {self._path / 'audit.jsonl'}"
            raise ConfigurationError(msg)
        self._lock_path = sibling_path(self._path, ".lock")
        files.refuse_symlink(self._path, "path")
        files.refuse_symlink(self._lock_path, "the lock beside path")
        limits = {"rotate_bytes": rotate_bytes, "keep": keep}
        require_positive(**{name: value for name, value in limits.items() if value is not None})
        require_bool(fsync=fsync)
        self._rotate_bytes = rotate_bytes
        self._keep = keep
        self._fsync = fsync
        options["spool_path"] = options.get("spool_path") or sibling_path(self._path, ".spool")
        super().__init__(**options)

    def __repr__(self) -> str:
        """Show the path."""
        return f"JsonlAuditLog({str(self._path)!r})"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Point to `SQLAuditLog` for methods that a file does not have."""
            msg = f"{type(self).__name__} has no {name!r}"
            if name in _DATABASE_METHODS:
                msg += ": only SQLAuditLog(url) has it; a file has records(), get(id) and prune()"
            raise AttributeError(msg)

    @property
    def path(self) -> Path:
        """The file that records are appended to now."""
        return self._path

    @override
    def write(self, entries: Sequence[AuditEntry], *, repeated: bool) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with files.lock_file(self._lock_path):
            if repeated:
                wanted = {(record.id, record.revision) for record, _ in entries}
                known = set(self._read(partial(records_found_in, wanted=wanted)))
                entries = [e for e in entries if (e.record.id, e.record.revision) not in known]
            lines = as_lines(entries)
            self._rotate(len(lines))
            with files.opened_private(self._path) as descriptor:
                append_lines(descriptor, lines)
                if self._fsync:
                    os.fsync(descriptor)

    def records(self) -> Iterator[AuditRecord]:
        """Read all records from all files, also while others write.

        Lines that cannot be read are skipped and logged.

        Yields:
            The records in the order in which they were written, each once, in its highest
            revision.

        Raises:
            AuditError: The files cannot be read.
        """
        damage = UnreadableLines()
        latest: dict[str, int] = {}
        for record, _ in self._read(partial(read_records, damage=damage)):
            if latest.get(record.id, -1) < record.revision:
                latest[record.id] = record.revision
        damage.report("the audit log")
        for record, _ in self._read(partial(read_records, damage=UnreadableLines())):
            if latest.get(record.id) == record.revision:
                del latest[record.id]
                yield record

    def get(self, record_id: str) -> AuditRecord | None:
        """Read one record.

        Args:
            record_id: Its id.

        Returns:
            The record; `None` if there is none.
        """
        return next((record for record in self.records() if record.id == record_id), None)

    def prune(self, *, older_than: timedelta) -> int:
        """Delete records for good.

        Args:
            older_than: Records of this age and older are deleted.

        Returns:
            How many were deleted.

        Raises:
            ConfigurationError: The age is negative, or no `timedelta`.
            AuditError: The files cannot be read or written.
        """
        require_age(older_than)
        before = datetime.now(UTC) - older_than
        try:
            with files.lock_file(self._lock_path):
                paths = [*self._rotated(), *([self._path] if self._path.exists() else [])]
                return sum(self._pruned(path, before) for path in paths)
        except OSError as exc:
            msg = f"the audit log cannot be pruned ({files.describe_os_error(exc, self._path)})"
            raise AuditError(msg) from exc

    def _rotated(self) -> list[Path]:
        names = self._path.parent.glob(f"{glob.escape(self._path.name)}.2*")
        return sorted(path for path in names if path.is_file() and not path.is_symlink())

    def _rotate(self, more: int) -> None:
        size = self._path.stat().st_size if self._path.exists() else 0
        if self._rotate_bytes is None or not size or size + more <= self._rotate_bytes:
            return
        moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
        self._path.rename(sibling_path(self._path, f".{moment}-{new_id()[-6:]}"))
        if self._keep is not None:
            for old in self._rotated()[: -self._keep]:
                old.unlink(missing_ok=True)

    def _read(self, read: Callable[[int], Iterator[_T]]) -> Iterator[_T]:
        """Read the files as they are now; the newest is opened first, so that none is missed."""
        with _opened(self._path) as newest:
            for path in self._rotated():
                with _opened(path) as file:
                    if file and not (newest and sameopenfile(file.fileno(), newest.fileno())):
                        yield from read(file.fileno())
            if newest:
                yield from read(newest.fileno())

    def _pruned(self, path: Path, before: datetime) -> int:
        damage = UnreadableLines()
        with files.opened_private(path, os.O_RDONLY) as descriptor:
            entries = list(read_records(descriptor, damage))
        kept = [entry for entry in entries if entry.record.time >= before]
        gone = len(entries) - len(kept)
        unread = b"".join(line + b"\n" for line in damage.lines)
        if not kept and not unread and path != self._path:
            path.unlink()
        elif gone:
            with files.replacing(path) as file:
                file.write(unread + as_lines(kept))
                file.flush()
                os.fsync(file.fileno())
        return gone


expand_options(JsonlAuditLog.__init__, AuditLog)


def _opened(path: Path) -> AbstractContextManager[IO[bytes] | None]:
    try:
        return os.fdopen(files.open_private(path, os.O_RDONLY), "rb")
    except FileNotFoundError:
        return nullcontext()
    except OSError as exc:
        msg = f"a file of the audit log cannot be read ({files.describe_os_error(exc, path)})"
        raise AuditError(msg) from exc
