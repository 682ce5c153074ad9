"""Reads files only so far, so that one without an end does not fill the memory."""

import errno
from collections.abc import Iterator
from pathlib import Path
from typing import IO

__all__ = ["LARGEST_SETTINGS", "lines_up_to", "read_up_to", "whole_up_to"]

LARGEST_SETTINGS = 1 << 20
"""Bytes of a file with settings: policies and calibrations have some thousand."""
_AT_ONCE = 1 << 20


def read_up_to(path: Path, most: int) -> bytes:
    """Read a file.

    Args:
        path: The file.
        most: Most bytes that it may have.

    Returns:
        What it holds.

    Raises:
        OSError: It cannot be read, or is larger; its `strerror` names the limit.
    """
    with path.open("rb") as file:
        return whole_up_to(file, most, path)


def whole_up_to(file: IO[bytes], most: int, path: Path) -> bytes:
    """Read what is left of an open file, unpacked if it unpacks.

    Args:
        file: The file.
        most: Most bytes that may be left.
        path: What to call it.

    Returns:
        The bytes.

    Raises:
        OSError: As for `read_up_to`.
    """
    parts, size = [], 0
    while part := file.read(_AT_ONCE):
        size += len(part)
        if size > most:
            raise _OversizeError(most, path)
        parts.append(part)
    return b"".join(parts)


def lines_up_to(file: IO[bytes], most: int, path: Path) -> Iterator[bytes]:
    """Read the lines of an open file.

    Args:
        file: The file.
        most: Most bytes that a line may have.
        path: What to call it.

    Yields:
        The lines with their ends.

    Raises:
        OSError: It cannot be read, or a line is longer; its `strerror` names the limit.
    """
    while line := file.readline(most + 1):
        if len(line) > most:
            raise _OversizeError(most, path, of="line")
        yield line


class _OversizeError(OSError):
    def __init__(self, most: int, path: Path, *, of: str = "") -> None:
        what = f"a {of} is longer" if of else "larger"
        told = f"{what} than {most >> 20} MiB, the most that is read"
        super().__init__(errno.EFBIG, told, str(path))
