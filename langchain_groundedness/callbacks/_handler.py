"""What users see of both callback handlers, apart from the hooks that LangChain calls."""

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any
from uuid import UUID

from langchain_core.runnables import Runnable, run_in_executor

from langchain_groundedness.audit import AuditLog
from langchain_groundedness.callbacks._backlog import Backlog
from langchain_groundedness.callbacks._channel import Channel, GroundednessEvent, Listener, Results
from langchain_groundedness.callbacks._checks import Checks
from langchain_groundedness.callbacks._watch import Watch
from langchain_groundedness.exceptions import ConfigurationError
from langchain_groundedness.runnable import GroundednessRunnable
from langchain_groundedness.types import GroundednessResult

__all__ = ["Handler"]


class Handler:
    """Options, results and events."""

    ignore_custom_event = True

    def __init__(  # noqa: PLR0913  (each option is given by keyword)
        self,
        checker: Runnable[Any, GroundednessResult] | None = None,
        *,
        on_verdict: Listener | None = None,
        on_event: Listener | None = None,
        background: bool = False,
        max_workers: int = 4,
        max_pending: int = 1000,
        max_runs: int = 1000,
        max_results: int = 1000,
        max_events: int = 1000,
        langsmith_client: Any = None,
        audit_log: AuditLog | None = None,
    ) -> None:
        """Say how answers are checked, and where verdicts go.

        Args:
            checker: Checks the answers; by default `GroundednessRunnable()`, which works offline.
            on_verdict: Called with the event of each verdict, by itself or as a coroutine
                function. What it raises is logged, and the chain goes on.
            on_event: The same for events of all kinds.
            background: Check in threads of the handler, and do not let the chain wait for it.
                Then `flush()` or `await aflush()` before results are read.
            max_workers: How many threads check sentences while they stream; and how many check
                answers in the background.
            max_pending: How many answers may wait for them; those beyond are `unchecked`, and a
                line in the log says so.
            max_runs: How many root runs may be under way at once; beyond, the oldest is no longer
                watched, and a line in the log says so. This bounds the memory that runs take
                which never end.
            max_results: How many results are kept.
            max_events: How many events are kept for iterators.
            langsmith_client: A `langsmith.Client`; each result is then sent as feedback with the
                key `groundedness`.
            audit_log: Gets a record of each decision; by default that of the checker, which records
                nothing by itself here. What goes wrong with it is logged, and the chain goes on.

        Raises:
            ConfigurationError: An option has a value that cannot work.
        """
        super().__init__()
        _require_positive(
            max_workers=max_workers,
            max_pending=max_pending,
            max_runs=max_runs,
            max_results=max_results,
            max_events=max_events,
        )
        _require_callable(on_verdict=on_verdict, on_event=on_event)
        if checker is not None and not isinstance(checker, Runnable):
            msg = (
                f"checker must be a Runnable that gives a GroundednessResult, such as "
                f"GroundednessRunnable(), got a value of type {type(checker).__name__}"
            )
            raise ConfigurationError(msg)
        if audit_log is not None and not isinstance(audit_log, AuditLog):
            msg = f"audit_log must be an AuditLog, got a {type(audit_log).__name__}"
            raise ConfigurationError(msg)
        self._results = Results(max_results)
        self._channel = Channel(on_verdict=on_verdict, on_event=on_event, max_events=max_events)
        self._sentences = Backlog(workers=max_workers)
        self._answers = Backlog(workers=max_workers, most=max_pending) if background else None
        self._checks = Checks(
            checker or GroundednessRunnable(),
            channel=self._channel,
            results=self._results,
            sentences=self._sentences,
            answers=self._answers,
            langsmith_client=langsmith_client,
            audit_log=audit_log,
        )
        self._watch = Watch(self._checks, max_runs=max_runs)

    @property
    def results(self) -> Mapping[UUID, GroundednessResult]:
        """The results by root run id, in the order in which they came."""
        return self._results

    def events(self, run_id: UUID | None = None) -> Iterator[GroundednessEvent]:
        """Read the events that are kept, and wait for more.

        Args:
            run_id: Whose events to read, as given to the chain by `config={"run_id": ...}`; by
                default those of all runs.

        Returns:
            An iterator that ends when that run has ended, or when the handler is closed. Several
            take nothing from each other.
        """
        return self._channel.events(run_id)

    def aevents(self, run_id: UUID | None = None) -> AsyncIterator[GroundednessEvent]:
        """Read the events that are kept, and wait for more without holding up the event loop.

        Args:
            run_id: As for `events`.

        Returns:
            An iterator as that of `events`.
        """
        return self._channel.aevents(run_id)

    def flush(self, timeout: float | None = None) -> bool:
        """Wait for the checks in the background.

        Args:
            timeout: Most seconds to wait; by default as long as it takes.

        Returns:
            Whether all is checked.

        Raises:
            GroundednessError: Called where an event loop runs; use `aflush` there.
        """
        return self._answers is None or self._answers.wait(timeout)

    async def aflush(self, timeout: float | None = None) -> bool:  # noqa: ASYNC109  (as in flush)
        """Wait for the checks in the background without holding up the event loop.

        Args:
            timeout: Most seconds to wait; by default as long as it takes.

        Returns:
            Whether all is checked.
        """
        if self._answers is None:
            return True
        return await run_in_executor(None, self._answers.settled, timeout)

    def close(self) -> None:
        """End the iterators over events, and the threads when their work is done."""
        self._channel.close()
        self._sentences.close()
        if self._answers is not None:
            self._answers.close()


def _require_positive(**options: int) -> None:
    for name, value in options.items():
        if not isinstance(value, int) or value < 1:
            msg = f"{name} must be a whole number of at least 1, got {value!r}"
            raise ConfigurationError(msg)


def _require_callable(**options: object) -> None:
    for name, value in options.items():
        if value is not None and not callable(value):
            msg = f"{name} must be a function or a coroutine function, got a {type(value).__name__}"
            raise ConfigurationError(msg)
