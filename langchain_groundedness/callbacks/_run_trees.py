"""Which run belongs to which root: the trees of runs that a callback handler sees, by run id.

Pure bookkeeping, no I/O and no lock: whoever calls it holds one. A run is a root if its parent was
never seen, and not if it has none: a handler may be bound to an inner runnable, and a whole chain
may run below a traced parent.
"""

import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import UUID

from langchain_groundedness.callbacks._draft import Draft
from langchain_groundedness.callbacks._gathered import Gathered

__all__ = ["Kind", "Root", "Run", "RunBook"]

Kind = Literal["chain", "model", "retriever", "tool"]
_REMEMBERED = 4096


@dataclass(eq=False)
class Root:
    """One tree of runs: one question answered, if it is a chain or an agent."""

    run_id: UUID
    above: UUID | None = None
    """The run that called it, which is not seen here."""
    thread_id: str | None = None
    """LangGraph's thread, if it runs in one."""
    lock: Any = field(default_factory=threading.RLock)
    """Held while `gathered` is read or changed."""
    gathered: Gathered = field(default_factory=Gathered)
    loop: Any = None
    """The event loop on which it began; `None` if on none."""
    drafts: dict[UUID, Draft] = field(default_factory=dict)
    """What is being written, by the run of the model that writes it."""
    paused: bool = False
    """Whether it waits for a person, and will go on as another root."""
    runs: set[UUID] = field(default_factory=set)


@dataclass(eq=False)
class Run:
    """One run, and what it stands below."""

    run_id: UUID
    kind: Kind
    root: Root
    retriever: UUID | None
    """The outermost retriever at or above it."""
    tool: UUID | None
    """The outermost tool at or above it."""
    checks: bool = False
    """Whether it is a check in the chain, or below one: what models write there is no answer."""
    heard_by: Literal["token", "event"] | None = None
    """Which callback says what it writes, if it is a model."""

    @property
    def is_root(self) -> bool:
        """Whether no other run of the tree is above it."""
        return self.run_id == self.root.run_id

    @property
    def is_outermost(self) -> bool:
        """Whether it is a retriever or a tool that no other one of its kind has called."""
        return self.run_id in (self.retriever, self.tool)

    @property
    def may_answer(self) -> bool:
        """Whether a model that runs here may be writing the answer."""
        apart = self.checks or self.retriever is not None or self.tool is not None
        return self.kind == "model" and not apart


class RunBook:
    """All runs that have begun and whose root has not ended.

    Example:
        >>> from uuid import uuid4
        >>> book, traced, chain, model = RunBook(), uuid4(), uuid4(), uuid4()
        >>> book.start(chain, traced, "chain").is_root
        True
        >>> book.start(model, chain, "model").root.run_id == chain
        True
        >>> book.forget(chain) is None, book.get(model)
        (False, None)
    """

    def __init__(self) -> None:
        """Start with no run."""
        self._runs: dict[UUID, Run] = {}
        self._roots: dict[UUID, Root] = {}
        # A run whose tree is gone must not be taken for a root when it is heard of again.
        self._gone: dict[UUID, None] = {}

    def __len__(self) -> int:
        """Count the roots that have not ended."""
        return len(self._roots)

    @property
    def size(self) -> int:
        """How many runs are known."""
        return len(self._runs)

    def start(
        self,
        run_id: UUID,
        parent_run_id: UUID | None,
        kind: Kind,
        *,
        checks: bool = False,
        loop: Any = None,
    ) -> Run | None:
        """Take note of a run.

        Args:
            run_id: Its id.
            parent_run_id: The id of the run that called it, whether seen here or not.
            kind: What runs.
            checks: Whether it is a check.
            loop: The event loop on which it runs.

        Returns:
            The run; `None` if its root has ended already.
        """
        if run_id in self._runs:
            return self._runs[run_id]
        above = None if parent_run_id is None else self._runs.get(parent_run_id)
        if run_id in self._gone or (above is None and parent_run_id in self._gone):
            self._bury([run_id])
            return None
        root = Root(run_id, parent_run_id, loop=loop) if above is None else above.root
        run = Run(
            run_id,
            kind,
            root,
            retriever=(above and above.retriever) or (run_id if kind == "retriever" else None),
            tool=(above and above.tool) or (run_id if kind == "tool" else None),
            checks=checks or (above is not None and above.checks),
        )
        self._runs[run_id] = run
        self._roots.setdefault(root.run_id, root)
        root.runs.add(run_id)
        return run

    def get(self, run_id: UUID) -> Run | None:
        """Look a run up.

        Args:
            run_id: Its id.

        Returns:
            The run; `None` if it is not known, or no longer.
        """
        return self._runs.get(run_id)

    def forget(self, root_id: UUID) -> Root | None:
        """Let go of a root and of all runs below it.

        Args:
            root_id: The id of the root.

        Returns:
            The root; `None` if it is not known.
        """
        root = self._roots.pop(root_id, None)
        if root is not None:
            for run_id in root.runs:
                self._runs.pop(run_id, None)
            self._bury(root.runs)
        return root

    def beyond(self, most: int) -> Iterator[Root]:
        """Let go of the oldest roots while there are too many.

        Args:
            most: How many may stay.

        Yields:
            The roots that were let go.
        """
        while len(self._roots) > most:
            root = self.forget(next(iter(self._roots)))
            if root is not None:
                yield root

    def _bury(self, run_ids: Iterable[UUID]) -> None:
        self._gone |= dict.fromkeys(run_ids)
        while len(self._gone) > _REMEMBERED:
            del self._gone[next(iter(self._gone))]
