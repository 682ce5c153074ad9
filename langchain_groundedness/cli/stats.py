"""The command `langchain-groundedness stats`.

Exit codes: 0 done, 2 the log could not be read, 130 interrupted.
"""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from langchain_groundedness._runtime.files import require_outputs
from langchain_groundedness.cli import options
from langchain_groundedness.cli.errors import errors_in_one_line, write_file
from langchain_groundedness.display.counts import format_count
from langchain_groundedness.display.terminal import plain_table, printable

if TYPE_CHECKING:
    from langchain_groundedness.monitoring import AuditSummary, GroupFigures

__all__ = ["stats"]

_Day: TypeAlias = Annotated[datetime | None, typer.Option(formats=["%Y-%m-%d"])]
_STYLES = {"pass": "green", "flag": "yellow", "review": "magenta", "block": "red"}


def stats(  # noqa: PLR0913  (each is an option of the command)
    *,
    db: options.Db = None,
    log: Path | None = None,
    since: _Day = None,
    until: _Day = None,
    html: Path | None = None,
    as_json: options.AsJson = False,
) -> None:
    """Show the figures of an audit log. They are grouped by day, model and query class.

    \b
    Examples:
      langchain-groundedness stats --db sqlite:///audit.db --html stats.html
      langchain-groundedness stats --log audit.jsonl --since 2026-01-01 --json

    Options:
        since (YYYY-MM-DD): From this day on, in UTC.
        until (YYYY-MM-DD): Before this day, in UTC.
        html (FILE.html): Where to write a page with plots.
    """  # noqa: D301  (click reads the backspace)
    from langchain_groundedness.monitoring import summarize

    with errors_in_one_line("cannot write"):
        require_outputs([("--html", html)], [db, log])
    with errors_in_one_line("cannot read the audit log"):
        options.require_one(db=db, log=log)
        first, end = (day and day.replace(tzinfo=UTC) for day in (since, until))
        with Console(stderr=True).status("reading…"):
            found = summarize(
                record
                for record in options.audit_records(db, log, since=first, until=end)
                if (first is None or record.time >= first) and (end is None or record.time < end)
            )
    if html is not None:
        from langchain_groundedness.report import statistics_html

        with errors_in_one_line("cannot write"):
            write_file(html, statistics_html(found))
    if as_json:
        typer.echo(json.dumps(found.model_dump(mode="json"), indent=2))
        return
    Console().print(_render(found, in_part=first is not None or end is not None))
    if html is None:
        options.next_step("the same with --html stats.html, for a page with charts")
    else:
        typer.echo(f"written to {html}")
        options.next_step("open {} in a browser", html)


def _render(found: "AuditSummary", *, in_part: bool) -> RenderableType:
    if found.first is None or found.last is None:
        when = " in this time" if in_part else ""
        return Text(f"the audit log holds no records{when}", style="yellow")
    total = found.total
    head = Text(format_count(total.answers, "answer"), style="bold")
    head.append(f", {found.first:%Y-%m-%d} to {found.last:%Y-%m-%d}")
    head.append(
        f" · {total.waiting} waiting for a reviewer · reviewed: {total.approved} approved, "
        f"{total.edited} edited, {total.rejected} rejected",
        style="dim",
    )
    groups = {"Day": found.days, "Model": found.models, "Query class": found.query_classes}
    tables = [_table(name, rows, total) for name, rows in groups.items()]
    return Group(head, *tables, *([_marks(total)] if total.marks else []))


def _marks(total: "GroupFigures") -> Table:
    table = plain_table()
    table.add_column("Claims marked by reviewers")
    for head in ("right", "wrong", "agree with the verdict"):
        table.add_column(head, justify="right", no_wrap=True)
    for verdict, (right, wrong) in total.marks.items():
        agreement = total.agreement(verdict)
        share = "-" if agreement is None else f"{agreement:.1%}"
        table.add_row(verdict, str(right), str(wrong), share)
    return table


def _table(name: str, groups: Sequence["GroupFigures"], total: "GroupFigures") -> Table:
    table = plain_table(show_footer=True)
    # As wide as a day; longer names are broken where the terminal is narrow.
    table.add_column(name, Text("all"), min_width=10, overflow="fold")
    for head, foot in zip(total.heads, total.cells(), strict=True):
        table.add_column(head, foot, style=_STYLES.get(head), justify="right", no_wrap=True)
    for group in groups:
        table.add_row(Text(printable(group.title)), *group.cells())
    return table
