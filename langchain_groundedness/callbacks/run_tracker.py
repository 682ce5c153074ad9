"""Sees what the runs of any number of chains do, and says what is due after that.

Handlers are shared by all runs of all threads and loops, so all state is by run id, under locks:
one for all runs, held for a moment, and one for what is gathered about each root. They are
re-entrant because the garbage collector may close a stream that was thrown away, which ends its
run, in any thread and at any place.
"""

import asyncio
import logging
import threading
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, cast
from uuid import UUID

from langchain_core.outputs import LLMResult
from langchain_core.runnables import Runnable, RunnableConfig, run_in_executor

from langchain_groundedness._runtime.telemetry import count
from langchain_groundedness.audit import AuditLog
from langchain_groundedness.callbacks.channel import Channel, GroundednessEvent, Results
from langchain_groundedness.callbacks.partial_answer import Draft, can_draft
from langchain_groundedness.callbacks.run_trees import Kind, Root, Run, RunBook, answer_of
from langchain_groundedness.callbacks.work_queue import CHECK_TAG, Backlog, apart
from langchain_groundedness.claims.extractors import SentenceClaimExtractor
from langchain_groundedness.decision import DecisionPolicy
from langchain_groundedness.decision.conditions import Situation
from langchain_groundedness.exceptions import AuditError, GroundednessError
from langchain_groundedness.inputs.formats import CheckInput
from langchain_groundedness.pipeline.recording import (
    Pending,
    RecordedRun,
    Recorder,
    log_of,
    suggested,
    thread_of,
    unaudited,
)
from langchain_groundedness.runnable import GroundednessRunnable
from langchain_groundedness.types import (
    Claim,
    ClaimVerdict,
    GroundednessResult,
    GroundednessResultChunk,
)

__all__ = ["Checks", "Watch"]

logger = logging.getLogger("langchain_groundedness")


@dataclass(frozen=True)
class Work:
    """A root that has ended, with its answer to be checked."""

    root: Root
    output: Any
    loop: asyncio.AbstractEventLoop | None = None
    """The running loop of the caller, for what has to be awaited on it."""


@dataclass(frozen=True)
class Next:
    """What is to be done after something was seen."""

    dropped: tuple[Draft, ...] = ()
    """Texts that will not become answers."""
    events: tuple[GroundednessEvent, ...] = ()
    work: Work | None = None


_NOTHING = Next()

_PAUSE = "GraphInterrupt"  # what LangGraph's nodes raise when a person shall decide

_CHECKS = ("GroundednessRunnable", "GroundednessGuard")


