"""The bounded queue of the audit log, and the thread that writes it to the store.

Its own module because it holds all the thread synchronization of the audit log.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from langchain_groundedness._runtime.files import failure
from langchain_groundedness.audit.record import AuditEntry, AuditRecord
from langchain_groundedness.audit.record_files import Spool
from langchain_groundedness.display.counts import format_count, is_or_are
from langchain_groundedness.exceptions import GroundednessError, cause

__all__ = ["WriteQueue"]

_BATCH = 500
_LONGEST_PAUSE = 30.0

logger = logging.getLogger("langchain_groundedness")


@dataclass(kw_only=True, eq=False)
class WriteQueue:
    """Accepts records without blocking; a thread writes them to the store or the spool.

    The lock is never held during I/O while threads can start, so an event loop may take it; it is
    re-entrant because garbage collection may record at any point.
    """

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

    def wait_for_room(self, timeout: float) -> None:
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
        timeout = max(0.0, self._due - time.monotonic()) if retries else None
        with self._changed:
            self._changed.wait_for(self._has_work, timeout)
            flushes, number, closed = self._flushes_asked, self.size, self._closed
        self._empty(number, retry_now=closed or flushes > self._flushes_answered)
        with self._changed:
            self._flushes_answered = flushes
            self._changed.notify_all()
        return not closed

    def _has_work(self) -> bool:
        asked = self._closed or self._flushes_asked > self._flushes_answered
        return asked or (bool(self._waiting) and not self._stuck)

    def _empty(self, number: int, *, retry_now: bool) -> None:
        """Write the queued records, after those in the spool."""
        up = retry_now or self.failure is None or time.monotonic() >= self._due
        for done in range(0, max(number, 1), _BATCH):  # once without records, for the spool
            taken = self._waiting[: min(_BATCH, number - done)]
            batch = [self.prepare(record) for record in taken]
            up = up and self._to_store(batch)
            self._stuck = bool(batch) and not up and not self._to_spool(batch)
            if self._stuck:
                return
            with self._changed:
                del self._waiting[: len(batch)]
                self._changed.notify_all()

    def _to_store(self, batch: Sequence[AuditEntry]) -> bool:
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

    def _to_spool(self, batch: Sequence[AuditEntry]) -> bool:
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
        return failure(error)
    return str(error) if isinstance(error, GroundednessError) else cause(error)
