"""A process that writes to every store and is killed at random moments; what is kept then.

`benchmarks/kills.py` does with 200 kills what a test does with a few.
"""

import multiprocessing
import random
import signal
import time
import warnings
from collections import Counter
from contextlib import closing, suppress
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

from langchain_classic.storage import LocalFileStore
from verdict_caching import Reader, cached, task

from langchain_groundedness import Decision, JsonlAuditLog, SQLAuditLog
from langchain_groundedness.audit import AuditRecord
from langchain_groundedness.evals import (
    EvaluatedRow,
    EvaluationRow,
    ResultCache,
    RowScore,
    RunHeader,
    load_run,
)
from langchain_groundedness.evals.run_files import Journal, as_line

__all__ = ["STORES", "Kills", "kill_often"]

_BY_KEY = ("verdicts (SQLite)", "verdicts (files)")
"""Stores that do not tell what is in them, and take long to ask for all of it."""
STORES = ("jsonl", "sqlite", "journal", "cache", *_BY_KEY)
_EVERY_STORE = len(STORES)
_FINGERPRINT = {"class": "Killed"}
_HEADER = RunHeader(
    name="killed", made=datetime(2026, 1, 1, tzinfo=UTC), dataset="rows", evaluators={"killed": {}}
)
_SLOW_TO_LOAD = (
    "langchain_groundedness.audit.sql_store",
    "langchain_community.cache",
    "sqlalchemy.dialects.sqlite",
)
"""What the stores load when they are opened, which would be most of what a process does."""
_LONGEST = 0.15
"""Seconds from its first acknowledgement to the death of a process."""


class Kills(NamedTuple):
    """What many kills did."""

    kills: int
    acknowledged: Counter[str]
    """How many writes each store acknowledged."""
    lost: Counter[str]
    """How many of them cannot be read; must be none."""
    doubled: Counter[str]
    """How many are there twice; must be none."""
    beyond: Counter[str]
    """How many are there that were not yet acknowledged; they may be."""


def kill_often(folder: Path, *, kills: int, seed: int = 0) -> Kills:
    """Start a process again and again, kill it (-9), and read what it has left each time."""
    moments = random.Random(seed)  # noqa: S311  (no secret)
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["killing", *_SLOW_TO_LOAD])
    told: dict[str, set[str]] = {store: set() for store in STORES}
    for number in range(kills):
        ours, theirs = processes.Pipe()
        process = processes.Process(target=_write, args=(str(folder), number, theirs))
        process.start()
        theirs.close()
        for _ in range(_EVERY_STORE):  # so that each process has begun to write
            _note(told, ours)
        time.sleep(moments.uniform(0, _LONGEST))
        process.kill()
        process.join()
        with suppress(EOFError, OSError):  # the end, or half of a message
            while True:
                _note(told, ours)
        ours.close()
        assert process.exitcode == -signal.SIGKILL
        kept = _kept(folder, begun_by=number)
        mine = {store: {name for name in told[store] if _by(number, name)} for store in _BY_KEY}
        if any((mine.get(store) or told[store]) - set(kept[store]) for store in STORES):
            break
    kept = _kept(folder)
    return Kills(
        kills,
        Counter({store: len(told[store]) for store in STORES}),
        Counter({store: len(told[store] - set(kept[store])) for store in STORES}),
        Counter({store: len(kept[store]) - len(set(kept[store])) for store in STORES}),
        Counter({store: len(set(kept[store]) - told[store]) for store in STORES}),
    )


def _note(told: dict[str, set[str]], end: Connection) -> None:
    store, name = end.recv()
    told[store].add(name)


def _write(folder: str, number: int, end: Connection) -> None:
    """Write to all stores in turn, and tell of each write when it has been acknowledged."""
    place = Path(folder)
    jsonl = JsonlAuditLog(place / "audit.jsonl", rotate_bytes=20_000)
    sqlite = SQLAuditLog(f"sqlite:///{place / 'audit.db'}", spool_path=place / "spool")
    cache = ResultCache(place / "cache")
    verdicts = _verdict_stores(place)
    with closing(Journal(place / "run.jsonl")) as journal:
        journal.start(_HEADER)
        count = 0
        while True:
            name = f"{number}-{count}"
            for store, log in (("jsonl", jsonl), ("sqlite", sqlite)):
                log.record(_record(name))
                if log.flush():
                    end.send((store, name))
            row = EvaluationRow(id=name, answer=name)
            score = RowScore(key="killed", score=0.5, status="scored")
            found = EvaluatedRow(row=row, scores=(score,))
            journal.write(as_line(found, place=number * 100_000 + count))
            end.send(("journal", name))
            cache.put(row, _FINGERPRINT, score)
            end.send(("cache", name))
            for store, lasting in verdicts.items():
                cached(Reader(), lasting).invoke(task(name, documents=[name]))
                end.send((store, name))
            count += 1


def _record(name: str) -> AuditRecord:
    decision = Decision(action="pass")
    return AuditRecord(id=name, verdict="grounded", decision=decision, question="q" * 200)


def _kept(folder: Path, *, begun_by: int | None = None) -> dict[str, list[str]]:
    """Read every store as whoever comes next would, verdicts perhaps of one process only."""
    with JsonlAuditLog(folder / "audit.jsonl") as jsonl:
        lines = [record.id for record in jsonl.records()]
    spool = folder / "spool-of-reader"
    with SQLAuditLog(f"sqlite:///{folder / 'audit.db'}", spool_path=spool) as sqlite:
        rows = [record.id for record in sqlite.records()]
    run = load_run(folder / "run.jsonl")
    cache = ResultCache(folder / "cache")
    named = [row.row for row in run.rows]  # the cache does not tell what is in it
    found = [row.id for row in named if cache.get(row, _FINGERPRINT) is not None]
    names = [row.id for row in named]
    asked = [name for name in names if begun_by is None or _by(begun_by, name)]
    verdicts = {store: _verified(asked, kept) for store, kept in _verdict_stores(folder).items()}
    return {"jsonl": lines, "sqlite": rows, "journal": names, "cache": found, **verdicts}


def _by(number: int, name: str) -> bool:
    return name.startswith(f"{number}-")


def _verdict_stores(folder: Path) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        from langchain_community.cache import SQLiteCache  # noqa: PLC0415  (warns when imported)
    path = str(folder / "verdicts.db")
    files = LocalFileStore(folder / "verdicts")
    return {"verdicts (SQLite)": SQLiteCache(path), "verdicts (files)": files}


def _verified(names: list[str], store: Any) -> list[str]:
    """Give the names whose verdicts a store has, so that nobody is asked about them."""
    reader = Reader()
    for name in names:
        cached(reader, store).invoke(task(name, documents=[name]))
    asked = set(reader.asked)
    return [name for name in names if name not in asked]
