"""The thread that brings records to their store, or keeps them while the store is away."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from langchain_groundedness._runtime.files import failure
from langchain_groundedness.audit.disk_spool import SpillFolder
from langchain_groundedness.audit.record import AuditEntry, AuditRecord
from langchain_groundedness.exceptions import GroundednessError, cause

__all__ = ["Outbox", "Writer"]

Write = Callable[..., None]
"""Writes records; takes them and `repeated`, whether some of them may be in the store already."""

_BATCH = 500

_IDLE = 60.0

_LONGEST_PAUSE = 30.0

logger = logging.getLogger("langchain_groundedness")


@dataclass(eq=False)
class Flush:
    """Somebody who waits until everything handed over so far is durable."""

    upto: int
    """How many records had been handed over when it began."""
    tried: bool = False
    """Whether an attempt was made for it."""
    ended: bool = False
    failed: bool = False
    """Whether that has failed."""


class Outbox:
    """What was handed over and is not durable yet.

    The lock is held for moments only, never while anything is written, so an event loop may take
    it; it is re-entrant because a garbage collection may hand over a record at any place.
    """

    def __init__(self, most: int) -> None:
        """Start empty."""
        self._most = most
        self._changed = threading.Condition()
        self._waiting: deque[AuditRecord] = deque()
        self._flushes: list[Flush] = []
        self._handed = 0
        self._durable = 0
        self.closed = False

    @property
    def size(self) -> int:
        """How many records are not durable."""
        return self._handed - self._durable

    def offer(self, record: AuditRecord, *, beyond: bool = False) -> bool:
        """Hand a record over without waiting."""
        with self._changed:
            if not beyond and self.size >= self._most:
                return False
            self._waiting.append(record)
            self._handed += 1
            self._changed.notify_all()
            return True

    def wait_for_room(self, timeout: float) -> bool:
        """Wait until a record can be taken."""
        with self._changed:
            return self._changed.wait_for(lambda: self.size < self._most, timeout)

    def take(self, most: int, timeout: float | None) -> list[AuditRecord]:
        """Wait for something to do."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._flushes or self.closed, timeout)
            return [self._waiting.popleft() for _ in range(min(most, len(self._waiting)))]

    def pause(self, timeout: float) -> None:
        """Wait until somebody flushes, the outbox is closed, or time is up."""
        with self._changed:
            self._changed.wait_for(lambda: self._flushes or self.closed, timeout)

    def done(self, number: int) -> None:
        """Take note that records are durable."""
        with self._changed:
            self._durable += number
            self._changed.notify_all()

    def begin_flush(self) -> Flush:
        """Ask for everything that was handed over to be made durable now."""
        with self._changed:
            flush = Flush(upto=self._handed)
            self._flushes.append(flush)
            self._changed.notify_all()
            return flush

    def await_flush(self, flush: Flush, timeout: float | None) -> bool:
        """Wait for a flush to end."""
        with self._changed:
            self._changed.wait_for(lambda: flush.ended, timeout)
            if not flush.ended and flush in self._flushes:
                self._flushes.remove(flush)
            return flush.ended

    def asked(self) -> tuple[list[Flush], bool]:
        """Give the flushes that wait, and tell whether any of them is new."""
        with self._changed:
            new = not all(flush.tried for flush in self._flushes)
            for flush in self._flushes:
                flush.tried = True
            return list(self._flushes), new

    def answer(self, flushes: Sequence[Flush], *, failed: bool) -> None:
        """End the flushes for which all is durable, and those for which that has failed."""
        with self._changed:
            for flush in flushes:
                if flush in self._flushes and (failed or self._durable >= flush.upto):
                    flush.ended, flush.failed = True, failed and self._durable < flush.upto
                    self._flushes.remove(flush)
            self._changed.notify_all()

    def close(self) -> None:
        """Let whoever takes end when all is taken."""
        with self._changed:
            self.closed = True
            self._changed.notify_all()


