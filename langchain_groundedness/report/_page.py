"""A report as one file of HTML that loads nothing: style, script and rows are in it.

The policy in its head lets no script run but its own, and nothing be fetched.
"""

from base64 import b64encode
from functools import lru_cache
from hashlib import sha256
from importlib.resources import files
from string import Template

from langchain_groundedness._html import joined
from langchain_groundedness.evals.values import EvaluationRun
from langchain_groundedness.report._comparison import compared
from langchain_groundedness.report._data import page_data
from langchain_groundedness.report._figures import metrics_of, reliability_of, slices_of
from langchain_groundedness.report._overview import Overview

__all__ = ["page"]


def page(run: EvaluationRun, baseline: EvaluationRun | None = None) -> str:
    """Write a run as a page.

    Args:
        run: The run.
        baseline: What it is compared with.

    Returns:
        The text of an HTML file.
    """
    metrics = metrics_of(run)
    slices = slices_of(run, metrics)
    overview = Overview(
        run=run,
        metrics=metrics,
        slices=slices,
        reliability=reliability_of(run),
        comparison=None if baseline is None else compared(run, baseline),
    )
    data = page_data(run, metrics, slices, baseline)
    style, script = _style(), _file("report.js")
    return Template(_file("page.html")).substitute(
        title=joined([run.header.name]),
        style=style,
        style_hash=_hash(style),
        script=script,
        script_hash=_hash(script),
        sections=overview.sections,
        overview=overview.main,
        about=overview.about,
        table=data.table,
        rows=data.rows,
        documents=data.documents,
    )


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


@lru_cache
def _style() -> str:
    look = (files("langchain_groundedness") / "static" / "look.css").read_text("utf-8")
    return look + _file("report.css")


@lru_cache
def _file(name: str) -> str:
    return (files("langchain_groundedness.report") / "static" / name).read_text("utf-8")
