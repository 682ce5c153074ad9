"""A progress bar for a run, on stderr, where there is a terminal: rate, time left, tokens, cost."""

import sys
from importlib.util import find_spec
from typing import Any

from langchain_groundedness.evals.tally import Price
from langchain_groundedness.exceptions import require
from langchain_groundedness.types import Usage

__all__ = ["RunProgress"]


class RunProgress:
    """Shows how far a run is; does nothing where nobody would see it."""

    def __init__(self, *, wanted: bool, price: Price | None = None) -> None:
        """Prepare.

        Args:
            wanted: Whether there is to be one.
            price: What tokens cost.
        """
        self._price = price
        self._shown = wanted and sys.stderr.isatty() and find_spec("rich") is not None
        self._bar: Any = None
        self._task: Any = None
        self._begun_at = 0

    def begin(self, title: str, total: int, done: int) -> None:
        """Show it.

        Args:
            title: Stands before the bar.
            total: How many rows there are.
            done: How many of them were done in an earlier session.
        """
        if not self._shown:
            return
        bars = require("rich.progress", extra="cli")
        console = require("rich.console", extra="cli").Console(stderr=True)
        self._bar = bars.Progress(
            bars.TextColumn("{task.description}", markup=False),
            bars.BarColumn(),
            bars.MofNCompleteColumn(),
            bars.TextColumn("{task.fields[rate]}", markup=False),
            bars.TimeRemainingColumn(),
            bars.TextColumn("{task.fields[spent]}", markup=False),
            console=console,
        )
        self._begun_at = done
        self._task = self._bar.add_task(title, total=total, completed=done, rate="", spent="")
        self._bar.start()

    def show(self, done: int, usage: Usage) -> None:
        """Show how far it is.

        Args:
            done: How many rows are done, with those of earlier sessions.
            usage: What was paid so far.
        """
        if self._bar is None:
            return
        elapsed = self._bar.tasks[0].elapsed
        rate = f"{(done - self._begun_at) / elapsed:.1f} rows/s" if elapsed else ""
        spent = spending(usage, self._price)
        self._bar.update(self._task, completed=done, rate=rate, spent=spent)

    def end(self) -> None:
        """Take it away; doing so again does nothing."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def spending(usage: Usage, price: Price | None) -> str:
    """Say what was paid.

    Args:
        usage: Calls and tokens.
        price: What tokens cost, if it is known.

    Returns:
        Such as `12 calls, 3,400 tokens, 0.0021`; empty if no model was called.
    """
    if not usage.model_calls:
        return ""
    parts = [f"{usage.model_calls:,} calls"]
    if usage.input_tokens is None and usage.output_tokens is None:
        parts.append("no tokens counted")
    else:
        parts.append(f"{(usage.input_tokens or 0) + (usage.output_tokens or 0):,} tokens")
    paid = None if price is None else price.of(usage)
    return ", ".join(parts if paid is None else [*parts, f"cost {paid:.4g}"])
