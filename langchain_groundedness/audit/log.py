"""The base of all audit logs: `record` returns at once, and a thread writes to the store."""

import asyncio
import atexit
import logging
import os
import sys
import threading
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from inspect import signature
from pathlib import Path
from typing import Any, Literal, Self, TypedDict

from langchain_core.runnables.config import run_in_executor

from langchain_groundedness._runtime.files import describe_os_error
from langchain_groundedness._runtime.options import require_one_of, require_positive
from langchain_groundedness.audit.record import AuditEntry, AuditRecord, Content
from langchain_groundedness.audit.record_files import Spool
from langchain_groundedness.audit.redaction import Redact, Redaction, without_texts
from langchain_groundedness.display.counts import format_count, is_or_are
from langchain_groundedness.exceptions import (
    AuditError,
    ConfigurationError,
    GroundednessError,
    cause,
)

__all__ = ["AuditLog", "AuditLogOptions", "refuse_unknown_options", "require_age"]

_ROOM_TIMEOUT = 5.0

_EXIT_TIMEOUT = 10.0

_BATCH = 500
_IDLE = 60.0
"""Seconds after which an idle log checks the spool for records of other processes."""

_LONGEST_PAUSE = 30.0

logger = logging.getLogger("langchain_groundedness")


class AuditLogOptions(TypedDict, total=False):
    """Options of every audit log."""

    content: Content
    redact: Redact | None
    hash_key: str | bytes | None
    on_store_down: Literal["spool", "raise"]
    spool_path: str | Path | None
    max_pending: int
    on_full: Literal["wait", "spool"]
    retry_after: float


