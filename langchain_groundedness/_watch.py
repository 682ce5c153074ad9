"""What both callback handlers share: they tell it what they see, it checks and hands out.

Handlers are shared by all runs of all threads and loops, so all state is by run id, under a lock.
Checks run apart from the chain that is watched: no callbacks, tags or events of it reach them, and
they carry a tag, so that no handler ever judges a judge.
"""

import asyncio
import logging
import threading
from collections.abc import Coroutine
from contextvars import Context, ContextVar, copy_context
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

from langchain_core.outputs import LLMResult
from langchain_core.runnables import Runnable, RunnableConfig, run_in_executor
from langchain_core.runnables.config import var_child_runnable_config

from langchain_groundedness._backlog import Backlog
from langchain_groundedness._channel import Channel, GroundednessEvent, Results
from langchain_groundedness._gathered import answer_of
from langchain_groundedness._report import Report, without_check
from langchain_groundedness._runs import Kind, Root, RunBook
from langchain_groundedness.inputs import CheckInput
from langchain_groundedness.policy import DecisionPolicy
from langchain_groundedness.runnable import GroundednessRunnable
from langchain_groundedness.types import GroundednessResult

__all__ = ["CHECK_TAG", "Next", "Watch", "Work", "collecting"]

logger = logging.getLogger("langchain_groundedness")

CHECK_TAG = "groundedness:check"
"""Tag of every run of a check that a handler has started."""

collecting: ContextVar[Any] = ContextVar("groundedness_collecting", default=None)
"""The handler of the `collect_groundedness` block that the code runs in."""


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

    events: tuple[GroundednessEvent, ...] = ()
    work: Work | None = None


_NOTHING = Next()


