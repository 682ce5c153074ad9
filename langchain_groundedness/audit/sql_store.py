"""Reads and writes the rows of the SQL audit log. Needs the extra `sql`."""

import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import SQLAlchemyError
from typing_extensions import override

from langchain_groundedness._runtime.files import open_private, refuse_symlink
from langchain_groundedness.audit.record import AuditEntry, AuditRecord, Review
from langchain_groundedness.exceptions import AuditError, ConfigurationError, require

__all__ = ["Store", "condition"]

_BUSY_MS = 10_000

_CONNECT_TIMEOUT = 5

_LONGEST_INDEXED = 600

_BATCH = 500

_LOCK = 0x67726F756E646564  # "grounded"; any number unlikely to be another advisory lock

_DRIVERS = {"postgres": "postgresql+psycopg", "postgresql": "postgresql+psycopg"}


class _UTCDateTime(sa.TypeDecorator[datetime]):
    """A UTC time, also in databases without time zones."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    @override
    def process_bind_param(self, value: datetime | None, dialect: sa.Dialect) -> datetime | None:
        return None if value is None else value.astimezone(UTC)

    @override
    def process_result_value(self, value: datetime | None, dialect: sa.Dialect) -> datetime | None:
        return value and value.replace(tzinfo=value.tzinfo or UTC).astimezone(UTC)


_SAME = "id source verdict query_class risk_tier run_id root_run_id thread_id".split()  # noqa: SIM905
"""Columns with a field of the record."""

_REQUIRED_TEXTS = "source decision verdict review_status review record searched"

_OPTIONAL_TEXTS = "query_class risk_tier model run_id root_run_id thread_id review_action reviewer"

records = sa.Table(
    "groundedness_audit",
    sa.MetaData(),
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("time", _UTCDateTime, nullable=False),
    sa.Column("revision", sa.Integer, nullable=False),
    *(sa.Column(name, sa.Text, nullable=False) for name in _REQUIRED_TEXTS.split()),
    *(sa.Column(name, sa.Text) for name in _OPTIONAL_TEXTS.split()),
    *(sa.Column(name, sa.Double) for name in ("trust_score", "check_ms")),
    sa.Column("reviewed_at", _UTCDateTime),
    sa.Index("groundedness_audit_time", "time", "id"),
    sa.Index("groundedness_audit_review", "review_status", "time", "id"),
    sa.Index("groundedness_audit_thread", "thread_id"),
    sa.Index("groundedness_audit_run", "run_id"),
    sa.Index("groundedness_audit_root", "root_run_id"),
)
"""One row per record. `record` is the whole record as JSON, except that `review` and `revision`
override its fields. The other columns exist for queries."""

_rows = records.c

_STORED = sa.select(_rows.record, _rows.review, _rows.revision)

_versions = sa.Table(
    "groundedness_audit_schema", records.metadata, sa.Column("version", sa.Integer, nullable=False)
)

_VERSION = 3
"""Version of the table schema."""


class Store:
    """The rows, and the connections to them."""

    def __init__(self, url: str, *, connect_args: Mapping[str, Any] | None = None) -> None:
        """Prepare to connect, when something is to be read or written."""
        self.url, self.path = _parse_url(url)
        self._ready = False
        self._connect_args = dict(connect_args or {})
        if self.path is None and "connect_timeout" not in self.url.query:
            self._connect_args.setdefault("connect_timeout", _CONNECT_TIMEOUT)
        self.engine = sa.create_engine(
            self.url, connect_args=self._connect_args, pool_pre_ping=True, hide_parameters=True
        )
        if self.path is not None:
            sa.event.listen(self.engine, "connect", _prepare_sqlite)
            sa.event.listen(self.engine, "begin", _begin_sqlite)

    def __str__(self) -> str:
        """Write the location without secrets."""
        bare = self.url._replace(username=None, password=None, query=sa.util.immutabledict())
        return bare.render_as_string()

    def has_tables(self) -> bool:
        """Tell whether there is an audit log in the database, which is not changed."""
        # `_prepare_sqlite` would change the mode of the journal.
        plain = sa.create_engine(self.url, connect_args=self._connect_args, poolclass=sa.NullPool)
        with self._as_audit_errors("be read"):
            return sa.inspect(plain).has_table(records.name)

    def upgrade(self) -> None:
        """Create the tables, or upgrade them."""
        with self._as_audit_errors("be upgraded"):
            self._make_ready()

    def insert(self, entries: Sequence[AuditEntry]) -> None:
        """Write records; existing ones change only for a higher revision."""
        postgres = self.engine.dialect.name == "postgresql"
        statement = (postgresql if postgres else sqlite).insert(records)
        new = statement.excluded
        statement = statement.on_conflict_do_update(
            index_elements=[_rows.id],
            set_={name: each for name, each in new.items() if name not in {"id", "time"}},
            where=new.revision > _rows.revision,
        )
        with self._connected("be written to", writes=True) as connection:
            connection.execute(statement, [_row(entry) for entry in entries])

    def get(self, record_id: str) -> AuditRecord | None:
        """Read one record."""
        with self._connected() as connection:
            row = connection.execute(_STORED.where(_rows.id == record_id)).one_or_none()
        return None if row is None else _read(*row)[1]

    def select(
        self,
        where: Sequence[sa.ColumnElement[bool]],
        *,
        limit: int,
        after: tuple[datetime, str] | None,
        newest_first: bool,
    ) -> list[tuple[datetime, str, AuditRecord | None]]:
        """Read rows in order of time; a damaged record, or one of a newer version, is `None`."""
        query = _STORED.add_columns(_rows.time, _rows.id).where(*where)
        if after is not None:
            place = sa.tuple_(_rows.time, _rows.id)
            query = query.where(place < after if newest_first else place > after)
        order = [column.desc() if newest_first else column for column in (_rows.time, _rows.id)]
        with self._connected() as connection:
            found = connection.execute(query.order_by(*order).limit(limit)).all()
        return [(moment, name, _read_if_undamaged(*stored)) for *stored, moment, name in found]

    def count(self, where: Sequence[sa.ColumnElement[bool]]) -> int:
        """Count records."""
        with self._connected() as connection:
            query = sa.select(sa.func.count()).select_from(records).where(*where)
            return int(connection.execute(query).scalar_one())

    def change(
        self, record_id: str, new: Callable[[AuditRecord, AuditRecord], AuditRecord]
    ) -> AuditRecord:
        """Replace review and revision of a record, which nobody else can change meanwhile.

        `new` gets the record without the decision, and as it is now; what it raises undoes all.
        """
        with self._connected("be written to", writes=True) as connection:
            query = _STORED.where(_rows.id == record_id).with_for_update()
            row = connection.execute(query).one_or_none()
            if row is None:
                msg = "the audit log has no record with this id"
                raise AuditError(msg)
            changed = new(*_read(*row))
            columns = _review_columns(changed)
            connection.execute(sa.update(records).where(_rows.id == record_id).values(columns))
        return changed

    def delete(self, before: datetime, *, waiting: bool) -> int:
        """Delete records for good, also from the file beside the database, unless it is in use."""
        delete = sa.delete(records).where(_rows.time < before)
        if not waiting:
            delete = delete.where(_rows.review_status != "waiting")
        with self._connected("be pruned", writes=True) as connection:
            number = connection.execute(delete).rowcount
        if self.path is not None:
            with (
                self._as_audit_errors("be pruned"),
                closing(self.engine.raw_connection()) as raw,
                closing(raw.cursor()) as cursor,
            ):
                cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return number

    @contextmanager
    def _connected(self, what: str = "be read", *, writes: bool = False) -> Iterator[sa.Connection]:
        with self._as_audit_errors(what):
            self._make_ready()
            with self.engine.execution_options(audit_writes=writes).begin() as connection:
                yield connection

    def _make_ready(self) -> None:
        if self._ready:
            return
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            os.close(open_private(self.path))
        _make_tables(self.engine)
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
            msg = f"the audit log's database {self} cannot {what} ({why})"
            raise AuditError(msg) from None  # the cause may quote the URL, or records


def condition(name: str, value: Any) -> sa.ColumnElement[bool]:
    """Build the condition that a filter of a query stands for."""
    found: sa.ColumnElement[bool]
    match name:
        case "since":
            found = _rows.time >= value
        case "until":
            found = _rows.time < value
        case "run_id":
            found = sa.or_(_rows.run_id == str(value), _rows.root_run_id == str(value))
        case "text":
            words = _storable(value).casefold().split()
            found = sa.and_(
                sa.true(), *(_rows.searched.contains(w, autoescape=True) for w in words)
            )
        case "status":
            found = _rows.review_status == ("decided" if value == "held" else value)
            is_held = sa.func.coalesce(_rows.reviewed_at > datetime.now(UTC), sa.false())
            if value in ("decided", "held"):
                found = sa.and_(found, is_held if value == "held" else sa.not_(is_held))
        case _:
            found = _rows[name] == _indexable(value)
    return found


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


def _read(record: str, review: str, revision: int) -> tuple[AuditRecord, AuditRecord]:
    """Read a record as it came, and as it is now."""
    known = AuditRecord.from_json(record)
    try:
        update = {"review": Review.model_validate(json.loads(review)), "revision": revision}
    except ValueError:
        msg = "the review of an audit record is damaged"
        raise AuditError(msg) from None  # the cause quotes it
    return known, known.model_copy(update=update)


def _read_if_undamaged(record: str, review: str, revision: int) -> AuditRecord | None:
    try:
        return _read(record, review, revision)[1]
    except AuditError:
        return None


def _row(entry: AuditEntry) -> dict[str, Any]:
    record = entry.record
    return {
        **{name: _indexable(getattr(record, name)) for name in _SAME},
        "time": record.time,
        "decision": record.decision.action,
        "trust_score": record.trust_score,
        "model": _indexable(record.versions.model or record.versions.verifier),
        "check_ms": record.timings.get("check"),
        "searched": searched(record),
        "record": entry.line,
        **_review_columns(record),
    }


def _review_columns(record: AuditRecord) -> dict[str, Any]:
    review = record.review
    return {
        "revision": record.revision,
        "review_status": review.status,
        "review_action": review.action,
        "reviewer": _indexable(review.reviewer),
        "reviewed_at": review.time,
        "review": json.dumps(review.model_dump(mode="json")),
    }


def _indexable(text: object) -> str | None:
    """Shorten a text or an id for an indexed column; the record keeps all of it."""
    # PostgreSQL's indexes take at most 2,704 bytes.
    return None if text is None else _storable(str(text)[:_LONGEST_INDEXED])


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
    with engine.execution_options(audit_writes=True).begin() as connection:
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


def _parse_url(url: str) -> tuple[sa.URL, Path | None]:
    """Read the URL of a database; give its file too, if it is one."""
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
        return read, None
    if kind != "sqlite" or read.get_driver_name() not in ("pysqlite", ""):
        msg = f"url names {read.drivername}, which is not supported; {accepted}"
        raise ConfigurationError(msg)
    if not read.database or read.database == ":memory:" or read.database.startswith("file:"):
        msg = f"url must name a file, since an audit log in memory would be lost; {accepted}"
        raise ConfigurationError(msg)
    path = Path(read.database).absolute()
    refuse_symlink(path, "the file of url")
    return read, path
