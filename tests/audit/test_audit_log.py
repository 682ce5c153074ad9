"""Handing over, flushing, spooling, raising, closing: what all audit logs share."""

import asyncio
import copy
import logging
import multiprocessing
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audit.stores import MemoryLog, names, record
from langchain_groundedness import ConfigurationError, GroundednessError
from langchain_groundedness.exceptions import AuditError


def hand_over(log: MemoryLog, wanted: list[str]) -> None:
    for name in wanted:
        log.record(record(name))


def test_flush_returns_when_everything_handed_over_is_written() -> None:
    with MemoryLog() as log:
        hand_over(log, names(1200))
        assert log.flush()
        assert log.kept == names(1200)
        assert log.pending == 0


def test_flush_gives_up_when_time_is_up_and_says_so() -> None:
    log = MemoryLog()
    log.gate.clear()
    log.record(record("a"))
    assert log.flush(timeout=0.01) is False
    log.gate.set()
    assert log.flush()
    log.close()


def test_many_threads_hand_over_and_nothing_is_lost_or_doubled() -> None:
    with MemoryLog() as log:
        shares = [names(300, start=300 * n) for n in range(8)]
        threads = [threading.Thread(target=hand_over, args=(log, share)) for share in shares]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert log.flush()
        assert sorted(log.kept) == names(2400)


async def test_on_an_event_loop_nothing_blocks() -> None:
    async with MemoryLog(max_pending=5) as log:
        for name in names(50):
            await log.arecord(record(name))
        assert await log.aflush()
        assert log.kept == names(50)


async def test_flush_refuses_to_hold_up_an_event_loop() -> None:
    async with MemoryLog() as log:
        with pytest.raises(GroundednessError, match="aflush"):
            log.flush()


async def test_arecord_waits_for_room_while_the_loop_goes_on() -> None:
    async with MemoryLog(max_pending=1) as log:
        log.gate.clear()
        await log.arecord(record("a"))
        waits = asyncio.create_task(log.arecord(record("b")))
        await asyncio.to_thread(log.writing.wait)
        assert not waits.done()
        log.gate.set()
        await waits
        assert await log.aflush()
        assert log.kept == ["a", "b"]


