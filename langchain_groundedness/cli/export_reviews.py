"""The command `langchain-groundedness export-reviews`.

Exit codes: 0 done, 2 the log could not be read or the file not written, 130 interrupted.
"""

import json
import os
from pathlib import Path
from typing import Annotated, Literal

import typer

from langchain_groundedness._runtime.files import open_private
from langchain_groundedness.cli.errors import ending
from langchain_groundedness.cli.records import Db, Log, read_records, require_one
from langchain_groundedness.evals.review_export import ReviewExport
from langchain_groundedness.exceptions import ConfigurationError

__all__ = ["HELP", "export_reviews"]

HELP = """Write what reviewers have decided as evaluation data, one JSON object per line.

\b
Examples:
  langchain-groundedness export-reviews --db sqlite:///audit.db --out reviewed.jsonl
  langchain-groundedness export-reviews --log audit.jsonl --unit claim --out claims.jsonl

\b
Records whose texts are not kept (content="hash" or "none") are left out, and counted.
"""


def export_reviews(
    *,
    db: Db = None,
    log: Log = None,
    out: Annotated[
        Path,
        typer.Option(
            metavar="FILE.jsonl", help="A new file, which only its owner will be able to read."
        ),
    ],
    unit: Annotated[
        Literal["answer", "claim"],
        typer.Option(help="A row per answer, or per claim whose label is known."),
    ] = "answer",
) -> None:
    """Export; `HELP` tells the user the rest."""
    with ending("cannot export"):
        require_one(db=db, log=log)
        export, number = ReviewExport(unit=unit), 0
        rows = export.rows(read_records(db, log, status="decided"))
        first = next(rows, None)  # a log that cannot be read leaves no empty file
        try:
            with os.fdopen(
                open_private(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "w", encoding="ascii"
            ) as file:
                while first is not None:
                    file.write(f"{json.dumps(first)}\n")
                    number += 1
                    first = next(rows, None)
        except FileExistsError as exc:
            msg = f"{out}: there is a file of this name already"
            raise ConfigurationError(msg) from exc
        except OSError as exc:
            msg = f"{out}: {exc.strerror or type(exc).__name__}"
            raise ConfigurationError(msg) from exc
        typer.echo(f"{number} rows written to {out}")
        for why, count in export.skipped.items():
            typer.echo(f"{count} records left out: {why}", err=True)