class AuditLog(ABC):
    """Keeps a record of every decision; give it to an entry point as `audit_log=`.

    `record` queues a record and returns; a thread of the log writes it. `flush` returns when all
    queued records are durable: in the store or, while the store is down, in the spool, a local
    file. When the store is back, this process or the next one that opens a log with the same spool
    writes them to the store. At the end of the process, the rest is written. A killed process
    loses only what it had not flushed.

    A log can be used from any thread and event loop, and in forked children. Create it before the
    event loop runs, since it looks at files.

    For a store of your own, make a subclass with a method `write`.

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
        on_store_down: Literal["spool", "raise"] = "spool",
        spool_path: str | Path | None = None,
        max_pending: int = 10_000,
        on_full: Literal["wait", "spool"] = "wait",
        retry_after: float = 1.0,
    ) -> None:
        """Choose what is kept, and what happens when the store is down.

        Args:
            content: What is kept of texts: all, digests with lengths, or nothing.
            redact: Called with each text before it is saved; returns the text that may be saved.
            hash_key: Key of the digests, so that nobody without it can guess texts.
            on_store_down: `spool` keeps records in a local file until the store is back; `raise`
                raises `AuditError`.
            spool_path: The file for those records; all processes with the same path share it.
            max_pending: Most records that wait in memory.
            on_full: What `record` does when that many wait: `wait` up to 5 seconds for room, or
                write to the `spool`.
            retry_after: Seconds after which a store that is down is tried again; the pause doubles
                each time, up to 30 seconds.

        Raises:
            ConfigurationError: An option has an invalid value.
        """
        self._redaction = Redaction(content=content, redact=redact, hash_key=hash_key)
        require_one_of("on_store_down", on_store_down, ("spool", "raise"))
        require_one_of("on_full", on_full, ("wait", "spool"))
        require_positive(max_pending=max_pending)
        if not isinstance(retry_after, int | float) or not retry_after > 0:
            msg = f"retry_after must be a number of seconds above 0, got {retry_after!r}"
            raise ConfigurationError(msg)
        self._raises = on_store_down == "raise"
        spool = None if self._raises and on_full == "wait" else Spool(spool_path)
        self._spool_when_full = spool if on_full == "spool" else None
        self._closed = False
        self._queue = _WriteQueue(
            prepare=self._prepare,
            write=self.write,
            spool=spool,
            spools_when_down=not self._raises,
            max_pending=max_pending,
            retry_after=float(retry_after),
        )
        _logs.add(self)
        if spool is not None and not spool.is_empty:
            self._queue.start()

    @abstractmethod
    def write(self, entries: Sequence[AuditEntry], *, repeated: bool) -> None:
        """Write records to the store; called by one thread at a time, never on an event loop.

        Args:
            entries: The records. If two have the same id, the higher revision counts.
            repeated: Whether some of them may be in the store already.

        Raises:
            Exception: The store is down; the same records are passed again later.
        """

    def release(self) -> None:  # noqa: B027  (a store may have nothing to close)
        """Close the store; called once, after the last `write`."""

    def forked(self) -> None:  # noqa: B027  (a store may have nothing to close)
        """Drop connections of the parent process; called in a forked child."""

    @property
    def pending(self) -> int:
        """How many records of this process are not durable yet."""
        return self._queue.size

    @property
    def spooled(self) -> int:
        """How many records wait in the spool, of all processes that share it."""
        return 0 if self._queue.spool is None else len(self._queue.spool)

    def record(self, record: AuditRecord) -> None:
        """Queue a record. Returns at once, unless the queue is full.

        On an event loop it never waits; records beyond `max_pending` then stay in memory. Use
        `arecord` there.

        Args:
            record: The record.

        Raises:
            AuditError: The log is closed; or the store is down, with `on_store_down="raise"`.
        """
        if not self._accepted(record):
            self._offer_beyond_limit(record)

    async def arecord(self, record: AuditRecord) -> None:
        """Queue a record; waits for room in the queue without blocking the event loop.

        Args:
            record: The record.

        Raises:
            AuditError: As `record`.
        """
        if not self._accepted(record):
            await run_in_executor(None, self._offer_beyond_limit, record)

    def confirm(self) -> None:
        """With `on_store_down="raise"`, wait until all queued records are durable; else return.

        Entry points call this before they return an answer. It blocks an event loop: use
        `aconfirm` there.

        Raises:
            AuditError: The store is down.
        """
        if self._raises:
            self._flushed(None)

    async def aconfirm(self) -> None:
        """Do what `confirm` does, without blocking the event loop.

        Raises:
            AuditError: As `confirm`.
        """
        if self._raises:
            await run_in_executor(None, self._flushed, None)

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until all queued records are durable; a store that is down is tried now.

        Args:
            timeout: Seconds to wait at most; by default as long as it takes.

        Returns:
            Whether all is durable.

        Raises:
            AuditError: With `on_store_down="raise"`, the store is down.
            GroundednessError: Called where an event loop runs; use `aflush` there.
        """
        if _in_event_loop():
            msg = "flush() would block the running event loop: use `await log.aflush()`"
            raise GroundednessError(msg)
        return self._flushed(timeout)

    async def aflush(self, timeout: float | None = None) -> bool:  # noqa: ASYNC109  (as in flush)
        """Wait until all queued records are durable, without blocking the event loop.

        Args:
            timeout: Seconds to wait at most; by default as long as it takes.

        Returns:
            Whether all is durable.

        Raises:
            AuditError: As `flush`.
        """
        return await run_in_executor(None, self._flushed, timeout)

    def close(self, timeout: float | None = None) -> None:
        """Flush and close the store; calling it again does nothing.

        Args:
            timeout: Seconds to wait at most; by default as long as it takes.

        Raises:
            AuditError: Not everything is durable; with `on_store_down="spool"` only if nothing
                can be written to the spool either, or time is up.
        """
        if self._closed:
            return
        try:
            done = self._flushed(timeout)
        finally:
            self._closed = True
            self._queue.close(timeout)
            self.release()
        if not done:
            raise self._durability_error()

    async def aclose(self, timeout: float | None = None) -> None:  # noqa: ASYNC109  (as in close)
        """Flush and close the store, without blocking the event loop.

        Args:
            timeout: As for `close`.
        """
        await run_in_executor(None, self.close, timeout)

    def __enter__(self) -> Self:
        """Return the log."""
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Close the log."""
        self.close()

    async def __aenter__(self) -> Self:
        """Return the log."""
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        """Close the log."""
        await self.aclose()

    def __copy__(self) -> Self:
        """Return the log itself: two copies would write to one store."""
        return self

    def __deepcopy__(self, memo: Any) -> Self:
        """Return the log itself: two copies would write to one store."""
        return self

    def _accepted(self, record: AuditRecord) -> bool:
        if not isinstance(record, AuditRecord):
            msg = f"record() takes an AuditRecord, got {type(record).__name__}"
            raise AuditError(msg, taken=False)
        if self._closed:
            msg = "the audit log is closed; the record was not saved"
            raise AuditError(msg, taken=False)
        down = self._raises and self._queue.failure is not None
        _register_exit()
        taken = self._queue.offer(record)
        if down:
            raise self._durability_error(taken=taken)
        return taken

    def _offer_beyond_limit(self, record: AuditRecord) -> None:
        if not _in_event_loop():
            if self._spool_when_full is not None:
                try:
                    self._spool_when_full.append([self._prepare(record)])
                except OSError as exc:
                    logger.warning(
                        "audit: a record could not be spooled (%s)", describe_os_error(exc)
                    )
                else:
                    return
            self._queue.wait_for_capacity(_ROOM_TIMEOUT)
        if not self._queue.offer(record):
            most = self._queue.max_pending
            logger.warning("audit: more than max_pending=%d records are waiting", most)
            self._queue.offer(record, beyond=True)

    def _flushed(self, timeout: float | None) -> bool:
        if self._closed:
            return not self._queue.size
        durable = self._queue.flush(timeout)
        fails = self._raises and self._queue.failure is not None
        if durable is False or (durable is None and fails):
            raise self._durability_error()
        return durable is not None

    def _durability_error(self, *, taken: bool = True) -> AuditError:
        number, why = self._queue.size, self._queue.failure
        down = f"the store of the audit log cannot be written to ({why}): " if why else ""
        lost = "" if taken else "; this record is not among them and was not accepted"
        waiting = f"{format_count(number, 'record')} {is_or_are(number)} not durable"
        msg = f"{down}{waiting}, kept in memory and retried{lost}"
        return AuditError(msg, records=number, taken=taken)

    def _prepare(self, record: AuditRecord) -> AuditEntry:
        try:
            kept = self._redaction.record(record)
            return AuditEntry(kept, kept.to_json())
        except Exception as exc:  # noqa: BLE001  (a record is never lost, whatever is in it)
            why = type(exc).__name__
            logger.warning("audit: a record cannot be serialized (%s); its texts are left out", why)
            rest = without_texts(record, why)
            return AuditEntry(rest, rest.to_json())


@dataclass(kw_only=True, eq=False)
class _WriteQueue:
    """Accepts records without blocking; a thread writes them to the store or the spool."""

    # The lock is never held during I/O while threads can start, so an event loop may take it; it
    # is re-entrant because garbage collection may record at any point.

    prepare: Callable[[AuditRecord], AuditEntry]
    write: Callable[..., Any]
    spool: Spool | None
    spools_when_down: bool
    max_pending: int
    retry_after: float
    failure: str | None = field(default=None, init=False)
    """Why the last write failed; `None` if it succeeded."""

    def __post_init__(self) -> None:
        """Start empty; the store is assumed to be up."""
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._waiting: list[AuditRecord] = []
        self._queued = self._flushes_asked = self._flushes_answered = 0
        self._closed = False
        self._stuck = False
        """Whether neither store nor spool took the records, which stay in memory until `_due`."""
        self._pause = self.retry_after
        self._due = 0.0
        """When the store is retried."""

    @property
    def size(self) -> int:
        """Number of queued records that are not durable."""
        return len(self._waiting)

    def offer(self, record: AuditRecord, *, beyond: bool = False) -> bool:
        """Queue a record if there is room; with `beyond`, in any case."""
        with self._changed:
            taken = beyond or self.size < self.max_pending
            if taken:
                self._waiting.append(record)
                self._queued += 1
                self._changed.notify_all()
        self.start()
        return taken

    def wait_for_capacity(self, timeout: float) -> None:
        """Wait for room in the queue, or the timeout."""
        with self._changed:
            self._changed.wait_for(lambda: self.size < self.max_pending, timeout)

    def flush(self, timeout: float | None) -> bool | None:
        """Wait until all queued records are durable, or writing fails; `None` if time is up."""
        with self._changed:
            self._flushes_asked += 1
            flush, upto = self._flushes_asked, self._queued
            self._changed.notify_all()
        self.start()
        with self._changed:
            ended = self._changed.wait_for(lambda: self._flushes_answered >= flush, timeout)
            return self._queued - self.size >= upto if ended else None

    def start(self) -> None:
        """Start the writer thread, unless it runs."""
        with self._changed:
            if self._thread is not None and self._thread.is_alive():
                return
            thread = threading.Thread(target=self._run, name="groundedness-audit", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # the interpreter is shutting down, and starts no threads
                self._run_once()
            else:
                self._thread = thread

    def close(self, timeout: float | None) -> None:
        """Let the thread try once more, then stop it."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(timeout)
        if self.size:
            waiting = f"{format_count(self.size, 'record')} {is_or_are(self.size)} not durable"
            logger.error("audit: closed while %s: %s", waiting, self.failure)

    def _run(self) -> None:
        while self._run_once():
            pass

    def _run_once(self) -> bool:
        """Wait for work and do it; return whether more may come."""
        retries = self._stuck or not (self.spool is None or self.spool.is_empty)
        timeout = max(0.0, self._due - time.monotonic()) if retries else _IDLE
        with self._changed:
            self._changed.wait_for(self._has_work, timeout)
            flushes, number, closed = self._flushes_asked, self.size, self._closed
        self._drain(number, retry_now=closed or flushes > self._flushes_answered)
        with self._changed:
            self._flushes_answered = flushes
            self._changed.notify_all()
        return not closed

    def _has_work(self) -> bool:
        asked = self._closed or self._flushes_asked > self._flushes_answered
        return asked or (bool(self._waiting) and not self._stuck)

    def _drain(self, number: int, *, retry_now: bool) -> None:
        """Write the queued records, after those in the spool."""
        up = retry_now or self.failure is None or time.monotonic() >= self._due
        for done in range(0, max(number, 1), _BATCH):  # once without records, for the spool
            taken = self._waiting[: min(_BATCH, number - done)]
            batch = [self.prepare(record) for record in taken]
            up = up and self._write_to_store(batch)
            self._stuck = bool(batch) and not up and not self._write_to_spool(batch)
            if self._stuck:
                return
            with self._changed:
                del self._waiting[: len(batch)]
                self._changed.notify_all()

    def _write_to_store(self, batch: Sequence[AuditEntry]) -> bool:
        """Write what is in the spool, then a batch; return whether the next one may follow."""
        try:
            if self.spool is not None and not self.spool.is_empty:
                moved = self.spool.drain(lambda entries: self.write(entries, repeated=True))
                if not moved:  # another process moves it; new records go after it
                    self._due = time.monotonic() + self.retry_after
                    if self.spools_when_down or not batch:
                        return False
                else:
                    self._recovered()
            if batch:
                self.write(batch, repeated=self.failure is not None)
                self._recovered()
        except Exception as exc:  # noqa: BLE001  (whatever it is, the records are kept)
            self._failed(exc)
            return False
        return True

    def _write_to_spool(self, batch: Sequence[AuditEntry]) -> bool:
        if self.spool is None or not self.spools_when_down:
            return False
        try:
            self.spool.append(batch)
        except OSError as exc:
            logger.error(  # noqa: TRY400  (a traceback says no more)
                "audit: %d records can be written neither to the store (%s) nor to the spool (%s); "
                "they are kept in memory",
                *(self.size, self.failure, _reason(exc)),
            )
            self._due = time.monotonic() + self._pause
            return False
        return True

    def _failed(self, error: Exception) -> None:
        if self.failure is None:
            where = "spooled to disk" if self.spools_when_down else "kept in memory"
            logger.warning(
                "audit: the store cannot be written to (%s); records are %s until it can be",
                *(_reason(error), where),
            )
            self._pause = self.retry_after
        else:
            self._pause = min(2 * self._pause, _LONGEST_PAUSE)
        self.failure = _reason(error)
        self._due = time.monotonic() + self._pause

    def _recovered(self) -> None:
        if self.failure is not None:
            logger.warning("audit: the store can be written to again")
        self.failure = None


