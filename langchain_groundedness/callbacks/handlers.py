"""Callback handlers that check the answers of chains and agents without changing them.

Attach `GroundednessCallbackHandler` (or `AsyncGroundednessCallbackHandler` where the chain is
awaited) by `config={"callbacks": [handler]}`, by `with_config`, in a constructor, or for a block
of code with `collect_groundedness()`. It collects question, documents and answer of each root run,
checks the answer, and reports verdicts one by one.
"""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing, suppress
from contextvars import Context, ContextVar, copy_context
from dataclasses import dataclass, field, replace
from functools import partial, partialmethod
from inspect import signature
from typing import Any, Literal, Self, TypeAlias, TypeVar, Unpack, cast
from uuid import UUID

from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.outputs import ChatGenerationChunk, GenerationChunk
from langchain_core.runnables import Runnable, RunnableConfig, run_in_executor
from langchain_core.runnables.config import var_child_runnable_config
from langchain_core.tracers.context import register_configure_hook
from typing_extensions import override

from langchain_groundedness._runtime.options import require_bool, require_positive
from langchain_groundedness._runtime.telemetry import count
from langchain_groundedness.audit import AuditLog
from langchain_groundedness.callbacks.channel import (
    Channel,
    GroundednessEvent,
    Listener,
    RecentResults,
)
from langchain_groundedness.callbacks.partial_answer import PartialAnswer, checks_sentences
from langchain_groundedness.callbacks.run_tracker import (
    CHECK_TAG,
    EndedRun,
    FollowUp,
    Kind,
    Root,
    RunTracker,
    abandoned,
    running_loop,
)
from langchain_groundedness.claims.statements import StatementReader
from langchain_groundedness.decision import DecisionPolicy
from langchain_groundedness.exceptions import (
    AuditError,
    ConfigurationError,
    GroundednessError,
    describe_error,
)
from langchain_groundedness.inputs.formats import CheckInput, InputReader
from langchain_groundedness.pipeline.check import sentences_of, unchecked_result
from langchain_groundedness.pipeline.recording import (
    PendingRecord,
    Recorder,
    log_for,
    suggested_answer,
    without_audit_log,
)
from langchain_groundedness.runnable import (
    CheckerOptions,
    GroundednessRunnable,
    checker_from,
    show_checker_options,
)
from langchain_groundedness.text.sentences import is_loaded, load
from langchain_groundedness.types import GroundednessResult, GroundednessResultChunk

__all__ = [
    "AsyncGroundednessCallbackHandler",
    "GroundednessCallbackHandler",
    "collect_groundedness",
]

logger = logging.getLogger("langchain_groundedness")

_NO_RECORD = "no audit record of run %s: %s"