class Checks:
    """Checks the answers of roots that have ended, and the drafts of those that have not."""

    def __init__(  # noqa: PLR0913  (made in one place, by keyword)
        self,
        checker: Runnable[Any, GroundednessResult],
        *,
        channel: Channel,
        results: Results,
        sentences: Backlog,
        answers: Backlog | None,
        langsmith_client: Any,
        audit_log: AuditLog | None,
    ) -> None:
        """Start with nothing to do."""
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
        self.drafts = can_draft(checker)
        """Whether sentences can be checked while they are written."""

    def draft(self, root: Root, loop: asyncio.AbstractEventLoop | None) -> Draft:
        """Begin to check a text that is being written."""
        return Draft(
            root.run_id,
            cast("GroundednessRunnable", self._checker),
            question=root.gathered.question,
            documents=root.gathered.documents,
            backlog=self._sentences,
            config=_config(root),
            publish=partial(self._channel.publish, loop=loop),
        )

    def go(self, after: Next) -> None:
        """Do what is to be done, in a thread."""
        for draft in after.dropped:
            draft.drop()
        for event in after.events:
            self._channel.publish(event)
        if after.work is None:
            return
        if self._answers is None:
            apart().run(self._check, after.work)
        elif self._answers.add(partial(self._check, after.work)) is None:
            self._hand_out(after.work, self._too_much(after.work), self._pending(after.work))

    async def ago(self, after: Next) -> None:
        """Do what is to be done, on an event loop."""
        for draft in after.dropped:
            await run_in_executor(None, draft.drop)
        for event in after.events:
            await self._channel.apublish(event)
        if after.work is None:
            return
        loop = asyncio.get_running_loop()
        if after.work.root.loop is not loop:
            # A chain that runs without a loop gives every event of an async handler a new one.
            await run_in_executor(None, self.go, Next(work=after.work))
            return
        work = Work(after.work.root, after.work.output, loop)
        if self._answers is None:
            try:
                await _task_apart(self._acheck(work))
            except asyncio.CancelledError:
                self._channel.keep(abandoned(work.root))
                raise
        elif self._answers.add(partial(self._check, work)) is None:
            result = await run_in_executor(None, self._too_much, work)
            await _task_apart(self._ahand_out(work, result, self._pending(work)))

    def _check(self, work: Work) -> None:
        pending = self._pending(work)
        report, source = Report(work.root.run_id), None
        try:
            source = self._read(work)
            draft = self._settle(work, source)
            if draft is not None and (known := draft.result(source)):
                report.take(known)
            else:
                for piece in self._checker.stream(source, _config(work.root)):
                    for event in report.add(piece):
                        self._channel.publish(event, loop=work.loop)
            result = report.close()
        except Exception as exc:  # noqa: BLE001  (the chain goes on, and the result says it)
            self._settle(work, None)
            result = report.fail(exc, source, self._policy)
        self._hand_out(work, result, pending)

    async def _acheck(self, work: Work) -> None:
        pending = self._pending(work)
        report, source = Report(work.root.run_id), None
        try:
            source = self._read(work)
            draft = await run_in_executor(None, self._settle, work, source)
            if draft is not None and (known := await run_in_executor(None, draft.result, source)):
                report.take(known)
            else:
                async for piece in self._checker.astream(source, _config(work.root)):
                    for event in report.add(piece):
                        await self._channel.apublish(event)
            result = report.close()
        except Exception as exc:  # noqa: BLE001  (the chain goes on, and the result says it)
            await run_in_executor(None, self._settle, work, None)
            result = await run_in_executor(None, report.fail, exc, source, self._policy)
        await self._ahand_out(work, result, pending)

    def _settle(self, work: Work, source: CheckInput | None) -> Draft | None:
        """Give the text that became the answer, if it was read, and drop all others."""
        drafts = list(work.root.drafts.values())
        answer = next((d for d in reversed(drafts) if source and d.is_of(source)), None)
        for draft in drafts:
            if draft is not answer:
                draft.drop()
        return answer

    def _read(self, work: Work) -> CheckInput:
        return work.root.gathered.read(work.output, context_extractor=self._extractor)

    def _too_much(self, work: Work) -> GroundednessResult:
        reason = "too many answers wait for their check (max_pending)"
        logger.warning("run %s is unchecked: %s", work.root.run_id, reason)
        try:
            return without_check(self._read(work), reason, self._policy)
        except Exception:  # noqa: BLE001  (an answer that cannot be read is not checked either)
            return without_check(CheckInput(answer=""), reason, self._policy)

    def _pending(self, work: Work) -> Pending:
        root = work.root
        outermost = root.run_id if root.above is None else None
        run = RecordedRun(
            run_id=root.run_id,
            parent_run_id=root.above,
            root_run_id=outermost,
            thread_id=root.thread_id,
        )
        return Pending(self._recorder, run)

    def _hand_out(self, work: Work, result: GroundednessResult, pending: Pending) -> None:
        run_id = work.root.run_id
        try:
            pending.end(result, **_observed(result))
        except AuditError as exc:  # the chain goes on
            logger.warning("no audit record of run %s: %s", run_id, exc)
        self._results.add(run_id, result)
        if self._langsmith is not None:
            self._send_feedback(run_id, result)
        self._channel.publish(_ended(run_id, result), loop=work.loop)

    async def _ahand_out(self, work: Work, result: GroundednessResult, pending: Pending) -> None:
        run_id = work.root.run_id
        try:
            await pending.aend(result, **_observed(result))
        except AuditError as exc:  # the chain goes on
            logger.warning("no audit record of run %s: %s", run_id, exc)
        self._results.add(run_id, result)
        if self._langsmith is not None:
            await run_in_executor(None, self._send_feedback, run_id, result)
        await self._channel.apublish(_ended(run_id, result))

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


