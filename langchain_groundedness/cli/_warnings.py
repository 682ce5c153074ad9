"""Shows each warning of this package once, however many rows bring it up."""

import logging
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import typer
from typing_extensions import override

from langchain_groundedness.terminal import printable

__all__ = ["each_warning_once"]


@contextmanager
def each_warning_once() -> Iterator[None]:
    """Keep a judge that fails for every row from filling the screen, and say how often it did.

    Whoever has set up logging gets every record, as ever.

    Yields:
        Nothing.
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
