"""The table that ends `evaluate`: one line per metric, and what was set aside."""

from collections.abc import Iterator
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from langchain_groundedness.evals._evaluation import Evaluation
from langchain_groundedness.evals._run_progress import spending
from langchain_groundedness.evals.tally import Price
from langchain_groundedness.terminal import printable

__all__ = ["as_plain", "render_evaluation"]

_SHOWN = 5
_MOST_REASONS = 3
_LONGEST = 300


def render_evaluation(evaluation: Evaluation, price: Price | None) -> RenderableType:
    """Make the table.

    Args:
        evaluation: The evaluation, at its end.
        price: What tokens cost.

    Returns:
        The table, and lines under it.
    """
    table = Table()
    table.add_column("metric")
    for name in ("mean", "scored", "failed", "skipped", "rows"):
        table.add_column(name, justify="right")
    for key, counts in evaluation.tally.metrics.items():
        mean = "-" if counts.mean is None else f"{counts.mean:.3f}"
        numbers = (counts.scored, counts.failed, counts.skipped, counts.rows)
        table.add_row(key, mean, *(f"{number:,}" for number in numbers))
    return Group(table, *(Text(printable(line)) for line in _lines(evaluation, price)))


def as_plain(evaluation: Evaluation, price: Price | None, *, complete: bool) -> dict[str, Any]:
    """Put what the table says into plain data.

    Args:
        evaluation: The evaluation, at its end.
        price: What tokens cost.
        complete: Whether all rows are done.

    Returns:
        The same figures.
    """
    usage = evaluation.tally.usage
    return {
        "metrics": evaluation.tally.as_plain(),
        "rows": evaluation.tally.rows,
        "rows_in_data_set": evaluation.outline.rows,
        "bad_rows": [row.model_dump() for row in evaluation.outline.bad_rows],
        "complete": complete,
        "seconds": evaluation.seconds,
        "usage": usage.model_dump(),
        "cost": None if price is None else price.of(usage),
    }


def _lines(evaluation: Evaluation, price: Price | None) -> list[str]:
    rows, seconds = evaluation.new_rows, evaluation.session_seconds
    told = f"{evaluation.tally.rows:,} of {evaluation.outline.rows:,} rows"
    if rows:
        told += f"; {rows:,} of them now, in {seconds:.1f} s ({rows / seconds:.1f} rows/s)"
    lines = [told]
    if spent := spending(evaluation.tally.usage, price):
        lines.append(spent)
    lines += _reasons(evaluation)
    if any(counts.failed for counts in evaluation.tally.metrics.values()):
        lines.append("rows that failed stay so when the run is resumed, but for --retry-failed")
    bad = evaluation.outline.bad_rows
    if bad:
        lines.append(f"{len(bad):,} rows could not be read and are set aside:")
        for row in bad[:_SHOWN]:
            where = "" if row.line is None else f"line {row.line}: "
            lines.append(f"  {where}{row.reason}")
        if len(bad) > _SHOWN:
            lines.append("  … all of them are in the run file")
    return lines


def _reasons(evaluation: Evaluation) -> Iterator[str]:
    """Say why rows have no score: of each metric the most frequent reasons."""
    counted = evaluation.tally.reasons.most_common()
    for key in evaluation.tally.metrics:
        of_key = [(kind, rows) for kind, rows in counted if kind[0] == key and rows > 0]
        for (_, status, reason), rows in of_key[:_MOST_REASONS]:
            told = " ".join(reason.split())
            short = told if len(told) <= _LONGEST else f"{told[: _LONGEST - 1]}…"
            yield f"{key}: {rows:,} {status}: {short}"
        if len(of_key) > _MOST_REASONS:
            yield f"{key}: … other reasons are in the run file"
