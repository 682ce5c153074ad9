"""Checks the answers of watched runs, and hands out what is found.

Its own module because it is what both handlers do, without the names of LangChain's hooks.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextvars import Context, ContextVar, copy_context
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
from langchain_groundedness.decision import DecisionPolicy
from langchain_groundedness.decision.conditions import DecisionContext
from langchain_groundedness.exceptions import AuditError, GroundednessError
from langchain_groundedness.inputs.formats import CheckInput
from langchain_groundedness.pipeline.check import sentences_of
from langchain_groundedness.pipeline.recording import (
    Pending,
    Recorder,
    log_of,
    suggested,
    unaudited,
)
from langchain_groundedness.runnable import GroundednessRunnable
from langchain_groundedness.types import (
    ClaimVerdict,
    GroundednessResult,
    GroundednessResultChunk,
)

__all__ = ["AnswerChecks", "WorkQueue", "collecting"]

logger = logging.getLogger("langchain_groundedness")

collecting: ContextVar[Any] = ContextVar("groundedness_collecting", default=None)
"""The handler of the `collect_groundedness` block that the code runs in."""


class AnswerChecks:
    """Checks the answers of roots that have ended, and the texts of those that have not."""

    def __init__(  # noqa: PLR0913  (made in one place, by keyword)
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
        """Start with nothing to do; without a queue for answers, runs wait for their check."""
        log = log_of(checker) if audit_log is None else audit_log
        self._recorder = Recorder(log, "handler", checker)
        checker = unaudited(checker)
        self._extractor = None
        self._policy = DecisionPolicy()
        if isinstance(checker, GroundednessRunnable):
            self._policy, self._extractor = checker.policy, checker.context_extractor
            if self._extractor is not None:  # what it reads is the chain's output, read here
                checker = checker.model_copy(update={"context_extractor": None})
        self._checker = checker
        self._channel = channel
        self._results = results
        self._sentences = sentences
        self._answers = answers
        self._langsmith = langsmith_client
        self.checks_sentences = checks_sentences(checker)
        """Whether sentences can be checked while they are written."""

    def begin(self, root: Root, loop: asyncio.AbstractEventLoop | None) -> PartialAnswer:
        """Begin to check a text that is being written."""
        return PartialAnswer(
            root.run_id,
            cast("GroundednessRunnable", self._checker),
            question=root.inputs.question,
            documents=root.inputs.documents,
            submit=self._sentences.add,
            config=_config(root),
            publish=partial(self._channel.publish, loop=loop),
        )

    def follow_up(self, due: FollowUp) -> None:
        """Do what is due, in a thread."""
        for text in due.dropped:
            text.drop()
        for event in due.events:
            self._channel.publish(event)
        if due.ended is None:
            return
        if self._answers is None:
            _detached_context().run(self._check, due.ended)
        elif not self._answers.add(partial(self._check, due.ended)):
            self._hand_out(due.ended, self._too_many(due.ended), self._pending(due.ended))

    async def afollow_up(self, due: FollowUp) -> None:
        """Do what is due, on an event loop."""
        for text in due.dropped:
            await run_in_executor(None, text.drop)
        for event in due.events:
            await self._channel.apublish(event)
        if due.ended is None:
            return
        loop = asyncio.get_running_loop()
        if due.ended.root.loop is not loop:
            # A chain that runs without a loop gives every event of an async handler a new one.
            await run_in_executor(None, self.follow_up, FollowUp(ended=due.ended))
            return
        ended = EndedRun(due.ended.root, due.ended.output, loop)
        if self._answers is None:
            try:
                await _detached(self._acheck(ended))
            except asyncio.CancelledError:
                self._channel.keep(abandoned(ended.root))
                raise
        elif not self._answers.add(partial(self._check, ended)):
            result = await run_in_executor(None, self._too_many, ended)
            await _detached(self._ahand_out(ended, result, self._pending(ended)))

    def _check(self, ended: EndedRun) -> None:
        pending, report, source = self._pending(ended), _Report(ended.root.run_id), None
        try:
            source = self._read(ended)
            text = self._written(ended, source)
            if text is not None and (known := text.result(source)):
                report.total = known
            else:
                for piece in self._checker.stream(source, _config(ended.root)):
                    for event in report.add(piece):
                        self._channel.publish(event, loop=ended.loop)
            result = report.close()
        except Exception as exc:  # noqa: BLE001  (the chain goes on, and the result says it)
            self._written(ended, None)
            result = report.fail(exc, source, self._policy)
        self._hand_out(ended, result, pending)

    async def _acheck(self, ended: EndedRun) -> None:
        pending, report, source = self._pending(ended), _Report(ended.root.run_id), None
        try:
            source = self._read(ended)
            text = await run_in_executor(None, self._written, ended, source)
            if text is not None and (known := await run_in_executor(None, text.result, source)):
                report.total = known
            else:
                async for piece in self._checker.astream(source, _config(ended.root)):
                    for event in report.add(piece):
                        await self._channel.apublish(event)
            result = report.close()
        except Exception as exc:  # noqa: BLE001  (the chain goes on, and the result says it)
            await run_in_executor(None, self._written, ended, None)
            result = await run_in_executor(None, report.fail, exc, source, self._policy)
        await self._ahand_out(ended, result, pending)

    def _written(self, ended: EndedRun, source: CheckInput | None) -> PartialAnswer | None:
        """Give the text that became the answer, if it was read, and drop all others."""
        texts = list(ended.root.partial_answers.values())
        answer = next((text for text in reversed(texts) if source and text.is_of(source)), None)
        for text in texts:
            if text is not answer:
                text.drop()
        return answer

    def _read(self, ended: EndedRun) -> CheckInput:
        return ended.root.inputs.read(ended.output, context_extractor=self._extractor)

    def _too_many(self, ended: EndedRun) -> GroundednessResult:
        reason = "too many answers wait for their check (max_pending)"
        logger.warning("run %s is unchecked: %s", ended.root.run_id, reason)
        try:
            return without_check(self._read(ended), reason, self._policy)
        except Exception:  # noqa: BLE001  (an answer that cannot be read is not checked either)
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

    def _hand_out(self, ended: EndedRun, result: GroundednessResult, pending: Pending) -> None:
        try:
            pending.end(result, **_shown(result))
        except AuditError as exc:  # the chain goes on
            _warn_of_no_record(ended, exc)
        event = self._keep(ended, result)
        if self._langsmith is not None:
            self._send_feedback(event.run_id, result)
        self._channel.publish(event, loop=ended.loop)

    async def _ahand_out(
        self, ended: EndedRun, result: GroundednessResult, pending: Pending
    ) -> None:
        try:
            await pending.aend(result, **_shown(result))
        except AuditError as exc:  # the chain goes on
            _warn_of_no_record(ended, exc)
        event = self._keep(ended, result)
        if self._langsmith is not None:
            await run_in_executor(None, self._send_feedback, event.run_id, result)
        await self._channel.apublish(event)

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
        except Exception as exc:  # noqa: BLE001  (LangSmith being away never breaks the chain)
            logger.warning("no feedback for run %s: %s", run_id, type(exc).__name__)


def _warn_of_no_record(ended: EndedRun, error: AuditError) -> None:
    logger.warning("no audit record of run %s: %s", ended.root.run_id, error)


def _shown(result: GroundednessResult) -> dict[str, Any]:
    """Say that the answer was shown as it came, whatever its verdicts."""
    return {"shown_answer": result.original_answer, "suggested_answer": suggested(result)}


def _config(root: Root) -> RunnableConfig:
    return {
        "callbacks": [],
        "run_name": "groundedness_check",
        "tags": [CHECK_TAG],
        "metadata": {"checked_run_id": str(root.run_id)},
    }


class _Report:
    """The result of one run, piece by piece."""

    def __init__(self, run_id: UUID) -> None:
        self.run_id = run_id
        self.total: GroundednessResult | None = None

    def add(self, piece: object) -> Iterator[GroundednessEvent]:
        """Take what the checker yielded."""
        if not isinstance(piece, GroundednessResult):
            msg = f"the checker must return a GroundednessResult, got a {type(piece).__name__}"
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
        """Sum up."""
        if self.total is None:
            msg = "the checker returned nothing"
            raise ValueError(msg)
        fields = {name: getattr(self.total, name) for name in GroundednessResult.model_fields}
        result = GroundednessResult.model_construct(**fields)
        unchecked = [verdict for verdict in result.claims if verdict.verdict == "unchecked"]
        if unchecked:
            reasons = "; ".join(sorted({verdict.reason or "" for verdict in unchecked}))
            told = (len(unchecked), len(result.claims), self.run_id, reasons)
            logger.warning("%d of %d claims of run %s are unchecked: %s", *told)
        return result

    def fail(
        self, error: Exception, source: CheckInput | None, policy: DecisionPolicy
    ) -> GroundednessResult:
        """Say that the check has failed."""
        why = str(error) if isinstance(error, GroundednessError) else ""
        reason = f"the check failed ({type(error).__name__}{why and ': '}{why})"
        logger.warning("run %s is unchecked: %s", self.run_id, reason)
        return without_check(source or CheckInput(answer=""), reason, policy)


def without_check(source: CheckInput, reason: str, policy: DecisionPolicy) -> GroundednessResult:
    """Give the result for an answer that was not checked."""
    claims = sentences_of(source.answer) if source.answer.strip() else []
    verdicts = tuple(ClaimVerdict.unchecked(claim, reason) for claim in claims)
    given = DecisionContext.after_failure(reason, verdicts, source.answer, **source.labels)
    result = GroundednessResult(
        question=source.question,
        answer=source.answer,
        original_answer=source.answer,
        documents=source.documents,
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
    """A few threads and what waits for them.

    The threads start with the first work, and end with the queue itself; at the end of the
    process what is left is still done.
    """

    def __init__(self, *, workers: int, most: int | None = None) -> None:
        """Start with no work and no thread."""
        self._workers = workers
        self._most = most
        self._unfinished: set[Future[Any]] = set()
        self._lock = threading.RLock()
        self._pool: ThreadPoolExecutor | None = None

    def add(self, work: Callable[[], Any]) -> bool:
        """Add work, detached from the caller's chain; tell whether there was room for it."""
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
        """Wait until all that was added is done; tell whether it is."""
        with self._lock:
            unfinished = list(self._unfinished)
        return not wait(unfinished, timeout).not_done

    def close(self) -> None:
        """Let the threads end when what was added is done."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=False)


async def _detached(work: Coroutine[Any, Any, None]) -> None:
    await asyncio.create_task(work, context=_detached_context())


def _detached_context() -> Context:
    """Copy the context, without what ties new runs to the chain that is watched."""
    context = copy_context()
    context.run(var_child_runnable_config.set, None)
    context.run(collecting.set, None)
    return context
