"""Sessions of the review page.

Its own module because it is what keeps strangers out, to be reviewed by itself: who is signed in,
how often a token may be guessed, and for how long a decision can be undone.
"""

import hashlib
import hmac
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

__all__ = ["FailedAttempts", "Session", "Sessions", "UndoableDecision"]

_LONGEST_IDLE = 8 * 3600.0

_LONGEST_SESSION = 24 * 3600.0

_MOST_SESSIONS = 1_000

_ATTEMPTS, _WINDOW = 10, 60.0


@dataclass(frozen=True, slots=True)
class UndoableDecision:
    """The last decision of a browser."""

    record_id: str
    revision: int
    form: Mapping[str, str]
    until: datetime
    """When it takes effect."""

    @property
    def seconds(self) -> int:
        """How long it can still be undone."""
        return max(0, round((self.until - datetime.now(UTC)).total_seconds()))


@dataclass(slots=True)
class Session:
    """What is known of one browser."""

    began: float = 0.0
    used: float = 0.0
    name: str = ""
    """Name of the reviewer; empty until given."""
    notice: str = ""
    """Message for the next page."""
    last: UndoableDecision | None = None

    def is_active(self, now: float) -> bool:
        """Tell whether it goes on."""
        return now - self.used < _LONGEST_IDLE and now - self.began < _LONGEST_SESSION


class Sessions:
    """The sessions of one server."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin without any."""
        self._clock = clock
        self._key = secrets.token_bytes(32)
        self._lock = threading.Lock()
        self._open: dict[bytes, Session] = {}

    @staticmethod
    def new_id() -> str:
        """Draw the id of a browser."""
        return secrets.token_urlsafe(32)

    def begin(self) -> str:
        """Sign a browser in."""
        identity, now = self.new_id(), self._clock()
        with self._lock:
            self._open = {k: each for k, each in self._open.items() if each.is_active(now)}
            if len(self._open) >= _MOST_SESSIONS:
                del self._open[min(self._open, key=lambda key: self._open[key].used)]
            self._open[_digest(identity)] = Session(now, now)
        return identity

    def find(self, identity: str) -> Session | None:
        """Give the session of a browser."""
        now = self._clock()
        with self._lock:
            session = self._open.get(_digest(identity))
            if session is None or not session.is_active(now):
                return None
            session.used = now
            return session

    def end(self, identity: str) -> None:
        """Sign a browser out."""
        with self._lock:
            self._open.pop(_digest(identity), None)

    def form_token(self, identity: str) -> str:
        """Return the token that protects this browser's forms against other sites."""
        return hmac.new(self._key, identity.encode(), hashlib.sha256).hexdigest()

    def sent_from_our_form(self, identity: str, token: str) -> bool:
        """Tell whether a form has the token of this browser."""
        expected = self.form_token(identity).encode()
        return hmac.compare_digest(expected, token.encode(errors="replace"))


class FailedAttempts:
    """Attempts to sign in with a wrong token, by the address that they came from."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin without any."""
        self._clock = clock
        self._lock = threading.Lock()
        self._at: dict[str, list[float]] = {}

    def add(self, address: str) -> None:
        """Note one."""
        now = self._clock()
        with self._lock:
            self._at = {who: at for who, at in self._at.items() if now - at[-1] < _WINDOW}
            # The latest addresses count: a thousand others must not make room for one more.
            self._at[address] = [*self._at.pop(address, [])[1 - _ATTEMPTS :], now]
            if len(self._at) > _MOST_SESSIONS:
                del self._at[next(iter(self._at))]

    def too_many(self, address: str) -> bool:
        """Tell whether an address has to wait."""
        with self._lock:
            at = self._at.get(address, [])
            return len(at) >= _ATTEMPTS and self._clock() - at[0] < _WINDOW


def _digest(identity: str) -> bytes:
    return hashlib.sha256(identity.encode(errors="replace")).digest()
