"""The command `langchain-groundedness export-reviews`.

Exit codes: 0 done, 2 the log could not be read or the file not written, 130 interrupted.
"""

import json
import os
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Literal

import typer

from langchain_groundedness._runtime.files import open_private
from langchain_groundedness.cli import options
from langchain_groundedness.cli.errors import errors_in_one_line, refuse
from langchain_groundedness.display.counts import format_count

__all__ = ["export_reviews"]


def export_reviews(
    *,
    db: options.Db = None,
    log: Path | None = None,
    out: Annotated[Path, typer.Option()],
    unit: Literal["answer", "claim"] = "answer",
    as_json: options.AsJson = False,
) -> None:
    """Write reviewed answers as evaluation data. The file has one JSON object per line.

    \b
    Examples:
      langchain-groundedness export-reviews --db sqlite:///audit.db --out reviewed.jsonl
      langchain-groundedness export-reviews --log audit.jsonl --unit claim --out claims.jsonl

    \b
    Records whose texts were not kept (content="hash" or "none") are left out, and counted.

    Options:
        out (FILE.jsonl): A new file that only its owner can read.
        unit: One row per answer, or one per claim whose label is known.
    """  # noqa: D301  (click reads the backspace)
    from langchain_groundedness.evals.review_export import ReviewExport

    with errors_in_one_line("cannot export"):
        options.require_one(db=db, log=log)
        export = ReviewExport(unit=unit)
        rows = export.rows(options.audit_records(db, log, status="decided"))
        first = list(islice(rows, 1))  # a log that cannot be read leaves no empty file
        written = 0
        try:
            with os.fdopen(
                open_private(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "w", encoding="ascii"
            ) as file:
                for written, row in enumerate(chain(first, rows), start=1):  # noqa: B007
                    file.write(f"{json.dumps(row)}\n")
        except OSError as exc:
            exists = isinstance(exc, FileExistsError)
            why = "the file exists already" if exists else exc.strerror or type(exc).__name__
            refuse(f"{out}: {why}")
        held = options.held_decisions(db)
        if as_json:
            found = {"rows": written, "out": str(out), "left_out": export.left_out, "held": held}
            typer.echo(json.dumps(found))
            return
        typer.echo(f"{format_count(written)} written to {out}")
        for why, count in export.left_out.items():
            typer.echo(f"{format_count(count, 'record')} left out: {why}", err=True)
        if held:
            typer.echo(options.undoable_note(held, "exported"), err=True)
        if written:
            options.next_step("langchain-groundedness calibrate --labels {} --precision 0.95", out)
