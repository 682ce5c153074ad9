"""A page with figures and plots that loads nothing and runs nothing."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import NamedTuple

from langchain_groundedness.display.svg import STYLE, Plot
from langchain_groundedness.types import Action

__all__ = ["ACTIONS", "Row", "page"]

ACTIONS: tuple[Action, ...] = ("pass", "flag", "review", "block")
_COLOURS = dict(zip(ACTIONS, "abcd", strict=True))
_MOST_TICKS = 6
_WHOLE_FROM = 100
"""Milliseconds from which on a fraction of one says nothing."""
_STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; }
table { border-collapse: collapse; margin: 1rem 0 2rem; width: 100%; }
.wide { overflow-x: auto; }
caption { font-weight: 600; text-align: left; }
th, td { border-bottom: 1px solid #8884; padding: .3rem .6rem; text-align: right; }
th:first-child { text-align: left; min-width: 6.5rem; overflow-wrap: anywhere; }
.plots { display: flex; flex-wrap: wrap; gap: 1rem; }
.plots svg { max-width: 100%; height: auto; }
"""


class Row(NamedTuple):
    """One line of a table."""

    name: str
    answers: int
    claims: int
    supported: float | None
    decisions: Mapping[Action, int]
    reviewed: int
    overruled: int
    p50: float | None
    p95: float | None


def page(title: str, total: Row, tables: Mapping[str, Sequence[Row]]) -> str:
    """Draw a page."""
    days = tables.get("Day", ())
    plots = "".join(plot.drawn() for plot in _plots(days)) if days else ""
    shown = "".join(_table(name, rows) for name, rows in tables.items())
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}{STYLE}</style></head><body>"
        f"<main><h1>{escape(title)}</h1>{_table('All', [total])}"
        f'<div class="plots">{plots}</div>{shown}</main></body></html>\n'
    )


def shown(number: float | None, form: str) -> str:
    """Write a number, or a dash if it is not known."""
    return "-" if number is None else format(number, form)


def _table(name: str, rows: Sequence[Row]) -> str:
    heads = (name, "answers", "claims", "supported", *ACTIONS, "reviewed", "overruled")
    head = "".join(f'<th scope="col">{escape(word)}</th>' for word in (*heads, "p50 ms", "p95 ms"))
    body = "".join(_line(row) for row in rows)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="wide">{table}</div>'


def _line(row: Row) -> str:
    cells = (
        str(row.answers),
        str(row.claims),
        shown(row.supported, ".1%"),
        *(str(row.decisions.get(action, 0)) for action in ACTIONS),
        str(row.reviewed),
        str(row.overruled),
        shown(row.p50, ".1f"),
        shown(row.p95, ".1f"),
    )
    return (
        f'<tr><th scope="row">{escape(row.name)}</th>'
        f"{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
    )


def _plots(days: Sequence[Row]) -> Iterator[Plot]:
    ticks = _days(days)
    most = float(max(row.answers for row in days))
    decisions = Plot(title="Decisions per day", highest=most, y_label="answers")
    decisions.ticks(ticks, [(0.0, "0"), (most, f"{most:,.0f}")])
    decisions.legend([(_COLOURS[action], action) for action in ACTIONS])
    for place, row in enumerate(days):
        low = 0
        for action in ACTIONS:
            high = low + row.decisions.get(action, 0)
            told = f"{row.name}: {high - low} {action}"
            left = (place + 0.1) / len(days)
            if high > low:
                decisions.bar(left, 0.8 / len(days), low, high, _COLOURS[action], told)
            low = high
    yield decisions
    rate = Plot(title="Supported claims per day", y_label="share of checked claims")
    rate.ticks(ticks, [(n / 4, f"{n / 4:.0%}") for n in range(5)])
    rate.legend([("a", "supported")])
    _curve(rate, days, [row.supported for row in days], "a", ".1%")
    yield rate
    slowest = max((row.p95 for row in days if row.p95 is not None), default=1.0) or 1.0
    time = Plot(title="Time of a check per day", highest=slowest, y_label="milliseconds")
    time.ticks(
        ticks,
        [(0.0, "0"), (slowest, f"{slowest:,.0f}" if slowest >= _WHOLE_FROM else f"{slowest:.3g}")],
    )
    time.legend([("e", "median"), ("c", "95th percentile")])
    _curve(time, days, [row.p50 for row in days], "e", ".1f")
    _curve(time, days, [row.p95 for row in days], "c", ".1f")
    yield time


def _curve(
    plot: Plot, days: Sequence[Row], values: Sequence[float | None], kind: str, form: str
) -> None:
    points = [
        ((place + 0.5) / len(days), value, days[place].name)
        for place, value in enumerate(values)
        if value is not None
    ]
    if len(points) > 1:
        plot.line([(x, y) for x, y, _ in points], kind)
    for x, y, name in points:
        plot.dot(x, y, kind, f"{name}: {format(y, form)}")


def _days(days: Sequence[Row]) -> list[tuple[float, str]]:
    """Name some of the days below a plot."""
    step = -(-len(days) // _MOST_TICKS)
    return [
        ((place + 0.5) / len(days), row.name.removeprefix("20"))
        for place, row in enumerate(days)
        if place % step == 0
    ]