def _reason(error: Exception) -> str:
    """Describe an error; only errors of this package are known to hold no secrets."""
    if isinstance(error, OSError) and error.strerror and isinstance(error.filename, str | Path):
        return describe_os_error(error)
    return str(error) if isinstance(error, GroundednessError) else cause(error)


def _in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def refuse_unknown_options(owner: type[AuditLog], options: Iterable[str]) -> None:
    """Refuse options that a log does not have."""
    accepted = signature(owner).parameters
    for name in options:
        if name not in accepted:
            msg = f"{owner.__name__}: {name}: no such option; options are: {', '.join(accepted)}"
            raise ConfigurationError(msg)


def require_age(older_than: timedelta) -> None:
    """Refuse an invalid age."""
    if not isinstance(older_than, timedelta):
        kind = type(older_than).__name__
        msg = f"older_than must be a timedelta, such as timedelta(days=90), got {kind}"
        raise ConfigurationError(msg)
    if older_than < timedelta(0):
        msg = "older_than must not be negative"
        raise ConfigurationError(msg)


_logs: "weakref.WeakSet[AuditLog]" = weakref.WeakSet()

_registered_in: int | None = None
"""Id of the process that ends with `_close_all`."""


def _register_exit() -> None:
    """Write the remaining records at exit; repeated calls do nothing."""
    global _registered_in  # noqa: PLW0603  (one per process)
    if os.getpid() == _registered_in:
        return
    _registered_in = os.getpid()
    atexit.register(_close_all)
    processes = sys.modules.get("multiprocessing.process")
    if processes is not None and processes.parent_process() is not None:
        # Children of multiprocessing end without atexit.
        from multiprocessing.util import Finalize  # noqa: PLC0415  (needed in such children only)

        Finalize(None, _close_all, exitpriority=100)


def _close_all() -> None:
    for log in list(_logs):
        try:
            if log.pending:
                log.close(_EXIT_TIMEOUT)
        except Exception as exc:  # noqa: BLE001  (the process ends, and nobody could catch it)
            logger.error("audit: %s", exc)  # noqa: TRY400  (a traceback says no more)


def _restart_all_in_child() -> None:
    for log in list(_logs):
        # Records queued before the fork are the parent's.
        log._queue = replace(log._queue)  # noqa: SLF001  (of this module)
        log.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_restart_all_in_child)
