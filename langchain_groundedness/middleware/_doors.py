"""A person is asked about an answer, and the audit log about who was first.

Two doors lead to one decision: the graph is resumed, or the record is decided in the audit log.
"""

import logging
from contextlib import suppress
from typing import Any, TypeAlias

from langchain_core.runnables.config import ensure_config
from langgraph.types import interrupt
from pydantic import TypeAdapter

from langchain_groundedness._recording import suggested
from langchain_groundedness.audit import AuditLog, AuditRecord, Review, SQLAuditLog
from langchain_groundedness.exceptions import (
    AuditError,
    ConfigurationError,
    GroundednessError,
    ReviewConflictError,
)
from langchain_groundedness.middleware._record import record_of
from langchain_groundedness.middleware._review import (
    Answered,
    Approve,
    Edit,
    Reject,
    Respond,
    decision_of,
    review_request,
)
from langchain_groundedness.middleware._turn import Turn
from langchain_groundedness.resume import resume_value
from langchain_groundedness.types import GroundednessResult

__all__ = ["Decided", "ask", "first_decision", "require_checkpointer", "review_of"]

Decided: TypeAlias = Approve | Edit | Reject | Respond

UNNAMED = "whoever resumed the graph"
"""Stands for a reviewer who has not said who it was; a decision needs somebody."""
_DURABLE_WITHIN = 5.0
_CHECKPOINTER = "__pregel_checkpointer"  # LangGraph tells it to nodes under this key

_LOGGER = logging.getLogger(__name__)
_DECISIONS: TypeAdapter[Decided] = TypeAdapter(Decided)


def require_checkpointer() -> None:
    """Refuse to ask a person where the run could not go on with what they say.

    LangGraph pauses without a checkpointer, too, and forgets the run.

    Raises:
        ConfigurationError: The graph that runs has none, or no graph runs.
    """
    if (ensure_config().get("configurable") or {}).get(_CHECKPOINTER) is None:
        msg = (
            "a person is to be asked about the answer (on_ungrounded, after_retries or the policy "
            "says `review`), and this graph has no checkpointer, so it could never go on: give "
            "it one, as in create_agent(..., checkpointer=InMemorySaver()) or "
            "graph.compile(checkpointer=...), and a thread_id, or choose another on_ungrounded"
        )
        raise ConfigurationError(msg)


def ask(turn: Turn, result: GroundednessResult, record_id: str | None) -> Decided:
    """Ask a person; the run ends here, and comes back with what they say.

    Args:
        turn: The turn that the answer ends.
        result: The result of its check.
        record_id: Id of its record.

    Returns:
        The decision that the graph was resumed with.
    """
    record = record_of(result, turn, "annotated")
    request = review_request(result.original_answer, record, suggested(result), record_id)
    # The schema is a union, which its overloads leave out.
    return decision_of(interrupt(request, response_schema=Answered))  # type: ignore[call-overload]


def first_decision(
    log: AuditLog | None, record_id: str | None, given: Decided
) -> tuple[Decided, AuditRecord | None]:
    """Write a decision into the audit log, unless another one stands there: then that one holds.

    Blocks while the log is asked. A log that cannot be asked, or knows nothing of the answer,
    changes nothing.

    Args:
        log: The audit log.
        record_id: Id of the answer's record.
        given: The decision that the graph was resumed with.

    Returns:
        The decision that holds, and the record if it stands there.
    """
    if not isinstance(log, SQLAuditLog) or record_id is None:
        return given, None
    review = review_of(given)
    assert review.action is not None  # noqa: S101  (every decision is an action)
    with suppress(GroundednessError):  # it is down, or this is an event loop, which must not wait
        log.flush(_DURABLE_WITHIN)
    try:
        record = log.decide(
            record_id,
            revision=0,
            reviewer=review.reviewer or UNNAMED,
            action=review.action,
            answer=review.answer,
            note=review.note,
        )
    except ReviewConflictError:
        return _standing(log, record_id, given)
    except GroundednessError as exc:
        _LOGGER.warning(
            "audit: whether a review is the first is not known (%s)", type(exc).__name__
        )
        return given, None
    return given, record


def review_of(decided: Decided) -> Review:
    """Put a decision into the form of the audit log.

    Args:
        decided: The decision.

    Returns:
        The review, without a time. An answer that the model is to write anew is rejected.
    """
    said: dict[str, Any] = {"status": "decided", "reviewer": decided.reviewer, "note": decided.note}
    if isinstance(decided, Edit):
        return Review(action="edit", answer=decided.text, **said)
    if isinstance(decided, Approve):
        return Review(action="approve", **said)
    return Review(action="reject", **{**said, "note": decided.note or decided.message})


def _standing(
    log: SQLAuditLog, record_id: str, given: Decided
) -> tuple[Decided, AuditRecord | None]:
    """Give the decision that was first."""
    try:
        record = log.get(record_id)
    except AuditError:
        record = None
    if record is None or record.review.status != "decided":
        return given, None
    mine, first = review_of(given), record.review
    same = (mine.action, mine.answer) == (first.action, first.answer)
    if same and first.reviewer in (mine.reviewer, UNNAMED):
        return given, record  # the step was run before, and has not come to its end
    try:
        return _DECISIONS.validate_python(resume_value(record)), record
    except GroundednessError:  # a text that was not kept
        return (given if isinstance(given, Edit) else Reject(type="reject")), record
