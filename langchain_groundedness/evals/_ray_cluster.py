"""The cluster that an evaluation runs on: one that is there, or one of this machine's own."""

import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Any

from langchain_groundedness.exceptions import ConfigurationError, require

__all__ = ["cluster"]

_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_BACKEND_LOG_LEVEL": "fatal",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
}
"""Nothing is sent to Ray's makers, GPUs stay visible to all, nothing is written to stderr, and, as
Ray has it on other systems than Linux, its processes listen on the loopback interface only."""
_PREFIX, _LONGEST_PLACE = "groundedness-ray-", 20
_STORE_BYTES = 256 * 1024 * 1024
"""Rows on their way; they are no more than a few megabytes per worker."""


@contextmanager
def cluster(workers: int, address: str | None) -> Iterator[Any]:
    """Connect to a cluster; one that is started here ends with the context, and leaves nothing.

    Args:
        workers: How many processors are needed.
        address: Where a cluster is, `auto` for that of this machine, `None` for one of our own.
            If this process is connected to one already, that is taken.

    Yields:
        The module `ray`.

    Raises:
        ConfigurationError: There is no cluster at that address.
        MissingDependencyError: Ray is not installed.
    """
    with ExitStack() as stack:
        if address is None:
            stack.enter_context(_environment(_QUIET))
            stack.enter_context(_environment({"PYTHONPATH": _import_path()}, replaces=True))
        ray: Any = require("ray", extra="ray")
        require("ray.data", extra="ray")
        stack.enter_context(_level("ray.data", logging.ERROR))
        if ray.is_initialized():
            yield ray
            return
        stack.enter_context(_signals_kept())
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
        if address is None:
            folder = stack.enter_context(
                TemporaryDirectory(prefix=_PREFIX, dir=_place(), ignore_cleanup_errors=True)
            )
            options |= {
                "address": "local",
                "num_cpus": workers,
                "include_dashboard": False,
                "object_store_memory": _STORE_BYTES,
                "_node_ip_address": "127.0.0.1",
                "_temp_dir": folder,
            }
        else:
            options["address"] = address
        stack.callback(ray.shutdown)
        try:
            ray.init(**options)
        except (ConnectionError, ValueError, RuntimeError) as exc:
            where = "on this machine" if address is None else f"at {address}"
            msg = (
                f"no Ray cluster {where} ({type(exc).__name__}); start one with `ray start --head`,"
                " or leave out the address to have one for this run"
            )
            raise ConfigurationError(msg) from exc
        yield ray


def _import_path() -> str:
    """Let workers on this machine import what this process can."""
    return os.pathsep.join(str(Path(entry).absolute()) for entry in sys.path)


def _place() -> Path | None:
    """Find where a folder of Ray can be: paths of its sockets must be short."""
    short = Path(os.sep, "tmp")
    return short if len(gettempdir()) > _LONGEST_PLACE and short.is_dir() else None


@contextmanager
def _environment(values: dict[str, str], *, replaces: bool = False) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update({n: value for n, value in values.items() if replaces or before[n] is None})
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def _level(name: str, level: int) -> Iterator[None]:
    logger = logging.getLogger(name)
    before = logger.level
    logger.setLevel(level)
    try:
        yield
    finally:
        logger.setLevel(before)


@contextmanager
def _signals_kept() -> Iterator[None]:
    """Give back the handler that Ray replaces."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
