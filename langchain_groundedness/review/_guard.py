"""What every request goes through: the right host, not too large, headers that protect the page."""

import ipaddress
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from typing import Any

__all__ = ["Guard", "TooLargeError", "host_of", "is_loopback"]

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
        """Say under which names the server is asked for.

        Args:
            app: What answers.
            hosts: The names, without a port.
            any_address: Whether any IP address will do; no other site can have one as its name.
        """
        self._app = app
        self._hosts = {host.casefold() for host in hosts}
        self._any_address = any_address

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request.

        Args:
            scope: What is asked.
            receive: Gives its body.
            send: Takes the response.
        """
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
    """Read the name from a Host header.

    Args:
        host: The header.

    Returns:
        The name in lower case, without port and brackets; `None` if it cannot be one.

    Example:
        >>> host_of("LOCALHOST:8080"), host_of("[::1]:80"), host_of("a b")
        ('localhost', '::1', None)
    """
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
    """Tell whether an address can be reached from this machine only.

    Args:
        host: A name or an IP address.

    Returns:
        Whether it is known to be so.
    """
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
