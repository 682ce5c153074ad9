"""Reads the audit log that a command line names, page by page."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from langchain_groundedness.audit import AuditRecord, JsonlAuditLog, SQLAuditLog
from langchain_groundedness.exceptions import ConfigurationError, require

__all__ = ["Db", "Log", "open_log", "read_records", "require_one"]

Db: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        envvar="GROUNDEDNESS_AUDIT_DB",
        help="Database of the audit log: sqlite:///PATH or postgresql://...",
    ),
]
Log: TypeAlias = Annotated[
    Path | None, typer.Option(metavar="FILE.jsonl", help="File of the audit log.")
]


def require_one(**sources: object) -> None:
    """Refuse a command line that does not say where to read, or says it twice."""
    given = [name for name, value in sources.items() if value is not None]
    if len(given) != 1:
        options = ", ".join(f"--{name}" for name in sources)
        msg = f"give one of {options}; got {len(given)} of them"
        raise ConfigurationError(msg)


def read_records(db: str | None, log: Path | None, **filters: Any) -> Iterator[AuditRecord]:
    """Read records, never all at once."""
    if log is not None:
        if not log.is_file():
            msg = f"there is no audit log at {log}"
            raise ConfigurationError(msg)
        with closing(JsonlAuditLog(log, on_store_down="raise")) as file:
            none = True
            for record in file.records():
                none = False
                yield record
        if none and log.stat().st_size:
            msg = (
                f"{log}: no line of it is a record of an audit log; --log takes the file that a "
                "JsonlAuditLog writes, --db the URL of a database"
            )
            raise ConfigurationError(msg)
    elif db is not None:
        with closing(open_log(db)) as store:
            yield from store.records(**filters)


def open_log(db: str) -> SQLAuditLog:
    """Open an audit log that is there already; nothing is made where there is none."""
    log = SQLAuditLog(db, on_store_down="raise")
    place: Any = require("langchain_groundedness.audit.sql_store", extra="sql")
    path = place.database_of(db).path
    if path is not None and not path.is_file():
        msg = f"there is no audit log at {path}"
        raise ConfigurationError(msg)
    return log
