"""The audit log in a file."""

import logging
import os
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from audit.stores import kept, names, record
from audit.strategies import records
from langchain_groundedness import ConfigurationError, JsonlAuditLog
from langchain_groundedness.audit import AuditEntry, AuditRecord, Review
from langchain_groundedness.exceptions import AuditError


def ids(log: JsonlAuditLog) -> list[str]:
    return [kept.id for kept in log.records()]


@given(st.lists(records(), max_size=4, unique_by=lambda kept: kept.id))
@settings(
    deadline=None,
    max_examples=settings().max_examples // 3,
    suppress_health_check=[HealthCheck.too_slow],
)
def test_any_records_come_back_as_they_were_kept(
    tmp_path_factory: pytest.TempPathFactory, given_records: list[AuditRecord]
) -> None:
    path = tmp_path_factory.mktemp("log") / "audit.jsonl"
    with JsonlAuditLog(path, fsync=False) as log:
        for each in given_records:
            log.record(each)
    assert list(JsonlAuditLog(path).records()) == kept(*given_records)


def test_files_are_for_their_owner_only(tmp_path: Path) -> None:
    with JsonlAuditLog(tmp_path / "audit.jsonl", rotate_bytes=1) as log:
        for name in names(3):
            log.record(record(name))
            assert log.flush()
        log.prune(older_than=timedelta(days=1))
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert len(modes) == 4
    assert set(modes.values()) == {0o600}


def test_records_are_there_while_others_are_written(tmp_path: Path) -> None:
    reader = JsonlAuditLog(tmp_path / "audit.jsonl")
    assert ids(reader) == []
    with JsonlAuditLog(tmp_path / "audit.jsonl") as log:
        for name in names(2):
            log.record(record(name))
            assert log.flush()
            assert ids(reader)[-1] == name
    assert reader.get("r0001") is not None
    assert reader.get("r0009") is None


def test_a_torn_last_line_is_skipped_and_reported_and_spoils_nothing_after_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "audit.jsonl"
    with JsonlAuditLog(path) as log:
        log.record(record("a"))
    with path.open("a") as file:
        file.write(record("SECRET").to_json()[:-7])
    assert ids(JsonlAuditLog(path)) == ["a"]
    assert "skipped an incomplete last line" in caplog.text
    with JsonlAuditLog(path) as log:
        log.record(record("b"))
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        assert ids(JsonlAuditLog(path)) == ["a", "b"]
    assert "skipped 1 line that is not a record" in caplog.text
    assert "SECRET" not in caplog.text