class Watch:
    """The runs that are watched, and the checks of their answers."""

    def __init__(  # noqa: PLR0913  (made in one place, by keyword)
        self,
        checker: Runnable[Any, GroundednessResult],
        *,
        channel: Channel,
        results: Results,
        max_runs: int,
        backlog: Backlog | None,
        langsmith_client: Any,
    ) -> None:
        """Start with no run.

        Args:
            checker: Checks a `CheckInput`.
            channel: Hands out events.
            results: Keeps results.
            max_runs: Most roots that are watched at once; the oldest make room.
            backlog: Does the checks; by default they are done before the chain returns.
            langsmith_client: Has `create_feedback`, if there is one.
        """
        self._extractor = None
        self._policy = DecisionPolicy()
        if isinstance(checker, GroundednessRunnable):
            self._policy, self._extractor = checker.policy, checker.context_extractor
            if self._extractor is not None:  # what it reads is the chain's output, read here
                checker = checker.model_copy(update={"context_extractor": None})
        self._checker = checker
        self._channel = channel
        self._results = results
        self._max_runs = max_runs
        self._backlog = backlog
        self._langsmith = langsmith_client
        self._book = RunBook()
        self._lock = threading.Lock()

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
        **_: Any,
    ) -> Next:
        """See a run begin."""
        if CHECK_TAG in (tags or ()):
            return _NOTHING
        with self._lock:
            run = self._book.start(run_id, parent_run_id, kind, loop=_running_loop())
            if run is not None and inputs is not None:
                run.root.gathered.take_inputs(inputs)
            late = list(self._book.beyond(self._max_runs))
        for root in late:
            logger.warning(
                "run %s is no longer watched: more than max_runs=%d have not ended",
                root.run_id,
                self._max_runs,
            )
        return Next(tuple(map(_abandoned, late)))

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
        with self._lock:
            run = self._book.get(run_id)
            if run is None:
                return _NOTHING
            gathered = run.root.gathered
            if run.kind == "chain" and inputs is not None:
                gathered.take_inputs(inputs)
            elif run.kind == "retriever" and run.is_outermost:
                gathered.take_retrieved(_listed(output), tool=run.tool)
            elif run.kind == "tool" and run.is_outermost:
                gathered.take_tool_output(output, tool=run_id, name=name)
            if not run.is_root:
                return _NOTHING
            self._book.forget(run_id)
        if run.kind == "model" and isinstance(output, LLMResult):
            output = answer_of(output)
        if run.kind in ("retriever", "tool") or output is None:
            return Next((_abandoned(run.root),))
        return Next(work=Work(run.root, output))

    def fail(self, run_id: UUID) -> Next:
        """See a run fail, or be cancelled, or left by who reads its stream."""
        with self._lock:
            run = self._book.get(run_id)
            if run is None:
                return _NOTHING
            if run.kind == "tool" and run.is_outermost:
                run.root.gathered.drop_tool(run_id)
            root = self._book.forget(run_id) if run.is_root else None
        return _NOTHING if root is None else Next((_abandoned(root),))

    def go(self, after: Next) -> None:
        """Do what is to be done, in a thread."""
        for event in after.events:
            self._channel.publish(event)
        if after.work is None:
            return
        if self._backlog is None:
            _apart().run(self._check, after.work)
        elif self._backlog.add(partial(_apart().run, self._check, after.work)) is None:
            self._hand_out(after.work, self._too_much(after.work))

    async def ago(self, after: Next) -> None:
        """Do what is to be done, on an event loop."""
        for event in after.events:
            await self._channel.apublish(event)
        if after.work is None:
            return
        loop = asyncio.get_running_loop()
        if after.work.root.loop is not loop:
            # A chain that runs without a loop gives every event of an async handler a new one.
            await run_in_executor(None, self.go, after)
            return
        work = Work(after.work.root, after.work.output, loop)
        if self._backlog is None:
            await _task_apart(self._acheck(work))
        elif self._backlog.add(partial(_apart().run, self._check, work)) is None:
            await _task_apart(self._ahand_out(work, self._too_much(work)))

    def _check(self, work: Work) -> None:
        report, source = Report(work.root.run_id), None
        try:
            source = self._read(work)
            for piece in self._checker.stream(source, _config(work)):
                for event in report.add(piece):
                    self._channel.publish(event, loop=work.loop)
            result = report.close()
        except Exception as exc:  # noqa: BLE001  (the chain goes on, and the result says it)
            result = report.fail(exc, source, self._policy)
        self._hand_out(work, result)

    async def _acheck(self, work: Work) -> None:
        report, source = Report(work.root.run_id), None
        try:
            source = self._read(work)
            async for piece in self._checker.astream(source, _config(work)):
                for event in report.add(piece):
                    await self._channel.apublish(event)
            result = report.close()
        except Exception as exc:  # noqa: BLE001  (the chain goes on, and the result says it)
            result = report.fail(exc, source, self._policy)
        await self._ahand_out(work, result)

    def _read(self, work: Work) -> CheckInput:
        return work.root.gathered.read(work.output, context_extractor=self._extractor)

    def _too_much(self, work: Work) -> GroundednessResult:
        reason = "too many answers wait for their check (max_pending)"
        logger.warning("run %s is unchecked: %s", work.root.run_id, reason)
        try:
            return without_check(self._read(work), reason, self._policy)
        except Exception:  # noqa: BLE001  (an answer that cannot be read is not checked either)
            return without_check(CheckInput(answer=""), reason, self._policy)

    def _hand_out(self, work: Work, result: GroundednessResult) -> None:
        run_id = work.root.run_id
        self._results.add(run_id, result)
        if self._langsmith is not None:
            self._send_feedback(run_id, result)
        self._channel.publish(_ended(run_id, result), loop=work.loop)

    async def _ahand_out(self, work: Work, result: GroundednessResult) -> None:
        run_id = work.root.run_id
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


def _config(work: Work) -> RunnableConfig:
    return {
        "callbacks": [],
        "run_name": "groundedness_check",
        "tags": [CHECK_TAG],
        "metadata": {"checked_run_id": str(work.root.run_id)},
    }


def _apart() -> Context:
    """Copy the context, without what ties new runs to the chain that is watched."""
    context = copy_context()
    context.run(var_child_runnable_config.set, None)
    context.run(collecting.set, None)
    return context


async def _task_apart(work: Coroutine[Any, Any, None]) -> None:
    await asyncio.create_task(work, context=_apart())


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _listed(documents: object) -> list[Any]:
    return list(documents) if isinstance(documents, list | tuple) else []


def _abandoned(root: Root) -> GroundednessEvent:
    return GroundednessEvent(kind="abandoned", run_id=root.run_id)


def _ended(run_id: UUID, result: GroundednessResult) -> GroundednessEvent:
    return GroundednessEvent(kind="result", run_id=run_id, result=result)
