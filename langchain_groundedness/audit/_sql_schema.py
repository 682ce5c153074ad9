"""The tables of the SQL audit log, and how those of an older version become those of this one.

Needs the extra `sql`.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    Column,
    Connection,
    DateTime,
    Dialect,
    Double,
    Engine,
    Integer,
    MetaData,
    Table,
    Text,
    TypeDecorator,
    bindparam,
    inspect,
    select,
    update,
)
from typing_extensions import override

from langchain_groundedness.audit._reviewing import searched
from langchain_groundedness.audit.record import AuditRecord
from langchain_groundedness.exceptions import AuditError

__all__ = ["LATEST", "records", "upgrade"]

_BATCH = 500
_VERSIONS = "groundedness_audit_schema"
_LOCK = 0x67726F756E646564  # "grounded"; any number that nobody else takes for a lock


class _Moment(TypeDecorator[datetime]):
    """A moment in UTC, also where the database knows no time zones."""

    impl = DateTime(timezone=True)
    cache_ok = True

    @override
    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        return None if value is None else value.astimezone(UTC)

    @override
    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


records = Table(
    "groundedness_audit",
    MetaData(),
    Column("id", Text, primary_key=True),
    Column("time", _Moment, nullable=False),
    Column("source", Text, nullable=False),
    Column("decision", Text, nullable=False),
    Column("verdict", Text, nullable=False),
    Column("trust_score", Double),
    Column("query_class", Text),
    Column("risk_tier", Text),
    Column("model", Text),
    Column("run_id", Text),
    Column("root_run_id", Text),
    Column("thread_id", Text),
    Column("check_ms", Double),
    Column("revision", Integer, nullable=False),
    Column("review_status", Text, nullable=False),
    Column("review_action", Text),
    Column("reviewer", Text),
    Column("reviewed_at", _Moment),
    Column("review", Text, nullable=False),
    Column("record", Text, nullable=False),
    Column("searched", Text, nullable=False),
)
"""One row per record. `record` is all of it as JSON; `review` and `revision` count, not what
`record` says of them. The other columns are there to be searched."""


def _first(connection: Connection) -> None:
    moment = "TIMESTAMP WITH TIME ZONE" if _is_postgres(connection) else "DATETIME"
    for statement in (
        f"""
        CREATE TABLE groundedness_audit (
            id TEXT PRIMARY KEY,
            time {moment} NOT NULL,
            source TEXT NOT NULL,
            decision TEXT NOT NULL,
            verdict TEXT NOT NULL,
            trust_score DOUBLE PRECISION,
            query_class TEXT,
            risk_tier TEXT,
            model TEXT,
            run_id TEXT,
            root_run_id TEXT,
            thread_id TEXT,
            check_ms DOUBLE PRECISION,
            revision INTEGER NOT NULL,
            review_status TEXT NOT NULL,
            review_action TEXT,
            reviewer TEXT,
            reviewed_at {moment},
            review TEXT NOT NULL,
            record TEXT NOT NULL
        )
        """,
        "CREATE INDEX groundedness_audit_time ON groundedness_audit (time, id)",
    ):
        connection.exec_driver_sql(statement)


def _second(connection: Connection) -> None:
    """Find what waits for a review, and what belongs to a thread, without reading all."""
    for statement in (
        "CREATE INDEX groundedness_audit_review ON groundedness_audit (review_status, time, id)",
        "CREATE INDEX groundedness_audit_thread ON groundedness_audit (thread_id)",
        "CREATE INDEX groundedness_audit_run ON groundedness_audit (run_id)",
        "CREATE INDEX groundedness_audit_root ON groundedness_audit (root_run_id)",
    ):
        connection.exec_driver_sql(statement)


def _third(connection: Connection) -> None:
    """Search words without reading all of every record."""
    connection.exec_driver_sql(
        "ALTER TABLE groundedness_audit ADD COLUMN searched TEXT NOT NULL DEFAULT ''"
    )
    rows, last = records.c, ""
    some = select(rows.id, rows.record).order_by(rows.id).limit(_BATCH)
    change = update(records).where(rows.id == bindparam("row")).values(searched=bindparam("text"))
    while found := connection.execute(some.where(rows.id > last)).all():
        texts = [{"row": row.id, "text": _text_of(row.record)} for row in found]
        connection.execute(change, texts)
        last = found[-1].id


def _text_of(line: str) -> str:
    try:
        return searched(AuditRecord.from_json(line))
    except AuditError:  # a row that is damaged must not keep the others from being searched
        return ""


_STEPS: tuple[Callable[[Connection], None], ...] = (_first, _second, _third)

LATEST = len(_STEPS)
"""Version of the tables that this version of the package makes and reads."""


def upgrade(engine: Engine, *, to: int = LATEST) -> None:
    """Make the tables, or bring them from an older version to this one, in one transaction.

    Processes that do it at once do it one after another.

    Args:
        engine: The database.
        to: The version that is wanted.

    Raises:
        AuditError: The tables are of a newer version.
    """
    with engine.connect() as connection:
        if _version(connection) == to:
            return
    with engine.connect().execution_options(audit_writes=True) as connection, connection.begin():
        if _is_postgres(connection):
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")
        found = _version(connection)
        if found == 0:
            connection.exec_driver_sql(f"CREATE TABLE {_VERSIONS} (version INTEGER NOT NULL)")
            connection.exec_driver_sql(f"INSERT INTO {_VERSIONS} VALUES (0)")  # noqa: S608  (a name of ours)
        for step in _STEPS[found:to]:
            step(connection)
        connection.exec_driver_sql(f"UPDATE {_VERSIONS} SET version = {max(found, to):d}")  # noqa: S608  (a number)


def _is_postgres(connection: Connection) -> bool:
    return connection.dialect.name == "postgresql"


def _version(connection: Connection) -> int:
    """Read the version of the tables; 0 if there are none."""
    if not inspect(connection).has_table(_VERSIONS):
        return 0
    found: Any = connection.exec_driver_sql(f"SELECT version FROM {_VERSIONS}").scalar()  # noqa: S608  (a name of ours)
    if found is not None and found > LATEST:
        msg = (
            f"the tables of the audit log are of version {found}, made by a newer version of "
            f"langchain-groundedness; this one knows up to {LATEST}: upgrade it"
        )
        raise AuditError(msg)
    return int(found or 0)