@given(st.integers(0, 10**6))
@settings(deadline=None, max_examples=settings().max_examples * 2 // 5)
def test_wherever_a_file_is_cut_off_all_lines_before_are_read(
    tmp_path_factory: pytest.TempPathFactory, place: int
) -> None:
    data = "".join(f"{record(name).to_json()}\n" for name in names(4)).encode()
    cut = place % (len(data) + 1)
    path = tmp_path_factory.mktemp("log") / "audit.jsonl"
    path.write_bytes(data[:cut])
    whole = data[:cut].count(b"\n")
    torn_but_whole = data[cut : cut + 1] == b"\n"
    assert ids(JsonlAuditLog(path)) == names(whole)
    with JsonlAuditLog(path, fsync=False) as log:
        log.record(record("after"))
    assert ids(JsonlAuditLog(path)) == [*names(whole + torn_but_whole), "after"]


def test_a_file_that_is_large_enough_is_put_aside_and_still_read(tmp_path: Path) -> None:
    size = len(record("r0000").to_json())
    with JsonlAuditLog(tmp_path / "audit.jsonl", rotate_bytes=3 * size + 10) as log:
        for name in names(8):
            log.record(record(name))
            assert log.flush()
        assert ids(log) == names(8)
    counts = [path.read_text().count("\n") for path in sorted(tmp_path.glob("audit.jsonl.2*"))]
    assert counts == [3, 3]


def test_a_reader_misses_nothing_when_the_file_is_put_aside_under_its_eyes(tmp_path: Path) -> None:
    with JsonlAuditLog(tmp_path / "audit.jsonl", rotate_bytes=1) as log:
        for name in names(2):
            log.record(record(name))
            assert log.flush()
        reading = log.records()
        first = next(reading)
        log.record(record("r0002"))
        assert log.flush()
        assert [first.id, *(kept.id for kept in reading)][:2] == names(2)
        assert ids(log) == names(3)


def test_only_so_many_files_are_kept_as_was_asked(tmp_path: Path) -> None:
    with JsonlAuditLog(tmp_path / "audit.jsonl", rotate_bytes=1, keep=2) as log:
        for name in names(6):
            log.record(record(name))
            assert log.flush()
        assert ids(log) == names(3, start=3)


def test_a_review_that_comes_later_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    waits = record("a", review=Review(status="waiting"))
    decided = waits.model_copy(
        update={
            "revision": 1,
            "review": Review(status="decided", action="approve", marks={"c1": False}),
        }
    )
    with JsonlAuditLog(tmp_path / "audit.jsonl") as log:
        for each in (waits, record("b"), decided, waits):
            log.record(each)
        assert log.flush()
        found = list(log.records())
    assert [kept.id for kept in found] == ["b", "a"]
    assert found[1].review == decided.review


def test_old_records_are_deleted_for_good_and_no_others(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    now = datetime.now(UTC)
    with JsonlAuditLog(path, rotate_bytes=1500) as log:
        for age in (9, 8, 7, 1, 0):
            log.record(record(f"d{age}", time=now - timedelta(days=age)))
            assert log.flush()
        with path.open("a") as file:
            file.write('{"schema_version": 99}\n')
        assert log.prune(older_than=timedelta(days=5)) == 3
        assert ids(log) == ["d1", "d0"]
        log.record(record("after"))
        assert log.flush()
        assert ids(log) == ["d1", "d0", "after"]
        assert log.prune(older_than=timedelta(0)) == 3
        assert ids(log) == []
    left = "".join(file.read_text() for file in tmp_path.glob("audit.jsonl*") if file.is_file())
    assert '"d9"' not in left
    assert '"schema_version": 99' in left, "what is not understood is not deleted"
    with pytest.raises(ConfigurationError, match="older_than"):
        log.prune(older_than=timedelta(days=-1))


def test_what_only_a_database_can_do_is_said_of_a_file(tmp_path: Path) -> None:
    with JsonlAuditLog(tmp_path / "audit.jsonl") as log:
        for name in ("query", "waiting", "count", "decide", "export"):
            with pytest.raises(AttributeError, match=f"{name}.*only SQLAuditLog"):
                getattr(log, name)
        assert not hasattr(log, "other")
        assert repr(log) == f"JsonlAuditLog('{tmp_path}/audit.jsonl')"


def test_the_url_of_a_database_is_no_path() -> None:
    with pytest.raises(ConfigurationError, match="SQLAuditLog"):
        JsonlAuditLog("sqlite:///x.db")


def test_an_age_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"timedelta\(days=90\), got int"):
        JsonlAuditLog(tmp_path / "audit.jsonl").prune(older_than=90)  # type: ignore[arg-type]  # wrong


def test_errors_name_the_path_and_what_the_system_says(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    log = JsonlAuditLog(tmp_path / "file" / "x.jsonl", on_store_down="raise")
    log.record(record("a"))
    with pytest.raises(AuditError, match=r"Not a directory|File exists") as caught:
        log.flush()
    assert str(tmp_path / "file") in str(caught.value)
    with pytest.raises(AuditError):
        log.close()


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=f"path must name a file.*{tmp_path}/audit.jsonl"):
        JsonlAuditLog(tmp_path)


def test_a_misspelled_option_is_named_with_all_options(tmp_path: Path) -> None:
    said = "JsonlAuditLog: max_pendng: no such option; options are: path, .*keep.*max_pending"
    with pytest.raises(ConfigurationError, match=said):
        JsonlAuditLog(tmp_path / "x", max_pendng=3)  # type: ignore[call-arg]  # wrong on purpose


@pytest.mark.parametrize("name", ["audit.jsonl", "audit.jsonl.lock"])
def test_links_are_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigurationError, match="symbolic link"):
        JsonlAuditLog(tmp_path / "audit.jsonl")


