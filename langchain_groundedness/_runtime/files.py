"""Files that only their owner can read and that links cannot redirect, and locks on them."""

import errno
import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from langchain_groundedness.exceptions import ConfigurationError

__all__ = [
    "LARGEST_SETTINGS",
    "failure",
    "lines_up_to",
    "lock_file",
    "locked",
    "need_locks",
    "open_private",
    "opened_private",
    "private_folder",
    "read_up_to",
    "refuse_symlink",
    "replace_file",
    "try_lock",
    "unusable",
    "whole_up_to",
    "write_all",
]

try:
    import fcntl
except ImportError:  # pragma: no cover  (Windows)
    fcntl = None  # type: ignore[assignment]  # the one name for both cases

_OWNER_ONLY = 0o600

_FOLDER_OWNER_ONLY = 0o700

_APPEND = os.O_RDWR | os.O_APPEND | os.O_CREAT


def need_locks(what: str) -> None:
    """Refuse to go on where files cannot be locked."""
    if fcntl is None:
        msg = f"{what}: files can be locked on Linux, macOS and other POSIX systems only"
        raise ConfigurationError(msg)


def open_private(path: Path, flags: int = _APPEND) -> int:
    """Open a file, made readable and writable by its owner only, and never through a link."""
    descriptor = os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), _OWNER_ONLY)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a plain file")
    return descriptor


def failure(error: OSError, path: Path | str | None = None) -> str:
    """Say what the system says of a file."""
    where = path if error.filename is None else error.filename
    words = (type(error).__name__, error.strerror, where if isinstance(where, str | Path) else None)
    return ": ".join(str(word) for word in words if word)


def unusable(path: object, error: OSError) -> ConfigurationError:
    """Say that a path that was given cannot be read or written, with the system's reason."""
    return ConfigurationError(f"{path}: {error.strerror or type(error).__name__}")


def refuse_symlink(path: Path, what: str) -> None:
    """Refuse a path that somebody else may have pointed elsewhere."""
    if path.is_symlink():
        msg = f"{what} is a symbolic link, and those are refused: give the path that it points to"
        raise ConfigurationError(msg)


def private_folder(path: Path) -> None:
    """Make a folder for its owner only, if it is not there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        path.mkdir(mode=_FOLDER_OWNER_ONLY)
    except FileExistsError:
        if not stat.S_ISDIR(path.lstat().st_mode):
            raise OSError(errno.ENOTDIR, "not a folder") from None


def replace_file(path: Path, pieces: Iterable[bytes]) -> None:
    """Replace a file atomically: readers find the old content or the new, never half."""
    target = path.resolve()
    draft = target.with_name(f".{secrets.token_hex(8)}.part")
    try:
        with draft.open("xb") as file:
            file.writelines(pieces)
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


def write_all(descriptor: int, data: bytes) -> None:
    """Append data as a whole, or not at all.

    The caller holds a lock, so that what is behind the old end can only be its own.
    """
    before = os.fstat(descriptor).st_size
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(descriptor, view) :]
    except OSError:
        os.ftruncate(descriptor, before)
        raise


@contextmanager
def opened_private(path: Path, flags: int = _APPEND) -> Iterator[int]:
    """Open a file as `open_private` does, and close it."""
    descriptor = open_private(path, flags)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def lock_file(path: Path, *, wait: bool = True) -> Iterator[bool]:
    """Hold a lock file, against other processes and threads; tell whether it is held."""
    with opened_private(path) as descriptor:
        if not wait and not try_lock(descriptor):
            yield False
            return
        with locked(descriptor):
            yield True


@contextmanager
def locked(descriptor: int) -> Iterator[None]:
    """Hold a lock on an open file, against other processes and other openings of it."""
    assert fcntl is not None  # noqa: S101  (refused at construction)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:  # a child of a fork may hold the file open, and with it the lock
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def try_lock(descriptor: int) -> bool:
    """Take a lock on an open file until it is closed, unless another process holds it."""
    assert fcntl is not None  # noqa: S101  (refused at construction)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


LARGEST_SETTINGS = 1 << 20
"""Bytes of a file with settings: policies and calibrations have some thousand."""

_AT_ONCE = 1 << 20


def read_up_to(path: Path, most: int) -> bytes:
    """Read a file."""
    with path.open("rb") as file:
        return whole_up_to(file, most, path)


def whole_up_to(file: IO[bytes], most: int, path: Path) -> bytes:
    """Read what is left of an open file, unpacked if it unpacks."""
    parts, size = [], 0
    while part := file.read(_AT_ONCE):
        size += len(part)
        if size > most:
            raise _OversizeError(most, path)
        parts.append(part)
    return b"".join(parts)


def lines_up_to(file: IO[bytes], most: int, path: Path) -> Iterator[bytes]:
    """Read the lines of an open file."""
    while line := file.readline(most + 1):
        if len(line) > most:
            raise _OversizeError(most, path, of="line")
        yield line


class _OversizeError(OSError):
    def __init__(self, most: int, path: Path, *, of: str = "") -> None:
        what = f"a {of} is longer" if of else "larger"
        told = f"{what} than {most >> 20} MiB, the most that is read"
        super().__init__(errno.EFBIG, told, str(path))
