"""Validates rows side by side, a bounded number at a time."""

from collections.abc import Iterable, Iterator
from concurrent.futures import Future, wait
from threading import Event
from types import TracebackType
from typing import Self

from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import ContextThreadPoolExecutor

from langchain_groundedness.evals._schedule import first_done
from langchain_groundedness.evals.datasets import LocatedRow
from langchain_groundedness.evals.validation.values import RowValidation
from langchain_groundedness.evals.values import EvaluationRow

__all__ = ["Window"]

Finished = tuple[LocatedRow, RowValidation]
_THREADS = "groundedness-validate"


class Window:
    """Rows that are being validated.

    A row counts as under way until whoever iterates asks for the next one: what is interrupted
    between the two comes again from `rest`.
    """

    def __init__(
        self,
        validator: Runnable[EvaluationRow, RowValidation],
        config: RunnableConfig,
        *,
        size: int,
        stop: Event,
    ) -> None:
        """Start with nothing under way.

        Args:
            validator: Validates a row.
            config: Config for its calls.
            size: Most rows at a time.
            stop: Once it is set, no further row is begun.
        """
        self._validator = validator
        self._config = config
        self._size = size
        self._stop = stop
        self._under_way: dict[Future[RowValidation], LocatedRow] = {}

    def __enter__(self) -> Self:
        """Start the threads."""
        self._pool = ContextThreadPoolExecutor(self._size, thread_name_prefix=_THREADS)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Begin nothing any more; what is under way and was not waited for has no outcome."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def run(self, rows: Iterable[LocatedRow]) -> Iterator[Finished]:
        """Validate rows.

        Args:
            rows: The rows; one is read when there is room for it.

        Yields:
            Each with what was found, as soon as that is known.
        """
        for row in rows:
            if self._stop.is_set():
                break
            future = self._pool.submit(self._validator.invoke, row.row, self._config)
            self._under_way[future] = row
            if len(self._under_way) >= self._size:
                yield from self._finished()
        while self._under_way:
            yield from self._finished()

    def rest(self, seconds: float | None = None) -> Iterator[Finished]:
        """Wait for the rows that have begun, when no more are to begin.

        Args:
            seconds: How long; what takes longer is left out. `None` for as long as it takes.

        Yields:
            As `run`; a row that fails is left out too.
        """
        for future in [each for each in self._under_way if each.cancel()]:
            del self._under_way[future]
        done, _ = wait(self._under_way, seconds)
        for future in done:
            if future.exception() is None:
                yield self._under_way[future], future.result()
            del self._under_way[future]

    def _finished(self) -> Iterator[Finished]:
        done, _ = first_done(self._under_way.keys())
        for future in done:
            yield self._under_way[future], future.result()
            del self._under_way[future]
