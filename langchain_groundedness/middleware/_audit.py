"""The audit record of an answer that an agent has given, before and after a person was asked."""

import hashlib
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import NAMESPACE_OID, uuid5

from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable
from langchain_core.runnables.config import ensure_config, run_in_executor

from langchain_groundedness._recording import (
    Pending,
    Recorder,
    Run,
    log_of,
    suggested,
    thread_of,
    unaudited,
)
from langchain_groundedness.audit import AuditLog, AuditRecord, Review
from langchain_groundedness.exceptions import ConfigurationError
from langchain_groundedness.middleware._doors import (
    Decided,
    ask,
    first_decision,
    require_checkpointer,
    review_of,
)
from langchain_groundedness.middleware._gate import Case, Gate
from langchain_groundedness.middleware._turn import STATE_KEY, Turn
from langchain_groundedness.types import GroundednessResult

__all__ = ["AuditedGate"]

_NOT_SHOWN = ("retrying", "responded")
WAITING = "waiting"
"""Outcome of an answer about which a person is asked."""


class AuditedGate:
    """A gate whose decisions are recorded."""

    def __init__(
        self,
        checker: Runnable[Any, GroundednessResult] | None,
        extractor: Callable[[Any], Any] | None,
        *,
        whole_state: bool = False,
        audit_log: AuditLog | None = None,
        **options: Any,
    ) -> None:
        """Check the options.

        Args:
            checker: As for `Gate`.
            extractor: As for `Gate`.
            whole_state: As for `Gate`.
            audit_log: Gets a record of each decision; by default that of the checker.
            **options: As for `Gate`.

        Raises:
            ConfigurationError: One of them has a value that cannot work.
        """
        if audit_log is not None and not isinstance(audit_log, AuditLog):
            msg = f"audit_log must be an AuditLog, got {type(audit_log).__name__}"
            raise ConfigurationError(msg)
        log = log_of(checker) if audit_log is None else audit_log
        self.gate = Gate(unaudited(checker), extractor, whole_state=whole_state, **options)
        source = "node" if whole_state else "middleware"
        self._recorder = Recorder(log, source, self.gate.checker)

    def settle(self, state: Any) -> dict[str, Any]:
        """Read, check, act, and record what was decided.

        Args:
            state: The state of an agent or a graph.

        Returns:
            The update of the state.
        """
        case, audited = self._opened(state)
        result = self.gate.judge(case)
        decided = None
        if self.gate.asks(case, result):
            require_checkpointer()
            audited.before(result)
            decided = audited.agreed(ask(case.turn, result, audited.record_id))
        update = self.gate.close(case, result, decided)
        audited.after(result, update)
        return update

    async def asettle(self, state: Any) -> dict[str, Any]:
        """Read, check, act, and record what was decided.

        Args:
            state: The state of an agent or a graph.

        Returns:
            The update of the state.
        """
        case, audited = self._opened(state)
        result = await self.gate.ajudge(case)
        decided = None
        if self.gate.asks(case, result):
            require_checkpointer()
            await audited.abefore(result)
            given = ask(case.turn, result, audited.record_id)
            decided = await run_in_executor(None, audited.agreed, given)
        update = self.gate.close(case, result, decided)
        await audited.aafter(result, update)
        return update

    def _opened(self, state: Any) -> tuple[Case, "_Audited"]:
        case = self.gate.open(state)
        answer = case.source.answer if case.source else ""
        return case, _Audited(self._recorder, case.turn, key=case.key, answer=answer)


