"""Command errors: one line on standard error, without a traceback."""

import logging
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import typer
from pydantic import ValidationError
from typing_extensions import override

from langchain_groundedness._runtime.files import raising_configuration_error
from langchain_groundedness.display.terminal import printable
from langchain_groundedness.exceptions import GroundednessError

__all__ = [
    "FAILED",
    "INTERRUPTED",
    "CommandError",
    "each_warning_once",
    "errors_in_one_line",
    "one_line",
    "refuse",
    "require_json_lines",
    "write_file",
]

FAILED, INTERRUPTED = 2, 130
"""Exit codes."""

_OTHER_KINDS = (".csv", ".tsv", ".html", ".htm", ".md", ".xml", ".parquet", ".xlsx", ".gz", ".json")


class CommandError(Exception):
    """A command cannot run; the message is one line for the user."""


def refuse(why: str) -> NoReturn:
    """Raise `CommandError`."""
    raise CommandError(why)


@contextmanager
def errors_in_one_line(beginning: str) -> Iterator[None]:
    """End a command that fails with one line for the user: "cannot check: …"."""
    try:
        yield
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except (typer.Exit, typer.Abort):
        raise
    except Exception as error:  # noqa: BLE001  (the reader wants a line, not a traceback)
        typer.echo(f"{beginning}: {printable(one_line(error))}", err=True)
        raise typer.Exit(FAILED) from None


def one_line(error: Exception) -> str:
    """Say in one line what went wrong."""
    if isinstance(error, CommandError | GroundednessError):
        text = str(error)
    elif isinstance(error, ValidationError):  # its own text quotes values, which may be keys
        text = "; ".join(
            f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors()
        )
    else:
        first = next(iter(str(error).splitlines()), "")
        text = f"{type(error).__name__}: {first}".removesuffix(": ")
    return " ".join(text.split())


def write_file(path: Path, content: str | bytes) -> None:
    """Write a text or bytes into a file."""
    data = content.encode("utf-8") if isinstance(content, str) else content
    with raising_configuration_error(path):
        path.write_bytes(data)


def require_json_lines(path: Path, option: str) -> None:
    """Refuse a file name whose suffix is that of another format than JSON lines."""
    if path.suffix.lower() in _OTHER_KINDS:
        refuse(f"{option} {path}: the file will hold JSON lines; name it {path.stem}.jsonl")


@contextmanager
def each_warning_once() -> Iterator[None]:
    """Print each warning once, and at the end how often it came; configured logging is left alone.

    A judge that fails for every row would fill the screen otherwise.
    """
    logger = logging.getLogger("langchain_groundedness")
    if logger.hasHandlers():
        yield
        return
    handler = _FirstOfEachText(logging.WARNING)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        for text, times in handler.counts.items():
            if times > 1:
                typer.echo(f"{text} ({times:,} times)", err=True)


class _FirstOfEachText(logging.Handler):
    """Writes the first record of each text to stderr, and counts the others."""

    def __init__(self, level: int) -> None:
        super().__init__(level)
        self.counts: Counter[str] = Counter()

    @override
    def emit(self, record: logging.LogRecord) -> None:
        text = printable(" ".join(record.getMessage().split()))
        self.counts[text] += 1
        if self.counts[text] == 1:
            sys.stderr.write(f"{text}\n")
