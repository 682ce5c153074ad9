"""A store in memory that can be taken away, and databases read without the audit log."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy
from typing_extensions import override

from langchain_groundedness import Decision
from langchain_groundedness.audit import AuditEntry, AuditLog, AuditRecord

ROWS = sqlalchemy.table("groundedness_audit", *map(sqlalchemy.column, ("id", "record", "review")))


@contextmanager
def database_at(url: str) -> Iterator[sqlalchemy.Connection]:
    """Change a database in a way that no audit log would."""
    engine = sqlalchemy.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    try:
        with engine.begin() as connection:
            yield connection
    finally:
        engine.dispose()


class MemoryLog(AuditLog):
    """Keeps records in memory; goes down, and waits, when it is told to."""

    def __init__(
        self,
        folder: Path | None = None,
        *,
        kept: Sequence[str] = (),
        down: bool = False,
        **options: Any,
    ) -> None:
        self.kept = list(kept)
        self.attempts = 0
        self.down = down
        self.gate = threading.Event()
        self.gate.set()
        self.writing = threading.Event()
        if folder is None:
            options = {"on_store_down": "raise", **options}
        super().__init__(**{"spool_path": folder, "retry_after": 60.0, **options})

    @override
    def write(self, entries: Sequence[AuditEntry], *, repeated: bool) -> None:
        self.attempts += 1
        self.writing.set()
        assert self.gate.wait(300)
        if self.down:
            msg = "SECRET is away"
            raise ConnectionError(msg)
        known = set(self.kept)
        self.kept += [e.record.id for e in entries if e.record.id not in known]


def record(name: str, **fields: Any) -> AuditRecord:
    given = {"verdict": "grounded", "decision": Decision(action="pass"), **fields}
    return AuditRecord(id=name, **given)


def names(number: int, start: int = 0) -> list[str]:
    return [f"r{n:04}" for n in range(start, start + number)]


def kept(*records: AuditRecord, **options: Any) -> list[AuditRecord]:
    """Give what a log with these options keeps of records."""
    entries: list[AuditEntry] = []

    class Keeping(AuditLog):
        @override
        def write(self, given: Sequence[AuditEntry], *, repeated: bool) -> None:
            entries.extend(given)

    with Keeping(spool_path=None, on_store_down="raise", **options) as log:
        for record in records:
            log.record(record)
        assert log.flush()
    return [entry.record for entry in entries]