class Watch:
    """The runs that are watched."""

    def __init__(self, checks: Checks, *, max_runs: int) -> None:
        """Start with no run."""
        self._checks = checks
        self._max_runs = max_runs
        self._book = RunBook()
        self._lock = threading.RLock()

    @property
    def size(self) -> int:
        """How many runs are known whose roots have not ended."""
        return self._book.size

    def start(
        self,
        kind: Kind,
        run_id: UUID,
        *,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        inputs: object = None,
        **run_info: Any,
    ) -> Next:
        """See a run begin."""
        if CHECK_TAG in (tags or ()):
            return _NOTHING
        with self._lock:
            checks = run_info.get("name") in _CHECKS
            loop = _running_loop()
            run = self._book.start(run_id, parent_run_id, kind, checks=checks, loop=loop)
            late = list(self._book.beyond(self._max_runs))
        if run is not None:
            with run.root.lock:
                run.root.gathered.take_inputs(inputs)
                metadata = run_info.get("metadata") or {}
                run.root.gathered.take_labels(metadata)
                run.root.thread_id = run.root.thread_id or thread_of({"metadata": metadata})
        for root in late:
            logger.warning(
                "run %s is no longer watched: more than max_runs=%d have not ended",
                root.run_id,
                self._max_runs,
            )
        return _given_up(*late)

    def read(
        self,
        run_id: UUID,
        text: str,
        *,
        source: Literal["token", "event"],
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        """See a model write; what may be the answer is checked while it is written."""
        run = self._book.get(run_id) if text and self._checks.drafts else None
        if run is None or not run.may_answer or (run.heard_by or source) != source:
            return
        run.heard_by = source
        draft = run.root.drafts.get(run_id)
        if draft is None:
            with run.root.lock:
                if not run.root.gathered.documents:
                    return
                draft = self._checks.draft(run.root, loop if loop is run.root.loop else None)
            run.root.drafts[run_id] = draft
        draft.feed(text)

    def end(
        self,
        run_id: UUID,
        output: object,
        *,
        inputs: object = None,
        name: str | None = None,
        **_: Any,
    ) -> Next:
        """See a run end; if it is a root, its answer is to be checked."""
        run = self._book.get(run_id)
        if run is None:
            return _NOTHING
        with run.root.lock:
            _gather(run, output, inputs, name)
        self._forget_root(run)
        if run.kind == "model" and isinstance(output, LLMResult):
            output = answer_of(output)
            draft = run.root.drafts.get(run_id)
            if draft is not None and output is None and not run.is_root:
                return Next(dropped=(run.root.drafts.pop(run_id),))
            if draft is not None:
                draft.end()
        if not run.is_root:
            return _NOTHING
        if run.kind in ("retriever", "tool") or output is None or run.root.paused:
            return _given_up(run.root)
        return Next(work=Work(run.root, output))

    def fail(self, run_id: UUID, error: BaseException) -> Next:
        """See a run fail, or be cancelled, or left by who reads its stream."""
        run = self._book.get(run_id)
        if run is None:
            return _NOTHING
        with run.root.lock:
            if run.kind == "tool" and run.is_outermost:
                run.root.gathered.drop_tool(run_id)
            if type(error).__name__ == _PAUSE:
                run.root.paused = True
        self._forget_root(run)
        if run.is_root:
            return _given_up(run.root)
        draft = run.root.drafts.pop(run_id, None)
        return _NOTHING if draft is None else Next(dropped=(draft,))

    def _forget_root(self, run: Run) -> None:
        if run.is_root:
            with self._lock:
                self._book.forget(run.run_id)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _gather(run: Run, output: Any, inputs: object, name: str | None) -> None:
    gathered = run.root.gathered
    if run.kind == "chain" and inputs is not None:
        gathered.take_inputs(inputs)
    elif run.kind == "retriever" and run.is_outermost:
        gathered.take_retrieved(list(output or ()), tool=run.tool)
    elif run.kind == "tool" and run.is_outermost:
        gathered.take_tool_output(output, tool=run.run_id, name=name)


def _given_up(*roots: Root) -> Next:
    dropped = tuple(draft for root in roots for draft in root.drafts.values())
    return Next(dropped, tuple(map(abandoned, roots)))


def _observed(result: GroundednessResult) -> dict[str, Any]:
    """Say what became of an answer that was let out as it came, whatever the check made of it."""
    return {"shown_answer": result.original_answer, "suggested_answer": suggested(result)}


def _config(root: Root) -> RunnableConfig:
    return {
        "callbacks": [],
        "run_name": "groundedness_check",
        "tags": [CHECK_TAG],
        "metadata": {"checked_run_id": str(root.run_id)},
    }


async def _task_apart(work: Coroutine[Any, Any, None]) -> None:
    await asyncio.create_task(work, context=apart())


def _ended(run_id: UUID, result: GroundednessResult) -> GroundednessEvent:
    return GroundednessEvent(kind="result", run_id=run_id, result=result)


def abandoned(root: Root) -> GroundednessEvent:
    """Say that a root ended without an answer."""
    return GroundednessEvent(kind="abandoned", run_id=root.run_id)


class Report:
    """What is said about the answer of one run, piece by piece."""

    def __init__(self, run_id: UUID) -> None:
        """Start with nothing said."""
        self.run_id = run_id
        self._total: GroundednessResult | None = None

    def add(self, piece: object) -> Iterator[GroundednessEvent]:
        """Take what the checker yielded."""
        if not isinstance(piece, GroundednessResult):
            msg = f"the checker gave a {type(piece).__name__}, and no GroundednessResult"
            raise TypeError(msg)
        total = self._total
        joins = isinstance(total, GroundednessResultChunk) and isinstance(
            piece, GroundednessResultChunk
        )
        self._total = total + piece if joins else piece  # type: ignore[operator]  # both chunks
        for verdict in piece.claims:
            yield GroundednessEvent(kind="verdict", run_id=self.run_id, verdict=verdict)

    def take(self, result: GroundednessResult) -> None:
        """Take a result whose verdicts have been told."""
        self._total = result

    def close(self) -> GroundednessResult:
        """Sum up."""
        if self._total is None:
            msg = "the checker gave nothing"
            raise ValueError(msg)
        fields = {name: getattr(self._total, name) for name in GroundednessResult.model_fields}
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
    """Give the result of a check that did not take place."""
    claims = SentenceClaimExtractor().invoke(source.answer) if source.answer.strip() else []
    if not claims and source.answer.strip():
        claims = [Claim(id="c1", text=source.answer, start=0, end=len(source.answer))]
    verdicts = tuple(ClaimVerdict.unchecked(claim, reason) for claim in claims)
    given = Situation.after_failure(reason, verdicts, source.answer, **source.labels)
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
