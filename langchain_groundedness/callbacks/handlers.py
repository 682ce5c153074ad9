"""Callback handlers that check the answers of chains and agents without changing them.

Attach `GroundednessCallbackHandler` (or `AsyncGroundednessCallbackHandler` where the chain is
awaited) by `config={"callbacks": [handler]}`, by `with_config`, in a constructor, or for a block
of code with `collect_groundedness()`. It collects question, documents and answer of each root run,
checks the answer, and reports verdicts one by one.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from inspect import signature
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, TypeVar, Unpack
from uuid import UUID

from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.outputs import ChatGenerationChunk, GenerationChunk
from langchain_core.runnables import Runnable, run_in_executor
from langchain_core.tracers.context import register_configure_hook
from typing_extensions import override

from langchain_groundedness._runtime.options import require_bool, require_positive
from langchain_groundedness.audit import AuditLog
from langchain_groundedness.callbacks.answer_checks import AnswerChecks, WorkQueue, collecting
from langchain_groundedness.callbacks.channel import (
    Channel,
    GroundednessEvent,
    Listener,
    RecentResults,
)
from langchain_groundedness.callbacks.run_tracker import FollowUp, Kind, RunTracker, running_loop
from langchain_groundedness.exceptions import ConfigurationError, GroundednessError
from langchain_groundedness.runnable import CheckerOptions, checker_from, show_checker_options
from langchain_groundedness.text.sentences import is_loaded, load
from langchain_groundedness.types import GroundednessResult

if TYPE_CHECKING:
    from contextvars import Token

__all__ = [
    "AsyncGroundednessCallbackHandler",
    "GroundednessCallbackHandler",
    "collect_groundedness",
]

_Chunk: TypeAlias = GenerationChunk | ChatGenerationChunk


class Handler:
    """Options, results and events that both handlers share."""

    ignore_custom_event = True

    @show_checker_options
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
        **options: Unpack[CheckerOptions],
    ) -> None:
        """Configure how answers are checked, and who receives verdicts.

        Args:
            checker: Checks the answers; by default a `GroundednessRunnable` with the options given
                here.
            on_verdict: Called with the event of each verdict, as soon as it is final.
            on_event: Called with every event.
            background: Whether answers are checked in threads while the chain continues.
            max_workers: Most threads for background checks, and for sentences of answers that are
                still being written.
            max_pending: Most answers waiting for a background check; further answers are
                `unchecked`.
            max_runs: Most unfinished root runs to track; the oldest are dropped first.
            max_results: Most results to keep; the oldest are dropped first.
            max_events: Most events to keep for late iterators.
            langsmith_client: LangSmith client that receives the verdict as feedback on the root
                run.
            audit_log: Receives a record of each decision; by default the checker's log.
            **options: Options of `GroundednessRunnable`, such as `model=`, if no checker is given.

        Raises:
            ConfigurationError: An option has an invalid value, or both a checker and options for
                one were given.
        """
        super().__init__()
        require_positive(
            max_workers=max_workers,
            max_pending=max_pending,
            max_runs=max_runs,
            max_results=max_results,
            max_events=max_events,
        )
        require_bool(background=background)
        _require_callable(on_verdict=on_verdict, on_event=on_event)
        if audit_log is not None and not isinstance(audit_log, AuditLog):
            msg = f"audit_log must be an AuditLog, got {type(audit_log).__name__}"
            raise ConfigurationError(msg)
        checker = checker_from(checker, options)
        self._options: dict[str, Any] = {
            "checker": checker,
            "on_verdict": on_verdict,
            "on_event": on_event,
            "background": background,
            "max_workers": max_workers,
            "max_pending": max_pending,
            "max_runs": max_runs,
            "max_results": max_results,
            "max_events": max_events,
            "langsmith_client": langsmith_client,
            "audit_log": audit_log,
        }
        self._results = RecentResults(max_results)
        self._channel = Channel(on_verdict=on_verdict, on_event=on_event, max_events=max_events)
        self._sentences = WorkQueue(workers=max_workers)
        self._answers = WorkQueue(workers=max_workers, most=max_pending) if background else None
        self._checks = AnswerChecks(
            checker,
            channel=self._channel,
            results=self._results,
            sentences=self._sentences,
            answers=self._answers,
            langsmith_client=langsmith_client,
            audit_log=audit_log,
        )
        begin = self._checks.begin if self._checks.checks_sentences else None
        self._tracker = RunTracker(max_runs=max_runs, begin=begin, reader=self._checks.reader)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the options; the copy has no results and tracks no runs yet."""
        return _restored, (type(self), self._options)

    def __copy__(self) -> Self:
        """Share the handler: copies of a config report to the same one."""
        return self

    def __deepcopy__(self, memo: object) -> Self:
        """Share the handler: copies of a config report to the same one."""
        return self

    @property
    def open_runs(self) -> int:
        """Number of tracked runs whose root has not ended."""
        return self._tracker.open_runs

    @property
    def results(self) -> Mapping[UUID, GroundednessResult]:
        """The results by root run id, oldest first."""
        return self._results

    def events(self, run_id: UUID | None = None) -> Iterator[GroundednessEvent]:
        """Iterate over kept and new events; of one run only, if given."""
        return self._channel.events(run_id)

    def aevents(self, run_id: UUID | None = None) -> AsyncIterator[GroundednessEvent]:
        """Iterate over kept and new events without blocking the event loop."""
        return self._channel.aevents(run_id)

    def flush(self, timeout: float | None = None) -> bool:
        """Wait for background checks; return whether all have finished."""
        if self._answers is None:
            return True
        if running_loop() is not None:
            msg = "flush() would block the running event loop: use `await handler.aflush()`"
            raise GroundednessError(msg)
        return self._answers.flush(timeout)

    async def aflush(self, timeout: float | None = None) -> bool:  # noqa: ASYNC109  (as in flush)
        """Wait for background checks without blocking the event loop."""
        if self._answers is None:
            return True
        return await run_in_executor(None, self._answers.flush, timeout)

    def close(self) -> None:
        """End the event iterators, and the threads after their queued work."""
        self._channel.close()
        self._sentences.close()
        if self._answers is not None:
            self._answers.close()

    def _start(self, kind: Kind, run_id: UUID, given: Any, run: dict[str, Any]) -> FollowUp:
        inputs = given if kind in ("chain", "model") else None
        return self._tracker.start(kind, run_id, **{**run, "inputs": inputs})


