"""Validates rows side by side, a bounded number at a time."""

from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import ExitStack
from threading import Event
from types import TracebackType
from typing import Self

from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import get_executor_for_config

from langchain_groundedness.evals.datasets import LocatedRow
from langchain_groundedness.evals.validation.values import RowValidation
from langchain_groundedness.evals.values import EvaluationRow

__all__ = ["Window"]

Finished = tuple[LocatedRow, RowValidation]


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
        self._open = ExitStack()

    def __enter__(self) -> Self:
        """Start the threads."""
        executor = get_executor_for_config({"max_concurrency": self._size})
        self._pool = self._open.enter_context(executor)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Begin nothing any more, and wait for what is under way."""
        for future in self._under_way:
            future.cancel()
        self._open.__exit__(kind, error, trace)

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

    def rest(self) -> Iterator[Finished]:
        """Wait for the rows that have begun, after an interruption; the others are left out.

        Yields:
            As `run`; a row that fails is left out too.
        """
        for future in [each for each in self._under_way if each.cancel()]:
            del self._under_way[future]
        wait(self._under_way)
        for future, row in list(self._under_way.items()):
            if future.exception() is None:
                yield row, future.result()
            del self._under_way[future]

    def _finished(self) -> Iterator[Finished]:
        done, _ = wait(self._under_way, return_when=FIRST_COMPLETED)
        for future in done:
            yield self._under_way[future], future.result()
            del self._under_way[future]
