"""Interrupts a run for a review, and resumes it with the first decision.

Someone resumes the graph, or a reviewer decides the record in the audit log and `resume_reviewed`
resumes the graph. The first decision counts.
"""

import logging
from contextlib import suppress
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, TypeAlias

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config, merge_configs
from langgraph.types import Command, interrupt
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from langchain_groundedness.audit import AuditLog, AuditRecord, Review, SQLAuditLog
from langchain_groundedness.exceptions import (
    ConfigurationError,
    GroundednessError,
    InputFormatError,
    ReviewConflictError,
)
from langchain_groundedness.middleware.state import Turn, state_record
from langchain_groundedness.pipeline.recording import suggested_answer
from langchain_groundedness.types import GroundednessResult

__all__ = [
    "Approve",
    "Decided",
    "EditAnswer",
    "Reject",
    "Respond",
    "aresume_reviewed",
    "can_pause",
    "first_decision",
    "interrupt_for_review",
    "resume_reviewed",
    "resume_value",
    "review_of",
]

NonEmptyText = Annotated[str, StringConstraints(min_length=1)]


class _Decision(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _SignedDecision(_Decision):
    reviewer: NonEmptyText | None = None
    """Who has decided."""
    note: str | None = None
    """Why."""
    revision: int | None = None
    """Revision of the record whose decision this is; it counts only if it was not undone."""


class Approve(_SignedDecision):
    """The answer is released unchanged."""

    type: Literal["approve"]


class _EditedAnswer(_Decision):
    answer: NonEmptyText


class _EditedAction(_Decision):
    name: Literal["answer"] = "answer"
    args: _EditedAnswer


class EditAnswer(_SignedDecision):
    """The reviewer's text is released, under the same message id, whatever its verdicts."""

    type: Literal["edit"]
    answer: NonEmptyText | None = None
    edited_action: _EditedAction | None = None

    @model_validator(mode="after")
    def _one_text(self) -> "EditAnswer":
        if (self.answer is None) == (self.edited_action is None):
            msg = "an edit needs the new text, in `answer` or `edited_action.args.answer`"
            raise ValueError(msg)
        return self

    @property
    def text(self) -> str:
        """The reviewer's text."""
        return self.answer or (self.edited_action.args.answer if self.edited_action else "")


class Reject(_SignedDecision):
    """The answer is withheld; `message`, or the blocked message, replaces it."""

    type: Literal["reject"]
    message: NonEmptyText | None = None


class Respond(_SignedDecision):
    """The model gets `message` and answers again; the new answer is checked like the first."""

    type: Literal["respond"]
    message: NonEmptyText


Decided: TypeAlias = Annotated[Approve | EditAnswer | Reject | Respond, Field(discriminator="type")]


class _Decisions(_Decision):
    decisions: Annotated[list[Decided], Field(min_length=1, max_length=1)]


_Answered: TypeAlias = _Decisions | Decided
"""The resume value: one decision, alone or in a list of one under `decisions`."""

_DECIDED: TypeAdapter[Decided] = TypeAdapter(Decided)

UNNAMED = "whoever resumed the graph"
"""Name of a reviewer who gave none; a decision needs one."""

_HELP = (
    "the run still waits: resume it with Command(resume={'type': 'approve'}), {'type': 'edit', "
    "'answer': text}, {'type': 'reject'} or {'type': 'respond', 'message': text}; a rejection may "
    "have a 'message', and each of them a 'reviewer' and a 'note'"
)

_ACTION = "answer"

_DURABLE_TIMEOUT = 5.0

_CHECKPOINTER = "__pregel_checkpointer"  # the key under which LangGraph passes it to nodes

_LOGGER = logging.getLogger(__name__)


def can_pause() -> bool:
    """Return whether the run could be resumed after a review; warn if not.

    Without a checkpointer LangGraph also pauses, but loses the run.
    """
    if (ensure_config().get("configurable") or {}).get(_CHECKPOINTER) is not None:
        return True
    _LOGGER.warning(
        "groundedness: an answer needs a review, but this graph has no checkpointer and could not "
        "continue, so the answer is blocked: give it one, as in create_agent(..., "
        "checkpointer=InMemorySaver()) or graph.compile(checkpointer=...), and a thread_id"
    )
    return False


def interrupt_for_review(turn: Turn, result: GroundednessResult, record_id: str) -> Decided:
    """Interrupt the run for a review; returns the decision when it is resumed."""
    said = "The answer is not grounded in what the tools returned"
    if result.is_trusted:
        said = "The policy asks for a review"
    description = f"{said}: {'; '.join(result.decision.reasons)}"
    answer, decisions = {"answer": result.original_answer}, ["approve", "edit", "reject", "respond"]
    request = {
        "type": "groundedness_review",
        "action_requests": [{"name": _ACTION, "args": answer, "description": description}],
        "review_configs": [{"action_name": _ACTION, "allowed_decisions": decisions}],
        "groundedness": state_record(result, turn, "annotated"),
        "suggestion": suggested_answer(result),
        "record_id": record_id,
    }
    try:
        # The schema is a union, which its overloads leave out.
        answered: Any = interrupt(request, response_schema=_Answered)  # type: ignore[call-overload]
    except ValidationError:
        raise InputFormatError(_HELP) from None
    decided: Decided = answered.decisions[0] if isinstance(answered, _Decisions) else answered
    return decided


def first_decision(
    log: AuditLog | None, record_id: str, given: Decided
) -> tuple[Decided | None, AuditRecord | None]:
    """Save a decision in the audit log; if one is there already, that one counts.

    Blocks while the log is read. If the log fails or lacks the record, the given decision counts.
    `None` is the decision of a record if it was undone.
    """
    if not isinstance(log, SQLAuditLog):
        return given, None
    review = review_of(given)
    said: Any = review.model_dump(include={"action", "answer", "note"})
    # The log may be down, or this is an event loop, which must not block.
    with suppress(GroundednessError):
        log.flush(_DURABLE_TIMEOUT)
    revision = 0
    try:
        if given.revision is not None:
            return _decided_first(log.take_effect(record_id), given)
        while True:
            try:
                return given, log.decide(
                    record_id, revision=revision, reviewer=review.reviewer or UNNAMED, **said
                )
            except ReviewConflictError as exc:
                revision = exc.revision
            with suppress(ReviewConflictError):  # undone in the meantime
                return _decided_first(log.take_effect(record_id), given)
    except ReviewConflictError:
        _LOGGER.warning("groundedness: a review was undone, so the run still waits for one")
        return None, None
    except GroundednessError as exc:
        _LOGGER.warning(
            "audit: cannot tell whether another review came first (%s)", type(exc).__name__
        )
        return given, None


def review_of(decided: Decided) -> Review:
    """Convert a decision to the audit log's form."""
    said: dict[str, Any] = {"status": "decided", "reviewer": decided.reviewer, "note": decided.note}
    if isinstance(decided, EditAnswer):
        return Review(action="edit", answer=decided.text, **said)
    if isinstance(decided, Approve):
        return Review(action="approve", **said)
    return Review(action="reject", **{**said, "note": decided.note or decided.message})


def _decided_first(record: AuditRecord, given: Decided) -> tuple[Decided, AuditRecord]:
    """Return the first decision."""
    mine, first = review_of(given), record.review
    same = (mine.action, mine.answer) == (first.action, first.answer)
    if same and first.reviewer in (mine.reviewer, UNNAMED):
        return given, record  # a rerun of an unfinished step
    try:
        return _DECIDED.validate_python(resume_value(record)), record
    except GroundednessError:  # a text that was not kept
        return (given if isinstance(given, EditAnswer) else Reject(type="reject")), record


def resume_value(record: AuditRecord) -> dict[str, Any]:
    """Return the value that resumes a graph waiting for a review: `Command(resume=...)`.

    Args:
        record: A record that a reviewer has decided.

    Returns:
        The decision, in the form that `GroundednessMiddleware` reads.

    Raises:
        GroundednessError: Nobody has decided it, or the reviewer's text was not kept.
        ConfigurationError: It is not a record.

    Example:
        >>> from langchain_groundedness import Decision
        >>> record = AuditRecord(
        ...     verdict="unchecked",
        ...     decision=Decision(action="review"),
        ...     review={"status": "decided", "action": "reject", "reviewer": "ada"},
        ... )
        >>> resume_value(record)
        {'type': 'reject', 'revision': 0, 'reviewer': 'ada'}
    """
    review = _decided_review(record)
    value: dict[str, Any] = {"type": review.action, "revision": record.revision}
    if review.action == "edit":
        if record.content != "full" or not review.answer:
            msg = "the reviewer's text is not in the record: the audit log keeps no texts"
            raise GroundednessError(msg)
        value["answer"] = review.answer
    said = {"reviewer": review.reviewer, "note": review.note}
    return value | {name: text for name, text in said.items() if text}


def resume_reviewed(
    graph: Any, record: AuditRecord, config: RunnableConfig | None = None
) -> dict[str, Any] | None:
    """Resume the graph that waits for the review of a record, if it still does.

    It can be called repeatedly, and by several processes one after the other: a graph that has
    continued is left alone.

    Args:
        graph: The agent or graph, compiled with the checkpointer of the waiting run.
        record: A record that a reviewer has decided, as the audit log gives it.
        config: Options of the run; the thread comes from the record.

    Returns:
        What the run returns; `None` if nothing waits for this record, as for that of a chain, or
        its decision is held. If the decision was undone in the meantime, the run waits again, for
        the same review.

    Raises:
        GroundednessError: Nobody has decided it, or the graph waits for a reviewer's text that the
            audit log has not kept.
        ConfigurationError: It is not a record.
    """
    if (config := _config_of(record, config)) is None:
        return None
    answer = _resume_command(graph.get_state(config, subgraphs=True), record)
    return None if answer is None else graph.invoke(answer, config)


async def aresume_reviewed(
    graph: Any, record: AuditRecord, config: RunnableConfig | None = None
) -> dict[str, Any] | None:
    """Resume the graph that waits for the review of a record, if it still does.

    Args:
        graph: As for `resume_reviewed`.
        record: As for `resume_reviewed`.
        config: As for `resume_reviewed`.

    Returns:
        As `resume_reviewed`.

    Raises:
        GroundednessError: As `resume_reviewed`.
        ConfigurationError: As `resume_reviewed`.
    """
    if (config := _config_of(record, config)) is None:
        return None
    answer = _resume_command(await graph.aget_state(config, subgraphs=True), record)
    return None if answer is None else await graph.ainvoke(answer, config)


def _config_of(record: AuditRecord, config: RunnableConfig | None) -> RunnableConfig | None:
    """Return the config that resumes the thread of a decided record, if it is of one."""
    _decided_review(record)
    if record.thread_id is None:
        return None
    return merge_configs(config, {"configurable": {"thread_id": record.thread_id}})


def _decided_review(record: AuditRecord) -> Review:
    if not isinstance(record, AuditRecord):
        kind = type(record).__name__
        msg = f"record must be an AuditRecord, such as log.get(id) gives, got {kind}"
        raise ConfigurationError(msg)
    review = record.review
    if review.status != "decided" or review.action is None:
        msg = f"no reviewer has decided the record (status {review.status!r})"
        raise GroundednessError(msg)
    return review


def _resume_command(snapshot: Any, record: AuditRecord) -> Command[Any] | None:
    """Resume only the interrupt of this record, once the decision has taken effect."""
    if record.review.time is not None and record.review.time > datetime.now(UTC):
        return None
    for asked in snapshot.interrupts:
        if isinstance(asked.value, dict) and asked.value.get("record_id") == record.id:
            return Command(resume={asked.id: resume_value(record)})
    return None
