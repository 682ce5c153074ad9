"""Pages that stand alone: what all have, and those of a validation and of an audit log."""

from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from importlib.resources import files
from typing import Any, get_args

from langchain_groundedness.display.counts import format_ms
from langchain_groundedness.display.svg import Plot
from langchain_groundedness.display.templates import environment
from langchain_groundedness.evals import display
from langchain_groundedness.evals.validation.summary import NAMES, REASONS, ValidationSummary
from langchain_groundedness.monitoring import AuditSummary, GroupFigures
from langchain_groundedness.types import Action, VerdictLabel

__all__ = ["FEWEST_POINTS", "page", "statistics_html", "validation_html"]

FEWEST_POINTS = 5
"""A chart of fewer points says less than a table."""

_COLOURS: dict[Action, str] = {"pass": "a", "flag": "b", "review": "c", "block": "d"}
_MOST_TICKS = 4
_SIZE: dict[str, Any] = {"width": 340, "height": 220}


def page(template: str, values: Mapping[str, Any]) -> str:
    """Render a page that stands alone: its style and its script, if any, are in it.

    The template extends `page.html`, which shows `title` and `kind`. The page's policy allows
    nothing but this style and this script.
    """
    static = files("langchain_groundedness") / "static"
    look = "".join((static / name).read_text("utf-8") for name in ("look.css", "report.css"))
    hashes = {"style_hash": _hash(look), "script_hash": _hash(values.get("script", ""))}
    pages = environment(__package__)
    pages.filters["thousands"] = "{:,}".format
    text: str = pages.get_template(template).render({**values, **hashes, "style": look})
    return text


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def validation_html(summary: ValidationSummary, *, title: str = "Validation") -> str:
    """Write a page of a validation: reasons, scores and other thresholds.

    Args:
        summary: What `validate` returned.
        title: Its heading.

    Returns:
        The text of an HTML file that loads nothing.

    Raises:
        MissingDependencyError: jinja2 is not installed; the extra `report` brings it.
    """
    values = {
        "title": title,
        "kind": "Validated data set",
        "found": summary,
        "display": display,
        "reasons": REASONS,
        "names": NAMES,
        "plots": {NAMES[each.title]: each.drawn() for each in _threshold_plots(summary)},
    }
    return page("validation.html", values)


def statistics_html(summary: AuditSummary, *, title: str = "Groundedness") -> str:
    """Write a page of the figures of an audit log: tables and, from five days on, plots.

    Args:
        summary: What `monitoring.summarize` returned.
        title: Its heading.

    Returns:
        The text of an HTML file that loads nothing.

    Raises:
        MissingDependencyError: jinja2 is not installed; the extra `report` brings it.

    Example:
        >>> from langchain_groundedness.monitoring import summarize
        >>> "The audit log holds no records." in statistics_html(summarize([]))
        True
    """
    days = summary.days if len(summary.days) >= FEWEST_POINTS else ()
    values = {
        **dict(summary),
        "title": title,
        "kind": "Groundedness statistics",
        "groups": {
            "Day": summary.days,
            "Model": summary.models,
            "Query class": summary.query_classes,
        },
        "heads": GroupFigures.heads,
        "verdicts": get_args(VerdictLabel),
        "actions": list(_COLOURS),
        "cells": lambda group: zip(group.heads, group.cells(), strict=True),
        "plots": {plot.title: plot.drawn() for plot in _statistics_plots(days)},
    }
    return page("statistics.html", values)


def _threshold_plots(found: ValidationSummary) -> Iterator[Plot]:
    """Draw for each option how many rows each of its values would pass."""
    for option in dict.fromkeys(line.option for line in found.sweep):
        lines = [line for line in found.sweep if line.option == option]
        if len(lines) < FEWEST_POINTS:
            continue
        plot = Plot(title=option, highest=float(found.total), y_label="rows", width=340, height=170)
        plot.ticks([(n / 2, f"{n / 2:g}") for n in range(3)], [(found.total, f"{found.total:,}")])
        for line in lines:
            plot.dot(line.value, line.passed, "e", f"{line.value:.2f}: {line.passed:,} pass")
            if line.is_current:
                plot.mark(line.value, "d")
        plot.line([(line.value, line.passed) for line in lines], "e")
        yield plot


def _statistics_plots(days: Sequence[GroupFigures]) -> Iterator[Plot]:
    if not days:
        return
    step = -(-len(days) // _MOST_TICKS)
    ticks = [
        ((place + 0.5) / len(days), day.name) for place, day in enumerate(days) if place % step == 0
    ]
    most = float(max(day.answers for day in days))
    decisions = Plot(title="Decisions per day", highest=most, y_label="answers", **_SIZE)
    decisions.ticks(ticks, [(0.0, "0"), (most, f"{most:,.0f}")])
    decisions.legend([(colour, action) for action, colour in _COLOURS.items()])
    for place, day in enumerate(days):
        low = 0
        for action, colour in _COLOURS.items():
            number = day.decisions.get(action, 0)
            left, tooltip = (place + 0.1) / len(days), f"{day.name}: {number} {action}"
            if number:
                decisions.bar(left, 0.8 / len(days), low, low + number, colour, tooltip)
            low += number
    yield decisions
    rate = Plot(title="Supported claims per day", y_label="share", **_SIZE)
    rate.ticks(ticks, [(n / 4, f"{n / 4:.0%}") for n in range(5)])
    rate.legend([("a", "supported")])
    _curve(rate, [(day.name, day.supported_rate) for day in days], "a", ".1%")
    yield rate
    timed = [day.check_ms["p95"] for day in days if day.check_ms]
    if len(timed) < FEWEST_POINTS:
        return
    slowest = max(timed) or 1.0
    time = Plot(title="Time of a check per day", highest=slowest, y_label="milliseconds", **_SIZE)
    time.ticks(ticks, [(0.0, "0"), (slowest, format_ms(slowest))])
    time.legend([("e", "median"), ("c", "95 of 100 at most")])
    for name, colour in (("p50", "e"), ("p95", "c")):
        _curve(time, [(day.name, day.check_ms.get(name)) for day in days], colour, ".1f")
    yield time


def _curve(plot: Plot, values: Sequence[tuple[str, float | None]], kind: str, form: str) -> None:
    points = [
        ((place + 0.5) / len(values), value, f"{name}: {value:{form}}")
        for place, (name, value) in enumerate(values)
        if value is not None
    ]
    if len(points) > 1:
        plot.line([(x, y) for x, y, _ in points], kind)
    for x, y, tooltip in points:
        plot.dot(x, y, kind, tooltip)
