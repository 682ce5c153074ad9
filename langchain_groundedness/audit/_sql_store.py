"""Reads and writes the rows of the SQL audit log. Needs the extra `sql`."""

import json
import os
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    and_,
    create_engine,
    delete,
    event,
    func,
    or_,
    select,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import SQLAlchemyError

from langchain_groundedness.audit._files import open_private, refuse_symlink
from langchain_groundedness.audit._reviewing import searched, storable
from langchain_groundedness.audit._sql_schema import records, upgrade
from langchain_groundedness.audit.record import AuditEntry, AuditRecord, Review
from langchain_groundedness.exceptions import AuditError, ConfigurationError, require

__all__ = ["Place", "Row", "Store", "conditions", "place_of", "reported"]

_BUSY_MS = 10_000
_CONNECT_WITHIN = 5
_LONGEST = 600
_DRIVERS = {"postgres": "postgresql+psycopg", "postgresql": "postgresql+psycopg"}
_CHANGES = ("revision", "review_status", "review_action", "reviewer", "reviewed_at", "review")
_EQUAL = ("decision", "verdict", "review_status", "query_class", "risk_tier", "model", "thread_id")
_rows = records.c


class Place(NamedTuple):
    """Where a database is."""

    url: URL
    path: Path | None
    """The file, if it is one."""

    def __str__(self) -> str:
        """Say where it is without any secret."""
        bare = URL.create(
            self.url.drivername, host=self.url.host, port=self.url.port, database=self.url.database
        )
        return bare.render_as_string()


def place_of(url: str) -> Place:
    """Read the URL of a database.

    Args:
        url: As SQLAlchemy reads it, of SQLite or PostgreSQL.

    Returns:
        The place.

    Raises:
        ConfigurationError: It cannot be read, or is of another database, or in memory.
    """
    accepted = "accepted: sqlite:///path/to/file.db and postgresql://user:password@host/database"
    try:
        read = make_url(url)
    except (SQLAlchemyError, ValueError):
        msg = f"url cannot be read as the URL of a database; {accepted}"
        raise ConfigurationError(msg) from None  # the cause may quote the password
    read = read.set(drivername=_DRIVERS.get(read.drivername, read.drivername))
    kind = read.get_backend_name()
    if kind == "postgresql":
        if read.get_driver_name() == "psycopg":
            require("psycopg", extra="postgres")
        return Place(read, None)
    if kind != "sqlite" or read.get_driver_name() not in ("pysqlite", ""):
        msg = f"url is of {read.drivername}, which is not supported; {accepted}"
        raise ConfigurationError(msg)
    if not read.database or read.database == ":memory:" or read.database.startswith("file:"):
        msg = f"url names no file: an audit log in memory would be lost; {accepted}"
        raise ConfigurationError(msg)
    path = Path(read.database).absolute()
    refuse_symlink(path, "the file of url")
    return Place(read, path)


class Row(NamedTuple):
    """One row, in order of time."""

    time: datetime
    id: str
    record: AuditRecord | None
    """`None` if what is there is damaged, or of a newer version."""


class Store:
    """The rows, and the connections to them."""

    def __init__(self, place: Place, *, connect_args: Mapping[str, Any] | None) -> None:
        """Prepare to connect, when something is to be read or written.

        Args:
            place: The database.
            connect_args: For the driver's `connect`.
        """
        self._place = place
        self._ready = False
        arguments = dict(connect_args or {})
        if place.path is None and "connect_timeout" not in place.url.query:
            arguments = {"connect_timeout": _CONNECT_WITHIN, **arguments}
        self._engine = create_engine(
            place.url, connect_args=arguments, pool_pre_ping=True, hide_parameters=True
        )
        if place.path is not None:
            event.listen(self._engine, "connect", _prepare_sqlite)
            event.listen(self._engine, "begin", _begin_sqlite)

    @property
    def engine(self) -> Engine:
        """The engine, its tables made and upgraded."""
        if not self._ready:
            if self._place.path is not None:
                self._place.path.parent.mkdir(parents=True, exist_ok=True)
                os.close(open_private(self._place.path))
            upgrade(self._engine)
            self._ready = True
        return self._engine

    def close(self) -> None:
        """Close the connections."""
        self._engine.dispose()

    def forked(self) -> None:
        """Leave the connections to the parent process."""
        self._engine.dispose(close=False)

    def insert(self, entries: Sequence[AuditEntry]) -> None:
        """Write records; those that are there change only if a higher revision comes.

        Args:
            entries: The records.
        """
        postgres = self.engine.dialect.name == "postgresql"
        statement = (postgresql if postgres else sqlite).insert(records)
        new = statement.excluded
        statement = statement.on_conflict_do_update(
            index_elements=[_rows.id],
            set_={name: new[name] for name in (*_CHANGES, "searched", "record")},
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
        where: Sequence[ColumnElement[bool]],
        *,
        limit: int,
        after: tuple[datetime, str] | None,
        newest_first: bool,
    ) -> list[Row]:
        """Read rows in order of time.

        Args:
            where: Conditions.
            limit: How many at most.
            after: Time and id of the last record that was read before.
            newest_first: The order.

        Returns:
            The rows.
        """
        query = select(_rows.time, _rows.id, _rows.record, _rows.review, _rows.revision)
        query = query.where(*where)
        if after is not None:
            query = query.where(_beyond(after, newest_first=newest_first))
        order = [column.desc() if newest_first else column for column in (_rows.time, _rows.id)]
        with self._reading() as connection:
            found = connection.execute(query.order_by(*order).limit(limit)).all()
        return [Row(moment, name, _read_if_whole(*rest)) for moment, name, *rest in found]

    def count(self, where: Sequence[ColumnElement[bool]]) -> int:
        """Count records."""
        with self._reading() as connection:
            query = select(func.count()).select_from(records).where(*where)
            return int(connection.execute(query).scalar_one())

    def decide(
        self, record_id: str, revision: int, review: Review
    ) -> tuple[AuditRecord | None, bool]:
        """Write a review, if nobody was first.

        Args:
            record_id: The record.
            revision: The revision that the reviewer has seen.
            review: The review.

        Returns:
            The record as it is now, if there is one, and whether the review was written.
        """
        change = _review_columns(revision + 1, review)
        statement = (
            update(records)
            .where(_rows.id == record_id, _rows.revision == revision)
            .where(_rows.review_status != "decided")
            .values(change)
        )
        with self._writing() as connection:
            written = connection.execute(statement).rowcount == 1
            return _one(connection, record_id), written

    def delete(self, where: Sequence[ColumnElement[bool]]) -> int:
        """Delete records for good, also from the file beside the database, unless it is in use."""
        with self._writing() as connection:
            number = connection.execute(delete(records).where(*where)).rowcount
        if self._place.path is not None:
            with closing(self._engine.raw_connection()) as raw, closing(raw.cursor()) as cursor:
                cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return number

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        engine = self.engine.execution_options(audit_writes=True)
        with engine.begin() as connection:
            yield connection

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        with self.engine.connect() as connection:
            yield connection


