"""Reads and writes the rows of the SQL audit log. Needs the extra `sql`."""

import json
import os
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import SQLAlchemyError
from typing_extensions import override

from langchain_groundedness._runtime.files import open_private, refuse_symlink
from langchain_groundedness.audit.record import AuditEntry, AuditRecord, Review
from langchain_groundedness.exceptions import AuditError, ConfigurationError, require

__all__ = ["Row", "Store", "conditions", "database_of"]

_BUSY_MS = 10_000

_CONNECT_TIMEOUT = 5

_LONGEST_INDEXED = 600

_BATCH = 500

_LOCK = 0x67726F756E646564  # "grounded"; any number unlikely to be another advisory lock

_DRIVERS = {"postgres": "postgresql+psycopg", "postgresql": "postgresql+psycopg"}

_EQUAL = ("decision", "verdict", "review_status", "query_class", "risk_tier", "model", "thread_id")


class _UTCDateTime(sa.TypeDecorator[datetime]):
    """A UTC time, also in databases without time zones."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    @override
    def process_bind_param(self, value: datetime | None, dialect: sa.Dialect) -> datetime | None:
        return None if value is None else value.astimezone(UTC)

    @override
    def process_result_value(self, value: datetime | None, dialect: sa.Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


records = sa.Table(
    "groundedness_audit",
    sa.MetaData(),
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("time", _UTCDateTime, nullable=False),
    sa.Column("source", sa.Text, nullable=False),
    sa.Column("decision", sa.Text, nullable=False),
    sa.Column("verdict", sa.Text, nullable=False),
    sa.Column("trust_score", sa.Double),
    sa.Column("query_class", sa.Text),
    sa.Column("risk_tier", sa.Text),
    sa.Column("model", sa.Text),
    sa.Column("run_id", sa.Text),
    sa.Column("root_run_id", sa.Text),
    sa.Column("thread_id", sa.Text),
    sa.Column("check_ms", sa.Double),
    sa.Column("revision", sa.Integer, nullable=False),
    sa.Column("review_status", sa.Text, nullable=False),
    sa.Column("review_action", sa.Text),
    sa.Column("reviewer", sa.Text),
    sa.Column("reviewed_at", _UTCDateTime),
    sa.Column("review", sa.Text, nullable=False),
    sa.Column("record", sa.Text, nullable=False),
    sa.Column("searched", sa.Text, nullable=False),
    sa.Index("groundedness_audit_time", "time", "id"),
    sa.Index("groundedness_audit_review", "review_status", "time", "id"),
    sa.Index("groundedness_audit_thread", "thread_id"),
    sa.Index("groundedness_audit_run", "run_id"),
    sa.Index("groundedness_audit_root", "root_run_id"),
)
"""One row per record. `record` is the whole record as JSON, except that `review` and `revision`
override its fields. The other columns exist for queries."""

_rows = records.c

_versions = sa.Table(
    "groundedness_audit_schema", records.metadata, sa.Column("version", sa.Integer, nullable=False)
)

_VERSION = 3
"""Version of the table schema."""


class Row(NamedTuple):
    """A record as read from the store."""

    time: datetime
    id: str
    record: AuditRecord | None
    """`None` if it is damaged, or of a newer version."""


class Database(NamedTuple):
    """The location of a database."""

    url: sa.URL
    path: Path | None
    """The file, if it is one."""

    def __str__(self) -> str:
        """Write the location without secrets."""
        bare = sa.URL.create(
            self.url.drivername, host=self.url.host, port=self.url.port, database=self.url.database
        )
        return bare.render_as_string()


class Store:
    """The rows, and the connections to them."""

    def __init__(self, database: Database, *, connect_args: Mapping[str, Any] | None) -> None:
        """Prepare to connect, when something is to be read or written."""
        self.database = database
        self._ready = False
        arguments = dict(connect_args or {})
        if database.path is None and "connect_timeout" not in database.url.query:
            arguments = {"connect_timeout": _CONNECT_TIMEOUT, **arguments}
        self._engine = sa.create_engine(
            database.url, connect_args=arguments, pool_pre_ping=True, hide_parameters=True
        )
        if database.path is not None:
            sa.event.listen(self._engine, "connect", _prepare_sqlite)
            sa.event.listen(self._engine, "begin", _begin_sqlite)

    def close(self) -> None:
        """Close the connections."""
        self._engine.dispose()

    def forked(self) -> None:
        """Drop the connections, which belong to the parent process."""
        self._engine.dispose(close=False)

    def upgrade(self) -> None:
        """Create the tables, or upgrade them."""
        with self._as_audit_errors("be upgraded"):
            self._make_ready()

    def insert(self, entries: Sequence[AuditEntry]) -> None:
        """Write records; existing ones change only for a higher revision."""
        postgres = self._engine.dialect.name == "postgresql"
        statement = (postgresql if postgres else sqlite).insert(records)
        new = statement.excluded
        statement = statement.on_conflict_do_update(
            index_elements=[_rows.id],
            set_={name: each for name, each in new.items() if name not in {"id", "time"}},
            where=new.revision > _rows.revision,
        )
        with self._writing() as connection:
            connection.execute(statement, [_row(entry) for entry in entries])

    def get(self, record_id: str) -> AuditRecord | None:
        """Read one record."""
        with self._reading() as connection:
            return _one(connection, record_id)

    def select(
        self,
        where: Sequence[sa.ColumnElement[bool]],
        *,
        limit: int,
        after: tuple[datetime, str] | None,
        newest_first: bool,
    ) -> list[Row]:
        """Read rows in order of time."""
        query = sa.select(_rows.time, _rows.id, _rows.record, _rows.review, _rows.revision)
        query = query.where(*where)
        if after is not None:
            place = sa.tuple_(_rows.time, _rows.id)
            query = query.where(place < after if newest_first else place > after)
        order = [column.desc() if newest_first else column for column in (_rows.time, _rows.id)]
        with self._reading() as connection:
            found = connection.execute(query.order_by(*order).limit(limit)).all()
        return [Row(moment, name, _read_if_whole(*rest)) for moment, name, *rest in found]

    def count(self, where: Sequence[sa.ColumnElement[bool]]) -> int:
        """Count records."""
        with self._reading() as connection:
            query = sa.select(sa.func.count()).select_from(records).where(*where)
            return int(connection.execute(query).scalar_one())

    def decide(
        self, record_id: str, revision: int, review: Review
    ) -> tuple[AuditRecord | None, bool]:
        """Write a review, unless another one came first."""
        statement = (
            sa.update(records)
            .where(_rows.id == record_id, _rows.revision == revision)
            .where(_rows.review_status != "decided")
            .values(_review_columns(revision + 1, review))
        )
        with self._writing() as connection:
            written = connection.execute(statement).rowcount == 1
            return _one(connection, record_id), written

    def take_effect(self, record_id: str) -> tuple[AuditRecord | None, bool]:
        """End the hold of a decision; its new revision keeps an undo that waits from writing."""
        row = sa.select(_rows.id).where(_rows.id == record_id).with_for_update()
        with self._writing() as connection:
            connection.execute(row)
            record = _one(connection, record_id)
            if record is None or record.review.status != "decided":
                return record, False
            now = datetime.now(UTC)
            review = record.review.model_copy(update={"time": min(record.review.time or now, now)})
            columns = _review_columns(record.revision + 1, review)
            connection.execute(sa.update(records).where(_rows.id == record_id).values(columns))
            return _one(connection, record_id), True

    def undo(self, record_id: str, revision: int, reviewer: str) -> tuple[AuditRecord | None, bool]:
        """Restore the review from before a decision that has not taken effect."""
        held = (
            sa.select(_rows.record)
            .where(_rows.id == record_id, _rows.revision == revision)
            .where(_rows.review_status == "decided", _rows.reviewer == _clean(reviewer))
            .where(_rows.reviewed_at > datetime.now(UTC))
            .with_for_update()
        )
        with self._writing() as connection:
            line = connection.execute(held).scalar_one_or_none()
            if line is not None:
                before = AuditRecord.from_json(line)
                columns = _review_columns(before.revision, before.review)
                connection.execute(sa.update(records).where(_rows.id == record_id).values(columns))
            return _one(connection, record_id), line is not None

    def delete(self, where: Sequence[sa.ColumnElement[bool]]) -> int:
        """Delete records for good, also from the file beside the database, unless it is in use."""
        with self._writing("be pruned") as connection:
            number = connection.execute(sa.delete(records).where(*where)).rowcount
        if self.database.path is not None:
            with (
                self._as_audit_errors("be pruned"),
                closing(self._engine.raw_connection()) as raw,
                closing(raw.cursor()) as cursor,
            ):
                cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return number

    @contextmanager
    def _writing(self, what: str = "be written to") -> Iterator[sa.Connection]:
        with self._as_audit_errors(what):
            self._make_ready()
            with self._engine.execution_options(audit_writes=True).begin() as connection:
                yield connection

    @contextmanager
    def _reading(self) -> Iterator[sa.Connection]:
        with self._as_audit_errors("be read"):
            self._make_ready()
            with self._engine.connect() as connection:
                yield connection

    def _make_ready(self) -> None:
        if self._ready:
            return
        path = self.database.path
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            os.close(open_private(path))
        _make_tables(self._engine)
        self._ready = True

    @contextmanager
    def _as_audit_errors(self, what: str) -> Iterator[None]:
        """Raise database errors as `AuditError`, without secrets."""
        try:
            yield
        except (SQLAlchemyError, sqlite3.Error, OSError) as exc:
            origin = getattr(exc, "orig", None) or exc
            state = getattr(origin, "sqlstate", None)
            name = getattr(origin, "sqlite_errorname", None)
            codes = (type(origin).__name__, name, f"SQLSTATE {state}" if state else None)
            why = ", ".join(filter(None, codes))
            msg = f"the audit log's database {self.database} cannot {what} ({why})"
            raise AuditError(msg) from None  # the cause may quote the URL, or records


def conditions(
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    run_id: object = None,
    text: str | None = None,
    settled: bool = False,
    **equal: str | None,
) -> list[sa.ColumnElement[bool]]:
    """Build the conditions of a query."""
    if unknown := sorted(set(equal) - set(_EQUAL)):
        msg = f"unknown filter {', '.join(unknown)}"
        raise ConfigurationError(msg)
    found = []
    if (status := equal.get("review_status")) in ("decided", "held"):
        equal["review_status"], now = "decided", datetime.now(UTC)
        in_effect = sa.or_(_rows.reviewed_at.is_(None), _rows.reviewed_at <= now)
        found.append(in_effect if status == "decided" else _rows.reviewed_at > now)
    found += [_rows[name] == _clean(v) for name, v in equal.items() if v is not None]
    found += [] if since is None else [_rows.time >= since]
    found += [] if until is None else [_rows.time < until]
    words = _storable(text or "").casefold().split()
    found += [_rows.searched.contains(word, autoescape=True) for word in words]
    if run_id is not None:
        found.append(sa.or_(_rows.run_id == str(run_id), _rows.root_run_id == str(run_id)))
    return [*found, _rows.review_status != "waiting"] if settled else found


def _prepare_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # transactions begin where `_begin_sqlite` says so
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.execute("PRAGMA secure_delete = ON")
    # Switching to WAL does not wait for locks, so processes that start together collide.
    until = time.monotonic() + _BUSY_MS / 1000
    while cursor.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        try:
            cursor.execute("PRAGMA journal_mode = WAL")
        except Exception:  # the driver's error, whichever driver it is
            if time.monotonic() > until:
                raise
            time.sleep(0.01)
    cursor.close()


def _begin_sqlite(connection: sa.Connection) -> None:
    # A deferred transaction that reads before it writes could fail at once, without waiting.
    writes = connection.get_execution_options().get("audit_writes")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _one(connection: sa.Connection, record_id: str) -> AuditRecord | None:
    query = sa.select(_rows.record, _rows.review, _rows.revision).where(_rows.id == record_id)
    found = connection.execute(query).one_or_none()
    return None if found is None else _read(*found)


def _read(record: str, review: str, revision: int) -> AuditRecord:
    known = AuditRecord.from_json(record)
    try:
        update = {"review": Review.model_validate(json.loads(review)), "revision": revision}
    except ValueError:
        msg = "the review of an audit record is damaged"
        raise AuditError(msg) from None  # the cause quotes it
    return known.model_copy(update=update)


def _read_if_whole(record: str, review: str, revision: int) -> AuditRecord | None:
    try:
        return _read(record, review, revision)
    except AuditError:
        return None


def _row(entry: AuditEntry) -> dict[str, Any]:
    record = entry.record
    return {
        "id": _clean(record.id),
        "time": record.time,
        "source": _clean(record.source),
        "decision": record.decision.action,
        "verdict": record.verdict,
        "trust_score": record.trust_score,
        "query_class": _clean(record.query_class),
        "risk_tier": _clean(record.risk_tier),
        "model": _clean(record.versions.model or record.versions.verifier),
        "run_id": _id(record.run_id),
        "root_run_id": _id(record.root_run_id),
        "thread_id": _clean(record.thread_id),
        "check_ms": record.timings.get("check"),
        "searched": searched(record),
        "record": entry.line,
        **_review_columns(record.revision, record.review),
    }


def _review_columns(revision: int, review: Review) -> dict[str, Any]:
    return {
        "revision": revision,
        "review_status": review.status,
        "review_action": review.action,
        "reviewer": _clean(review.reviewer),
        "reviewed_at": review.time,
        "review": json.dumps(review.model_dump(mode="json")),
    }


def _id(value: object) -> str | None:
    return None if value is None else str(value)


def _clean(text: str | None) -> str | None:
    """Shorten a text for an indexed column; the record has all of it.

    It is no longer than PostgreSQL's indexes take (2,704 bytes).
    """
    return None if text is None else _storable(text[:_LONGEST_INDEXED])


def searched(record: AuditRecord) -> str:
    """Give the text in which words are searched, without regard to case."""
    texts = (record.question, record.original_answer, record.shown_answer, record.id)
    return _storable("\n".join(filter(None, texts)).casefold())


def _storable(text: str) -> str:
    """Drop NUL characters and lone surrogates, which databases cannot store."""
    return text.replace("\0", "\ufffd").encode("utf-8", errors="replace").decode()


def _make_tables(engine: sa.Engine) -> None:
    """Create or upgrade the tables in one transaction; concurrent processes take turns."""
    with engine.connect() as connection:
        if _version(connection) == _VERSION:
            return
    with engine.connect().execution_options(audit_writes=True) as connection, connection.begin():
        if connection.dialect.name == "postgresql":
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")
        if _version(connection) == _VERSION:
            return
        records.metadata.create_all(connection)
        columns = {column["name"] for column in sa.inspect(connection).get_columns(records.name)}
        if "searched" not in columns:
            _add_searched(connection)
        for index in records.indexes:
            index.create(connection, checkfirst=True)
        connection.execute(sa.delete(_versions))
        connection.execute(sa.insert(_versions).values(version=_VERSION))


def _version(connection: sa.Connection) -> int:
    """Read the version of the tables; 0 if there are none."""
    if not sa.inspect(connection).has_table(_versions.name):
        return 0
    found = connection.execute(sa.select(_versions.c.version)).scalar()
    if found is not None and found > _VERSION:
        msg = (
            f"the tables of the audit log are of version {found}, made by a newer version of "
            f"langchain-groundedness; this one reads up to {_VERSION}: upgrade it"
        )
        raise AuditError(msg)
    return int(found or 0)


def _add_searched(connection: sa.Connection) -> None:
    """Add the column for the search of words to tables of version 1 or 2."""
    connection.exec_driver_sql(
        "ALTER TABLE groundedness_audit ADD COLUMN searched TEXT NOT NULL DEFAULT ''"
    )
    some, last = sa.select(_rows.id, _rows.record).order_by(_rows.id).limit(_BATCH), ""
    change = (
        sa.update(records)
        .where(_rows.id == sa.bindparam("row"))
        .values(searched=sa.bindparam("text"))
    )
    while found := connection.execute(some.where(_rows.id > last)).all():
        texts = [{"row": row.id, "text": _text_of(row.record)} for row in found]
        connection.execute(change, texts)
        last = found[-1].id


def _text_of(line: str) -> str:
    try:
        return searched(AuditRecord.from_json(line))
    except AuditError:  # a damaged row must not block the search of others
        return ""


def database_of(url: str) -> Database:
    """Read the URL of a database."""
    accepted = "accepted: sqlite:///path/to/file.db and postgresql://user:password@host/database"
    try:
        read = sa.make_url(url)
    except (SQLAlchemyError, ValueError):
        msg = f"url is not the URL of a database; {accepted}"
        raise ConfigurationError(msg) from None  # the cause may quote the password
    read = read.set(drivername=_DRIVERS.get(read.drivername, read.drivername))
    kind = read.get_backend_name()
    if kind == "postgresql":
        if read.get_driver_name() == "psycopg":
            require("psycopg", extra="postgres")
        return Database(read, None)
    if kind != "sqlite" or read.get_driver_name() not in ("pysqlite", ""):
        msg = f"url names {read.drivername}, which is not supported; {accepted}"
        raise ConfigurationError(msg)
    if not read.database or read.database == ":memory:" or read.database.startswith("file:"):
        msg = f"url must name a file, since an audit log in memory would be lost; {accepted}"
        raise ConfigurationError(msg)
    path = Path(read.database).absolute()
    refuse_symlink(path, "the file of url")
    return Database(read, path)