def _restored(kind: type[Handler], options: dict[str, Any]) -> Handler:
    handler = kind.__new__(kind)
    Handler.__init__(handler, **options)
    return handler


_H = TypeVar("_H", bound=Handler)


class HandlerOptions(CheckerOptions, total=False):
    """Options of the handlers: their own, and those of their checker."""

    on_verdict: Listener | None
    on_event: Listener | None
    background: bool
    max_workers: int
    max_pending: int
    max_runs: int
    max_results: int
    max_events: int
    langsmith_client: Any
    audit_log: AuditLog | None


# LangChain passes the first arguments of hooks by position.


def _start_hook(kind: Kind) -> Any:
    """Make the method that is called when a run of this kind starts."""

    def start(self: Handler, _: object, given: Any, /, *, run_id: UUID, **run: Any) -> None:
        self._checks.follow_up(self._start(kind, run_id, given, run))

    return start


def _astart_hook(kind: Kind) -> Any:
    """Make the coroutine method that is called when a run of this kind starts."""

    async def start(self: Handler, _: object, given: Any, /, *, run_id: UUID, **run: Any) -> None:
        await self._checks.afollow_up(self._start(kind, run_id, given, run))

    return start


class GroundednessCallbackHandler(Handler, BaseCallbackHandler):
    """Checks the answers of a chain or an agent without changing it.

    One handler serves any number of concurrent runs, in threads and on event loops. An answer is
    checked when its root run ends, by default before the chain returns. The handler never changes
    the answer, and an error in a check never reaches the chain. To change or hold back answers, use
    `GroundednessRunnable` or the agent middleware.

    Passed to the constructor of a chain, the handler sees only that chain's own input and output;
    LangChain propagates handlers to inner runs only from a config.

    If there are no documents, the output cannot be read, or the check fails, the result has the
    verdict `unchecked`, and a warning is logged.

    Example:
        >>> from langchain_groundedness.demo import QUESTION, build_chain
        >>> handler = GroundednessCallbackHandler()
        >>> answer = build_chain().invoke(QUESTION, config={"callbacks": [handler]})
        >>> [result] = handler.results.values()
        >>> result.verdict
        'has_contradictions'
    """

    on_chain_start = _start_hook("chain")
    on_retriever_start = _start_hook("retriever")
    on_tool_start = _start_hook("tool")
    on_llm_start = on_chat_model_start = _start_hook("model")

    @override
    def on_llm_new_token(
        self, token: Any, *, run_id: UUID, chunk: _Chunk | None = None, **run: Any
    ) -> None:
        self._tracker.read(run_id, _text(token, chunk), source="token")

    @override
    def on_stream_event(self, event: Any, *, run_id: UUID, **run: Any) -> None:
        self._tracker.read(run_id, _delta(event), source="event")

    def _ended(self, output: Any, /, *, run_id: UUID, **run: Any) -> None:
        self._checks.follow_up(self._tracker.end(run_id, output, **run))

    def _failed(self, error: BaseException, /, *, run_id: UUID, **run: Any) -> None:
        self._checks.follow_up(self._tracker.fail(run_id, error))

    on_chain_end = on_retriever_end = on_tool_end = on_llm_end = _ended  # type: ignore[assignment]
    on_chain_error = on_retriever_error = _failed  # type: ignore[assignment]
    on_tool_error = on_llm_error = _failed  # type: ignore[assignment]


