"""What all audit logs share: records are handed over without waiting, and written by a thread."""

import asyncio
import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Self

from langchain_core.runnables.config import run_in_executor

from langchain_groundedness._runtime.files import failure, need_locks, refuse_symlink
from langchain_groundedness.audit import process_exit
from langchain_groundedness.audit.content import Keeping, Redact, bare
from langchain_groundedness.audit.disk_spool import SpillFolder
from langchain_groundedness.audit.record import AuditEntry, AuditRecord, Content
from langchain_groundedness.audit.write_queue import Outbox, Writer
from langchain_groundedness.exceptions import AuditError, ConfigurationError, GroundednessError

__all__ = ["AuditLog", "require_positive"]

_ROOM_WITHIN = 5.0

_AT_EXIT_WITHIN = 10.0

logger = logging.getLogger("langchain_groundedness")


class AuditLog(ABC):
    """Keeps a record of every decision; give it to an entry point as `audit_log=`.

    `record` hands over and returns; a thread of the log writes. `flush` returns when everything
    handed over is durable: in the store, or, while the store is away, in the spill folder. At the
    end of the process what is left is written. A process that is killed loses what it had not
    flushed, and nothing else.

    A log may be used from any thread and event loop, and in the children of a fork. Make it before
    the event loop runs: that looks at files.

    For a store of your own, subclass this and give it `write`.

    Example:
        >>> class InMemory(AuditLog):
        ...     def __init__(self):
        ...         super().__init__(on_store_down="raise")
        ...         self.kept = {}
        ...
        ...     def write(self, entries, *, repeated):
        ...         self.kept.update({entry.record.id: entry.line for entry in entries})
        >>> from langchain_groundedness import Decision
        >>> with InMemory() as log:
        ...     log.record(AuditRecord(verdict="no_claims", decision=Decision(action="pass")))
        >>> len(log.kept)
        1
    """

    def __init__(  # noqa: PLR0913  (each option is given by keyword)
        self,
        *,
        content: Content = "full",
        redact: Redact | None = None,
        hash_key: str | bytes | None = None,
        on_store_down: Literal["spill", "raise"] = "spill",
        spill_folder: str | Path | None = None,
        max_pending: int = 10_000,
        on_full: Literal["wait", "spill"] = "wait",
        retry_after: float = 1.0,
    ) -> None:
        """Say what is kept, and what happens when it cannot be."""
        self._keeping = Keeping(content=content, redact=redact, hash_key=hash_key)
        require_one_of("on_store_down", on_store_down, ("spill", "raise"))
        require_one_of("on_full", on_full, ("wait", "spill"))
        require_positive(max_pending=max_pending)
        if not isinstance(retry_after, int | float) or not retry_after > 0:
            msg = f"retry_after must be a number of seconds above 0, got {retry_after!r}"
            raise ConfigurationError(msg)
        self._raises = on_store_down == "raise"
        self._spills_when_full = on_full == "spill"
        self._max_pending = max_pending
        self._retry_after = float(retry_after)
        self._spill = None
        if not self._raises or self._spills_when_full:
            self._spill = spill_folder_of(spill_folder)
        self._closed = False
        self._begin()
        process_exit.watch(self)
        if self._spill is not None and self._spill.any_file:
            self._start()

    def _begin(self) -> None:
        self._starting = threading.RLock()
        self._thread: threading.Thread | None = None
        self._outbox = Outbox(self._max_pending)
        self._writer = Writer(
            self._outbox,
            prepare=self._prepare,
            write=self.write,
            spill=self._spill,
            spills=not self._raises,
            retry_after=self._retry_after,
        )

    @abstractmethod
    def write(self, entries: Sequence[AuditEntry], *, repeated: bool) -> None:
        """Write records to the store; called by one thread at a time, never on an event loop.

        Args:
            entries: The records. Of two with one id, the one with the higher revision counts.
            repeated: Whether some of them may be in the store already.

        Raises:
            Exception: The store is down. All of them will come again.
        """

    def release(self) -> None:  # noqa: B027  (a store may have nothing to let go of)
        """Let go of the store; called once, after the last `write`."""

    def forked(self) -> None:  # noqa: B027  (a store may have nothing to let go of)
        """Drop what belongs to the parent process; called in the child of a fork."""

    @property
    def pending(self) -> int:
        """How many records were handed over by this process and are not durable yet."""
        return self._outbox.size

    @property
    def spilled(self) -> int:
        """How many records of this process wait in the spill folder."""
        return 0 if self._spill is None else self._spill.own

    def record(self, record: AuditRecord) -> None:
        """Hand a record over. Returns at once, unless too many wait already.

        On an event loop it never waits: use `arecord` there, or the records beyond `max_pending`
        are kept in memory.

        Args:
            record: The record.

        Raises:
            AuditError: The log is closed; or the store is down, with `on_store_down="raise"`.
        """
        if not self._took(record):
            self._beyond(record)

    async def arecord(self, record: AuditRecord) -> None:
        """Hand a record over, waiting for room, if need be, without holding up the event loop.

        Args:
            record: The record.

        Raises:
            AuditError: As `record`.
        """
        if not self._took(record):
            await run_in_executor(None, self._beyond, record)

    def confirm(self) -> None:
        """Wait until what was handed over is durable, if `on_store_down="raise"`; else return.

        What is to give no answer without a record calls this before it gives one. It waits on an
        event loop, too: use `aconfirm` there.

        Raises:
            AuditError: The store is down.
        """
        if self._raises:
            self._settled(None)

    async def aconfirm(self) -> None:
        """Do what `confirm` does, without holding up the event loop.

        Raises:
            AuditError: As `confirm`.
        """
        if self._raises:
            await run_in_executor(None, self._settled, None)

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until everything handed over so far is durable, and try the store now if it is down.

        Args:
            timeout: Most seconds to wait; by default as long as it takes.

        Returns:
            Whether all is durable.

        Raises:
            AuditError: With `on_store_down="raise"`, the store is down.
            GroundednessError: Called where an event loop runs; use `aflush` there.
        """
        if _in_loop():
            msg = "flush() would hold up the running event loop: use `await log.aflush()`"
            raise GroundednessError(msg)
        return self._settled(timeout)

    async def aflush(self, timeout: float | None = None) -> bool:  # noqa: ASYNC109  (as in flush)
        """Wait until everything handed over so far is durable, without holding up the event loop.

        Args:
            timeout: Most seconds to wait; by default as long as it takes.

        Returns:
            Whether all is durable.

        Raises:
            AuditError: As `flush`.
        """
        return await run_in_executor(None, self._settled, timeout)

    def close(self, timeout: float | None = None) -> None:
        """Flush, and let go of the store; calling it again does nothing.

        Args:
            timeout: Most seconds to wait; by default as long as it takes.

        Raises:
            AuditError: Not everything is durable; with `on_store_down="spill"` only if nothing
                can be written to the spill folder either, or time is up.
        """
        if self._closed:
            return
        try:
            done = self._settled(timeout)
        finally:
            self._closed = True
            self._outbox.close()
            if self._thread is not None:
                self._thread.join(timeout)
            if self._spill is not None:
                self._spill.close()
            self.release()
        if not done:
            raise self._undone()

    async def aclose(self, timeout: float | None = None) -> None:  # noqa: ASYNC109  (as in close)
        """Flush, and let go of the store, without holding up the event loop.

        Args:
            timeout: As for `close`.
        """
        await run_in_executor(None, self.close, timeout)

    def __enter__(self) -> Self:
        """Give the log."""
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Close the log."""
        self.close()

    async def __aenter__(self) -> Self:
        """Give the log."""
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        """Close the log."""
        await self.aclose()

    def __copy__(self) -> Self:
        """Give the log itself: it stands for one store."""
        return self

    def __deepcopy__(self, memo: Any) -> Self:
        """Give the log itself: it stands for one store."""
        return self

    def _took(self, record: AuditRecord) -> bool:
        if not isinstance(record, AuditRecord):
            msg = f"an AuditRecord is needed, got {type(record).__name__}"
            raise AuditError(msg, taken=False)
        if self._closed:
            msg = "the audit log is closed, and the record was not taken"
            raise AuditError(msg, taken=False)
        down = self._raises and self._writer.failure is not None
        taken = self._outbox.offer(record)
        self._start()
        if down:
            raise self._undone(taken=taken)
        return taken

    def _beyond(self, record: AuditRecord) -> None:
        """Take a record for which there is no room."""
        looped = _in_loop()
        if self._spills_when_full and self._spill is not None and not looped:
            try:
                self._spill.append([self._prepare(record)])
            except OSError as exc:
                logger.warning("audit: spilling has failed (%s)", failure(exc))
            else:
                return
        elif not looped:
            self._outbox.wait_for_room(_ROOM_WITHIN)
        if not self._outbox.offer(record):
            logger.warning("audit: more than max_pending=%d records wait", self._max_pending)
            self._outbox.offer(record, beyond=True)

    def _settled(self, timeout: float | None) -> bool:
        if self._closed:
            return not self._outbox.size
        flush = self._outbox.begin_flush()
        self._start()
        ended = self._outbox.await_flush(flush, timeout)
        if flush.failed or (self._raises and not ended and self._writer.failure is not None):
            raise self._undone()
        return ended

    def _undone(self, *, taken: bool = True) -> AuditError:
        number, why = self._outbox.size, self._writer.failure
        down = f"the store of the audit log cannot be written to ({why}): " if why else ""
        lost = "" if taken else "; the record that was handed over now is not among them"
        kept = "they are kept in memory, and tried again"
        msg = f"{down}{number} records are not durable; {kept}{lost}"
        return AuditError(msg, records=number, taken=taken)

    def _prepare(self, record: AuditRecord) -> AuditEntry:
        try:
            kept = self._keeping.record(record)
            return AuditEntry(kept, kept.to_json())
        except Exception as exc:  # noqa: BLE001  (a record is never lost, whatever is in it)
            why = type(exc).__name__
            logger.warning("audit: a record cannot be written whole (%s)", why)
            rest = bare(record, why)
            return AuditEntry(rest, rest.to_json())

    def _start(self) -> None:
        """Have a thread that works, unless there is one."""
        if self._thread is not None and self._thread.is_alive():
            return
        with self._starting:
            if self._thread is not None and self._thread.is_alive():
                return
            process_exit.register_exit()
            thread = threading.Thread(
                target=self._writer.run, name="groundedness-audit", daemon=True
            )
            try:
                thread.start()
            except RuntimeError:  # the interpreter is shutting down, and starts no threads
                self._writer.turn()
            else:
                self._thread = thread

    def at_exit(self) -> None:
        """Write what is left; called when the process ends."""
        try:
            if self._outbox.size:
                self.close(_AT_EXIT_WITHIN)
        except Exception as exc:  # noqa: BLE001  (the process ends, and nobody could catch it)
            logger.error("audit: %s", exc)  # noqa: TRY400  (a traceback says no more)

    def after_fork(self) -> None:
        """Begin anew; called in the child of a fork."""
        self._begin()  # what was handed over before is the parent's
        if self._spill is not None:
            self._spill.forked()
        self.forked()


def _in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def require_one_of(name: str, value: object, accepted: tuple[str, ...]) -> None:
    """Refuse a value that is not in a closed set."""
    if value not in accepted:
        shown = value if isinstance(value, str) else type(value).__name__
        msg = f"{name} must be one of {', '.join(map(repr, accepted))}, got {shown!r}"
        raise ConfigurationError(msg)


def require_positive(**options: Any) -> None:
    """Refuse values that are no whole numbers of at least 1."""
    for name, value in options.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            msg = f"{name} must be a whole number of at least 1, got {value!r}"
            raise ConfigurationError(msg)


def spill_folder_of(folder: str | Path | None) -> SpillFolder:
    """Give the folder for records that wait."""
    if not isinstance(folder, str | Path) or not str(folder):
        msg = (
            "spill_folder is needed: a folder for records that wait while the store is down; or "
            'set on_store_down="raise" and on_full="wait"'
        )
        raise ConfigurationError(msg)
    need_locks('records that wait on disk need locks (without: on_store_down="raise")')
    refuse_symlink(Path(folder), "spill_folder")
    return SpillFolder(Path(folder))
