"""Many processes on one store, a store that goes away, processes that are killed."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from audit.postgres_cluster import Cluster
from audit.writers import Writer, all_at_once
from langchain_groundedness import JsonlAuditLog, SQLAuditLog

PROCESSES = 8


def begun(stack: ExitStack, place: str, spool: Path, *, number: int = PROCESSES) -> list[Writer]:
    writers = [stack.enter_context(Writer(place, spool, f"p{n}")) for n in range(number)]
    assert [writer.said() for writer in writers] == ["ready"] * number
    return writers


def expected(*, each: int, number: int = PROCESSES) -> list[str]:
    return sorted(f"p{n}-{place:05}" for n in range(number) for place in range(each))


def kept_in(url: str, tmp_path: Path) -> list[str]:
    with SQLAuditLog(url, spool_path=tmp_path / "spool-of-reader") as log:
        return sorted(record.id for record in log.records())


@pytest.mark.parametrize("store", ["postgres", "sqlite", "jsonl"])
def test_eight_processes_write_a_thousand_records_each_and_none_is_lost_or_doubled(
    store: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    place = str(tmp_path / "audit.jsonl")
    if store == "sqlite":
        place = f"sqlite:///{tmp_path / 'audit.db'}"
    elif store == "postgres":
        place = request.getfixturevalue("postgres").database()
    with ExitStack() as stack:
        writers = begun(stack, place, tmp_path / "spool")
        assert all_at_once(writers, "write 1000") == ["0"] * PROCESSES
    if store == "jsonl":
        kept = [record.id for record in JsonlAuditLog(place).records()]
        lines = [line for path in tmp_path.glob("audit.jsonl*") for line in lines_of(path)]
        assert len(lines) == len(kept) == PROCESSES * 1000
        assert sorted(kept) == expected(each=1000)
    else:
        assert kept_in(place, tmp_path) == expected(each=1000)


def lines_of(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines() if path.is_file() else []


def test_none_is_lost_or_doubled_when_the_server_stops_and_starts_in_between(
    postgres: Cluster, tmp_path: Path
) -> None:
    url, spool = postgres.database(), tmp_path / "spool"
    with ExitStack() as stack:
        writers = begun(stack, url, spool)
        all_at_once(writers, "write 300")
        for writer in writers:
            writer.tell("write 400")
        postgres.stop()  # at once, while they write
        try:
            waiting = [int(writer.said()) for writer in writers]
            more = [int(told) for told in all_at_once(writers, "write 300")]
        finally:
            postgres.start()
        assert max(more) >= 8 * 300, "durable on disk while the server is away"
        assert max(more) - max(waiting) == 8 * 300
        assert all_at_once(writers, "bring") == ["0"] * PROCESSES
        assert [writer.end() for writer in writers] == [0] * PROCESSES
    assert kept_in(url, tmp_path) == expected(each=1000)
    assert not spool.stat().st_size


def test_the_next_process_brings_what_a_killed_one_has_spooled(
    postgres: Cluster, tmp_path: Path
) -> None:
    url, spool = postgres.database(), tmp_path / "spool"
    postgres.stop("fast")
    try:
        with Writer(url, spool, "p0") as writer:
            assert writer.said() == "ready"
            assert writer.ask("write 50") == "50"
            writer.kill()
    finally:
        postgres.start()
    with ExitStack() as stack:  # both see the file; one of them brings it
        others = [stack.enter_context(Writer(url, spool, f"q{n}")) for n in range(2)]
        assert [other.said() for other in others] == ["ready", "ready"]
        assert all_at_once(others, "bring") == ["0", "0"]
    assert kept_in(url, tmp_path) == expected(each=50, number=1)
    assert not spool.stat().st_size


@pytest.mark.parametrize("store", ["sqlite", "jsonl"])
def test_a_killed_process_loses_nothing_that_it_had_flushed(store: str, tmp_path: Path) -> None:
    place = str(tmp_path / "audit.jsonl")
    place = place if store == "jsonl" else f"sqlite:///{tmp_path / 'audit.db'}"
    acknowledged = 0
    for round_ in range(3):
        with Writer(place, tmp_path / "spool", f"p{round_}") as writer:
            assert writer.said() == "ready"
            assert writer.ask("write 200") == "0"
            acknowledged += 200
            assert writer.ask("hand 3000") == "handed"
            writer.kill()  # most likely in the middle of a write
    log = JsonlAuditLog(place) if store == "jsonl" else SQLAuditLog(place)
    kept = [record.id for record in log.records()]
    assert len(kept) == len(set(kept))
    flushed = {f"p{round_}-{n:05}" for round_ in range(3) for n in range(200)}
    assert flushed <= set(kept)
    log.close()


@pytest.mark.parametrize("store", ["sqlite", "jsonl"])
def test_a_process_that_ends_in_the_ordinary_way_writes_what_it_has_not_flushed(
    store: str, tmp_path: Path
) -> None:
    place = str(tmp_path / "audit.jsonl")
    place = place if store == "jsonl" else f"sqlite:///{tmp_path / 'audit.db'}"
    with Writer(place, tmp_path / "spool", "p0") as writer:
        assert writer.said() == "ready"
        assert writer.ask("hand 500") == "handed"
        assert writer.end() == 0
    log = JsonlAuditLog(place) if store == "jsonl" else SQLAuditLog(place)
    assert sorted(record.id for record in log.records()) == expected(each=500, number=1)
    log.close()
