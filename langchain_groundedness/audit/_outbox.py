"""Records on their way from many threads to one: bounded, in order, counted until durable."""

import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from langchain_groundedness.audit.record import AuditRecord

__all__ = ["Flush", "Outbox"]


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
        """Start empty.

        Args:
            most: How many records may be in it.
        """
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
        """Hand a record over without waiting.

        Args:
            record: The record.
            beyond: Whether to take it even if there is no room.

        Returns:
            Whether it was taken.
        """
        with self._changed:
            if not beyond and self.size >= self._most:
                return False
            self._waiting.append(record)
            self._handed += 1
            self._changed.notify_all()
            return True

    def wait_for_room(self, timeout: float) -> bool:
        """Wait until a record can be taken.

        Args:
            timeout: Most seconds to wait.

        Returns:
            Whether there is room.
        """
        with self._changed:
            return self._changed.wait_for(lambda: self.size < self._most, timeout)

    def take(self, most: int, timeout: float | None) -> list[AuditRecord]:
        """Wait for something to do.

        Args:
            most: How many records to take.
            timeout: Most seconds to wait.

        Returns:
            The records that have waited longest; they count until they are `done`. Empty if
            somebody flushes, the outbox is closed, or time is up.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._flushes or self.closed, timeout)
            return [self._waiting.popleft() for _ in range(min(most, len(self._waiting)))]

    def pause(self, timeout: float) -> None:
        """Wait until somebody flushes, the outbox is closed, or time is up.

        Args:
            timeout: Seconds.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._flushes or self.closed, timeout)

    def done(self, number: int) -> None:
        """Take note that records are durable.

        Args:
            number: How many.
        """
        with self._changed:
            self._durable += number
            self._changed.notify_all()

    def begin_flush(self) -> Flush:
        """Ask for everything that was handed over to be made durable now.

        Returns:
            What to wait for.
        """
        with self._changed:
            flush = Flush(upto=self._handed)
            self._flushes.append(flush)
            self._changed.notify_all()
            return flush

    def await_flush(self, flush: Flush, timeout: float | None) -> bool:
        """Wait for a flush to end.

        Args:
            flush: From `begin_flush`.
            timeout: Most seconds to wait.

        Returns:
            Whether it has ended.
        """
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
        """End the flushes for which all is durable, and those for which that has failed.

        Args:
            flushes: Those that an attempt was made for.
            failed: Whether it has failed.
        """
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
