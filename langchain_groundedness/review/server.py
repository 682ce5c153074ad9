"""Serves the review page until the process is told to stop."""

import socket
from contextlib import ExitStack
from typing import Any

import uvicorn

from langchain_groundedness.exceptions import ConfigurationError

__all__ = ["address_of", "listen", "serve"]


def listen(host: str, port: int) -> socket.socket:
    """Take a port."""
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with ExitStack() as undo:
            taken = undo.enter_context(socket.socket(family, kind, protocol))
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            taken.bind(place)
            undo.pop_all()
    except OSError as exc:
        why = exc.strerror or type(exc).__name__
        msg = f"{host} port {port} cannot be listened on ({why}); choose another with --port"
        raise ConfigurationError(msg) from exc
    return taken


def address_of(host: str, taken: socket.socket) -> str:
    """Give the address of the page for a browser on this machine."""
    name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104  (not bound here)
    shown = f"[{name}]" if ":" in name else name
    return f"http://{shown}:{taken.getsockname()[1]}"


def serve(app: Any, taken: socket.socket) -> None:
    """Serve until a signal says stop. Requests are not logged: an address may hold the token."""
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
