"""What becomes of a checked answer, as an update of the agent's state.

Pure.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, get_args
from uuid import uuid4

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage

from langchain_groundedness.exceptions import ConfigurationError
from langchain_groundedness.middleware._correction import mended
from langchain_groundedness.middleware._feedback import can_do_better, feedback, words_of_reviewer
from langchain_groundedness.middleware._messages import annotated, with_text
from langchain_groundedness.middleware._record import Outcome, record_of
from langchain_groundedness.middleware._review import Approve, Edit, Reject, Respond
from langchain_groundedness.middleware._structured import edited_fields, rewritten
from langchain_groundedness.middleware._turn import STATE_KEY, Turn
from langchain_groundedness.types import GroundednessResult

__all__ = ["AfterRetries", "OnUngrounded", "Rules"]

AfterRetries: TypeAlias = Literal["annotate", "correct", "block", "review", "policy"]
OnUngrounded: TypeAlias = AfterRetries | Literal["retry"]

_AFTER_RETRIES = get_args(AfterRetries)
_ON_UNGROUNDED = (*_AFTER_RETRIES, "retry")


@dataclass(frozen=True, kw_only=True)
class Rules:
    """What is done with answers that are not grounded."""

    on_ungrounded: OnUngrounded
    max_retries: int
    after_retries: AfterRetries
    blocked_message: str
    strips_unverifiable: bool

    def __post_init__(self) -> None:
        """Check the options.

        Raises:
            ConfigurationError: One of them has a value that cannot work.
        """
        _one_of("on_ungrounded", self.on_ungrounded, _ON_UNGROUNDED)
        _one_of("after_retries", self.after_retries, _AFTER_RETRIES)
        number = self.max_retries
        if not isinstance(number, int) or isinstance(number, bool) or number < 0:
            msg = f"max_retries must be a whole number from 0, got {number!r}"
            raise ConfigurationError(msg)
        if not isinstance(self.blocked_message, str) or not self.blocked_message.strip():
            msg = "blocked_message must be a text: it is what the user reads instead of the answer"
            raise ConfigurationError(msg)

    @property
    def corrects(self) -> bool:
        """Whether the text of answers may be corrected."""
        return "correct" in self._actions

    @property
    def reviews(self) -> bool:
        """Whether a human may be asked."""
        return not {"review", "policy"}.isdisjoint(self._actions)

    @property
    def _actions(self) -> tuple[str, ...]:
        retries = self.on_ungrounded == "retry"
        return (self.on_ungrounded, self.after_retries) if retries else (self.on_ungrounded,)

    def action(self, turn: Turn, result: GroundednessResult) -> OnUngrounded:
        """Choose what is done with an answer.

        Args:
            turn: The turn that it ends.
            result: The result of its check.

        Returns:
            `annotate` for a grounded answer; else what the options say. What the policy blocks
            only a person can let out.
        """
        decided = result.decision.action
        if _is_fine(result):
            return "annotate"
        action = self.on_ungrounded
        if action == "retry":
            again = turn.retries < self.max_retries and can_do_better(result)
            action = "retry" if again else self.after_retries
        if action in {"retry", "review"}:
            return action
        if decided == "block":
            return "block"
        if action == "policy":
            return "review" if decided == "review" else "annotate"
        return action

    def settle(
        self, turn: Turn, result: GroundednessResult, action: OnUngrounded
    ) -> dict[str, Any]:
        """Do with an answer what was chosen, short of asking a human.

        Args:
            turn: The turn that it ends.
            result: The result of its check.
            action: What was chosen.

        Returns:
            The update of the state.
        """
        if action == "retry":
            told = feedback(result)
            return _again(replace(turn, retries=turn.retries + 1), result, told, "retrying")
        if action == "correct":
            return self._corrected(turn, result)
        if action == "block":
            return self._withheld(turn, result, self.blocked_message, "blocked")
        outcome: Outcome = "passed" if _is_fine(result) else "annotated"
        return _update(turn, result, outcome, _annotated(turn, _as_it_came(result)))

    def reviewed(
        self, turn: Turn, result: GroundednessResult, decision: Approve | Edit | Reject | Respond
    ) -> dict[str, Any]:
        """Do with an answer what a reviewer has decided.

        Args:
            turn: The turn that it ends.
            result: The result of its check.
            decision: The reviewer's decision.

        Returns:
            The update of the state.
        """
        if isinstance(decision, Respond):
            return _again(turn, result, words_of_reviewer(decision.message), "responded")
        if isinstance(decision, Reject):
            text = decision.message or self.blocked_message
            return self._withheld(turn, result, text, "rejected")
        if isinstance(decision, Edit):
            return _update(turn, result, "edited", _said(turn, decision.text))
        return _update(turn, result, "approved", _annotated(turn, _as_it_came(result)))

    def _corrected(self, turn: Turn, result: GroundednessResult) -> dict[str, Any]:
        fixed = mended(result, strip_unverifiable=self.strips_unverifiable)
        if fixed is None:
            return self._withheld(turn, result, self.blocked_message, "blocked")
        outcome: Outcome = "corrected" if fixed.edits else "annotated"
        if turn.structured is None:
            said = (
                [with_text(m, fixed.answer) for m in turn.own_messages[-1:]] if fixed.edits else []
            )
            final = next(iter(said), turn.final)
            changed = replace(turn, final=final)  # type: ignore[arg-type]  # same type as before
            return _update(turn, fixed, outcome, _annotated(changed, fixed) or said)
        if not fixed.edits:
            return _update(turn, fixed, outcome, [])
        value = edited_fields(turn.structured, fixed.original_answer, fixed.edits)
        if value is None:
            return self._withheld(turn, result, self.blocked_message, "blocked")
        shown = f"Returning structured response: {value}"
        update = _update(turn, fixed, outcome, rewritten(turn.own_messages, value, shown))
        return {**update, "structured_response": value}

    def _withheld(
        self, turn: Turn, result: GroundednessResult, text: str, outcome: Outcome
    ) -> dict[str, Any]:
        if turn.structured is None:
            return _update(turn, result, outcome, _said(turn, text))
        update = _update(turn, result, outcome, rewritten(turn.own_messages, None, text))
        return {**update, "structured_response": None}


def _is_fine(result: GroundednessResult) -> bool:
    return result.is_trusted and result.decision.action in {"pass", "flag"}


def _again(
    turn: Turn, result: GroundednessResult, told: HumanMessage, outcome: Outcome
) -> dict[str, Any]:
    """Let the model answer once more; its refused answer stays only until then."""
    identity = str(uuid4())
    ids = (*(m.id for m in turn.own_messages if m.id), identity)
    turn = replace(turn, drafts=(*turn.drafts, *ids))
    record = {**record_of(result, turn, outcome), "feedback": told.text}
    # In this form, LangGraph does not take it for something to stream to the user.
    said = {
        "role": "user",
        "content": told.text,
        "id": identity,
        "additional_kwargs": told.additional_kwargs,
    }
    return {"messages": [said], STATE_KEY: record, "jump_to": "model"}


def _update(
    turn: Turn, result: GroundednessResult, outcome: Outcome, messages: list[BaseMessage]
) -> dict[str, Any]:
    removed = [RemoveMessage(id=draft) for draft in turn.drafts]
    record = record_of(result, replace(turn, drafts=()), outcome)
    found = [*removed, *messages]
    return {**({"messages": found} if found else {}), STATE_KEY: record}


def _annotated(turn: Turn, result: GroundednessResult) -> list[BaseMessage]:
    if not isinstance(turn.final, AIMessage) or turn.structured is not None:
        return []
    message = annotated(turn.final, result)
    return [] if message is turn.final else [message]


def _said(turn: Turn, text: str) -> list[BaseMessage]:
    return [with_text(message, text) for message in turn.own_messages[-1:]]


def _as_it_came(result: GroundednessResult) -> GroundednessResult:
    return result.model_copy(update={"answer": result.original_answer, "edits": ()})


def _one_of(name: str, value: object, accepted: tuple[str, ...]) -> None:
    if value not in accepted:
        msg = f"{name} must be one of {', '.join(map(repr, accepted))}, got {value!r}"
        raise ConfigurationError(msg)
