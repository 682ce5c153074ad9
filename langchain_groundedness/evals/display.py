"""Formatting of a run for all reports, and its table in a notebook."""

from collections.abc import Iterator
from datetime import UTC, datetime

from langchain_groundedness.display.counts import format_count, is_or_are
from langchain_groundedness.display.notebook import CELL, CLASSES, WARNING, table, tag
from langchain_groundedness.evals.statistics import Estimate, estimate_mean
from langchain_groundedness.evals.values import EvaluationRun, summarize
from langchain_groundedness.types import HTML_FORMATTERS

__all__ = [
    "NONE",
    "format_change",
    "format_count",
    "format_interval",
    "format_number",
    "run_cost",
    "run_facts",
    "run_html",
    "run_title",
    "run_warnings",
    "utc_minute",
]

_TEN = 10
_MINUTE = 60
_HEADS = ("metric", "mean", "95 % interval", "scored", "failed", "skipped")

NONE = "\N{EN DASH}"
"""Shown where there is no figure."""


def run_html(run: EvaluationRun) -> str:
    """Render the metrics of a run for a notebook: an HTML fragment without script and style.

    Args:
        run: The run.

    Returns:
        HTML.
    """
    warnings = (tag("p", f"! {text}", style=WARNING) for text in run_warnings(run).values())
    cells = (
        tag("tr", *(tag("td", text, style=CELL, dir="auto") for text in row)) for row in _rows(run)
    )
    return tag(
        "div",
        tag("p", tag("b", run_title(run), dir="auto"), f" · {run_facts(run)}"),
        *warnings,
        table(_HEADS, cells),
        class_=CLASSES,
        style="max-width:60em",
    )


def _rows(run: EvaluationRun) -> Iterator[tuple[str, ...]]:
    for key, counts in summarize(run)["metrics"].items():
        scores = (score for row in run.rows for score in row.scores if score.key == key)
        found = estimate_mean([score.score for score in scores if score.score is not None])
        yield (
            key,
            format_number(found.mean) if found else NONE,
            format_interval(found),
            f"{counts['scored']:,}",
            f"! {counts['failed']:,}" if counts["failed"] else "0",
            f"{counts['skipped']:,}",
        )


def format_number(value: float) -> str:
    """Write a score."""
    return f"{value:.1f}" if abs(value) >= _TEN else f"{value:.3f}"


def format_interval(estimate: Estimate | None) -> str:
    """Write an interval."""
    if estimate is None:
        return NONE
    if estimate.low is None or estimate.high is None:
        return "interval unknown"
    return f"{format_number(estimate.low)} to {format_number(estimate.high)}"


def format_change(difference: float) -> str:
    """Write a difference with its sign and direction."""
    arrow = "▲" if difference > 0 else "▼" if difference < 0 else "="
    return f"{arrow} {difference:+.3f}"


def run_title(run: EvaluationRun) -> str:
    """Name a run; an unnamed run over rows in memory gets its time."""
    name = run.header.name
    unnamed = name == run.header.dataset and name.startswith("a ")
    return f"{name}, {run.header.made.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC" if unnamed else name


def run_cost(run: EvaluationRun) -> str:
    """Write the time and usage of a run."""
    usage, parts = run.usage, []
    if run.seconds is not None:
        minutes, seconds = divmod(int(run.seconds), _MINUTE)
        parts.append(f"{minutes} min {seconds} s" if minutes else f"{run.seconds:.1f} s")
    calls = usage.model_calls
    parts.append(format_count(calls, "model call") if calls else "no model calls")
    tokens = (usage.input_tokens, "read"), (usage.output_tokens, "written")
    parts.extend(f"{format_count(n, 'token')} {what}" for n, what in tokens if n is not None)
    return " · ".join(parts)


def run_facts(run: EvaluationRun) -> str:
    """Write the data set, size and cost of a run."""
    rows, made = format_count(len(run.rows)), utc_minute(run.header.made)
    return " · ".join((run.header.dataset, rows, run_cost(run), made))


def utc_minute(moment: datetime) -> str:
    """Write a moment."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def run_warnings(run: EvaluationRun) -> dict[str, str]:
    """List the rows that the figures do not cover."""
    said = {}
    if not run.complete:
        said["interrupted"] = "The run was interrupted: rows of the data set are missing here."
    if run.bad_rows:
        bad = len(run.bad_rows)
        said["bad rows"] = f"{format_count(bad)} could not be read and {is_or_are(bad)} left out."
    failed = sum(any(score.status == "failed" for score in row.scores) for row in run.rows)
    if failed:
        has = "has" if failed == 1 else "have"
        of = format_count(len(run.rows))
        said["failed"] = f"{failed:,} of {of} {has} a failed metric; the means exclude them."
    if not run.rows:
        said["empty"] = "No row was evaluated."
    return said


HTML_FORMATTERS[EvaluationRun] = run_html
