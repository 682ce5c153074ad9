"""The audit log in SQLite and in PostgreSQL."""

import logging
import sqlite3
import threading
import time
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import sqlalchemy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import inspect

from audit.postgres_cluster import Cluster
from audit.stores import ROWS, database_at, kept, names, record
from audit.strategies import records
from langchain_groundedness import (
    ConfigurationError,
    Decision,
    MissingDependencyError,
    SQLAuditLog,
)
from langchain_groundedness.audit import AuditRecord, Review, Versions
from langchain_groundedness.audit.sql_store import Store
from langchain_groundedness.exceptions import AuditError, ReviewConflictError

SECRET = "hunter2"  # noqa: S105  (made up)
NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, sqlite_url: str) -> str:
    if request.param == "sqlite":
        return sqlite_url
    made: str = request.getfixturevalue("postgres").database()
    return made


@pytest.fixture
def log(url: str, tmp_path: Path) -> Iterator[SQLAuditLog]:
    with SQLAuditLog(url, spool_path=tmp_path / "spool") as opened:
        yield opened


def filled(log: SQLAuditLog, *given_records: AuditRecord) -> None:
    for each in given_records:
        log.record(each)
    assert log.flush()


def ids(found: Any) -> list[str]:
    return [kept.id for kept in found]


@given(st.lists(records(), min_size=1, max_size=3, unique_by=lambda kept: kept.id))
@settings(
    deadline=None,
    max_examples=settings().max_examples // 4,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_any_records_come_back_as_they_were_kept(
    log: SQLAuditLog, given_records: list[AuditRecord]
) -> None:
    filled(log, *given_records)
    assert [log.get(each.id) for each in given_records] == kept(*given_records)


def test_a_record_is_kept_once_however_often_it_comes(log: SQLAuditLog) -> None:
    filled(log, record("a"), record("a", question="other"), record("b"))
    filled(log, record("a"))
    assert ids(log.records()) == ["a", "b"]
    first = log.get("a")
    assert first is not None
    assert first.question is None


def test_records_are_read_page_by_page_in_order_of_time(log: SQLAuditLog) -> None:
    moments = [NOW + timedelta(seconds=n // 3) for n in range(10)]  # three at a time
    filled(log, *(record(n, time=t) for n, t in zip(names(10), moments, strict=True)))
    pages, after = [], None
    while True:
        page = log.query(limit=4, after=after)
        pages.append(ids(page.records))
        if (after := page.next) is None:
            break
    assert pages == [names(4), names(4, 4), names(2, 8)]
    assert ids(log.records(limit=3, newest_first=True)) == names(10)[::-1]


def test_a_page_goes_on_where_the_one_before_ended_though_its_last_record_is_gone(
    log: SQLAuditLog, url: str
) -> None:
    filled(log, *(record(name, time=NOW) for name in names(4)))
    page = log.query(limit=2)
    with database_at(url) as connection:
        connection.execute(sqlalchemy.delete(ROWS))
    filled(log, *(record(name, time=NOW) for name in names(2, start=2)))
    assert ids(log.query(after=page.next).records) == names(2, start=2)


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"since": NOW + timedelta(hours=1)}, ["b", "c"]),
        ({"until": NOW + timedelta(hours=1)}, ["a"]),
        ({"decision": "review"}, ["b"]),
        ({"status": "waiting"}, ["b"]),
        ({"query_class": "sensitive"}, ["c"]),
        ({"risk_tier": "high"}, ["b", "c"]),
        ({"model": "gpt-x"}, ["a"]),
        ({"model": "EmbeddedVerifier"}, ["c"]),
        ({"thread_id": "t\x00"}, ["c"]),
        ({"decision": "pass", "risk_tier": "high"}, ["c"]),
        ({"verdict": "unchecked"}, ["b"]),
        ({"text": "straSSE WHERE"}, ["b"]),
        ({"text": "100%_"}, ["c"]),
        ({"text": "shown"}, ["c"]),
        ({"text": " "}, ["a", "b", "c"]),
        ({"text": "rev\x00\ud800"}, ["c"]),
        ({"text": "where", "verdict": "no_claims"}, []),
    ],
)
def test_records_are_found_by_what_stands_in_them(
    log: SQLAuditLog, filters: dict[str, Any], found: list[str]
) -> None:
    filled(
        log,
        record("a", time=NOW, versions=Versions(model="gpt-x", verifier="LLMVerifier")),
        record(
            "b",
            time=NOW + timedelta(hours=1),
            decision=Decision(action="review"),
            review=Review(status="waiting"),
            risk_tier="high",
            verdict="unchecked",
            question="Where is the Straße?",
        ),
        record(
            "c",
            time=NOW + timedelta(hours=2),
            original_answer="100%_ of it, rev\x00\ud800",
            shown_answer="It was shown.",
            query_class="sensitive",
            risk_tier="high",
            versions=Versions(verifier="EmbeddedVerifier"),
            thread_id="t\x00",
        ),
    )
    assert ids(log.query(**filters).records) == found
    assert log.count(**filters) == len(found)


