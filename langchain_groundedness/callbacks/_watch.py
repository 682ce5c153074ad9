"""Sees what the runs of any number of chains do, and says what is due after that.

Handlers are shared by all runs of all threads and loops, so all state is by run id, under locks:
one for all runs, held for a moment, and one for what is gathered about each root. They are
re-entrant because the garbage collector may close a stream that was thrown away, which ends its
run, in any thread and at any place.
"""

import asyncio
import logging
import threading
from typing import Any, Literal
from uuid import UUID

from langchain_core.outputs import LLMResult

from langchain_groundedness._recording import thread_of
from langchain_groundedness.callbacks._checks import Checks, Next, Work, abandoned
from langchain_groundedness.callbacks._context import CHECK_TAG
from langchain_groundedness.callbacks._gathered import answer_of
from langchain_groundedness.callbacks._run_trees import Kind, Root, Run, RunBook

__all__ = ["Watch"]

logger = logging.getLogger("langchain_groundedness")

_NOTHING = Next()
_PAUSE = "GraphInterrupt"  # what LangGraph's nodes raise when a person shall decide
_CHECKS = ("GroundednessRunnable", "GroundednessGuard")


class Watch:
    """The runs that are watched."""

    def __init__(self, checks: Checks, *, max_runs: int) -> None:
        """Start with no run.

        Args:
            checks: Begins drafts.
            max_runs: Most roots that are watched at once; the oldest make room.
        """
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
        """See a model write; what may be the answer is checked while it is written.

        Args:
            run_id: The run of the model.
            text: What it has added.
            source: Which callback said so. Some models give both, so that the first one counts.
            loop: The loop on which this is seen.
        """
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
