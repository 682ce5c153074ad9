"""A progress bar on stderr, where there is a terminal to show it."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from langchain_groundedness.exceptions import require

__all__ = ["progress"]


@contextmanager
def progress(title: str, total: int, *, shown: bool) -> Iterator[Callable[[], None]]:
    """Show how many rows are done.

    Args:
        title: Stands before the bar.
        total: How many rows there are.
        shown: Whether it is wanted; without a terminal or without rich there is none.

    Yields:
        A function to call after each row.
    """
    if not shown or not sys.stderr.isatty() or find_spec("rich") is None:
        yield lambda: None
        return
    bars = require("rich.progress", extra="cli")
    console = require("rich.console", extra="cli").Console(stderr=True)
    columns = (*bars.Progress.get_default_columns(), bars.MofNCompleteColumn())
    with bars.Progress(*columns, console=console) as bar:
        task = bar.add_task(title, total=total)
        yield lambda: bar.advance(task)