def test_texts_of_any_length_can_be_searched_by(log: SQLAuditLog) -> None:
    thread = "\U0001f600" * 5000  # more than PostgreSQL's indexes take
    filled(log, record("a", thread_id=thread))
    assert ids(log.query(thread_id=thread).records) == ["a"]
    kept = log.get("a")
    assert kept is not None
    assert kept.thread_id == thread


def test_records_of_a_run_are_found_by_it_and_by_the_outermost_run(log: SQLAuditLog) -> None:
    run, root = uuid4(), uuid4()
    filled(log, record("a", run_id=run, root_run_id=root), record("b", run_id=uuid4()))
    assert ids(log.query(run_id=run).records) == ids(log.query(run_id=str(root)).records) == ["a"]


def test_a_record_that_waits_is_decided_once(log: SQLAuditLog) -> None:
    filled(log, record("a", review=Review(status="waiting"), time=NOW), record("b"))
    [waits] = log.waiting().records
    assert waits.id == "a"
    decided = log.decide(
        "a", revision=0, reviewer="ada", action="edit", answer="better \x00 \ud800", note="why"
    )
    assert decided == log.get("a")
    assert (decided.revision, decided.review.status) == (1, "decided")
    assert (decided.review.reviewer, decided.review.answer) == ("ada", "better \x00 \ud800")
    assert decided.review.time is not None
    assert log.waiting().records == ()
    assert log.count(status="decided") == 1
    for revision in (0, 1):
        with pytest.raises(ReviewConflictError, match="decided already") as caught:
            log.decide("a", revision=revision, reviewer="bob", action="approve")
        assert (caught.value.record_id, caught.value.reviewer) == ("a", "ada")
        assert caught.value.revision == 1
    assert log.get("a") == decided


def test_marks_of_claims_are_kept_with_the_decision(log: SQLAuditLog, tmp_path: Path) -> None:
    filled(log, record("a", review=Review(status="waiting")))
    marks = {"c1": True, "c\x00": False}
    log.decide("a", revision=0, reviewer="ada", action="reject", note="why", marks=marks)
    [found] = log.records(status="decided")
    assert (found.review.marks, found.review.reviewer) == (marks, "ada")
    log.export(tmp_path / "out.jsonl")
    assert AuditRecord.from_json((tmp_path / "out.jsonl").read_text()) == found


def test_a_decision_that_is_held_is_durable_and_takes_effect_by_itself(log: SQLAuditLog) -> None:
    filled(log, *(record(name, review=Review(status="waiting")) for name in "ab"))
    log.decide("a", revision=0, reviewer="ada", action="approve", hold=3600)
    log.decide("b", revision=0, reviewer="ada", action="approve", hold=0.01)
    assert log.waiting().records == ()
    with pytest.raises(ReviewConflictError, match="decided already"):
        log.decide("a", revision=1, reviewer="bob", action="reject")
    until = time.monotonic() + 300
    while not (found := ids(log.query(status="decided").records)) and time.monotonic() < until:
        time.sleep(0.01)
    assert found == ["b"]
    assert log.count(status="decided") == 1
    assert ids(log.query(status="held").records) == ["a"]


@pytest.mark.parametrize("status", ["waiting", "none"])
def test_a_decision_is_undone_while_it_is_held(log: SQLAuditLog, status: Any) -> None:
    filled(log, record("a", review=Review(status=status)))
    held = log.decide("a", revision=0, reviewer="ada", action="approve", hold=3600)
    with pytest.raises(ReviewConflictError, match="can no longer be undone"):
        log.undo("a", revision=held.revision, reviewer="bob")
    undone = log.undo("a", revision=held.revision, reviewer="ada")
    assert (undone.review, undone.revision) == (Review(status=status), 0)
    assert log.get("a") == undone
    final = log.decide("a", revision=0, reviewer="ada", action="reject")
    with pytest.raises(ReviewConflictError, match=r"can no longer be undone.*revision 1"):
        log.undo("a", revision=1, reviewer="ada")
    assert log.get("a") == final
    with pytest.raises(AuditError, match="no record"):
        log.undo("b", revision=0, reviewer="ada")


