"""Private files that symbolic links cannot redirect, and file locks."""

import errno
import logging
import os
import secrets
import shlex
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import IO

from langchain_groundedness.exceptions import ConfigurationError

__all__ = [
    "LARGEST_SETTINGS",
    "describe_os_error",
    "describe_unusable_path",
    "lines_up_to",
    "lock_file",
    "locked_descriptor",
    "open_private",
    "opened_private",
    "private_folder",
    "raising_configuration_error",
    "read_rest_up_to",
    "read_up_to",
    "refuse_symlink",
    "replace_file",
    "replacing",
    "require_file_locks",
    "require_outputs",
    "try_lock",
    "write_all",
]

logger = logging.getLogger("langchain_groundedness")

try:
    import fcntl
except ImportError:  # pragma: no cover  (Windows)
    fcntl = None  # type: ignore[assignment]  # the one name for both cases

_OWNER_ONLY = 0o600

_READ_WRITE_ALL = 0o666

_OTHERS = 0o077

_FOLDER_OWNER_ONLY = 0o700

_APPEND = os.O_RDWR | os.O_APPEND | os.O_CREAT


def require_file_locks(what: str) -> None:
    """Raise `ConfigurationError` where files cannot be locked."""
    if fcntl is None:
        msg = f"{what}: file locks need a POSIX system such as Linux or macOS"
        raise ConfigurationError(msg)


def open_private(path: Path, flags: int = _APPEND, *, follow_symlinks: bool = False) -> int:
    """Open a file, made for its owner only; warn if an existing one has a wider mode."""
    if not follow_symlinks:
        flags |= getattr(os, "O_NOFOLLOW", 0)
    descriptor = os.open(path, flags, _OWNER_ONLY)
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file")
    if flags & (os.O_WRONLY | os.O_RDWR):
        _warn_if_shared(os.fspath(path), stat.S_IMODE(mode))
    return descriptor


@lru_cache(maxsize=1024)
def _warn_if_shared(path: str, mode: int) -> None:
    """Warn once about each file that users other than its owner can access."""
    if mode & _OTHERS and os.name == "posix":
        logger.warning(
            "%s has mode %04o, so other users can access it, and it holds texts of answers "
            "and documents; unless they should, run: chmod 600 %s",
            *(path, mode, shlex.quote(path)),
        )


def describe_os_error(error: OSError, path: Path | str | None = None) -> str:
    """Describe an OS error with its file."""
    where = path if error.filename is None else error.filename
    words = (type(error).__name__, error.strerror, where if isinstance(where, str | Path) else None)
    return ": ".join(str(word) for word in words if word)


def describe_unusable_path(path: object, error: OSError) -> ConfigurationError:
    """Say that a path that was given cannot be read or written, with the system's reason."""
    return ConfigurationError(f"{path}: {error.strerror or type(error).__name__}")


@contextmanager
def raising_configuration_error(path: object) -> Iterator[None]:
    """Raise `ConfigurationError` for an error of the system, with the path that was given."""
    try:
        yield
    except OSError as exc:
        raise describe_unusable_path(path, exc) from exc


def require_outputs(
    written: Iterable[tuple[str, Path | str | None]], read: Iterable[Path | str | None]
) -> None:
    """Raise `ConfigurationError` if an output, given with its name, cannot be written.

    Its folder must exist, and it must be neither an input nor another output.
    """
    taken = {_location(path): "an input" for path in read if path is not None}
    for name, path in written:
        if path is None:
            continue
        location = _location(path)
        if location in taken:
            other = taken[location]
            msg = f"{name} {path} is also {other} and would overwrite it: name different files"
            raise ConfigurationError(msg)
        taken[location] = name
        if "://" not in str(path):
            with raising_configuration_error(path):
                location.parent.stat()
                if location.is_dir():
                    raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))