async def test_record_on_an_event_loop_takes_more_than_there_is_room_for_rather_than_wait(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with MemoryLog(max_pending=1) as log:
        log.gate.clear()
        hand_over(log, names(3))
        assert log.pending == 3
        assert "max_pending=1" in caplog.text
        log.gate.set()
        assert await log.aflush()
        assert log.kept == names(3)


def test_in_a_thread_record_waits_for_room() -> None:
    with MemoryLog(max_pending=1) as log:
        log.gate.clear()
        log.record(record("a"))
        thread = threading.Thread(target=log.record, args=(record("b"),))
        thread.start()
        assert log.pending == 1
        log.gate.set()
        thread.join(300)
        assert log.flush()
        assert log.kept == ["a", "b"]


def test_what_there_is_no_room_for_can_be_spooled_instead(tmp_path: Path) -> None:
    with MemoryLog(tmp_path / "spool", max_pending=1, on_full="spool") as log:
        log.gate.clear()
        hand_over(log, names(4))
        assert (log.pending, log.spooled) == (1, 3)
        log.gate.set()
        assert log.flush()
        assert sorted(log.kept) == names(4)
        assert log.spooled == 0


def test_what_goes_beyond_the_room_of_a_log_that_raises_can_be_spooled_and_comes_back(
    tmp_path: Path,
) -> None:
    with MemoryLog(
        tmp_path / "spool", max_pending=1, on_full="spool", on_store_down="raise"
    ) as log:
        log.gate.clear()
        hand_over(log, names(4))
        log.gate.set()
        assert log.flush()
        assert sorted(log.kept) == names(4)


def test_while_the_store_is_down_records_are_durable_in_the_spool(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    spool = tmp_path / "state" / "audit.spool"
    log = MemoryLog(spool)
    log.down = True
    with caplog.at_level(logging.WARNING):
        hand_over(log, names(3))
        assert log.flush()
        hand_over(log, names(3, start=3))
        assert log.flush()
    assert (log.kept, log.spooled, log.pending) == ([], 6, 0)
    assert caplog.text.count("cannot be written to (ConnectionError") == 1
    assert "SECRET" not in caplog.text
    assert spool.parent.stat().st_mode & 0o777 == 0o700
    assert {file.stat().st_mode & 0o777 for file in spool.parent.iterdir()} == {0o600}
    log.down = False
    hand_over(log, names(2, start=6))
    assert log.flush()
    assert log.kept == names(8), "in order"
    assert (log.spooled, spool.stat().st_size) == (0, 0)
    log.close()


def test_what_was_spooled_is_brought_to_the_store_without_anybody_asking(tmp_path: Path) -> None:
    log = MemoryLog(tmp_path / "spool", retry_after=0.02)
    log.down = True
    log.record(record("a"))
    assert log.flush()
    log.down = False
    while log.spooled:
        threading.Event().wait(0.01)
    assert log.kept == ["a"]
    log.close()


def test_the_next_log_brings_what_the_one_before_has_left(tmp_path: Path) -> None:
    log = MemoryLog(tmp_path / "spool")
    log.down = True
    log.record(record("a"))
    log.close()
    after = MemoryLog(tmp_path / "spool")
    assert after.flush()
    assert after.kept == ["a"]
    after.close()


def test_logs_with_one_spool_share_what_is_in_it(tmp_path: Path) -> None:
    log, other = MemoryLog(tmp_path / "spool"), MemoryLog(tmp_path / "spool")
    log.down = True
    log.record(record("a"))
    assert log.flush()
    assert (log.spooled, other.spooled) == (1, 1)
    assert other.flush()
    assert (log.kept, other.kept) == ([], ["a"])
    assert (log.spooled, other.spooled) == (0, 0)
    log.close()
    other.close()


def test_while_one_log_brings_the_spool_to_its_store_another_adds_to_it(tmp_path: Path) -> None:
    log = MemoryLog(tmp_path / "spool", down=True)
    log.record(record("a"))
    assert log.flush()
    log.down = False
    log.gate.clear()  # its store takes its time
    log.writing.clear()
    flushing = threading.Thread(target=log.flush)
    flushing.start()
    log.writing.wait()
    other = MemoryLog(tmp_path / "spool")
    other.record(record("b"))
    assert other.flush(), "durable behind what is being brought"
    assert other.kept == []
    log.gate.set()
    flushing.join()
    assert log.kept == ["a", "b"]
    assert other.spooled == 0
    log.close()
    other.close()


def test_a_replay_that_was_cut_off_doubles_nothing(tmp_path: Path) -> None:
    log = MemoryLog(tmp_path / "spool")
    log.down = True
    hand_over(log, names(3))
    assert log.flush()
    log.kept = names(2)  # two had been brought when the process before was killed
    log.down = False
    assert log.flush()
    assert log.kept == names(3)
    log.close()


def test_a_torn_line_at_the_end_of_the_spool_is_skipped_and_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = MemoryLog(tmp_path / "spool")
    log.down = True
    hand_over(log, names(2))
    log.close()
    spool = tmp_path / "spool"
    spool.write_bytes(spool.read_bytes()[:-10])
    after = MemoryLog(tmp_path / "spool")
    assert after.flush()
    assert after.kept == names(1)
    assert "skipped an incomplete last line" in caplog.text
    after.close()


def test_what_is_spooled_after_a_torn_line_is_not_lost_with_it(tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    spool.write_text(record("torn").to_json()[:-10])
    log = MemoryLog(spool, down=True)
    log.record(record("a"))
    assert log.flush()
    log.down = False
    assert log.flush()
    assert log.kept == ["a"]
    log.close()


def test_lines_of_the_spool_that_are_no_records_are_put_aside(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    spool = tmp_path / "spool"
    spool.write_text(f"{record('a').to_json()}\nSECRET\n{record('b').to_json()}\n")
    log = MemoryLog(spool)
    assert log.flush()
    assert log.kept == ["a", "b"]
    damaged = tmp_path / "spool.damaged"
    assert damaged.read_text() == "SECRET\n"
    assert damaged.stat().st_mode & 0o777 == 0o600
    assert "SECRET" not in caplog.text
    log.close()


def test_when_neither_store_nor_spool_can_be_written_records_stay_in_memory(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = MemoryLog(tmp_path / "file" / "spool")
    (tmp_path / "file").touch()  # no folder can be made here
    log.down = True
    log.record(record("a"))
    with pytest.raises(AuditError, match="1 record is not durable"):
        log.flush()
    assert "neither to the store" in caplog.text
    log.down = False
    assert log.flush()
    assert log.kept == ["a"]
    log.close()


def test_a_log_that_raises_says_what_happened_and_how_many_records_are_not_durable() -> None:
    log = MemoryLog()
    log.down = True
    log.record(record("a"))
    with pytest.raises(AuditError, match=r"ConnectionError.*: 1 record is not durable") as caught:
        log.flush()
    assert caught.value.records == 1
    with pytest.raises(AuditError, match="2 records") as caught:
        log.record(record("b"))
    assert caught.value.taken
    assert "SECRET" not in str(caught.value)
    log.down = False
    assert log.flush()
    assert log.kept == ["a", "b"]
    log.record(record("c"))
    log.close()
    assert log.kept == ["a", "b", "c"]


def test_a_log_that_raises_takes_nothing_for_which_there_is_no_room() -> None:
    log = MemoryLog(max_pending=1)
    log.down = True
    log.record(record("a"))
    with pytest.raises(AuditError):
        log.flush()
    with pytest.raises(AuditError, match="not among them") as caught:
        log.record(record("b"))
    assert (caught.value.taken, caught.value.records) == (False, 1)
    log.down = False
    log.close()
    assert log.kept == ["a"]


def test_closing_a_log_that_cannot_write_says_what_is_lost(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = MemoryLog()
    log.down = True
    log.record(record("a"))
    with pytest.raises(AuditError, match="1 record is"):
        log.close()
    assert "closed while 1 record is not durable" in caplog.text


def test_a_closed_log_takes_nothing_and_can_be_closed_again() -> None:
    log = MemoryLog()
    log.close()
    log.close()
    with pytest.raises(AuditError, match="closed"):
        log.record(record("a"))
    assert log.flush()


def test_only_records_are_taken() -> None:
    with MemoryLog() as log, pytest.raises(AuditError, match="str"):
        log.record("record")  # type: ignore[arg-type]  # wrong on purpose


def test_a_record_that_cannot_be_written_whole_is_kept_without_its_texts(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with MemoryLog() as log:
        strange = record("a").model_copy(update={"timings": {"check": object()}})
        log.record(strange)
        assert log.flush()
        assert log.kept == ["a"]
    assert "cannot be serialized" in caplog.text


def test_a_copy_of_a_log_is_the_log() -> None:
    with MemoryLog() as log:
        assert copy.copy(log) is copy.deepcopy(log) is log


@pytest.mark.parametrize(
    "options",
    [
        {"on_store_down": "ignore"},
        {"on_full": "drop"},
        {"max_pending": 0},
        {"max_pending": True},
        {"retry_after": 0},
        {"retry_after": "soon"},
        {"on_store_down": "spool", "spool_path": None},
        {"content": "some"},
    ],
)
def test_options_that_cannot_work_are_refused(options: dict[str, Any]) -> None:
    name = "spool_path" if "spool_path" in options else next(iter(options))
    with pytest.raises(ConfigurationError, match=name):
        MemoryLog(**options)


@pytest.mark.parametrize("name", ["spool", "spool.lock"])
def test_a_spool_that_is_a_link_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigurationError, match="symbolic link"):
        MemoryLog(tmp_path / "spool")


def test_a_link_that_is_put_in_the_place_of_the_spool_later_is_not_followed(
    tmp_path: Path,
) -> None:
    secret = tmp_path / "elsewhere"
    line = f"{record('a').to_json()}\n"
    secret.write_text(line)
    log = MemoryLog(tmp_path / "spool")
    (tmp_path / "spool").symlink_to(secret)
    assert log.flush()
    assert log.kept == []
    log.down = True
    log.record(record("b"))
    with pytest.raises(AuditError):
        log.flush()
    assert secret.read_text() == line
    log.down = False
    log.close()


def in_child(log: MemoryLog, pipe: Any) -> None:
    log.record(record("child"))
    log.flush()
    pipe.send((log.kept, log.pending, log.spooled))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_the_child_of_a_fork_writes_what_was_handed_over_in_it(tmp_path: Path) -> None:
    log = MemoryLog(tmp_path / "spool")
    log.gate.clear()
    log.record(record("parent"))
    log.writing.wait()  # the thread of the parent holds the record
    log.gate.set()
    assert log.flush()
    log.gate.clear()
    log.record(record("parent too"))
    log.gate.set()  # for the child; the parent's thread may or may not have written by now
    here, there = multiprocessing.Pipe()
    context = multiprocessing.get_context("fork")
    process = context.Process(target=in_child, args=(log, there))
    process.start()
    kept, pending, spooled = here.recv()
    process.join(300)
    assert kept.count("child") == 1
    assert (pending, spooled) == (0, 0)
    assert log.flush()
    assert log.kept == ["parent", "parent too"]
    log.close()


def ends_without_flush(path: str) -> None:
    from langchain_groundedness import JsonlAuditLog  # noqa: PLC0415  (in the child)

    JsonlAuditLog(path).record(record("child"))


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_of_multiprocessing_that_ends_writes_what_it_has_not_flushed(
    method: str, tmp_path: Path
) -> None:
    from langchain_groundedness import JsonlAuditLog  # noqa: PLC0415  (as above)

    path = tmp_path / "audit.jsonl"
    context = multiprocessing.get_context(method)
    process = context.Process(target=ends_without_flush, args=(str(path),))  # type: ignore[attr-defined]  # every context has it
    process.start()
    process.join(300)
    assert process.exitcode == 0
    assert [kept.id for kept in JsonlAuditLog(path).records()] == ["child"]


@given(st.lists(st.sampled_from(["record", "down", "up", "flush", "next"]), max_size=25))
@settings(deadline=None, max_examples=settings().max_examples * 2 // 5)
def test_whatever_happens_every_record_is_kept_once_and_in_order(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("log") / "spool"
    log, handed = MemoryLog(folder), 0
    logging.getLogger("langchain_groundedness").setLevel(logging.CRITICAL)
    for step in steps:
        if step == "record":
            log.record(record(names(1, start=handed)[0]))
            handed += 1
        elif step == "flush":
            assert log.flush()
        elif step == "next":  # another process goes on
            log.close()
            log = MemoryLog(folder, kept=log.kept, down=log.down)
        else:
            assert log.flush()
            log.down = step == "down"
    assert log.flush()
    log.down = False
    assert log.flush()
    logging.getLogger("langchain_groundedness").setLevel(logging.NOTSET)
    assert log.kept == names(handed)
    log.close()


def test_the_thread_of_a_log_does_not_keep_a_process_alive() -> None:
    before = threading.enumerate()
    log = MemoryLog()
    log.record(record("a"))
    assert log.flush()
    begun = [t for t in threading.enumerate() if t not in before]
    assert all(thread.daemon for thread in begun)
    log.close()
    assert not any(thread.is_alive() for thread in begun)
