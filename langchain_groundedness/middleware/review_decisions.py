"""A person is asked about an answer, and the audit log about who was first.

Two doors lead to one decision: the graph is resumed, or the record is decided in the audit log.
"""

import logging
from contextlib import suppress
from typing import Annotated, Any, Literal, TypeAlias

from langchain_core.runnables.config import ensure_config
from langgraph.types import interrupt
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter, model_validator

from langchain_groundedness.audit import AuditLog, AuditRecord, Review, SQLAuditLog
from langchain_groundedness.exceptions import (
    AuditError,
    ConfigurationError,
    GroundednessError,
    ReviewConflictError,
)
from langchain_groundedness.middleware.resume import resume_value
from langchain_groundedness.middleware.state import record_of
from langchain_groundedness.middleware.turn import Turn
from langchain_groundedness.pipeline.recording import suggested
from langchain_groundedness.types import GroundednessResult

__all__ = [
    "Approve",
    "Decided",
    "EditAnswer",
    "Reject",
    "Respond",
    "ask",
    "first_decision",
    "require_checkpointer",
    "review_of",
]

Words = Annotated[str, StringConstraints(min_length=1)]


class _Decision(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _Signed(_Decision):
    reviewer: Words | None = None
    """Who has decided."""
    note: str | None = None
    """Why."""


class Approve(_Signed):
    """The answer goes out as it is."""

    type: Literal["approve"]


class _EditedAnswer(_Decision):
    answer: Words


class _EditedAction(_Decision):
    name: Literal["answer"] = "answer"
    args: _EditedAnswer


class EditAnswer(_Signed):
    """The reviewer's text goes out, under the same message id, and is not checked again."""

    type: Literal["edit"]
    answer: Words | None = None
    edited_action: _EditedAction | None = None

    @model_validator(mode="after")
    def _one_text(self) -> "EditAnswer":
        if (self.answer is None) == (self.edited_action is None):
            msg = "an edit needs the new text, under `answer` or in `edited_action.args.answer`"
            raise ValueError(msg)
        return self

    @property
    def text(self) -> str:
        """The reviewer's text."""
        return self.answer or (self.edited_action.args.answer if self.edited_action else "")


class Reject(_Signed):
    """The answer is withheld; `message` stands in for it, or the blocked message."""

    type: Literal["reject"]
    message: Words | None = None


class Respond(_Signed):
    """The model hears `message` and answers again; the new answer is checked like the first."""

    type: Literal["respond"]
    message: Words


Decided: TypeAlias = Approve | EditAnswer | Reject | Respond

UNNAMED = "whoever resumed the graph"
"""Stands for a reviewer who has not said who it was; a decision needs somebody."""

_DURABLE_WITHIN = 5.0

_CHECKPOINTER = "__pregel_checkpointer"  # LangGraph tells it to nodes under this key

_LOGGER = logging.getLogger(__name__)

_DECISIONS: TypeAdapter[Decided] = TypeAdapter(Decided)


def require_checkpointer() -> None:
    """Refuse to ask a person where the run could not go on with what they say.

    LangGraph pauses without a checkpointer, too, and forgets the run.
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
    """Ask a person; the run ends here, and comes back with what they say."""
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
    """Put a decision into the form of the audit log."""
    said: dict[str, Any] = {"status": "decided", "reviewer": decided.reviewer, "note": decided.note}
    if isinstance(decided, EditAnswer):
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
        return (given if isinstance(given, EditAnswer) else Reject(type="reject")), record


_ACTION = "answer"

_NOT_GROUNDED = "The answer is not grounded in what the tools returned"

_REVIEW_DECISIONS = ("approve", "edit", "reject", "respond")

ReviewDecision: TypeAlias = Annotated[
    Approve | EditAnswer | Reject | Respond, Field(discriminator="type")
]


class _Decisions(_Decision):
    decisions: Annotated[list[ReviewDecision], Field(min_length=1, max_length=1)]


Answered: TypeAlias = _Decisions | ReviewDecision
"""What resumes the run: one decision, alone or in a list of one under `decisions`."""


def review_request(
    answer: str, record: dict[str, Any], suggestion: str | None, record_id: str | None = None
) -> dict[str, Any]:
    """Ask a reviewer what to do with an answer."""
    reasons = "; ".join(record["decision"]["reasons"])
    grounded = record["is_trusted"]
    said = "The policy asks for a review" if grounded else _NOT_GROUNDED
    return {
        "type": "groundedness_review",
        "action_requests": [
            {
                "name": _ACTION,
                "args": {"answer": answer},
                "description": f"{said}: {reasons}",
            }
        ],
        "review_configs": [{"action_name": _ACTION, "allowed_decisions": list(_REVIEW_DECISIONS)}],
        "groundedness": record,
        "suggestion": suggestion,
        "record_id": record_id,
    }


def decision_of(answered: Any) -> Approve | EditAnswer | Reject | Respond:
    """Give the decision that a validated answer to the request holds."""
    decision: Approve | EditAnswer | Reject | Respond
    decision = answered.decisions[0] if isinstance(answered, _Decisions) else answered
    return decision