class _Audited:
    """One answer at the gate, on its way into the audit log."""

    def __init__(self, recorder: Recorder, turn: Turn, *, key: str | None, answer: str) -> None:
        """Take note that its check begins.

        Args:
            recorder: Records the decision.
            turn: The turn that it ends.
            key: Where it stands in the state, if not in its messages.
            answer: What is checked.
        """
        config = ensure_config()
        self._turn = turn
        self._key = key
        self._asked = False
        callbacks: Any = config.get("callbacks")
        above = getattr(callbacks, "parent_run_id", None)
        self._pending = Pending(recorder, Run(run_id=above, thread_id=thread_of(config)))
        self._fields: dict[str, Any] = {"attempt": turn.retries}
        self._log = recorder.log
        self._decided: Decided | None = None
        self._standing: AuditRecord | None = None
        self.record_id = _identity(config, turn, key, answer)
        """Id of the record, the same when the step is run again; `None` outside of a thread."""
        if self.record_id is not None:
            self._fields["id"] = self.record_id

    def before(self, result: GroundednessResult) -> None:
        """Record that a person is asked; when the run is resumed, this changes nothing.

        Args:
            result: The result of the check.
        """
        self._pending.end(result, **self._waiting(result))

    async def abefore(self, result: GroundednessResult) -> None:
        """Record that a person is asked.

        Args:
            result: As for `before`.
        """
        await self._pending.aend(result, **self._waiting(result))

    def agreed(self, given: Decided) -> Decided:
        """Give the decision that holds; blocks while the log is asked.

        Args:
            given: What the graph was resumed with.

        Returns:
            The same, unless a reviewer of the audit log was first.
        """
        self._decided, self._standing = first_decision(self._log, self.record_id, given)
        return self._decided

    def after(self, result: GroundednessResult, update: Mapping[str, Any]) -> None:
        """Record what was done.

        Args:
            result: The result of the check.
            update: The update of the state.
        """
        if (fields := self._done(result, update)) is not None:
            self._pending.end(result, **fields)

    async def aafter(self, result: GroundednessResult, update: Mapping[str, Any]) -> None:
        """Record what was done.

        Args:
            result: As for `after`.
            update: As for `after`.
        """
        if (fields := self._done(result, update)) is not None:
            await self._pending.aend(result, **fields)

    def _waiting(self, result: GroundednessResult) -> dict[str, Any]:
        self._asked = True
        self._fields["suggested_answer"] = suggested(result)
        review = Review(status="waiting")
        return {**self._fields, "outcome": WAITING, "shown_answer": None, "review": review}

    def _done(self, result: GroundednessResult, update: Mapping[str, Any]) -> dict[str, Any] | None:
        record = update[STATE_KEY]
        outcome = record["outcome"]
        if outcome == "not_judged":
            return None
        shown = None if outcome in _NOT_SHOWN else self._shown(result, update)
        fields = {**self._fields, "outcome": outcome, "shown_answer": shown}
        if not self._asked:
            return fields
        if self._standing is not None:
            if self._standing.content != "full":
                return None  # what is kept of the review must not be digested again
            kept = {"revision": self._standing.revision + 1, "review": self._standing.review}
            return {**fields, **kept}
        assert self._decided is not None  # noqa: S101  (somebody was asked)
        review = review_of(self._decided).model_copy(update={"time": datetime.now(UTC)})
        return {**fields, "revision": 1, "review": review}

    def _shown(self, result: GroundednessResult, update: Mapping[str, Any]) -> str:
        if self._key is not None:
            return str(update.get(self._key, result.original_answer))
        said = [m for m in update.get("messages", ()) if isinstance(m, AIMessage)]
        return str(said[-1].text) if said else result.original_answer


def _identity(config: Any, turn: Turn, key: str | None, answer: str) -> str | None:
    """Name the answer so that a step which is run again, by whichever process, names it alike."""
    thread = thread_of(config)
    if thread is None:
        return None
    place = (config.get("configurable") or {}).get("checkpoint_ns", "")
    message = turn.final.id if key is None and turn.final is not None else None
    digest = hashlib.sha256(answer.encode("utf-8", errors="replace")).hexdigest()
    named = "\n".join((thread, place, turn.key, message or digest, str(turn.retries)))
    return str(uuid5(NAMESPACE_OID, named))
