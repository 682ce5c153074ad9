"""One request of a reviewer, and how it is answered."""

import hashlib
import hmac
import ipaddress
import re
import secrets
import threading
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, MutableMapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from langchain_groundedness.display.escaping import printable
from langchain_groundedness.display.marked_text import SIGNS

__all__ = ["Guard", "Sessions", "TooLargeError", "Visit", "editable", "host_of", "is_loopback"]


@dataclass(slots=True)
class Session:
    """One browser that is signed in."""

    began: float
    used: float
    name: str = ""
    """Who decides; empty until they have said so."""
    notice: str = ""
    """What to say on the next page."""


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

    @staticmethod
    def looks_right(identity: str) -> bool:
        """Tell whether a cookie holds what `new_id` could have drawn."""
        return _ID.fullmatch(identity) is not None

    def begin(self) -> str:
        """Sign a browser in."""
        identity, now = self.new_id(), self._clock()
        with self._lock:
            gone = [key for key, session in self._open.items() if not self._lives(session, now)]
            for key in gone:
                del self._open[key]
            if len(self._open) >= _MOST:
                del self._open[min(self._open, key=lambda key: self._open[key].used)]
            self._open[_digest(identity)] = Session(now, now)
        return identity

    def find(self, identity: str) -> Session | None:
        """Give the session of a browser."""
        now = self._clock()
        with self._lock:
            session = self._open.get(_digest(identity))
            if session is None or not self._lives(session, now):
                return None
            session.used = now
            return session

    def end(self, identity: str) -> None:
        """Sign a browser out."""
        with self._lock:
            self._open.pop(_digest(identity), None)

    def form_token(self, identity: str) -> str:
        """Give what a form of this browser must hold, so that no other site can send it."""
        return hmac.new(self._key, identity.encode(), hashlib.sha256).hexdigest()

    def sent_from_our_form(self, identity: str, token: str) -> bool:
        """Tell whether a form comes from a page of ours."""
        expected = self.form_token(identity).encode()
        return hmac.compare_digest(expected, token.encode(errors="replace"))

    @staticmethod
    def _lives(session: Session, now: float) -> bool:
        return now - session.used < _IDLE and now - session.began < _LONGEST


@dataclass(kw_only=True)
class Visit:
    """A request, and who has sent it."""

    request: Request
    sessions: Sessions
    form: Mapping[str, str]
    cookie: str
    """Name of the cookie."""
    identity: str
    """Which browser it is."""
    session: Session | None = None
    """What is known of the browser if it is signed in."""
    token_needed: bool = True
    """Whether people sign in, and so can sign out."""

    @property
    def query(self) -> Mapping[str, str]:
        """What stands behind the path."""
        return self.request.query_params

    @property
    def root(self) -> str:
        """Where the application is mounted."""
        return str(self.request.scope.get("root_path", "")).rstrip("/")

    @property
    def known(self) -> Session:
        """What is known of the browser, which is signed in."""
        assert self.session is not None  # noqa: S101  (the door lets nobody else in)
        return self.session

    def signed_in(self) -> "Visit":
        """Sign the browser in, under a new identity."""
        self.sessions.end(self.identity)
        identity = self.sessions.begin()
        return replace(self, identity=identity, session=self.sessions.find(identity))

    def page(self, template: str, *, status: int = 200, **values: Any) -> Response:
        """Answer with a page."""
        shown = {
            "root": self.root,
            "form_token": self.sessions.form_token(self.identity),
            "session": self.session,
            "token_needed": self.token_needed,
            "notice": self._notice(),
            **values,
        }
        text = _templates.get_template(template).render(shown)
        return self._with_cookie(HTMLResponse(text.encode("utf-8", "replace"), status))

    def redirect(self, path: str) -> Response:
        """Answer with another address of ours."""
        return self._with_cookie(RedirectResponse(f"{self.root}{path}", 303))

    def _notice(self) -> str:
        if self.session is None:
            return ""
        notice, self.session.notice = self.session.notice, ""
        return notice

    def _with_cookie(self, response: Response) -> Response:
        if self.request.cookies.get(self.cookie) != self.identity:
            response.set_cookie(
                self.cookie,
                self.identity,
                path=self.root or "/",
                secure=self.request.url.scheme == "https",
                httponly=True,
                samesite="strict",
            )
        return response