class AsyncGroundednessCallbackHandler(Handler, AsyncCallbackHandler):
    """Checks the answers of an awaited chain or agent without changing it.

    Like `GroundednessCallbackHandler`, but checks and functions run on the chain's event loop. With
    a sync chain, they run in threads.

    Example:
        >>> import asyncio
        >>> from langchain_groundedness.demo import QUESTION, build_chain
        >>> handler = AsyncGroundednessCallbackHandler()
        >>> config = {"callbacks": [handler]}
        >>> answer = asyncio.run(build_chain().ainvoke(QUESTION, config=config))
        >>> [result.verdict for result in handler.results.values()]
        ['has_contradictions']
    """

    on_chain_start = _astart_hook("chain")
    on_retriever_start = _astart_hook("retriever")
    on_tool_start = _astart_hook("tool")
    on_llm_start = on_chat_model_start = _astart_hook("model")

    @override
    async def on_llm_new_token(
        self, token: Any, *, run_id: UUID, chunk: _Chunk | None = None, **run: Any
    ) -> None:
        await self._read(run_id, _text(token, chunk), "token")

    @override
    async def on_stream_event(self, event: Any, *, run_id: UUID, **run: Any) -> None:
        await self._read(run_id, _delta(event), "event")

    async def _ended(self, output: Any, /, *, run_id: UUID, **run: Any) -> None:
        await self._checks.afollow_up(self._tracker.end(run_id, output, **run))

    async def _failed(self, error: BaseException, /, *, run_id: UUID, **run: Any) -> None:
        await self._checks.afollow_up(self._tracker.fail(run_id, error))

    on_chain_end = on_retriever_end = on_tool_end = on_llm_end = _ended  # type: ignore[assignment]
    on_chain_error = on_retriever_error = _failed  # type: ignore[assignment]
    on_tool_error = on_llm_error = _failed  # type: ignore[assignment]

    async def _read(self, run_id: UUID, text: str, source: Literal["token", "event"]) -> None:
        if not is_loaded():
            await run_in_executor(None, load)
        loop = asyncio.get_running_loop()
        self._tracker.read(run_id, text, source=source, loop=loop)


class _Collection:
    """A context manager that checks all runs of a block."""

    def __init__(self, checker: Runnable[Any, GroundednessResult] | None, options: Any) -> None:
        self._make: Callable[[Any], Any] = lambda kind: kind(checker, **options)
        self._began: tuple[Handler, Token[Any]] | None = None

    def __enter__(self) -> GroundednessCallbackHandler:
        return self._begin(GroundednessCallbackHandler)

    def __exit__(self, *exc_info: object) -> None:
        handler = self._end()
        try:
            handler.flush()
        finally:
            handler.close()

    async def __aenter__(self) -> AsyncGroundednessCallbackHandler:
        return self._begin(AsyncGroundednessCallbackHandler)

    async def __aexit__(self, *exc_info: object) -> None:
        handler = self._end()
        try:
            await handler.aflush()
        finally:
            handler.close()

    def _begin(self, kind: type[_H]) -> _H:
        handler: _H = self._make(kind)
        self._began = handler, collecting.set(handler)
        return handler

    def _end(self) -> Handler:
        assert self._began is not None  # noqa: S101  (a block ends after it has begun)
        handler, token = self._began
        collecting.reset(token)
        return handler


def collect_groundedness(
    checker: Runnable[Any, GroundednessResult] | None = None, **options: Unpack[HandlerOptions]
) -> _Collection:
    """Check the answers of all chains and agents that run in a block of code.

    Runs are found wherever the block's context variables propagate: in tasks and in LangChain's
    threads, but not in threads of a plain `ThreadPoolExecutor`. Nested blocks: the innermost one
    applies.

    Args:
        checker: As for `GroundednessCallbackHandler`.
        **options: As for `GroundednessCallbackHandler`.

    Returns:
        A context manager that returns a `GroundednessCallbackHandler` for `with`, and an
        `AsyncGroundednessCallbackHandler` for `async with`. At the end of the block, the handler
        waits for its background checks and is closed.

    Example:
        >>> from langchain_groundedness.demo import QUESTION, build_chain
        >>> with collect_groundedness() as collected:
        ...     answers = build_chain().batch([QUESTION, QUESTION])
        >>> [result.trust_score for result in collected.results.values()]
        [0.4, 0.4]
    """
    return _Collection(checker, options)


_given = signature(Handler).replace(return_annotation=_Collection)
collect_groundedness.__signature__ = _given  # type: ignore[attr-defined]  # as help() reads it


def _text(token: object, chunk: _Chunk | None) -> str:
    """Read the text of a token, which may be a list of content blocks."""
    if isinstance(chunk, ChatGenerationChunk):
        return str(chunk.message.text)
    return token if isinstance(token, str) else ""


def _delta(event: Mapping[str, Any]) -> str:
    """Read the text of an event of LangChain's event stream v3."""
    delta = event.get("delta") if event.get("event") == "content-block-delta" else None
    return str(delta["text"]) if delta and delta.get("type") == "text-delta" else ""


register_configure_hook(collecting, inheritable=True)


def _require_callable(**options: object) -> None:
    for name, value in options.items():
        if value is not None and not callable(value):
            msg = f"{name} must be a function or coroutine function, got {type(value).__name__}"
            raise ConfigurationError(msg)