def test_a_link_that_is_put_in_the_place_of_the_file_later_is_not_followed(tmp_path: Path) -> None:
    with JsonlAuditLog(tmp_path / "audit.jsonl", on_store_down="raise", retry_after=60) as log:
        (tmp_path / "audit.jsonl").symlink_to(tmp_path / "elsewhere")
        log.record(record("a"))
        with pytest.raises(AuditError, match="OSError"):
            log.flush()
        with pytest.raises(AuditError, match="cannot be read"):
            list(log.records())
        (tmp_path / "audit.jsonl").unlink()
        assert log.flush()
    assert not (tmp_path / "elsewhere").exists()
    assert stat.S_ISREG(os.lstat(tmp_path / "audit.jsonl").st_mode)


def test_while_the_file_cannot_be_written_records_wait_in_the_spool_path(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    with JsonlAuditLog(path, retry_after=60) as log:
        path.mkdir()
        log.record(record("a"))
        assert log.flush()
        assert log.spooled == 1
        path.rmdir()
        log.record(record("b"))
        assert log.flush()
        assert ids(log) == ["a", "b"]
    lines = path.read_text().splitlines()
    assert len(lines) == 2


def test_what_is_brought_twice_is_written_once(tmp_path: Path) -> None:
    path, spool = tmp_path / "audit.jsonl", tmp_path / "audit.jsonl.spool"
    with JsonlAuditLog(path) as log:
        log.record(record("a"))
    spool.write_text("".join(f"{record(name).to_json()}\n" for name in ("a", "b")))
    with JsonlAuditLog(path) as log:
        assert log.flush()
    assert len(path.read_text().splitlines()) == 2
    assert ids(JsonlAuditLog(path)) == ["a", "b"]


def test_what_was_half_written_when_a_process_was_killed_is_written_again(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    with JsonlAuditLog(path) as log:
        again = [AuditEntry(each, each.to_json()) for each in map(record, ("a", 'b"\\', "c"))]
        log.write(again, repeated=False)
        torn = path.read_bytes()[:-9]
        assert torn.count(b"\n") == 2
        path.write_bytes(torn)
        log.write(again, repeated=True)
        log.write(again, repeated=True)
        assert ids(log) == ["a", 'b"\\', "c"]
    assert path.read_bytes().count(b"\n") == 4


def test_what_is_brought_again_costs_no_reading_of_all_that_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with JsonlAuditLog(tmp_path / "audit.jsonl") as log:
        for name in names(50):
            log.record(record(name))
        log.flush()
        read: list[bytes] = []
        whole = AuditRecord.from_json

        def counted(line: bytes) -> AuditRecord:
            read.append(line)
            return whole(line)

        monkeypatch.setattr(AuditRecord, "from_json", counted)
        again = [record(name) for name in names(60)[48:]]
        log.write([AuditEntry(each, each.to_json()) for each in again], repeated=True)
        assert len(read) == 2
        assert ids(log) == names(60)


@pytest.mark.parametrize(
    "options", [{"rotate_bytes": 0}, {"keep": 0}, {"keep": True}, {"fsync": "yes"}]
)
def test_options_that_cannot_work_are_refused(options: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(options))):
        JsonlAuditLog(tmp_path / "audit.jsonl", **options)


def test_a_name_with_signs_of_patterns_is_a_name(tmp_path: Path) -> None:
    with JsonlAuditLog(tmp_path / "a[1]*.jsonl", rotate_bytes=1) as log:
        for name in names(3):
            log.record(record(name))
            assert log.flush()
        assert ids(log) == names(3)