def editable(text: str) -> str:
    """Drop what a field of a form cannot hold."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()


def _shown(text: object) -> str:
    return printable(str(text).replace("\r\n", "\n"))


def _short(text: str, most: int = 160) -> str:
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def _moment(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _quoted(text: str) -> str:
    return quote(editable(text), safe="")


def _words(name: str) -> str:
    return name.replace("_", " ")


_templates = Environment(
    loader=PackageLoader("langchain_groundedness.review"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    finalize=lambda value: "" if value is None else value,
)

_templates.filters |= {
    "shown": _shown,
    "editable": editable,
    "short": _short,
    "moment": _moment,
    "words": _words,
    "quoted": _quoted,
    "sign": SIGNS.__getitem__,
}

Message = MutableMapping[str, Any]

Scope = MutableMapping[str, Any]

Receive = Callable[[], Awaitable[Message]]

Send = Callable[[Message], Awaitable[None]]

App = Callable[[Scope, Receive, Send], Awaitable[None]]

LARGEST_BODY = 1 << 20

LONGEST_QUERY = 8_192

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)

_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "x-robots-tag": "noindex",
    "cache-control": "no-store",
}


class TooLargeError(Exception):
    """A request holds more than is read; raised where it is read."""


class Guard:
    """Lets requests through that name this server, and are not too large."""

    def __init__(self, app: App, *, hosts: Collection[str], any_address: bool) -> None:
        """Say under which names the server is asked for."""
        self._app = app
        self._hosts = {host.casefold() for host in hosts}
        self._any_address = any_address

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # no page of ours opens a socket
            await send({"type": "websocket.close", "code": 1008})
            return
        answer = _Answer(send)
        refused = self._refusal(scope)
        if refused is not None:
            await answer.refuse(*refused)
            return
        await self._app(scope, _limited(receive), answer)

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        headers = [(name.lower(), value) for name, value in scope["headers"]]
        hosts = [value.decode("latin-1") for name, value in headers if name == b"host"]
        if len(hosts) != 1 or not self._is_ours(hosts[0]):
            return 400, "This server does not go by that name. Allow it with --allow-host."
        length = next((value for name, value in headers if name == b"content-length"), b"0")
        if not length.isdigit() or int(length) > LARGEST_BODY:
            return 413, "The form is too large."
        if len(scope["query_string"]) > LONGEST_QUERY:
            return 414, "The address is too long."
        return None

    def _is_ours(self, host: str) -> bool:
        name = host_of(host)
        if name is None:
            return False
        return name in self._hosts or (self._any_address and _address(name) is not None)


class _Answer:
    """The response, with our headers."""

    def __init__(self, send: Send) -> None:
        self._send = send

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            present = {name.lower() for name, _ in message["headers"]}
            added = [
                (name.encode(), value.encode())
                for name, value in _HEADERS.items()
                if name.encode() not in present
            ]
            message = {**message, "headers": [*message["headers"], *added]}
        await self._send(message)

    async def refuse(self, status: int, text: str) -> None:
        kind = (b"content-type", b"text/plain; charset=utf-8")
        headers = [kind, (b"connection", b"close")]
        await self({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": text.encode()})


def host_of(host: str) -> str | None:
    """Read the name from a Host header."""
    if host.startswith("["):
        name, bracket, port = host[1:].partition("]")
        if not bracket or (port and not port.startswith(":")):
            return None
        port = port[1:]
    else:
        name, _, port = host.partition(":")
    fine = name and name.isascii() and name.isprintable() and not set(name) & set(" /@\\?#")
    return name.casefold() if fine and (not port or port.isdigit()) else None


def is_loopback(host: str) -> bool:
    """Tell whether an address can be reached from this machine only."""
    address = _address(host)
    return host.casefold() == "localhost" if address is None else address.is_loopback


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


def _limited(receive: Receive) -> Receive:
    read = 0

    async def counted() -> Message:
        nonlocal read
        message = await receive()
        read += len(message.get("body", b""))
        if read > LARGEST_BODY:
            raise TooLargeError
        return message

    return counted


_IDLE = 8 * 3600.0

_LONGEST = 24 * 3600.0

_MOST = 1_000

_ID = re.compile(r"[A-Za-z0-9_-]{43}")


def _digest(identity: str) -> bytes:
    return hashlib.sha256(identity.encode(errors="replace")).digest()
