"""What happens to audit logs when their process ends or forks."""

import atexit
import os
import sys
import weakref
from typing import Protocol

__all__ = ["register_exit", "watch"]


class _Log(Protocol):
    def at_exit(self) -> None:
        """Write what is left."""

    def after_fork(self) -> None:
        """Begin anew in the child of a fork."""


_logs: "weakref.WeakSet[_Log]" = weakref.WeakSet()
_registered: list[int] = []


def watch(log: _Log) -> None:
    """Tell a log when its process ends or forks, as long as there is one."""
    _logs.add(log)


def register_exit() -> None:
    """Have what is left written when this process ends; calling it again is free."""
    if os.getpid() in _registered:
        return
    _registered[:] = [os.getpid()]
    atexit.register(_end_all)
    processes = sys.modules.get("multiprocessing.process")
    if processes is not None and processes.parent_process() is not None:
        # Children of multiprocessing end without atexit.
        from multiprocessing.util import Finalize  # noqa: PLC0415  (needed in such children only)

        Finalize(None, _end_all, exitpriority=100)


def _end_all() -> None:
    for log in list(_logs):
        log.at_exit()


def _after_fork() -> None:
    for log in list(_logs):
        log.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
