"""A tracer that remembers every run it hears of."""

from threading import Lock
from typing import Any, NamedTuple
from uuid import UUID

from langchain_core.tracers.base import BaseTracer
from langchain_core.tracers.schemas import Run
from typing_extensions import override

__all__ = ["SeenRun", "SeenRuns"]


class SeenRun(NamedTuple):
    """One run, as its start told of it."""

    id: UUID
    parent: UUID | None
    name: str
    tags: tuple[str, ...]
    metadata: dict[str, Any]


class SeenRuns(BaseTracer):
    """Remembers starts and ends of chains, models, tools and retrievers."""

    run_inline = True

    def __init__(self) -> None:
        """Start with none."""
        super().__init__()
        self.runs: list[SeenRun] = []
        self._open: dict[UUID, str] = {}
        self._lock = Lock()

    def roots(self) -> list[SeenRun]:
        """Give the runs without a parent."""
        return [run for run in self.runs if run.parent is None]

    def open(self) -> list[str]:
        """Name the runs that have not ended."""
        with self._lock:
            return list(self._open.values())

    @override
    def _start_trace(self, run: Run) -> None:
        super()._start_trace(run)
        seen = SeenRun(
            run.id, run.parent_run_id, run.name, tuple(run.tags or ()), dict(run.metadata)
        )
        with self._lock:
            self.runs.append(seen)
            self._open[run.id] = run.name

    @override
    def _end_trace(self, run: Run) -> None:
        super()._end_trace(run)
        with self._lock:
            self._open.pop(run.id, None)

    @override
    def _persist_run(self, run: Run) -> None:
        """Keep nothing beyond what was noted."""