def conditions(
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    run_id: object = None,
    text: str | None = None,
    settled: bool = False,
    **equal: str | None,
) -> list[ColumnElement[bool]]:
    """Say which records are wanted.

    Args:
        since: From this moment on.
        until: Before this moment.
        run_id: The run, or the outermost run.
        text: Words that all stand in its texts.
        settled: Whether only those that do not wait for a reviewer.
        **equal: Columns, and what they must hold.

    Returns:
        The conditions.

    Raises:
        ConfigurationError: There is no such column.
    """
    if unknown := sorted(set(equal) - set(_EQUAL)):
        msg = f"there is no filter {', '.join(unknown)}"
        raise ConfigurationError(msg)
    found = [_rows[name] == _clean(v) for name, v in equal.items() if v is not None]
    found += [] if since is None else [_rows.time >= since]
    found += [] if until is None else [_rows.time < until]
    words = storable(text or "").casefold().split()
    found += [_rows.searched.contains(word, autoescape=True) for word in words]
    if run_id is not None:
        found.append(or_(_rows.run_id == str(run_id), _rows.root_run_id == str(run_id)))
    return [*found, _rows.review_status != "waiting"] if settled else found


@contextmanager
def reported(what: str, place: Place) -> Iterator[None]:
    """Say what a database cannot do in an error of this package, without secrets.

    Args:
        what: What was asked.
        place: Where the database is.

    Yields:
        Nothing.

    Raises:
        AuditError: The database has failed.
    """
    try:
        yield
    except (SQLAlchemyError, sqlite3.Error, OSError) as exc:
        origin = getattr(exc, "orig", None) or exc
        state = getattr(origin, "sqlstate", None)
        name = getattr(origin, "sqlite_errorname", None)
        codes = filter(None, (type(origin).__name__, name, f"SQLSTATE {state}" if state else None))
        msg = f"the audit log's database {place} cannot {what} ({', '.join(codes)})"
        raise AuditError(msg) from None  # the cause may quote the URL, or records


def _prepare_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # transactions begin where `_begin_sqlite` says so
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.execute("PRAGMA secure_delete = ON")
    # The change to WAL does not wait for locks, so that processes which begin together collide.
    until = time.monotonic() + _BUSY_MS / 1000
    while cursor.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        try:
            cursor.execute("PRAGMA journal_mode = WAL")
        except Exception:  # the driver's error, whichever driver it is
            if time.monotonic() > until:
                raise
            time.sleep(0.01)
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    # A transaction that reads first and writes then could fail at once, without waiting.
    writes = connection.get_execution_options().get("audit_writes")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _one(connection: Connection, record_id: str) -> AuditRecord | None:
    query = select(_rows.record, _rows.review, _rows.revision).where(_rows.id == record_id)
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


def _beyond(after: tuple[datetime, str], *, newest_first: bool) -> ColumnElement[bool]:
    moment, identity = after
    later = _rows.time < moment if newest_first else _rows.time > moment
    further = _rows.id < identity if newest_first else _rows.id > identity
    return or_(later, and_(_rows.time == moment, further))


def _id(value: object) -> str | None:
    return None if value is None else str(value)


def _clean(text: str | None) -> str | None:
    """Give what databases can hold and index of a text to search by; the record has all of it.

    It is no longer than PostgreSQL's indexes take (2,704 bytes).
    """
    return None if text is None else storable(text[:_LONGEST])