class Writer:
    """Takes records from the outbox until it is closed."""

    def __init__(  # noqa: PLR0913  (made in one place, by keyword)
        self,
        outbox: Outbox,
        *,
        prepare: Callable[[AuditRecord], AuditEntry],
        write: Write,
        spill: SpillFolder | None,
        spills: bool,
        retry_after: float,
    ) -> None:
        """Begin with a store that is taken to be there."""
        self._outbox = outbox
        self._prepare = prepare
        self._write = write
        self._spill = spill
        self._spills = spills
        self._retry_after = retry_after
        self._pause = retry_after
        self._due = 0.0
        self._look_at = 0.0
        self._closing = False
        self._held: list[AuditEntry] = []
        self.failure: str | None = None
        """Why the store has refused the last write; `None` if it has not."""

    def run(self) -> None:
        """Work until the outbox is closed, and all that can be done is done."""
        while not self.turn():
            pass

    def turn(self) -> bool:
        """Wait for something to do, and do it."""
        if self._held:
            self._outbox.pause(max(0.0, self._due - time.monotonic()))
        else:
            taken = self._outbox.take(_BATCH, self._patience())
            self._held = [self._prepare(record) for record in taken]
        asked, new = self._outbox.asked()
        last = self._outbox.closed
        self._work(hurry=new or (last and not self._closing))
        self._closing = last
        self._outbox.answer(asked, failed=bool(self._held))
        if last and self._held:
            left = self._outbox.size
            logger.error("audit: closed while %d records are not durable: %s", left, self.failure)
        return last and (bool(self._held) or not self._outbox.size)

    def _patience(self) -> float:
        waits = self._spill is not None and self._spill.own
        return max(0.0, (self._due if waits else self._look_at) - time.monotonic())

    def _work(self, *, hurry: bool) -> None:
        """Bring to the store what waits, if it is time to try it, and keep the rest."""
        tries = hurry or self.failure is None or time.monotonic() >= self._due
        open_ = tries and self._replayed(look=hurry)
        if self._held and ((open_ and self._attempt(self._held)) or self._kept()):
            number, self._held = len(self._held), []
            self._outbox.done(number)

    def _replayed(self, *, look: bool) -> bool:
        """Bring what was spilled before, which what comes later must not overtake.

        What processes have left that are gone is looked for now and then, and if `look` says so.
        """
        if self._spill is None:
            self._look_at = time.monotonic() + _IDLE
            return True
        look = look or time.monotonic() >= self._look_at
        if look:
            self._look_at = time.monotonic() + _IDLE
        if not self._spill.own and not (look and self._spill.any_file):
            return True
        try:
            brought = self._spill.replay(partial(self._write, repeated=True))
        except Exception as exc:  # noqa: BLE001  (the store, or the file: tried again later)
            self._failed(exc)
            return False
        if brought:
            self._recovered()
        return True

    def _attempt(self, entries: Sequence[AuditEntry]) -> bool:
        try:
            self._write(entries, repeated=self.failure is not None)
        except Exception as exc:  # noqa: BLE001  (whatever it is, the records are kept)
            self._failed(exc)
            return False
        self._recovered()
        return True

    def _kept(self) -> bool:
        if self._spill is None or not self._spills:
            return False
        try:
            self._spill.append(self._held)
        except OSError as exc:
            logger.error(  # noqa: TRY400  (a traceback says no more)
                "audit: %d records can be written neither to the store (%s) nor to the spill "
                "folder (%s); they are kept in memory",
                self._outbox.size,
                self.failure,
                _reason(exc),
            )
            self._due = time.monotonic() + self._pause
            return False
        return True

    def _failed(self, error: Exception) -> None:
        if self.failure is None:
            where = "spilled to disk" if self._spills else "kept in memory"
            logger.warning(
                "audit: the store cannot be written to (%s); records are %s until it can be",
                _reason(error),
                where,
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
    """Say why; errors of this package hold no secrets, and say it in words."""
    if isinstance(error, OSError) and error.strerror and isinstance(error.filename, str | Path):
        return failure(error)
    return str(error) if isinstance(error, GroundednessError) else cause(error)
