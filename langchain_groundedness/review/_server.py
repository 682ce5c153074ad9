"""Serves the review page until the process is told to stop."""

import ipaddress
import socket
from typing import Any

import uvicorn

from langchain_groundedness.exceptions import ConfigurationError

__all__ = ["address_of", "listen", "serve"]


def listen(host: str, port: int) -> socket.socket:
    """Take a port.

    Args:
        host: Name or IP address.
        port: The port; 0 for any that is free.

    Returns:
        The socket.

    Raises:
        ConfigurationError: It cannot be taken.
    """
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        taken = socket.socket(family, kind, protocol)
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(place)
    except OSError as exc:
        why = exc.strerror or type(exc).__name__
        msg = f"{host} port {port} cannot be listened on ({why}); choose another with --port"
        raise ConfigurationError(msg) from exc
    return taken


def address_of(host: str, taken: socket.socket) -> str:
    """Give the address of the page for a browser on this machine.

    Args:
        host: As for `listen`.
        taken: What `listen` gave.

    Returns:
        The address, without a path.
    """
    port = taken.getsockname()[1]
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return f"http://{host}:{port}"
    name = str(ipaddress.ip_address(1 if address.version == 6 else "127.0.0.1"))  # noqa: PLR2004  (IP versions)
    shown = name if address.is_unspecified else str(address)
    return f"http://[{shown}]:{port}" if address.version == 6 else f"http://{shown}:{port}"  # noqa: PLR2004  (same)


def serve(app: Any, taken: socket.socket) -> None:
    """Serve until a signal says stop. Requests are not logged: an address may hold the token.

    Args:
        app: The application.
        taken: What to listen on.
    """
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
