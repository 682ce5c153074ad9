"""The command `langchain-groundedness stats`.

Exit codes: 0 done, 2 the log could not be read, 130 interrupted.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from langchain_groundedness.cli.errors import ending, write_text
from langchain_groundedness.cli.records import Db, Log, read_records, require_one
from langchain_groundedness.display.terminal import printable
from langchain_groundedness.monitoring import AuditSummary, GroupFigures, summarize
from langchain_groundedness.types import Action

__all__ = ["HELP", "stats"]

HELP = """Show what an audit log says, per day, model and query class.

\b
Examples:
  langchain-groundedness stats --db sqlite:///audit.db --html stats.html
  langchain-groundedness stats --log audit.jsonl --since 2026-01-01 --json
"""
_ACTIONS: tuple[tuple[Action, str], ...] = (
    ("pass", "green"),
    ("flag", "yellow"),
    ("review", "magenta"),
    ("block", "red"),
)


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
        Path | None, typer.Option(metavar="FILE.html", help="Where a page with plots is written.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the figures as JSON, for a program.")
    ] = False,
) -> None:
    """Show figures; `HELP` tells the user the rest."""
    with ending("cannot read the audit log"):
        require_one(db=db, log=log)
        first, end = (day and day.replace(tzinfo=UTC) for day in (since, until))
        filters: dict[str, Any] = {"since": first, "until": end}
        with Console(stderr=True).status("reading…"):
            found = summarize(
                record
                for record in read_records(db, log, **filters)
                if (first is None or record.time >= first) and (end is None or record.time < end)
            )
    if html is not None:
        with ending("cannot write"):
            write_text(html, found.to_html())
    if as_json:
        typer.echo(found.model_dump_json(indent=2))
        return
    Console().print(_render(found, in_part=first is not None or end is not None))
    if html is not None:
        typer.echo(f"written to {html}")


_WHOLE_FROM = 100
"""Milliseconds from which on a fraction of one says nothing."""
_NAME_WIDTH = 10
"""Of a day; longer names are broken where the terminal is narrow."""


def _render(found: AuditSummary, *, in_part: bool) -> RenderableType:
    if found.first is None or found.last is None:
        in_time = "the audit log holds no records in this time"
        words = in_time if in_part else "the audit log holds no records"
        return Text(words, style="yellow")
    total = found.total
    head = Text(f"{total.answers} answers", style="bold")
    head.append(f", {found.first:%Y-%m-%d} to {found.last:%Y-%m-%d}")
    head.append(f" · {total.waiting} waiting for a reviewer", style="dim")
    head.append(
        f" · reviewed: {total.approved} approved, {total.edited} edited, {total.rejected} rejected",
        style="dim",
    )
    groups = (("Day", found.days), ("Model", found.models), ("Query class", found.query_classes))
    tables = (_table(name, rows, total) for name, rows in groups)
    return Group(head, *(part for table in tables for part in (Text(""), table)))


def _table(name: str, groups: Sequence[GroupFigures], total: GroupFigures) -> Table:
    table = Table(
        box=box.SIMPLE_HEAD,
        header_style="bold",
        show_footer=True,
        padding=0,
        pad_edge=False,
        show_edge=False,
    )
    for head, foot in zip(_heads(name), (Text("all"), *_cells(total)), strict=True):
        is_name = head == name
        table.add_column(
            head,
            foot,
            justify="left" if is_name else "right",
            no_wrap=not is_name,
            min_width=_NAME_WIDTH if is_name else None,
            overflow="fold" if is_name else "ellipsis",
        )
    for group in groups:
        table.add_row(Text(printable(group.name)), *_cells(group))
    return table


def _heads(name: str) -> tuple[str, ...]:
    actions = (action for action, _ in _ACTIONS)
    return (name, "answers", "supported", *actions, "overruled", "p50 ms", "p95")


def _cells(group: GroupFigures) -> tuple[Text, ...]:
    rate = group.supported_rate
    return (
        Text(str(group.answers)),
        Text("-" if rate is None else f"{rate:.1%}"),
        *(Text(str(group.decisions.get(action, 0)), style=style) for action, style in _ACTIONS),
        Text(str(group.overruled)),
        *(Text(_ms(group.check_ms[p]) if group.check_ms else "-") for p in ("p50", "p95")),
    )


def _ms(number: float) -> str:
    return f"{number:.1f}" if number < _WHOLE_FROM else f"{number:,.0f}"
