"""A progress bar on stderr, if that is a terminal: rate, time left, tokens, cost."""

import sys
from typing import Any, NamedTuple, Self

from langchain_groundedness.display.counts import format_count
from langchain_groundedness.types import Usage

__all__ = ["Price", "ProgressBar", "spending"]

_MILLION = 1_000_000


class Price(NamedTuple):
    """What a model costs, in any currency."""

    input: float
    """Per million tokens of prompts."""
    output: float
    """Per million tokens of replies."""

    def of(self, usage: Usage) -> float | None:
        """Return the cost; `None` if the model did not report its tokens."""
        if usage.model_calls and (usage.input_tokens is None or usage.output_tokens is None):
            return None
        paid = (usage.input_tokens or 0) * self.input + (usage.output_tokens or 0) * self.output
        return paid / _MILLION


class ProgressBar:
    """Shows how many rows are done; does nothing without a terminal."""

    def __init__(self, *, wanted: bool, price: Price | None = None) -> None:
        """Enable the bar if it can be shown."""
        self._price = price
        self._shown = wanted and sys.stderr.isatty()
        self._bar: Any = None
        self._done_before = 0

    def __enter__(self) -> Self:
        """Give the bar."""
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the bar."""
        self.stop()

    def start(self, title: str, total: int, done: int = 0) -> None:
        """Show the bar."""
        if not self._shown:
            return
        from rich import progress  # noqa: PLC0415  (slow to import)
        from rich.console import Console  # noqa: PLC0415  (same)

        self._bar = progress.Progress(
            progress.TextColumn("{task.description}", markup=False),
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            progress.TextColumn("{task.fields[rate]}", markup=False),
            progress.TimeRemainingColumn(),
            progress.TextColumn("{task.fields[spent]}", markup=False),
            console=Console(stderr=True),
        )
        self._done_before = done
        self._bar.add_task(title, total=total, completed=done, rate="", spent="")
        self._bar.start()

    def show(self, done: int, usage: Usage, title: str | None = None) -> None:
        """Move the bar on; a new title replaces the one before."""
        if self._bar is None:
            return
        [task] = self._bar.tasks
        rate = f"{(done - self._done_before) / task.elapsed:.1f} rows/s" if task.elapsed else ""
        spent = spending(usage, self._price)
        self._bar.update(task.id, completed=done, description=title, rate=rate, spent=spent)

    def stop(self) -> None:
        """Remove the bar; repeated calls do nothing."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def spending(usage: Usage, price: Price | None) -> str:
    """Say how many calls were made, and what they cost."""
    if not usage.model_calls:
        return ""
    parts = [format_count(usage.model_calls, "call"), "no tokens counted"]
    if usage.input_tokens is not None or usage.output_tokens is not None:
        tokens = (usage.input_tokens or 0) + (usage.output_tokens or 0)
        parts[1] = format_count(tokens, "token")
    paid = None if price is None else price.of(usage)
    return ", ".join(parts if paid is None else [*parts, f"cost {paid:.4g}"])