collecting: ContextVar[Any] = ContextVar("groundedness_collecting", default=None)
"""The handler of the current `collect_groundedness` block."""


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
        limits = {
            "max_workers": max_workers,
            "max_pending": max_pending,
            "max_runs": max_runs,
            "max_results": max_results,
            "max_events": max_events,
        }
        require_positive(**limits)
        require_bool(background=background)
        listeners = {"on_verdict": on_verdict, "on_event": on_event}
        for name, listener in listeners.items():
            if listener is not None and not callable(listener):
                kind = type(listener).__name__
                msg = f"{name} must be a function or coroutine function, got {kind}"
                raise ConfigurationError(msg)
        checker = checker_from(checker, options, type(self).__name__, Handler.__init__)
        self._options: dict[str, Any] = {
            "checker": checker,
            "background": background,
            "langsmith_client": langsmith_client,
            "audit_log": audit_log,
            **listeners,
            **limits,
        }
        self._recorder = Recorder(log_for(checker, audit_log), "handler", checker)
        checker = without_audit_log(checker)
        ours = checker if isinstance(checker, GroundednessRunnable) else None
        self._policy = ours.policy if ours else DecisionPolicy()
        self._extractor = ours.context_extractor if ours else None
        reader = ours.reader if ours else InputReader()
        # Documents may be in inputs of the chain, or come from retrievers and tools.
        reader = replace(reader, context_extractor=None, partial=True)
        if ours and self._extractor:  # it reads the chain's output, which is read here
            checker = ours.model_copy(update={"context_extractor": None})
        self._checker = checker
        self._langsmith = langsmith_client
        self._results = RecentResults(max_results)
        self._channel = Channel(**listeners, max_events=max_events)
        self._sentences = _WorkQueue(workers=max_workers)
        self._answers = _WorkQueue(workers=max_workers, most=max_pending)
        self._background = background
        begin = self._begin if checks_sentences(checker) else None
        self._tracker = RunTracker(max_runs=max_runs, begin=begin, reader=reader)

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the options; the copy has no results and tracks no runs yet."""
        return self._options

    def __setstate__(self, options: dict[str, Any]) -> None:
        """Begin anew with the pickled options."""
        Handler.__init__(self, **options)

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
        if self._background and running_loop() is not None:
            msg = "flush() would block the running event loop: use `await handler.aflush()`"
            raise GroundednessError(msg)
        return self._answers.flush(timeout)

    async def aflush(self, timeout: float | None = None) -> bool:  # noqa: ASYNC109  (as in flush)
        """Wait for background checks without blocking the event loop."""
        return await run_in_executor(None, self._answers.flush, timeout)

    def close(self) -> None:
        """End the event iterators, and the threads after their queued work."""
        self._channel.close()
        self._sentences.close()
        self._answers.close()

    def _begin(
        self, root: Root, shown: CheckInput, loop: asyncio.AbstractEventLoop | None
    ) -> PartialAnswer:
        """Start checking a partial answer against what its model was shown."""
        return PartialAnswer(
            run_id=root.run_id,
            checker=cast("GroundednessRunnable", self._checker),
            shown=shown,
            submit=self._sentences.add,
            config=_config(root),
            publish=partial(self._channel.publish, loop=loop),
        )

    def _follow_up(self, due: FollowUp) -> None:
        """Process what a callback made due, in a thread."""
        for text in due.dropped:
            text.drop()
        for event in due.events:
            self._channel.publish(event)
        if due.ended is None:
            return
        if not self._background:
            _detached_context().run(self._check, due.ended)
        elif not self._answers.add(partial(self._check, due.ended)):
            check = self._begin_check(due.ended)
            self._deliver(check, self._queue_full(check))

    async def _afollow_up(self, due: FollowUp) -> None:
        """Process what a callback made due, on an event loop."""
        for text in due.dropped:
            await run_in_executor(None, text.drop)
        for event in due.events:
            await self._channel.apublish(event)
        if due.ended is None:
            return
        loop = asyncio.get_running_loop()
        if due.ended.root.loop is not loop:
            # In a sync chain, LangChain runs each event of an async handler on a new loop.
            await run_in_executor(None, self._follow_up, FollowUp(ended=due.ended))
            return
        ended = replace(due.ended, loop=loop)
        if not self._background:
            try:
                await _detached(self._acheck(ended))
            except asyncio.CancelledError:
                self._channel.keep(abandoned(ended.root))
                raise
        elif not self._answers.add(partial(self._check, ended)):
            check = self._begin_check(ended)
            result = await run_in_executor(None, self._queue_full, check)
            await _detached(self._adeliver(check, result))

    def _begin_check(self, ended: EndedRun) -> "_RunCheck":
        root = ended.root
        pending = PendingRecord(
            self._recorder,
            run_id=root.run_id,
            parent_run_id=root.above,
            root_run_id=root.run_id if root.above is None else None,
            thread_id=root.thread_id,
        )
        return _RunCheck(ended, root, pending)

    def _check(self, ended: EndedRun) -> None:
        check = self._begin_check(ended)
        try:
            source = self._input_of(check)
            if not check.take_partial_answer(source):
                for piece in self._checker.stream(source, _config(check.root)):
                    for event in check.add(piece):
                        self._channel.publish(event, loop=check.ended.loop)
            result = self._as_shown(check.close())
        except Exception as exc:  # noqa: BLE001  (the chain goes on; the result has the reason)
            result = self._failed_check(check, exc)
        self._deliver(check, result)

    async def _acheck(self, ended: EndedRun) -> None:
        check = self._begin_check(ended)
        try:
            source = self._input_of(check)
            if not await run_in_executor(None, check.take_partial_answer, source):
                async for piece in self._checker.astream(source, _config(check.root)):
                    for event in check.add(piece):
                        await self._channel.apublish(event)
            result = self._as_shown(check.close())
        except Exception as exc:  # noqa: BLE001  (the chain goes on; the result has the reason)
            result = await run_in_executor(None, self._failed_check, check, exc)
        await self._adeliver(check, result)

    def _failed_check(self, check: "_RunCheck", error: Exception) -> GroundednessResult:
        for text in check.root.partial_answers.values():
            text.drop()
        return self._unchecked(check, f"the check failed ({describe_error(error)})")

    def _queue_full(self, check: "_RunCheck") -> GroundednessResult:
        with suppress(Exception):  # an unreadable answer is unchecked too
            self._input_of(check)
        return self._unchecked(
            check, "too many answers are waiting for their check (see max_pending=)"
        )

    def _unchecked(self, check: "_RunCheck", reason: str) -> GroundednessResult:
        logger.warning("run %s is unchecked: %s", check.root.run_id, reason)
        source = check.source
        result = unchecked_result(source, reason, self._policy, sentences_of(source.answer))
        count(result)
        return result

    def _input_of(self, check: "_RunCheck") -> CheckInput:
        ended = check.ended
        source = check.root.inputs.read(ended.output, context_extractor=self._extractor)
        if ended.is_cut:
            reader = StatementReader()
            reader.feed(source.answer)
            answer = source.answer[: reader.certain].rstrip()
            source = source.model_copy(update={"answer": answer})
        check.source = source
        return source

    def _deliver(self, check: "_RunCheck", result: GroundednessResult) -> None:
        try:
            check.pending.end(result, **_record_fields(result))
        except AuditError as exc:  # the chain goes on
            logger.warning(_NO_RECORD, check.root.run_id, exc)
        event = self._keep(check, result)
        if self._langsmith is not None:
            self._send_feedback(event.run_id, result)
        self._channel.publish(event, loop=check.ended.loop)

    async def _adeliver(self, check: "_RunCheck", result: GroundednessResult) -> None:
        try:
            await check.pending.aend(result, **_record_fields(result))
        except AuditError as exc:  # the chain goes on
            logger.warning(_NO_RECORD, check.root.run_id, exc)
        event = self._keep(check, result)
        if self._langsmith is not None:
            await run_in_executor(None, self._send_feedback, event.run_id, result)
        await self._channel.apublish(event)

    def _as_shown(self, result: GroundednessResult) -> GroundednessResult:
        """Decide on the unedited answer: corrections are only suggested."""
        checker = self._checker
        if not result.edits or not isinstance(checker, GroundednessRunnable):
            return result
        return checker.check.judged(result, ())

    def _keep(self, check: "_RunCheck", result: GroundednessResult) -> GroundednessEvent:
        self._results.add(check.root.run_id, result)
        return GroundednessEvent(kind="result", run_id=check.root.run_id, result=result)

    def _send_feedback(self, run_id: UUID, result: GroundednessResult) -> None:
        try:
            self._langsmith.create_feedback(
                run_id,
                key="groundedness",
                score=result.trust_score,
                value=result.verdict,
                comment="; ".join(result.decision.reasons),
            )
        except Exception as exc:  # noqa: BLE001  (a LangSmith failure never breaks the chain)
            logger.warning("no feedback for run %s: %s", run_id, type(exc).__name__)


def _record_fields(result: GroundednessResult) -> dict[str, Any]:
    """Return the record fields of an answer that was shown unchanged."""
    return {"shown_answer": result.original_answer, "suggested_answer": suggested_answer(result)}


def _config(root: Root) -> RunnableConfig:
    return {
        "callbacks": [],
        "run_name": "groundedness_check",
        "tags": [CHECK_TAG],
        "metadata": {"checked_run_id": str(root.run_id)},
    }


@dataclass
class _RunCheck:
    """The check of one ended run, and the result so far."""

    ended: EndedRun
    root: Root
    pending: PendingRecord
    source: CheckInput = field(default_factory=partial(CheckInput, answer=""))
    total: GroundednessResult | None = None

    def take_partial_answer(self, source: CheckInput) -> bool:
        """Take the result of the partial answer that became the answer; drop all others."""
        texts = list(self.root.partial_answers.values())
        answer = next((text for text in reversed(texts) if text.is_of(source)), None)
        for text in texts:
            if text is not answer:
                text.drop()
        self.total = answer.result(source) if answer else None
        return self.total is not None

    def add(self, piece: object) -> Iterator[GroundednessEvent]:
        """Add a piece from the checker; yield events for its verdicts."""
        if not isinstance(piece, GroundednessResult):
            msg = f"the checker must return a GroundednessResult, got {type(piece).__name__}"
            raise TypeError(msg)
        if isinstance(piece, GroundednessResultChunk) and isinstance(
            self.total, GroundednessResultChunk
        ):
            self.total += piece
        else:
            self.total = piece
        for verdict in piece.claims:
            yield GroundednessEvent(kind="verdict", run_id=self.root.run_id, verdict=verdict)

    def close(self) -> GroundednessResult:
        """Return the final result; log unchecked claims."""
        if self.total is None:
            msg = "the checker must return a GroundednessResult, got no output"
            raise ValueError(msg)
        fields = {name: getattr(self.total, name) for name in GroundednessResult.model_fields}
        result = GroundednessResult.model_construct(**fields)
        reasons = [each.reason or "" for each in result.claims if each.verdict == "unchecked"]
        if reasons:
            found = "; ".join(sorted(set(reasons)))
            details = (self.root.run_id, len(reasons), len(result.claims), found)
            logger.warning("run %s: unchecked claims: %d of %d: %s", *details)
        return result


class _WorkQueue:
    """A thread pool with an optional limit on unfinished work."""

    # Threads start with the first work. At process exit, queued work is still finished.

    def __init__(self, *, workers: int, most: int | None = None) -> None:
        """Start without work or threads."""
        self._workers = workers
        self._most = most
        self._unfinished: set[Future[Any]] = set()
        self._lock = threading.RLock()
        self._pool: ThreadPoolExecutor | None = None

    def add(self, work: Callable[[], Any]) -> bool:
        """Queue work, detached from the caller's chain; return whether there was room."""
        with self._lock:
            if self._most is not None and len(self._unfinished) >= self._most:
                return False
            if self._pool is None:
                name = "groundedness"
                self._pool = ThreadPoolExecutor(self._workers, thread_name_prefix=name)
            future = self._pool.submit(_detached_context().run, work)
            self._unfinished.add(future)
        future.add_done_callback(self._unfinished.discard)
        return True

    def flush(self, timeout: float | None = None) -> bool:
        """Wait for the queued work; return whether all of it finished."""
        with self._lock:
            unfinished = list(self._unfinished)
        return not wait(unfinished, timeout).not_done

    def close(self) -> None:
        """Let the threads end after the queued work."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=False)


async def _detached(work: Coroutine[Any, Any, None]) -> None:
    await asyncio.create_task(work, context=_detached_context())


def _detached_context() -> Context:
    """Copy the context without the variables that attach new runs to the watched chain."""
    context = copy_context()
    context.run(var_child_runnable_config.set, None)
    context.run(collecting.set, None)
    return context


_Chunk: TypeAlias = GenerationChunk | ChatGenerationChunk


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

    def _started(self, kind: Kind, _: object, given: Any, /, *, run_id: UUID, **run: Any) -> None:
        self._follow_up(self._tracker.start(kind, run_id, given, **run))

    on_chain_start: Any = partialmethod(_started, "chain")
    on_retriever_start: Any = partialmethod(_started, "retriever")
    on_tool_start: Any = partialmethod(_started, "tool")
    on_llm_start: Any = partialmethod(_started, "model")
    on_chat_model_start = on_llm_start

    @override
    def on_llm_new_token(
        self, token: Any, *, run_id: UUID, chunk: _Chunk | None = None, **run: Any
    ) -> None:
        self._tracker.read(run_id, _text(token, chunk), source="token")

    @override
    def on_stream_event(self, event: Any, *, run_id: UUID, **run: Any) -> None:
        self._tracker.read(run_id, _delta(event), source="event")

    def _ended(self, output: Any, /, *, run_id: UUID, **run: Any) -> None:
        self._follow_up(self._tracker.end(run_id, output, **run))

    def _failed(self, error: BaseException, /, *, run_id: UUID, **run: Any) -> None:
        self._follow_up(self._tracker.fail(run_id, error))

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

    async def _started(
        self, kind: Kind, _: object, given: Any, /, *, run_id: UUID, **run: Any
    ) -> None:
        await self._afollow_up(self._tracker.start(kind, run_id, given, **run))

    on_chain_start: Any = partialmethod(_started, "chain")
    on_retriever_start: Any = partialmethod(_started, "retriever")
    on_tool_start: Any = partialmethod(_started, "tool")
    on_llm_start: Any = partialmethod(_started, "model")
    on_chat_model_start = on_llm_start

    @override
    async def on_llm_new_token(
        self, token: Any, *, run_id: UUID, chunk: _Chunk | None = None, **run: Any
    ) -> None:
        await self._read(run_id, _text(token, chunk), "token")

    @override
    async def on_stream_event(self, event: Any, *, run_id: UUID, **run: Any) -> None:
        await self._read(run_id, _delta(event), "event")

    async def _ended(self, output: Any, /, *, run_id: UUID, **run: Any) -> None:
        await self._afollow_up(self._tracker.end(run_id, output, **run))

    async def _failed(self, error: BaseException, /, *, run_id: UUID, **run: Any) -> None:
        await self._afollow_up(self._tracker.fail(run_id, error))

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

    def __enter__(self) -> GroundednessCallbackHandler:
        return self._begin(GroundednessCallbackHandler)

    def __exit__(self, *exc_info: object) -> None:
        collecting.reset(self._token)
        with closing(self._handler):
            self._handler.flush()

    async def __aenter__(self) -> AsyncGroundednessCallbackHandler:
        return self._begin(AsyncGroundednessCallbackHandler)

    async def __aexit__(self, *exc_info: object) -> None:
        collecting.reset(self._token)
        with closing(self._handler):
            await self._handler.aflush()

    def _begin(self, kind: type[_H]) -> _H:
        handler: _H = self._make(kind)
        self._handler: Handler = handler
        self._token = collecting.set(handler)
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
