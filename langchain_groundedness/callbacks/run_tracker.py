"""Tracks the runs of any number of chains, and returns the follow-up work of each callback.

Its own module because it holds what all runs share, with its locks, and checks nothing itself.
Which of the runs that may write the answer did so, `handlers` decides.

Handlers are shared by all threads and event loops, so state is keyed by run id and protected by
locks: one for all runs, held briefly, and one for the inputs of each root. The locks are re-entrant
because garbage collection of an abandoned stream can end its run in any thread at any point.

A run is a root if its parent was never seen, even if it has one: a handler may be bound to an
inner runnable, or a whole chain may run below a traced parent.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import UUID

from langchain_core.outputs import LLMResult
from langchain_core.runnables.config import var_child_runnable_config

from langchain_groundedness.callbacks.channel import GroundednessEvent
from langchain_groundedness.callbacks.partial_answer import PartialAnswer
from langchain_groundedness.callbacks.run_inputs import Path, RunInputs, answer_of
from langchain_groundedness.inputs.formats import CheckInput, InputReader
from langchain_groundedness.pipeline.recording import thread_of

__all__ = ["CHECK_TAG", "EndedRun", "FollowUp", "Root", "RunTracker", "abandoned", "running_loop"]

logger = logging.getLogger("langchain_groundedness")

CHECK_TAG = "groundedness:check"
"""Tag of all runs of a check that a handler started."""

Kind = Literal["chain", "model", "retriever", "tool"]

_MAX_ENDED = 4096

_CHECKS = ("GroundednessRunnable", "GroundednessGuard")


@dataclass(eq=False)
class Root:
    """A tree of runs; for a chain or agent, one question and its answer."""

    run_id: UUID
    above: UUID | None = None
    """Its parent run, which the handler does not see."""
    thread_id: str | None = None
    """LangGraph's thread id, if any."""
    lock: Any = field(default_factory=threading.RLock)
    """Held while `inputs` are read or changed."""
    inputs: RunInputs = field(default_factory=RunInputs)
    loop: Any = None
    """The event loop on which it started, if any."""
    partial_answers: dict[UUID, PartialAnswer] = field(default_factory=dict)
    """Partial answers by the run of the model that writes them."""
    paused: bool = False
    """Whether it was interrupted, and will resume as another root."""
    runs: set[UUID] = field(default_factory=set)
    writing: set[UUID] = field(default_factory=set)
    """Runs of models that have not ended and may write the answer."""


@dataclass(eq=False)
class Run:
    """One run and its position in the tree."""

    run_id: UUID
    kind: Kind
    root: Root
    path: Path
    retriever: UUID | None
    """The outermost retriever at or above it."""
    tool: UUID | None
    """The outermost tool at or above it."""
    checks: bool = False
    """Whether it is a check or below one; models there do not write the answer."""
    reported_by: Literal["token", "event"] | None = None
    """For a model: which callback reports its text."""

    @property
    def is_root(self) -> bool:
        """Whether it is the root of its tree."""
        return self.run_id == self.root.run_id

    @property
    def is_helper_run(self) -> bool:
        """Whether it is inside a retriever, a tool or a check, and so does not write the answer."""
        return self.checks or self.retriever is not None or self.tool is not None

    @property
    def may_answer(self) -> bool:
        """Whether it is a model that may write the answer."""
        return self.kind == "model" and not self.is_helper_run


@dataclass(frozen=True)
class EndedRun:
    """An ended root whose answer must be checked."""

    root: Root
    output: Any
    loop: asyncio.AbstractEventLoop | None = None
    """The caller's running loop, for awaitables."""
    is_cut: bool = False
    """Whether the stream was closed while a model was writing."""


@dataclass(frozen=True)
class FollowUp:
    """Work to do after a callback."""

    dropped: tuple[PartialAnswer, ...] = ()
    """Texts that will not become answers."""
    events: tuple[GroundednessEvent, ...] = ()
    ended: EndedRun | None = None


_NO_FOLLOW_UP = FollowUp()