def test_a_held_decision_that_was_used_can_no_longer_be_undone(log: SQLAuditLog) -> None:
    filled(log, record("a", review=Review(status="waiting")))
    with pytest.raises(ReviewConflictError, match="no decision"):
        log.take_effect("a")
    held = log.decide("a", revision=0, reviewer="ada", action="approve", hold=3600)
    used = log.take_effect("a")
    assert (used.review.reviewer, used.review.action) == ("ada", "approve")
    assert ids(log.query(status="decided").records) == ["a"]
    for revision in (held.revision, used.revision):
        with pytest.raises(
            ReviewConflictError, match="nothing was written: the decision can no longer be undone"
        ):
            log.undo("a", revision=revision, reviewer="ada")
    assert log.get("a") == used
    with pytest.raises(AuditError, match="no record"):
        log.take_effect("b")


def test_a_record_that_does_not_wait_can_be_overruled(log: SQLAuditLog) -> None:
    filled(log, record("a"))
    assert log.decide("a", revision=0, reviewer="ada", action="reject").review.action == "reject"


def test_a_review_of_an_older_revision_is_a_conflict(log: SQLAuditLog) -> None:
    filled(log, record("a", revision=3))
    with pytest.raises(ReviewConflictError, match=r"has changed.*revision 3") as caught:
        log.decide("a", revision=2, reviewer="ada", action="approve")
    assert caught.value.reviewer is None


def test_of_many_reviewers_at_once_one_is_first(log: SQLAuditLog) -> None:
    filled(log, record("a", review=Review(status="waiting")))
    outcomes: list[str] = []
    begin = threading.Barrier(8)

    def decide(name: str) -> None:
        begin.wait()
        try:
            log.decide("a", revision=0, reviewer=name, action="approve")
        except ReviewConflictError as conflict:
            outcomes.append(f"after {conflict.reviewer}")
        else:
            outcomes.append(name)

    threads = [threading.Thread(target=decide, args=(f"r{n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    [first] = [outcome for outcome in outcomes if not outcome.startswith("after")]
    assert outcomes.count(f"after {first}") == 7


def test_a_review_that_comes_with_a_record_counts_unless_a_reviewer_was_first(
    log: SQLAuditLog,
) -> None:
    waits = record("a", review=Review(status="waiting"), question="q")
    resumed = waits.model_copy(
        update={"revision": 1, "review": Review(status="decided", action="reject")}
    )
    filled(log, waits, waits.model_copy(update={"id": "b"}))
    log.decide("a", revision=0, reviewer="ada", action="approve")
    filled(log, resumed, resumed.model_copy(update={"id": "b"}))
    first, second = log.get("a"), log.get("b")
    assert first is not None
    assert second is not None
    assert (first.review.action, second.review.action) == ("approve", "reject")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"reviewer": " ", "action": "approve"}, "reviewer"),
        ({"reviewer": "a", "action": "ignore"}, "action"),
        ({"reviewer": "a", "action": "edit"}, "answer"),
        ({"reviewer": "a", "action": "approve", "answer": "x"}, "answer"),
        ({"reviewer": "a", "action": "approve", "hold": -1}, "hold"),
        ({"reviewer": "a", "action": "approve", "marks": {"c1": "no"}}, "marks"),
    ],
)
def test_a_decision_that_cannot_be_is_refused(
    sqlite_url: str, arguments: dict[str, Any], named: str
) -> None:
    with SQLAuditLog(sqlite_url) as log, pytest.raises(ConfigurationError, match=named):
        log.decide("a", revision=0, **arguments)


def test_what_is_not_there_cannot_be_decided(log: SQLAuditLog) -> None:
    assert log.get("a") is None
    with pytest.raises(AuditError, match="no record"):
        log.decide("a", revision=0, reviewer="ada", action="approve")


def test_what_reviewers_write_is_redacted_as_other_texts_are(sqlite_url: str) -> None:
    with SQLAuditLog(sqlite_url, redact=lambda text: text.replace("Ann", "[name]")) as log:
        filled(log, record("a", question="Ann?"))
        kept = log.decide(
            "a", revision=0, reviewer="ada", action="edit", answer="Ann!", note="by Ann"
        )
    assert (kept.question, kept.review.answer) == ("[name]?", "[name]!")
    assert kept.review.note == "by [name]"


