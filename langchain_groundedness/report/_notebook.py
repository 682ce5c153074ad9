"""A run as a notebook shows it; pure."""

from langchain_groundedness._html import Html, tag
from langchain_groundedness._notebook import CELL, WARNING, table
from langchain_groundedness.evals.values import EvaluationRun
from langchain_groundedness.report import _words as words
from langchain_groundedness.report._figures import metrics_of
from langchain_groundedness.report._values import MetricFigures

__all__ = ["run_html"]

_HEADS = ("metric", "mean", "95 % interval", "scored", "failed", "skipped")


def run_html(run: EvaluationRun) -> str:
    """Show what a run says of each metric.

    Args:
        run: The run.

    Returns:
        HTML for the output of a cell.
    """
    warnings = (tag("p", f"! {text}", style=WARNING) for text in words.warnings(run).values())
    return tag(
        "div",
        tag("p", tag("b", run.header.name, dir="auto"), f" · {words.facts(run)}"),
        *warnings,
        table(_HEADS, map(_metric, metrics_of(run))),
        class_="langchain-groundedness",
        style="max-width:60em",
    )


def _metric(metric: MetricFigures) -> Html:
    found = metric.estimate
    texts = (
        metric.key,
        words.NONE if found is None else words.number(found.mean),
        words.NONE if found is None else words.interval(found),
        f"{len(metric.scores):,}",
        f"! {metric.failed:,}" if metric.failed else "0",
        f"{metric.skipped:,}",
    )
    return tag("tr", *(tag("td", text, style=CELL, dir="auto") for text in texts))
