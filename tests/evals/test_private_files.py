"""Files with texts of people: for their owner only from the start, and never changed silently."""

import logging
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from audit.stores import MemoryLog, record
from counting import CountingEvaluator
from langchain_core.documents import Document
from test_validation_files import Judge

from langchain_groundedness import JsonlAuditLog, SQLAuditLog
from langchain_groundedness.audit import AuditLog
from langchain_groundedness.evals import (
    EvaluationRow,
    ResultCache,
    RowScore,
    evaluate,
    load_run,
    save_run,
)
from langchain_groundedness.evals.run_files import save_parquet
from langchain_groundedness.evals.validation import validate
from langchain_groundedness.report import write_report

ROWS = [{"id": "1", "question": "Q?", "answer": "A.", "contexts": ["A."]}]


def keeps(log: AuditLog, name: str = "a") -> None:
    with log:
        log.record(record(name))
        log.flush()


def caches(folder: Path) -> None:
    row = EvaluationRow(id="1", answer="a", documents=(Document("d"),))
    ResultCache(folder / "cache").put(row, {}, RowScore(key="k", score=0.5, status="scored"))


def validates(folder: Path) -> None:
    passed, rejected = folder / "passed.jsonl", folder / "rejected.jsonl"
    judge = Judge().validator
    validate(ROWS, passed=passed, rejected=rejected, validator=judge, fresh=True)


def run_of(folder: Path) -> Any:
    return evaluate(ROWS, CountingEvaluator(), journal=folder / "journal.jsonl", fresh=True)


WRITERS: dict[str, Callable[[Path], Any]] = {
    "JSONL log": lambda folder: keeps(JsonlAuditLog(folder / "a.jsonl")),
    "SQLite log": lambda folder: keeps(SQLAuditLog(f"sqlite:///{folder / 'a.db'}")),
    "spool": lambda folder: keeps(MemoryLog(folder / "spool", down=True)),
    "run file": run_of,
    "saved run": lambda folder: save_run(load_run(_journal(folder)), folder / "run.jsonl"),
    "cache": caches,
    "validation": validates,
    **{
        f"{kind} report": lambda folder, kind=kind: write_report(  # type: ignore[misc]
            load_run(_journal(folder)), folder / f"report.{kind}"
        )
        for kind in ("html", "md", "xml")
    },
    "Parquet": lambda folder: save_parquet(_journal(folder), folder / "run.parquet"),
    "Parquet by URL": lambda folder: save_parquet(_journal(folder), f"file://{folder}/run.parquet"),
}


def _journal(folder: Path) -> Path:
    run_of(folder)
    return folder / "journal.jsonl"


def modes(folder: Path) -> dict[str, int]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in files}


@pytest.fixture(params=WRITERS)
def writer(request: pytest.FixtureRequest) -> Callable[[Path], Any]:
    if "Parquet" in request.param:
        pytest.importorskip("pyarrow")
        pytest.importorskip("fsspec")
    return WRITERS[request.param]


@pytest.fixture
def no_umask() -> Any:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("no_umask")
def test_a_new_file_is_never_open_to_others(
    writer: Callable[[Path], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("chmod", "fchmod"):
        monkeypatch.setattr(os, name, None)  # too late: others could have opened it before
    writer(tmp_path)
    made = modes(tmp_path)
    assert made
    assert set(made.values()) == {0o600}


@pytest.mark.usefixtures("no_umask")
def test_a_file_that_others_may_read_stays_so_and_that_is_said_once(
    writer: Callable[[Path], Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    writer(tmp_path)
    shared = {name for name in modes(tmp_path) if "lock" not in name and "-" not in name}
    for path in tmp_path.rglob("*"):
        if path.name in shared:
            path.chmod(0o640)
    caplog.set_level(logging.WARNING)
    for _ in range(2):
        writer(tmp_path)
    assert {name for name, mode in modes(tmp_path).items() if mode == 0o640} == shared
    said = [line.getMessage() for line in caplog.records if "mode" in line.getMessage()]
    assert len(said) == len(set(said)) == len(shared)
    for name in shared:
        assert any(f"{name} has mode 0640" in line and "chmod 600" in line for line in said)
