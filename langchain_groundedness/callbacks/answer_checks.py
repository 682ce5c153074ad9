"""Checks the answers of watched runs, and publishes the results.

Its own module because both handlers share it, and it does not depend on LangChain's hook names.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextvars import Context, ContextVar, copy_context
from dataclasses import replace
from functools import partial
from typing import Any, cast
from uuid import UUID

from langchain_core.runnables import Runnable, RunnableConfig, run_in_executor
from langchain_core.runnables.config import var_child_runnable_config

from langchain_groundedness._runtime.telemetry import count
from langchain_groundedness.audit import AuditLog
from langchain_groundedness.callbacks.channel import Channel, GroundednessEvent, RecentResults
from langchain_groundedness.callbacks.partial_answer import PartialAnswer, checks_sentences
from langchain_groundedness.callbacks.run_tracker import (
    CHECK_TAG,
    EndedRun,
    FollowUp,
    Root,
    abandoned,
)
from langchain_groundedness.claims.statements import StatementReader
from langchain_groundedness.decision import DecisionPolicy
from langchain_groundedness.decision.conditions import DecisionContext
from langchain_groundedness.exceptions import AuditError, describe_error
from langchain_groundedness.inputs.formats import CheckInput, InputReader
from langchain_groundedness.pipeline.check import sentences_of
from langchain_groundedness.pipeline.recording import (
    Pending,
    Recorder,
    log_of,
    suggested,
    unaudited,
)
from langchain_groundedness.runnable import GroundednessRunnable
from langchain_groundedness.types import ClaimVerdict, GroundednessResult, GroundednessResultChunk

__all__ = ["AnswerChecks", "WorkQueue", "collecting"]

logger = logging.getLogger("langchain_groundedness")

collecting: ContextVar[Any] = ContextVar("groundedness_collecting", default=None)
"""The handler of the current `collect_groundedness` block."""


class AnswerChecks:
    """Checks the answers of ended root runs, and partial answers of running ones."""

    def __init__(  # noqa: PLR0913  (all by keyword)
        self,
        checker: Runnable[Any, GroundednessResult],
        *,
        channel: Channel,
        results: RecentResults,
        sentences: "WorkQueue",
        answers: "WorkQueue | None",
        langsmith_client: Any,
        audit_log: AuditLog | None,
    ) -> None:
        """Configure the checks; without a queue for answers, runs wait for their check."""
        log = log_of(checker) if audit_log is None else audit_log
        self._recorder = Recorder(log, "handler", checker)
        checker = unaudited(checker)
        self._extractor = None
        self._policy = DecisionPolicy()
        self.reader = InputReader()
        """Reads the inputs and outputs of runs."""
        if isinstance(checker, GroundednessRunnable):
            self._policy, self._extractor = checker.policy, checker.context_extractor
            self.reader = replace(checker.reader, context_extractor=None)
            if self._extractor is not None:  # it reads the chain's output, which is read here
                checker = checker.model_copy(update={"context_extractor": None})
        self._checker = checker
        self._channel = channel
        self._results = results
        self._sentences = sentences
        self._answers = answers
        self._langsmith = langsmith_client
        self.checks_sentences = checks_sentences(checker)
        """Whether sentences are checked while the answer is written."""

    def begin(
        self, root: Root, shown: CheckInput, loop: asyncio.AbstractEventLoop | None
    ) -> PartialAnswer:
        """Start checking a partial answer against what its model was shown."""
        return PartialAnswer(
            root.run_id,
            cast("GroundednessRunnable", self._checker),
            shown,
            submit=self._sentences.add,
            config=_config(root),
            publish=partial(self._channel.publish, loop=loop),
        )

    def follow_up(self, due: FollowUp) -> None:
        """Process what a callback made due, in a thread."""
        for text in due.dropped:
            text.drop()
        for event in due.events:
            self._channel.publish(event)
        if due.ended is None:
            return
        if self._answers is None:
            _detached_context().run(self._check, due.ended)
        elif not self._answers.add(partial(self._check, due.ended)):
            self._deliver(due.ended, self._queue_full(due.ended), self._pending(due.ended))

    async def afollow_up(self, due: FollowUp) -> None:
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
            await run_in_executor(None, self.follow_up, FollowUp(ended=due.ended))
            return
        ended = replace(due.ended, loop=loop)
        if self._answers is None:
            try:
                await _detached(self._acheck(ended))
            except asyncio.CancelledError:
                self._channel.keep(abandoned(ended.root))
                raise
        elif not self._answers.add(partial(self._check, ended)):
            result = await run_in_executor(None, self._queue_full, ended)
            await _detached(self._adeliver(ended, result, self._pending(ended)))

    def _check(self, ended: EndedRun) -> None:
        pending, report, source = self._pending(ended), _ResultBuilder(ended.root.run_id), None
        try:
            source = self._read(ended)
            text = self._partial_answer(ended, source)
            if text is not None and (known := text.result(source)):
                report.total = known
            else:
                for piece in self._checker.stream(source, _config(ended.root)):
                    for event in report.add(piece):
                        self._channel.publish(event, loop=ended.loop)
            result = self._as_shown(report.close())
        except Exception as exc:  # noqa: BLE001  (the chain goes on; the result has the reason)
            self._partial_answer(ended, None)
            result = report.fail(exc, source, self._policy)
        self._deliver(ended, result, pending)

    async def _acheck(self, ended: EndedRun) -> None:
        pending, report, source = self._pending(ended), _ResultBuilder(ended.root.run_id), None
        try:
            source = self._read(ended)
            text = await run_in_executor(None, self._partial_answer, ended, source)
            if text is not None and (known := await run_in_executor(None, text.result, source)):
                report.total = known
            else:
                async for piece in self._checker.astream(source, _config(ended.root)):
                    for event in report.add(piece):
                        await self._channel.apublish(event)
            result = self._as_shown(report.close())
        except Exception as exc:  # noqa: BLE001  (the chain goes on; the result has the reason)
            await run_in_executor(None, self._partial_answer, ended, None)
            result = await run_in_executor(None, report.fail, exc, source, self._policy)
        await self._adeliver(ended, result, pending)

    def _partial_answer(self, ended: EndedRun, source: CheckInput | None) -> PartialAnswer | None:
        """Return the partial answer that became the answer, if any, and drop all others."""
        texts = list(ended.root.partial_answers.values())
        answer = next((text for text in reversed(texts) if source and text.is_of(source)), None)
        for text in texts:
            if text is not answer:
                text.drop()
        return answer

    def _read(self, ended: EndedRun) -> CheckInput:
        source = ended.root.inputs.read(ended.output, context_extractor=self._extractor)
        if not ended.is_cut:
            return source
        reader = StatementReader()
        reader.feed(source.answer)
        return source.model_copy(update={"answer": source.answer[: reader.certain].rstrip()})

    def _queue_full(self, ended: EndedRun) -> GroundednessResult:
        reason = "too many answers are waiting for their check (see max_pending=)"
        logger.warning("run %s is unchecked: %s", ended.root.run_id, reason)
        try:
            return without_check(self._read(ended), reason, self._policy)
        except Exception:  # noqa: BLE001  (an unreadable answer is unchecked too)
            return without_check(CheckInput(answer=""), reason, self._policy)

    def _pending(self, ended: EndedRun) -> Pending:
        root = ended.root
        return Pending(
            self._recorder,
            run_id=root.run_id,
            parent_run_id=root.above,
            root_run_id=root.run_id if root.above is None else None,
            thread_id=root.thread_id,
        )

    def _deliver(self, ended: EndedRun, result: GroundednessResult, pending: Pending) -> None:
        try:
            pending.end(result, **_record_fields(result))
        except AuditError as exc:  # the chain goes on
            _log_missing_record(ended, exc)
        event = self._keep(ended, result)
        if self._langsmith is not None:
            self._send_feedback(event.run_id, result)
        self._channel.publish(event, loop=ended.loop)

    async def _adeliver(
        self, ended: EndedRun, result: GroundednessResult, pending: Pending
    ) -> None:
        try:
            await pending.aend(result, **_record_fields(result))
        except AuditError as exc:  # the chain goes on
            _log_missing_record(ended, exc)
        event = self._keep(ended, result)
        if self._langsmith is not None:
            await run_in_executor(None, self._send_feedback, event.run_id, result)
        await self._channel.apublish(event)

    def _as_shown(self, result: GroundednessResult) -> GroundednessResult:
        """Decide on the unedited answer: corrections are only suggested."""
        checker = self._checker
        if not result.edits or not isinstance(checker, GroundednessRunnable):
            return result
        return checker.check.judged(result, ())

    def _keep(self, ended: EndedRun, result: GroundednessResult) -> GroundednessEvent:
        self._results.add(ended.root.run_id, result)
        return GroundednessEvent(kind="result", run_id=ended.root.run_id, result=result)

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


def _log_missing_record(ended: EndedRun, error: AuditError) -> None:
    logger.warning("no audit record of run %s: %s", ended.root.run_id, error)


def _record_fields(result: GroundednessResult) -> dict[str, Any]:
    """Return the record fields of an answer that was shown unchanged."""
    return {"shown_answer": result.original_answer, "suggested_answer": suggested(result)}


def _config(root: Root) -> RunnableConfig:
    return {
        "callbacks": [],
        "run_name": "groundedness_check",
        "tags": [CHECK_TAG],
        "metadata": {"checked_run_id": str(root.run_id)},
    }


class _ResultBuilder:
    """Accumulates the result of one run."""

    def __init__(self, run_id: UUID) -> None:
        self.run_id = run_id
        self.total: GroundednessResult | None = None

    def add(self, piece: object) -> Iterator[GroundednessEvent]:
        """Add a piece from the checker; yield events for its verdicts."""
        if not isinstance(piece, GroundednessResult):
            msg = f"the checker must return a GroundednessResult, got {type(piece).__name__}"
            raise TypeError(msg)
        total = self.total
        if isinstance(total, GroundednessResultChunk) and isinstance(
            piece, GroundednessResultChunk
        ):
            self.total = total + piece
        else:
            self.total = piece
        for verdict in piece.claims:
            yield GroundednessEvent(kind="verdict", run_id=self.run_id, verdict=verdict)

    def close(self) -> GroundednessResult:
        """Return the final result; log unchecked claims."""
        if self.total is None:
            msg = "the checker must return a GroundednessResult, got no output"
            raise ValueError(msg)
        fields = {name: getattr(self.total, name) for name in GroundednessResult.model_fields}
        result = GroundednessResult.model_construct(**fields)
        unchecked = [verdict for verdict in result.claims if verdict.verdict == "unchecked"]
        if unchecked:
            reasons = "; ".join(sorted({verdict.reason or "" for verdict in unchecked}))
            details = (len(unchecked), len(result.claims), self.run_id, reasons)
            logger.warning("%d of %d claims of run %s are unchecked: %s", *details)
        return result

    def fail(
        self, error: Exception, source: CheckInput | None, policy: DecisionPolicy
    ) -> GroundednessResult:
        """Return the result of a failed check."""
        reason = f"the check failed ({describe_error(error)})"
        logger.warning("run %s is unchecked: %s", self.run_id, reason)
        return without_check(source or CheckInput(answer=""), reason, policy)


def without_check(source: CheckInput, reason: str, policy: DecisionPolicy) -> GroundednessResult:
    """Return the result for an answer that was not checked."""
    claims = sentences_of(source.answer) if source.answer.strip() else []
    verdicts = tuple(ClaimVerdict.unchecked(claim, reason) for claim in claims)
    given = DecisionContext.after_failure(reason, verdicts, source.answer, **source.labels)
    result = GroundednessResult(
        question=source.question,
        answer=source.answer,
        original_answer=source.answer,
        documents=source.documents,
        evidence_source=source.evidence_source if source.documents else None,
        claims=verdicts,
        trust_score=None,
        verdict="unchecked",
        is_trusted=False,
        decision=policy.judge(given),
        **source.labels,
    )
    count(result)
    return result


class WorkQueue:
    """A thread pool with an optional limit on unfinished work.

    Threads start with the first work. At process exit, queued work is still finished.
    """

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