def test_no_text_of_what_was_deleted_is_left_in_any_file(sqlite_url: str, tmp_path: Path) -> None:
    with SQLAuditLog(sqlite_url) as log:
        filled(log, *(record(name, question="SECRET " * 900) for name in names(20)))
        filled(log, record("kept", time=datetime.now(UTC) + timedelta(days=1)))
        assert any(b"SECRET" in path.read_bytes() for path in tmp_path.iterdir() if path.is_file())
        assert log.prune(older_than=timedelta(0)) == 20
        left = [path.name for path in tmp_path.iterdir() if b"SECRET" in path.read_bytes()]
        assert not left
        assert ids(log.records()) == ["kept"]


def test_old_records_are_deleted_but_not_those_that_wait_unless_asked(log: SQLAuditLog) -> None:
    old = datetime.now(UTC) - timedelta(days=40)
    waiting = Review(status="waiting")
    filled(log, record("a", time=old), record("b", time=old, review=waiting), record("c"))
    assert log.prune(older_than=timedelta(days=30)) == 1
    assert ids(log.records()) == ["b", "c"]
    assert log.prune(older_than=timedelta(days=30), waiting=True) == 1
    assert ids(log.records()) == ["c"]
    with pytest.raises(ConfigurationError, match="older_than"):
        log.prune(older_than=timedelta(days=-1))


def test_records_are_exported_with_their_reviews(log: SQLAuditLog, tmp_path: Path) -> None:
    filled(log, record("a", time=NOW), record("b", time=NOW))
    log.decide("b", revision=0, reviewer="ada", action="approve")
    path = tmp_path / "export.jsonl"
    assert log.export(path) == 2
    assert path.stat().st_mode & 0o777 == 0o600
    read = [AuditRecord.from_json(line) for line in path.read_text().splitlines()]
    assert read == list(log.records())
    with pytest.raises(AuditError, match="FileExistsError"):
        log.export(path)
    assert log.export(tmp_path / "reviewed.jsonl", status="decided") == 1


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"limit": 0}, "limit"),
        ({"limit": True}, "limit"),
        ({"since": datetime(2026, 1, 1)}, "since"),  # noqa: DTZ001  (wrong on purpose)
        ({"after": "x"}, "after"),
    ],
)
def test_a_question_that_cannot_be_is_refused(
    sqlite_url: str, arguments: dict[str, Any], named: str
) -> None:
    with SQLAuditLog(sqlite_url) as log, pytest.raises(ConfigurationError, match=named):
        log.query(**arguments)


def test_an_unknown_filter_is_refused(sqlite_url: str) -> None:
    with SQLAuditLog(sqlite_url) as log, pytest.raises(ConfigurationError, match="colour"):
        log.count(colour="red")  # type: ignore[call-arg]  # is what is tested


@pytest.mark.parametrize("part", ["record", "review"])
def test_a_damaged_row_is_named_and_keeps_no_other_from_being_read(
    log: SQLAuditLog, url: str, part: str, caplog: pytest.LogCaptureFixture
) -> None:
    filled(
        log, *(record(name, time=NOW + timedelta(minutes=n)) for n, name in enumerate("abcdefg"))
    )
    with database_at(url) as connection:
        damaged = ROWS.c.id.in_(["b", "c", "g"])
        connection.execute(sqlalchemy.update(ROWS).where(damaged).values({part: '{"status": 1}'}))
    assert ids(log.records()) == ["a", "d", "e", "f"]
    first = log.query(limit=2)
    assert (ids(first.records), first.unreadable) == (["a", "d"], ("b", "c"))
    second = log.query(limit=2, after=first.next)
    assert (ids(second.records), second.unreadable) == (["e", "f"], ())
    third = log.query(limit=2, after=second.next)
    assert (third.records, third.unreadable, third.next) == ((), ("g",), None)
    assert "cannot be read and are left out" in caplog.text
    with pytest.raises(AuditError, match=r"damaged|not an audit record"):
        log.get("b")


def test_sqlite_runs_in_wal_mode_in_files_for_their_owner_only(
    sqlite_url: str, tmp_path: Path
) -> None:
    with SQLAuditLog(sqlite_url) as log:
        filled(log, record("a"))
        with sqlite3.connect(tmp_path / "audit.db") as connection:
            assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        connection.close()
        modes = {path.stat().st_mode & 0o777 for path in tmp_path.glob("audit.db*")}
    assert modes == {0o600}


