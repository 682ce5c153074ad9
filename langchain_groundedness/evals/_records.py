"""Records as a data set holds them, before anybody knows what their columns mean."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from langchain_groundedness.exceptions import InputFormatError

__all__ = ["LONGEST_LINE", "Record", "Records", "file_error", "listed"]

LONGEST_LINE = 64 << 20
"""Bytes of a line, or characters of a cell; what is longer is no example but a broken file."""
_MOST_COLUMNS = 30
_LONGEST_NAME = 60


class Record(NamedTuple):
    """One entry of a data set."""

    line: int | None
    """Where it begins in its file, or its number among the entries; counted from 1."""
    cells: Mapping[str, Any] | None
    """What it holds, by column; `None` if it cannot be read."""
    fault: str = ""
    """Why it cannot be read."""


class Records(NamedTuple):
    """Where records come from; can be read more than once."""

    name: str
    read: Callable[[], Iterator[Record]]
    columns: tuple[str, ...] | None = None
    """The columns, where they are known without reading all of it."""
    holds_texts: bool = False
    """Whether cells may hold lists written as text, as in CSV."""


def file_error(path: object, error: Exception) -> InputFormatError:
    """Say that a file cannot be read.

    Args:
        path: The file.
        error: What reading it raised.

    Returns:
        The error to raise.
    """
    why = error.strerror if isinstance(error, OSError) else None
    first = next(iter(str(error).splitlines()), "")
    return InputFormatError(f"{path}: {why or first or type(error).__name__}")


def listed(columns: tuple[str, ...]) -> str:
    """Name columns in an error.

    Args:
        columns: The columns.

    Returns:
        Their names; the first ones, if there are very many.
    """
    shown = ", ".join(repr(column[:_LONGEST_NAME]) for column in columns[:_MOST_COLUMNS])
    more = len(columns) - _MOST_COLUMNS
    return (shown or "none") + (f" and {more} more" if more > 0 else "")
