"""What the commands say when they cannot do what they are asked: one line."""

import logging
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer
from pydantic import ValidationError
from typing_extensions import override

from langchain_groundedness.display.terminal import printable
from langchain_groundedness.exceptions import ConfigurationError, GroundednessError

__all__ = [
    "CannotCheckError",
    "each_warning_once",
    "ending",
    "one_line",
    "require_json_lines",
    "write_bytes",
    "write_text",
]

CANNOT, INTERRUPTED = 2, 130


class CannotCheckError(Exception):
    """The check cannot run; the message is one line for the user."""


def one_line(error: Exception) -> str:
    """Say in one line what went wrong."""
    if isinstance(error, CannotCheckError | GroundednessError):
        text = str(error)
    elif isinstance(error, ValidationError):  # its own text repeats the values, keys among them
        text = "; ".join(
            f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors()
        )
    else:
        text = f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}".removesuffix(
            ": "
        )
    return " ".join(text.split())


@contextmanager
def ending(what: str) -> Iterator[None]:
    """End a command that fails with one line for the user."""
    try:
        yield
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except (typer.Exit, typer.Abort):
        raise
    except Exception as error:  # noqa: BLE001  (the reader wants a line, not a traceback)
        typer.echo(f"{what}: {printable(one_line(error))}", err=True)
        raise typer.Exit(CANNOT) from None


_OTHER_KINDS = (".csv", ".tsv", ".html", ".htm", ".md", ".xml", ".parquet", ".xlsx", ".gz", ".json")


def write_text(path: Path, text: str) -> None:
    """Write a text into a file."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, data: bytes) -> None:
    """Write data into a file."""
    try:
        path.write_bytes(data)
    except OSError as exc:
        msg = f"{path}: {exc.strerror or type(exc).__name__}"
        raise ConfigurationError(msg) from exc


def require_json_lines(path: Path, option: str) -> None:
    """Refuse a name that says that a file is of another kind than JSON lines."""
    if path.suffix.lower() in _OTHER_KINDS:
        msg = f"{option} {path}: JSON lines are written there; name it {path.stem}.jsonl"
        raise CannotCheckError(msg)


@contextmanager
def each_warning_once() -> Iterator[None]:
    """Keep a judge that fails for every row from filling the screen, and say how often it did.

    Whoever has set up logging gets every record, as ever.
    """
    logger = logging.getLogger("langchain_groundedness")
    if logger.hasHandlers():
        yield
        return
    shown = _Once(logging.WARNING)
    logger.addHandler(shown)
    try:
        yield
    finally:
        logger.removeHandler(shown)
        for text, times in shown.counts.items():
            if times > 1:
                typer.echo(f"{text} ({times:,} times)", err=True)


class _Once(logging.Handler):
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