def test_tables_of_version_one_are_brought_to_the_latest_with_their_records(
    url: str, tmp_path: Path
) -> None:
    kept = record("a", question="Wo ist die Straße?", review=Review(status="waiting"))
    old = {
        **dict.fromkeys(("source", "decision", "verdict"), "x"),
        "id": "a",
        "time": NOW,
        "revision": 0,
        "review_status": "waiting",
        "review": kept.review.model_dump_json(),
        "record": kept.to_json(),
    }
    with database_at(url) as connection:
        moment = "TIMESTAMP WITH TIME ZONE" if "postgresql" in url else "DATETIME"
        connection.exec_driver_sql(FIRST_TABLE.format(moment=moment))
        connection.exec_driver_sql(
            "CREATE INDEX groundedness_audit_time ON groundedness_audit (time, id)"
        )
        connection.exec_driver_sql(
            "CREATE TABLE groundedness_audit_schema (version INTEGER NOT NULL)"
        )
        connection.exec_driver_sql("INSERT INTO groundedness_audit_schema VALUES (1)")
        time = sqlalchemy.column("time", sqlalchemy.DateTime(timezone=True))
        others: list[Any] = [sqlalchemy.column(name) for name in old if name != "time"]
        older = sqlalchemy.table("groundedness_audit", time, *others)
        rows = [{**old, "id": f"{n:04}"} for n in range(1200)]
        damaged = {**old, "id": "damaged", "record": "{}"}
        connection.execute(older.insert(), [*rows, damaged])
    with SQLAuditLog(url, spool_path=tmp_path / "spool") as log:
        log.upgrade()
        assert log.count(text="STRASSE") == 1200
        assert log.count() == 1201
    with database_at(url) as connection:
        assert version_in(connection) == 3
        found = inspect(connection).get_indexes("groundedness_audit")
    assert {index["name"] for index in found} >= {
        f"groundedness_audit_{name}" for name in ("time", "review", "thread", "run", "root")
    }


FIRST_TABLE = """
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
"""


def version_in(connection: Any) -> int:
    query = "SELECT version FROM groundedness_audit_schema"
    [version] = connection.exec_driver_sql(query).scalars()
    return int(version)


def test_processes_that_make_the_tables_at_once_do_not_disturb_each_other(
    sqlite_url: str, tmp_path: Path
) -> None:
    logs = [SQLAuditLog(sqlite_url, spool_path=tmp_path / "s") for _ in range(6)]
    errors: list[Exception] = []

    def upgrade(log: SQLAuditLog) -> None:
        try:
            log.upgrade()
        except AuditError as exc:
            errors.append(exc)

    threads = [threading.Thread(target=upgrade, args=(log,)) for log in logs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    for log in logs:
        log.close()


def test_tables_of_a_newer_version_are_refused_with_advice(
    sqlite_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    with SQLAuditLog(sqlite_url) as log:
        log.upgrade()
    with database_at(sqlite_url) as connection:
        connection.exec_driver_sql("UPDATE groundedness_audit_schema SET version = 99")
    with SQLAuditLog(sqlite_url, retry_after=60) as log:
        with pytest.raises(AuditError, match=r"version 99.*upgrade it"):
            log.upgrade()
        with caplog.at_level(logging.WARNING):
            log.record(record("a"))
            assert log.flush()
        assert log.spooled == 1
        assert "version 99" in caplog.text


def test_while_the_server_is_down_records_wait_on_disk_and_readers_are_told(
    postgres: Cluster, tmp_path: Path
) -> None:
    url = postgres.database()
    with SQLAuditLog(url, spool_path=tmp_path / "spool", retry_after=60) as log:
        filled(log, record("a"))
        postgres.stop()
        try:
            filled(log, record("b"))
            assert log.spooled == 1
            with pytest.raises(AuditError, match="cannot be read"):
                log.get("a")
        finally:
            postgres.start()
        filled(log, record("c"))
        assert sorted(ids(log.records())) == ["a", "b", "c"]


def test_no_secret_of_the_url_is_ever_shown(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    url = f"postgresql://user:{SECRET}@/none?host={tmp_path}&options=-c%20x={SECRET}"
    with caplog.at_level(logging.DEBUG):
        log = SQLAuditLog(url, spool_path=tmp_path / "spool", retry_after=60)
        log.record(record("a"))
        assert log.flush()
        with pytest.raises(AuditError) as caught:
            log.get("a")
    log.close()
    for said in (caplog.text, str(caught.value), repr(caught.value), repr(log), f"{log}"):
        assert SECRET not in said
    assert caught.value.__cause__ is None
    assert "none" in repr(log)


@pytest.mark.parametrize(
    "url",
    [
        f"{SECRET}",
        f"mysql://u:{SECRET}@host/db",
        "sqlite://",
        "sqlite:///:memory:",
        f"sqlite+aiosqlite:///{SECRET}.db",
        f"postgresql://u:{SECRET}@host:port/db",
        3,
    ],
)
def test_urls_that_cannot_work_are_refused_without_quoting_them(url: Any) -> None:
    with pytest.raises(ConfigurationError) as caught:
        SQLAuditLog(url)
    assert SECRET not in str(caught.value)


def test_postgresql_is_reached_by_psycopg_unless_the_url_says_otherwise() -> None:
    assert Store("postgresql://h/d").url.drivername == "postgresql+psycopg"
    assert Store("postgres://h/d").url.drivername == "postgresql+psycopg"


def test_a_link_in_the_place_of_the_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "audit.db").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigurationError, match="symbolic link"):
        SQLAuditLog(f"sqlite:///{tmp_path / 'audit.db'}")


def test_without_sqlalchemy_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "sqlalchemy", None)
    with pytest.raises(MissingDependencyError, match=r"langchain-groundedness\[sql\]"):
        SQLAuditLog()


