"""Serves pages: filters requests and listens on a port."""

import ipaddress
import mimetypes
import re
import socket
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse
from starlette.routing import BaseRoute, Mount
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from langchain_groundedness.exceptions import ConfigurationError, require

__all__ = ["POLICY", "RequestFilter", "filtered_app", "from_our_page", "listen", "serve"]

LARGEST_BODY = 1 << 20

TOO_LARGE = 413, "The form is too large."

LONGEST_QUERY = 8_192

_HOST = re.compile(r"(?:\[([\w.:%-]+)\]|([\w.-]+))(?::\d*)?", re.ASCII)

_LOOK = ("langchain_groundedness", "static")
"""Style sheet shared with reports."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)

_HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "x-robots-tag": "noindex",
    "cache-control": "no-store",
}


class RequestFilter:
    """Accepts only requests with an allowed host name and size."""

    def __init__(
        self, app: ASGIApp, *, hosts: Collection[str], any_address: bool, hint: str
    ) -> None:
        """Name the server's hosts, and what to do about another one."""
        self._app = app
        self._hosts = {host.casefold() for host in hosts}
        self._any_address = any_address
        self._hint = hint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] != "http":  # the page uses no WebSocket
            await send({"type": "websocket.close", "code": 1008})
        else:
            answer = self._refusal(scope) or self._app
            await answer(scope, _limit_body(receive), _with_headers(send))

    def _refusal(self, scope: Scope) -> ASGIApp | None:
        headers = Headers(scope=scope)
        hosts, length = headers.getlist("host"), headers.get("content-length", "0")
        if len(hosts) != 1 or not self._is_allowed_host(hosts[0]):
            status, text = 400, f"This host name is not allowed. {self._hint}"
        elif not length.isdecimal() or int(length) > LARGEST_BODY:
            status, text = TOO_LARGE
        elif len(scope["query_string"]) > LONGEST_QUERY:
            status, text = 414, "The address is too long."
        else:
            return None
        return PlainTextResponse(text, status, {"connection": "close"})

    def _is_allowed_host(self, host: str) -> bool:
        name = host_of(host)
        if name is None:
            return False
        return name in self._hosts or (self._any_address and _address(name) is not None)


def filtered_app(routes: Sequence[BaseRoute], **options: Any) -> RequestFilter:
    """Make an application of routes, and of the style sheets and scripts of our pages."""
    mimetypes.init()  # reads files, which would block the event loop later
    static = StaticFiles(directory=Path(__file__).parent / "static", packages=[_LOOK])
    return RequestFilter(Starlette(routes=[*routes, Mount("/static", static)]), **options)


def _with_headers(send: Send) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return sent


def _limit_body(receive: Receive) -> Receive:
    read = 0

    async def counted() -> Message:
        nonlocal read
        message = await receive()
        read += len(message.get("body", b""))
        if read > LARGEST_BODY:
            raise HTTPException(*TOO_LARGE)
        return message

    return counted


def from_our_page(headers: Mapping[str, str]) -> bool:
    """Tell whether what is sent with these headers comes from a page of this server."""
    origin = headers.get("origin")
    ours = origin is None or origin.partition("://")[2] == headers.get("host")
    return ours and headers.get("sec-fetch-site", "same-origin") == "same-origin"


def host_of(host: str) -> str | None:
    """Read the name from a Host header."""
    found = _HOST.fullmatch(host)
    return (found[1] or found[2]).casefold() if found else None


def is_loopback(host: str) -> bool:
    """Tell whether an address is a loopback address."""
    address = _address(host)
    return host.casefold() == "localhost" if address is None else address.is_loopback


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


def listen(host: str, port: int) -> socket.socket:
    """Listen on a port."""
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with ExitStack() as undo:
            taken = undo.enter_context(socket.socket(family, kind, protocol))
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            taken.bind(place)
            taken.listen()  # so that a browser can connect as soon as the address is shown
            undo.pop_all()
    except OSError as exc:
        why = exc.strerror or type(exc).__name__
        msg = f"cannot listen on {host} port {port} ({why}); choose another port with --port"
        raise ConfigurationError(msg) from exc
    return taken


def address_of(host: str, taken: socket.socket) -> str:
    """Give the address of the page for a browser on this machine."""
    name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104  (not bound here)
    shown = f"[{name}]" if ":" in name else name
    return f"http://{shown}:{taken.getsockname()[1]}"


def serve(app: Any, taken: socket.socket) -> None:
    """Serve until a signal stops it. Requests are not logged: a URL may hold the token."""
    uvicorn: Any = require("uvicorn", extra="review")
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        lifespan="off",
        ws="none",
        limit_concurrency=100,
        timeout_graceful_shutdown=5,
    )
    uvicorn.Server(config).run(sockets=[taken])
