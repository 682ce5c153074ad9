"""A progress bar for a run, on stderr, where there is a terminal: rate, time left, tokens, cost."""

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, NamedTuple

from langchain_groundedness.evals.values import EvaluatedRow
from langchain_groundedness.exceptions import require
from langchain_groundedness.types import Usage

__all__ = ["Price", "RunProgress", "Tally", "add_usage", "progress"]


class Price(NamedTuple):
    """What a model costs, in any currency."""

    input: float
    """Per million tokens of prompts."""
    output: float
    """Per million tokens of replies."""

    def of(self, usage: Usage) -> float | None:
        """Tell what was paid."""
        if usage.model_calls and (usage.input_tokens is None or usage.output_tokens is None):
            return None
        paid = (usage.input_tokens or 0) * self.input + (usage.output_tokens or 0) * self.output
        return paid / _MILLION


class RunProgress:
    """Shows how far a run is; does nothing where nobody would see it."""

    def __init__(self, *, wanted: bool, price: Price | None = None) -> None:
        """Prepare."""
        self._price = price
        self._shown = wanted and sys.stderr.isatty() and find_spec("rich") is not None
        self._bar: Any = None
        self._task: Any = None
        self._begun_at = 0

    def begin(self, title: str, total: int, done: int) -> None:
        """Show it."""
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
        """Show how far it is."""
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
    """Say what was paid."""
    if not usage.model_calls:
        return ""
    parts = [f"{usage.model_calls:,} calls"]
    if usage.input_tokens is None and usage.output_tokens is None:
        parts.append("no tokens counted")
    else:
        parts.append(f"{(usage.input_tokens or 0) + (usage.output_tokens or 0):,} tokens")
    paid = None if price is None else price.of(usage)
    return ", ".join(parts if paid is None else [*parts, f"cost {paid:.4g}"])


@contextmanager
def progress(title: str, total: int, *, shown: bool) -> Iterator[Callable[[], None]]:
    """Show how many rows are done."""
    if not shown or not sys.stderr.isatty() or find_spec("rich") is None:
        yield lambda: None
        return
    bars = require("rich.progress", extra="cli")
    console = require("rich.console", extra="cli").Console(stderr=True)
    columns = (*bars.Progress.get_default_columns(), bars.MofNCompleteColumn())
    with bars.Progress(*columns, console=console) as bar:
        task = bar.add_task(title, total=total)
        yield lambda: bar.advance(task)


_MILLION = 1_000_000

_MOST_REASONS = 1_000


class MetricCounts(NamedTuple):
    """What one metric gave so far."""

    scored: int = 0
    failed: int = 0
    skipped: int = 0
    total: float = 0.0
    """Sum of the scores."""

    @property
    def mean(self) -> float | None:
        """Mean over the rows that have a score; `None` if none has."""
        return self.total / self.scored if self.scored else None

    @property
    def rows(self) -> int:
        """How many rows were looked at."""
        return self.scored + self.failed + self.skipped


class Tally:
    """Adds up the rows of a run; memory does not grow with them."""

    def __init__(self, keys: Iterable[str]) -> None:
        """Start at nothing."""
        self.metrics = {key: MetricCounts() for key in keys}
        self.rows = 0
        self.usage = Usage()
        self.reasons: Counter[tuple[str, str, str]] = Counter()
        """Rows without a score by metric, status and reason; kinds beyond the first thousand are
        not counted."""

    def as_plain(self) -> dict[str, dict[str, Any]]:
        """Give what each metric gave."""
        return {
            key: {
                "mean": counts.mean,
                "scored": counts.scored,
                "failed": counts.failed,
                "skipped": counts.skipped,
                "rows": counts.rows,
            }
            for key, counts in self.metrics.items()
        }

    def add(self, row: EvaluatedRow, *, instead_of: EvaluatedRow | None = None) -> None:
        """Count a row."""
        self.rows += instead_of is None
        self.usage = add_usage(self.usage, *(score.usage for score in row.scores))
        self._count(row, 1)
        if instead_of is not None:
            self._count(instead_of, -1)

    def _count(self, row: EvaluatedRow, sign: int) -> None:
        for score in row.scores:
            counts = self.metrics[score.key]
            status = {score.status: getattr(counts, score.status) + sign}
            total = counts.total + sign * (score.score or 0.0)
            if score.reason is not None:
                kind = (score.key, score.status, score.reason)
                if kind in self.reasons or len(self.reasons) < _MOST_REASONS:
                    self.reasons[kind] += sign
            self.metrics[score.key] = counts._replace(**status, total=total)


def add_usage(*usages: Usage) -> Usage:
    """Add up what calls cost."""
    inputs = [usage.input_tokens for usage in usages if usage.input_tokens is not None]
    outputs = [usage.output_tokens for usage in usages if usage.output_tokens is not None]
    return Usage(
        model_calls=sum(usage.model_calls for usage in usages),
        input_tokens=sum(inputs) if inputs else None,
        output_tokens=sum(outputs) if outputs else None,
        cached_verdicts=sum(usage.cached_verdicts for usage in usages),
    )
