"""The bounded queue of the audit log, and the thread that writes it to the store.

Its own module because it holds all the thread synchronization of the audit log.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple, Protocol

from langchain_groundedness._runtime.files import failure
from langchain_groundedness.audit.record import AuditEntry, AuditRecord
from langchain_groundedness.audit.record_files import Spool
from langchain_groundedness.display.counts import format_count, is_or_are
from langchain_groundedness.exceptions import GroundednessError, cause

__all__ = ["WriteQueue"]

_BATCH = 500
_IDLE = 60.0
"""Seconds after which an idle log checks the spool for records of other processes."""
_LONGEST_PAUSE = 30.0

logger = logging.getLogger("langchain_groundedness")


class _StoreWriter(Protocol):
    def __call__(self, entries: Sequence[AuditEntry], *, repeated: bool) -> None: ...


class Flushed(NamedTuple):
    """The outcome of a flush."""

    ended: bool
    """Whether it ended in time."""
    durable: bool
    """Whether all records queued before it are durable."""


class WriteQueue:
    """Accepts records without blocking; a thread writes them to the store or the spool.

    The lock is never held during I/O, so an event loop may take it; it is re-entrant because
    garbage collection may record at any point.
    """

    def __init__(  # noqa: PLR0913  (made in one place, by keyword)
        self,
        *,
        prepare: Callable[[AuditRecord], AuditEntry],
        write: _StoreWriter,
        spool: Spool | None,
        spools_when_down: bool,
        max_pending: int,
        retry_after: float,
    ) -> None:
        """Start empty; the store is assumed to be up."""
        self._prepare = prepare
        self._write = write
        self._spool = spool
        self._spools_when_down = spools_when_down
        self._max_pending = max_pending
        self._retry_after = self._pause = retry_after
        self._changed = threading.Condition()
        self._starting = threading.RLock()
        self._thread: threading.Thread | None = None
        self._waiting: deque[AuditRecord] = deque()
        self._batch: list[AuditEntry] = []
        self._taken = 0
        """How many records are being written; `_batch` has them once they are prepared."""
        self._queued = 0
        self._flushes_asked = 0
        self._flushes_answered = 0
        self._closed = False
        self._stuck = False
        """Whether neither store nor spool took the records, which stay in memory until `_due`."""
        self._due = 0.0
        """When the store is retried."""
        self.failure: str | None = None
        """Why the last write failed; `None` if it succeeded."""

    @property
    def size(self) -> int:
        """Number of queued records that are not durable."""
        return len(self._waiting) + self._taken

    def offer(self, record: AuditRecord, *, beyond: bool = False) -> bool:
        """Queue a record if there is room; with `beyond`, in any case."""
        with self._changed:
            taken = beyond or self.size < self._max_pending
            if taken:
                self._waiting.append(record)
                self._queued += 1
                self._changed.notify_all()
        self.start()
        return taken

    def wait_for_room(self, timeout: float) -> None:
        """Wait for room in the queue, or the timeout."""
        with self._changed:
            self._changed.wait_for(lambda: self.size < self._max_pending, timeout)

    def flush(self, timeout: float | None) -> Flushed:
        """Wait until all queued records are written, or writing fails."""
        with self._changed:
            self._flushes_asked += 1
            flush, upto = self._flushes_asked, self._queued
            self._changed.notify_all()
        self.start()
        with self._changed:
            ended = self._changed.wait_for(lambda: self._flushes_answered >= flush, timeout)
            return Flushed(ended, durable=self._queued - self.size >= upto)

    def start(self) -> None:
        """Start the writer thread, unless it runs."""
        if self._thread is not None and self._thread.is_alive():
            return
        with self._starting:
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
        timeout = self._wait_seconds()
        with self._changed:
            self._changed.wait_for(self._has_work, timeout)
            flushes, number, closed = self._flushes_asked, self.size, self._closed
        retry_now = closed or flushes > self._flushes_answered
        self._empty(number, retry_now=retry_now)
        with self._changed:
            self._flushes_answered = flushes
            self._changed.notify_all()
        return not closed

    def _has_work(self) -> bool:
        asked = self._closed or self._flushes_asked > self._flushes_answered
        return asked or (bool(self._waiting) and not self._stuck)

    def _wait_seconds(self) -> float:
        if self._stuck or (self._spool is not None and not self._spool.is_empty):
            return max(0.0, self._due - time.monotonic())
        return _IDLE

    def _empty(self, number: int, *, retry_now: bool) -> None:
        """Write the queued records, after those in the spool."""
        due = retry_now or time.monotonic() >= self._due
        up = (due or self.failure is None) and self._drain_spool()
        while number and (batch := self._next_batch(number)):
            up = up and self._store(batch)
            self._stuck = not up and not self._to_spool(batch)
            if self._stuck:
                return
            number -= len(batch)
            self._drop_batch()

    def _next_batch(self, number: int) -> list[AuditEntry]:
        if not self._batch:
            with self._changed:
                taken = [self._waiting.popleft() for _ in range(min(number, _BATCH))]
                self._taken = len(taken)
            self._batch = [self._prepare(record) for record in taken]
        return self._batch

    def _drop_batch(self) -> None:
        with self._changed:
            self._batch, self._taken = [], 0
            self._changed.notify_all()

    def _drain_spool(self) -> bool:
        """Move spooled records to the store first; return whether new ones may follow them."""
        if self._spool is None or self._spool.is_empty:
            return True
        try:
            drained = self._spool.drain(partial(self._write, repeated=True))
        except Exception as exc:  # noqa: BLE001  (the store, or the file: tried again later)
            self._failed(exc)
            return False
        if not drained:  # another process moves it; new records go after it
            self._due = time.monotonic() + self._retry_after
            return not self._spools_when_down
        self._recovered()
        return True

    def _store(self, batch: Sequence[AuditEntry]) -> bool:
        try:
            self._write(batch, repeated=self.failure is not None)
        except Exception as exc:  # noqa: BLE001  (whatever it is, the records are kept)
            self._failed(exc)
            return False
        self._recovered()
        return True

    def _to_spool(self, batch: Sequence[AuditEntry]) -> bool:
        if self._spool is None or not self._spools_when_down:
            return False
        try:
            self._spool.append(batch)
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
            where = "spooled to disk" if self._spools_when_down else "kept in memory"
            logger.warning(
                "audit: the store cannot be written to (%s); records are %s until it can be",
                *(_reason(error), where),
            )
            self._pause = self._retry_after
        else:
            self._pause = min(2 * self._pause, _LONGEST_PAUSE)
        self.failure = _reason(error)
        self._due = time.monotonic() + self._pause

    def _recovered(self) -> None:
        if self.failure is not None:
            logger.warning("audit: the store can be written to again")
        self.failure, self._pause = None, self._retry_after


def _reason(error: Exception) -> str:
    """Describe an error; only errors of this package are known to hold no secrets."""
    if isinstance(error, OSError) and error.strerror and isinstance(error.filename, str | Path):
        return failure(error)
    return str(error) if isinstance(error, GroundednessError) else cause(error)