def _location(path: Path | str) -> Path:
    """Find the file that a path, or the URL of a local file or database, names."""
    return Path(str(path).removeprefix("file://").removeprefix("sqlite:///")).resolve()


def refuse_symlink(path: Path, what: str) -> None:
    """Raise `ConfigurationError` for a symbolic link, which others may redirect."""
    if path.is_symlink():
        msg = f"{what} must not be a symbolic link: pass the path of its target"
        raise ConfigurationError(msg)


def private_folder(path: Path) -> None:
    """Create a folder with owner-only permissions, unless it exists."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        path.mkdir(mode=_FOLDER_OWNER_ONLY)
    except FileExistsError:
        if not stat.S_ISDIR(path.lstat().st_mode):
            raise OSError(errno.ENOTDIR, "not a folder") from None


def replace_file(path: Path, pieces: Iterable[bytes], *, private: bool = True) -> None:
    """Replace a file atomically: readers see the old or the new content."""
    with replacing(path, private=private) as file:
        file.writelines(pieces)


@contextmanager
def replacing(path: Path, *, private: bool = True) -> Iterator[IO[bytes]]:
    """Write a file that replaces another on exit, with its mode; a new one is for its owner only.

    With `private=False`, for what holds no texts of people, a new one is as the umask leaves it.
    """
    target = path.resolve()
    draft = target.with_name(f".{secrets.token_hex(8)}.part")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(draft, flags, _OWNER_ONLY if private else _READ_WRITE_ALL)
        with os.fdopen(descriptor, "wb") as file:
            if os.name == "posix" and target.exists():
                mode = stat.S_IMODE(target.stat().st_mode)
                if stat.S_IMODE(os.fstat(descriptor).st_mode) != mode:
                    os.fchmod(descriptor, mode)
                if private:
                    _warn_if_shared(os.fspath(target), mode)
            yield file
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


def write_all(descriptor: int, data: bytes) -> None:
    """Append all data or none; the caller must hold a lock on the file."""
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
    """Open a file with `open_private`, and close it on exit."""
    descriptor = open_private(path, flags)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def lock_file(path: Path, *, wait: bool = True) -> Iterator[bool]:
    """Hold a lock file against other processes and threads; yield whether it was acquired."""
    with opened_private(path) as descriptor:
        if not wait and not try_lock(descriptor):
            yield False
            return
        with locked_descriptor(descriptor):
            yield True


@contextmanager
def locked_descriptor(descriptor: int) -> Iterator[None]:
    """Hold a lock on an open file against all other descriptors."""
    assert fcntl is not None  # noqa: S101  (refused at construction)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:  # a forked child may keep the file open, and with it the lock
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def try_lock(descriptor: int) -> bool:
    """Try to lock an open file until it is closed; succeed where there are no locks."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


LARGEST_SETTINGS = 1 << 20
"""Most bytes of a settings file; policies and calibrations have a few thousand."""

_CHUNK_SIZE = 1 << 20


def read_up_to(path: Path, most: int) -> bytes:
    """Read a file of at most `most` bytes."""
    with path.open("rb") as file:
        return read_rest_up_to(file, most, path)


def read_rest_up_to(file: IO[bytes], most: int, path: Path) -> bytes:
    """Read the rest of an open file, which may be a decompressing one."""
    parts, size = [], 0
    while part := file.read(_CHUNK_SIZE):
        size += len(part)
        if size > most:
            raise OSError(errno.EFBIG, f"larger than {_size_limit(most)}", str(path))
        parts.append(part)
    return b"".join(parts)


def lines_up_to(file: IO[bytes], most: int, path: Path) -> Iterator[bytes]:
    """Yield lines of at most `most` bytes."""
    while line := file.readline(most + 1):
        if len(line) > most:
            raise OSError(errno.EFBIG, f"a line is longer than {_size_limit(most)}", str(path))
        yield line


def _size_limit(most: int) -> str:
    return f"{most >> 20} MiB, the limit for reading"
