"""The thread that brings records to their store, or keeps them while the store is away."""

import logging
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from langchain_groundedness._causes import cause
from langchain_groundedness.audit._files import failure
from langchain_groundedness.audit._outbox import Outbox
from langchain_groundedness.audit._spill import SpillFolder
from langchain_groundedness.audit.record import AuditEntry, AuditRecord
from langchain_groundedness.exceptions import GroundednessError

__all__ = ["Write", "Writer"]

Write = Callable[..., None]
"""Writes records; takes them and `repeated`, whether some of them may be in the store already."""

_BATCH = 500
_IDLE = 60.0
_LONGEST_PAUSE = 30.0

logger = logging.getLogger("langchain_groundedness")


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
        """Begin with a store that is taken to be there.

        Args:
            outbox: Where records come from.
            prepare: Gives what is kept of a record; never fails.
            write: Writes records to the store.
            spill: Where records may wait that were not taken from the outbox, or by processes
                that are gone.
            spills: Whether records are kept there while the store is away, or in memory.
            retry_after: Seconds until the store is tried again; doubled each time, up to 30.
        """
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
        """Wait for something to do, and do it.

        Returns:
            Whether there is nothing left to do.
        """
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