def test_the_spool_is_the_same_for_all_processes_of_a_database(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    for number, word in enumerate(("a", "b"), 1):
        with SQLAuditLog(f"postgresql://u:{word}@localhost:1/db") as log:
            log.record(record(word))
            assert log.flush()
            assert log.spooled == number
    [folder] = tmp_path.iterdir()
    assert folder.name == "langchain-groundedness"


async def test_on_an_event_loop_nothing_blocks(log: SQLAuditLog) -> None:
    for name in names(20):
        await log.arecord(record(name))
    log.record(record("last"))
    assert await log.aflush()
    await log.aclose()


@pytest.mark.parametrize(
    ("filters", "said"),
    [
        ({"decision": "flagged"}, r"decision must be one of 'pass', .*got 'flagged'"),
        ({"verdict": "bad"}, "verdict must be one of 'grounded'"),
        ({"status": "pending"}, "status must be one of 'none', 'waiting', 'decided'"),
        ({"since": "2026-01-01"}, r"since must be a datetime with a time zone.*got str"),
        ({"until": date(2026, 1, 1)}, r"until must be a datetime.*got date"),
        ({"since": datetime(2026, 1, 1)}, "since must have a time zone"),  # noqa: DTZ001  (on purpose)
        ({"thread_id": 7}, "thread_id must be a str, got int"),
        ({"colour": "red"}, "unknown filter colour; filters are: since, .*decision.*text"),
    ],
)
def test_filters_that_could_find_nothing_are_refused(
    tmp_path: Path, filters: dict[str, Any], said: str
) -> None:
    with SQLAuditLog(f"sqlite:///{tmp_path}/audit.db") as log:
        for ask in (log.count, log.query):
            with pytest.raises(ConfigurationError, match=said):
                ask(**filters)


def test_a_misspelled_option_is_named_with_all_options(tmp_path: Path) -> None:
    said = "SQLAuditLog: max_pendng: no such option; options are: url, .*max_pending"
    with pytest.raises(ConfigurationError, match=said):
        SQLAuditLog(f"sqlite:///{tmp_path}/x.db", max_pendng=3)  # type: ignore[call-arg]  # on purpose


def test_an_age_that_is_none_is_refused(tmp_path: Path) -> None:
    with (
        SQLAuditLog(f"sqlite:///{tmp_path}/audit.db") as log,
        pytest.raises(ConfigurationError, match="timedelta"),
    ):
        log.prune(older_than=90)  # type: ignore[arg-type]  # wrong on purpose


def test_errors_of_a_database_say_where_it_is_and_why(tmp_path: Path) -> None:
    (tmp_path / "audit.db").write_text("not a database, but long enough to be read as one " * 99)
    log = SQLAuditLog(f"sqlite:///{tmp_path}/audit.db")
    with pytest.raises(AuditError, match="SQLITE_NOTADB") as caught:
        log.count()
    assert f"{tmp_path}/audit.db" in str(caught.value)
