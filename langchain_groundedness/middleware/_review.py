"""Review of an ungrounded answer by a human: what is asked, and what may be answered.

Pure. The form is that of LangChain's human-in-the-loop middleware, with the answer in the place of
the tool call, so that interfaces built for that one show it.
"""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

__all__ = ["Answered", "Approve", "Edit", "Reject", "Respond", "decision_of", "review_request"]

_ACTION = "answer"
_NOT_GROUNDED = "The answer is not grounded in what the tools returned"
_DECISIONS = ("approve", "edit", "reject", "respond")

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


class Edit(_Signed):
    """The reviewer's text goes out, under the same message id, and is not checked again."""

    type: Literal["edit"]
    answer: Words | None = None
    edited_action: _EditedAction | None = None

    @model_validator(mode="after")
    def _one_text(self) -> "Edit":
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


Decision: TypeAlias = Annotated[Approve | Edit | Reject | Respond, Field(discriminator="type")]


class _Decisions(_Decision):
    decisions: Annotated[list[Decision], Field(min_length=1, max_length=1)]


Answered: TypeAlias = _Decisions | Decision
"""What resumes the run: one decision, alone or in a list of one under `decisions`."""


def review_request(
    answer: str, record: dict[str, Any], suggestion: str | None, record_id: str | None = None
) -> dict[str, Any]:
    """Ask a reviewer what to do with an answer.

    Args:
        answer: The answer.
        record: Its verdicts, as they stand in the state.
        suggestion: The corrected answer, if the checker made one.
        record_id: Id of its record in the audit log.

    Returns:
        The value of the interrupt: plain data.
    """
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
        "review_configs": [{"action_name": _ACTION, "allowed_decisions": list(_DECISIONS)}],
        "groundedness": record,
        "suggestion": suggestion,
        "record_id": record_id,
    }


def decision_of(answered: Any) -> Approve | Edit | Reject | Respond:
    """Give the decision that a validated answer to the request holds.

    Args:
        answered: What resumed the run.

    Returns:
        The decision.
    """
    decision: Approve | Edit | Reject | Respond
    decision = answered.decisions[0] if isinstance(answered, _Decisions) else answered
    return decision