_PAUSE = "GraphInterrupt"  # raised by LangGraph nodes to wait for a human decision

# LangGraph's control flow, such as a handoff to another agent, and streams that are read in part.
_NO_FAILURES = {"GraphBubbleUp", "GeneratorExit"}


class RunTracker:
    """The runs that a handler tracks."""

    def __init__(
        self,
        *,
        max_runs: int,
        begin: Callable[[Root, CheckInput, asyncio.AbstractEventLoop | None], PartialAnswer] | None,
        reader: InputReader,
    ) -> None:
        """Start without runs; `begin` starts checking a partial answer, if supported."""
        self._begin = begin
        self._reader = reader
        self._max_runs = max_runs
        self._runs: dict[UUID, Run] = {}
        self._roots: dict[UUID, Root] = {}
        # A late callback must not turn an ended run into a new root.
        self._ended: dict[UUID, None] = {}
        self._lock = threading.RLock()

    @property
    def open_runs(self) -> int:
        """Number of tracked runs whose root has not ended."""
        return len(self._runs)

    def start(
        self,
        kind: Kind,
        run_id: UUID,
        given: object,
        *,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        **run_info: Any,
    ) -> FollowUp:
        """Register the start of a run; `given` is the input of a chain or model."""
        if CHECK_TAG in (tags or ()):
            return _NO_FOLLOW_UP
        with self._lock:
            reads = kind in ("chain", "model")
            above = parent_run_id or (self._enclosing(given) if reads else None)
            run = self._add(run_id, above, kind, checks=run_info.get("name") in _CHECKS)
            late = []
            while len(self._roots) > self._max_runs:
                late.append(next(iter(self._roots.values())))
                self._forget(late[-1])
        if run is not None:
            with run.root.lock:
                _read_start(run, given, is_prompt=run_info.get("run_type") == "prompt")
                metadata = run_info.get("metadata") or {}
                run.root.inputs.take_labels(metadata)
                run.root.thread_id = run.root.thread_id or thread_of({"metadata": metadata})
        for root in late:
            logger.warning(
                "run %s is no longer tracked: more than max_runs=%d root runs are unfinished",
                root.run_id,
                self._max_runs,
            )
        return _abandon(*late)

    def read(
        self,
        run_id: UUID,
        text: str,
        *,
        source: Literal["token", "event"],
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        """Read text of a model; if it may be the answer, check it while it is written."""
        run = self._runs.get(run_id) if text else None
        if self._begin is None or run is None or not run.may_answer:
            return
        run.reported_by = run.reported_by or source
        if run.reported_by != source:
            return
        written = run.root.partial_answers.get(run_id)
        if written is None:
            with run.root.lock:
                shown = run.root.inputs.shown_to(run_id)
                if not shown.documents:
                    return
                written = self._begin(run.root, shown, loop if loop is run.root.loop else None)
            run.root.partial_answers[run_id] = written
        written.feed(text)

    def end(
        self,
        run_id: UUID,
        output: object,
        *,
        inputs: object = None,
        name: str | None = None,
        **_: Any,
    ) -> FollowUp:
        """Register the end of a run; the answer of a root must then be checked."""
        run = self._runs.get(run_id)
        if run is None:
            return _NO_FOLLOW_UP
        if isinstance(output, LLMResult):
            output = answer_of(output)
        with run.root.lock:
            _read_output(run, output, inputs, name)
        self._end(run)
        written = run.root.partial_answers.get(run_id)
        if written is not None and output is None and not run.is_root:
            return FollowUp(dropped=(run.root.partial_answers.pop(run_id),))
        if written is not None:
            written.end()
        if not run.is_root:
            return _NO_FOLLOW_UP
        if run.kind in ("retriever", "tool") or output is None or run.root.paused:
            return _abandon(run.root)
        return FollowUp(ended=EndedRun(run.root, output, is_cut=bool(run.root.writing)))

    def fail(self, run_id: UUID, error: BaseException) -> FollowUp:
        """Register the failure of a run, which includes cancellation and an abandoned stream."""
        run = self._runs.get(run_id)
        if run is None:
            return _NO_FOLLOW_UP
        with run.root.lock:
            if _NO_FAILURES.isdisjoint(kind.__name__ for kind in type(error).__mro__):
                run.root.inputs.drop(run_id)
            if type(error).__name__ == _PAUSE:
                run.root.paused = True
        self._end(run)
        if run.is_root:
            return _abandon(run.root)
        written = run.root.partial_answers.pop(run_id, None)
        return _NO_FOLLOW_UP if written is None else FollowUp(dropped=(written,))

    def _add(
        self, run_id: UUID, parent_run_id: UUID | None, kind: Kind, *, checks: bool
    ) -> Run | None:
        if run_id in self._runs:
            return self._runs[run_id]
        above = None if parent_run_id is None else self._runs.get(parent_run_id)
        if run_id in self._ended or (above is None and parent_run_id in self._ended):
            self._remember([run_id])
            return None
        root = (
            above.root
            if above
            else Root(run_id, parent_run_id, inputs=RunInputs(self._reader), loop=running_loop())
        )
        run = Run(
            run_id,
            kind,
            root,
            path=(*(above.path if above else ()), run_id),
            retriever=(above and above.retriever) or (run_id if kind == "retriever" else None),
            tool=(above and above.tool) or (run_id if kind == "tool" else None),
            checks=checks or (above is not None and above.checks),
        )
        self._runs[run_id] = run
        self._roots.setdefault(root.run_id, root)
        root.runs.add(run_id)
        if run.may_answer:
            root.writing.add(run_id)
        return run

    def _enclosing(self, inputs: object) -> UUID | None:
        """Return the run that called with its own inputs but did not name itself as the parent."""
        # LangChain's fallbacks call their branches in this way.
        config = var_child_runnable_config.get() or {}
        above: Any = getattr(config.get("callbacks"), "parent_run_id", None)
        around = self._runs.get(above)
        same = around is not None and around.root.inputs.was_given(around.run_id, inputs)
        return around.run_id if around and same else None

    def _end(self, run: Run) -> None:
        run.root.writing.discard(run.run_id)
        if run.is_root:
            with self._lock:
                self._forget(run.root)

    def _forget(self, root: Root) -> None:
        if self._roots.pop(root.run_id, None) is not None:
            for run_id in root.runs:
                self._runs.pop(run_id, None)
            self._remember(root.runs)

    def _remember(self, run_ids: Iterable[UUID]) -> None:
        self._ended |= dict.fromkeys(run_ids)
        while len(self._ended) > _MAX_ENDED:
            del self._ended[next(iter(self._ended))]


def running_loop() -> asyncio.AbstractEventLoop | None:
    """Return the running event loop of this thread, if any."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _read_start(run: Run, inputs: object, *, is_prompt: bool) -> None:
    known = run.root.inputs
    if run.may_answer:
        known.begin_model(run.path, inputs)
    elif run.kind == "model" and run.retriever is None and not run.checks:
        known.begin_generating(run.path)
    elif run.kind == "chain" and not run.is_helper_run:
        known.begin(run.path, inputs, is_prompt=is_prompt)


def _read_output(run: Run, output: Any, inputs: object, name: str | None) -> None:
    known = run.root.inputs
    if run.kind == "retriever" and run.run_id == run.retriever:
        known.take_retrieved(list(output or ()), run.path, run.tool)
    elif run.kind == "tool" and run.retriever is None and run.tool is not None:
        known.take_tool_output(output, run.path, run.tool, name)
    elif not run.is_helper_run:
        known.end(run.path, output, inputs)


def _abandon(*roots: Root) -> FollowUp:
    dropped = tuple(text for root in roots for text in root.partial_answers.values())
    return FollowUp(dropped, tuple(map(abandoned, roots)))


def abandoned(root: Root) -> GroundednessEvent:
    """Build the event of a root that ended without an answer."""
    return GroundednessEvent(kind="abandoned", run_id=root.run_id)
