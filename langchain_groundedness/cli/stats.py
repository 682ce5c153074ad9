"""The command `langchain-groundedness stats`.

Exit codes: 0 done, 2 the log could not be read, 130 interrupted.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from langchain_groundedness.cli.errors import errors_in_one_line, write_file
from langchain_groundedness.cli.options import (
    AsJson,
    Db,
    Log,
    audit_records,
    plain_table,
    require_one,
)
from langchain_groundedness.display.terminal import printable
from langchain_groundedness.monitoring import AuditSummary, GroupFigures, summarize
from langchain_groundedness.types import Action

__all__ = ["stats"]

_ACTIONS: dict[Action, str] = {
    "pass": "green",
    "flag": "yellow",
    "review": "magenta",
    "block": "red",
}
_WHOLE_FROM = 100
"""Milliseconds above which fractions are not shown."""


def stats(  # noqa: PLR0913  (each is an option of the command)
    *,
    db: Db = None,
    log: Log = None,
    since: Annotated[
        datetime | None, typer.Option(formats=["%Y-%m-%d"], help="From this day on, in UTC.")
    ] = None,
    until: Annotated[
        datetime | None, typer.Option(formats=["%Y-%m-%d"], help="Before this day, in UTC.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="Where to write a page with plots.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the figures of an audit log. They are grouped by day, model and query class.

    \b
    Examples:
      langchain-groundedness stats --db sqlite:///audit.db --html stats.html
      langchain-groundedness stats --log audit.jsonl --since 2026-01-01 --json
    """  # noqa: D301  (click reads the backspace)
    with errors_in_one_line("cannot read the audit log"):
        require_one(db=db, log=log)
        first, end = (day and day.replace(tzinfo=UTC) for day in (since, until))
        filters: dict[str, Any] = {"since": first, "until": end}
        with Console(stderr=True).status("reading…"):
            found = summarize(
                record
                for record in audit_records(db, log, **filters)
                if (first is None or record.time >= first) and (end is None or record.time < end)
            )
    if html is not None:
        with errors_in_one_line("cannot write"):
            write_file(html, found.to_html())
    if as_json:
        typer.echo(found.model_dump_json(indent=2))
        return
    Console().print(_render(found, in_part=first is not None or end is not None))
    if html is not None:
        typer.echo(f"written to {html}")


def _render(found: AuditSummary, *, in_part: bool) -> RenderableType:
    if found.first is None or found.last is None:
        when = " in this time" if in_part else ""
        return Text(f"the audit log holds no records{when}", style="yellow")
    total = found.total
    head = Text(f"{total.answers} answers", style="bold")
    head.append(f", {found.first:%Y-%m-%d} to {found.last:%Y-%m-%d}")
    head.append(
        f" · {total.waiting} waiting for a reviewer · reviewed: {total.approved} approved, "
        f"{total.edited} edited, {total.rejected} rejected",
        style="dim",
    )
    groups = {"Day": found.days, "Model": found.models, "Query class": found.query_classes}
    tables = (_table(name, rows, total) for name, rows in groups.items())
    return Group(head, *(part for table in tables for part in (Text(""), table)))


def _table(name: str, groups: Sequence[GroupFigures], total: GroupFigures) -> Table:
    table = plain_table(show_footer=True, padding=0, show_edge=False)
    # As wide as a day; longer names are broken where the terminal is narrow.
    table.add_column(name, Text("all"), min_width=10, overflow="fold")
    heads = ("answers", "supported", *_ACTIONS, "overruled", "p50 ms", "p95")
    for head, foot in zip(heads, _cells(total), strict=True):
        table.add_column(head, foot, justify="right", no_wrap=True)
    for group in groups:
        table.add_row(Text(printable(group.name)), *_cells(group))
    return table


def _cells(group: GroupFigures) -> tuple[Text, ...]:
    rate = group.supported_rate
    return (
        Text(str(group.answers)),
        Text("-" if rate is None else f"{rate:.1%}"),
        *(Text(str(group.decisions.get(action, 0)), style) for action, style in _ACTIONS.items()),
        Text(str(group.overruled)),
        *(Text(_ms(group.check_ms[p]) if group.check_ms else "-") for p in ("p50", "p95")),
    )


def _ms(number: float) -> str:
    return f"{number:.1f}" if number < _WHOLE_FROM else f"{number:,.0f}"
