"""Does what is due after a callback handler has seen something: checks, and hands out.

Checks run apart from the chain that is watched: no callbacks, tags or events of it reach them, and
they carry a tag, so that no handler ever judges a judge.
"""

import asyncio
import logging
from collections.abc import Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any, cast
from uuid import UUID

from langchain_core.runnables import Runnable, RunnableConfig, run_in_executor

from langchain_groundedness._recording import Pending, Recorder, Run, log_of, suggested, unaudited
from langchain_groundedness.audit import AuditLog
from langchain_groundedness.callbacks._backlog import Backlog
from langchain_groundedness.callbacks._channel import Channel, GroundednessEvent, Results
from langchain_groundedness.callbacks._context import CHECK_TAG, apart
from langchain_groundedness.callbacks._draft import Draft, can_draft
from langchain_groundedness.callbacks._report import Report, without_check
from langchain_groundedness.callbacks._run_trees import Root
from langchain_groundedness.exceptions import AuditError
from langchain_groundedness.inputs import CheckInput
from langchain_groundedness.policy import DecisionPolicy
from langchain_groundedness.runnable import GroundednessRunnable
from langchain_groundedness.types import GroundednessResult

__all__ = ["Checks", "Next", "Work", "abandoned"]

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
        """Start with nothing to do.

        Args:
            checker: Checks a `CheckInput`.
            channel: Hands out events.
            results: Keeps results.
            sentences: Checks sentences while they are written.
            answers: Checks answers; by default that is done before the chain returns.
            langsmith_client: Has `create_feedback`, if there is one.
            audit_log: Gets a record of each decision, if there is one.
        """
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
        """Begin to check a text that is being written.

        Args:
            root: What it may be the answer of.
            loop: A running loop for what listeners return to be awaited on.

        Returns:
            The draft, to be fed.
        """
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
        run = Run(
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
