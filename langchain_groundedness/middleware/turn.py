"""The turn that an agent has just finished: who asked, what was answered, on which evidence.

Pure: reads states of agents and graphs.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langchain_groundedness.inputs.formats import CheckInput, read_input

__all__ = ["STATE_KEY", "Turn", "marked_as_ours", "part", "read_answer", "read_turn"]

STATE_KEY = "groundedness"
"""Where the verdicts stand in the state."""

_MARK = "lc_source"
"""Key under which LangChain's middleware marks what it says in the user's place."""


@dataclass(frozen=True, kw_only=True)
class Turn:
    """What happened since the last question."""

    key: str
    """Identifies the turn among those of one conversation."""
    final: AIMessage | ToolMessage | None = None
    """The message that ends the turn, if it is an answer."""
    call: AIMessage | None = None
    """The message that called the tool whose result ends the turn."""
    structured: Any = None
    """The structured response, if the agent gives one."""
    retries: int = 0
    """How often the model was asked again in this turn."""
    drafts: tuple[str, ...] = ()
    """Ids of the refused answers of this turn that are still there, and of what was said about
    them."""

    @property
    def handed_over(self) -> bool:
        """Whether a tool's own result, with no documents beside it, is the answer."""
        return (
            isinstance(self.final, ToolMessage)
            and self.structured is None
            and not _holds_documents(self.final.artifact)
        )

    @property
    def own_messages(self) -> tuple[BaseMessage, ...]:
        """The messages that hold the answer, in order."""
        return tuple(m for m in (self.call, self.final) if m is not None)


def read_turn(state: Any) -> Turn:
    """Read the last turn from the state of an agent or a graph."""
    messages = [m for m in part(state, "messages") or () if isinstance(m, BaseMessage)]
    asked = max((n for n, m in enumerate(messages) if _is_question(m)), default=-1)
    key = (messages[asked].id or str(asked)) if asked >= 0 else ""
    record = part(state, STATE_KEY)
    same = isinstance(record, Mapping) and record.get("turn") == key
    present = {message.id for message in messages}
    own = messages[asked + 1 :]
    final, call = _final(own)
    return Turn(
        key=key,
        final=final,
        call=call,
        structured=part(state, "structured_response"),
        retries=int(record.get("retries", 0)) if same else 0,
        drafts=tuple(d for d in record.get("drafts", ()) if d in present) if same else (),
    )


def read_answer(state: Any, extractor: Callable[[Any], Any] | None) -> CheckInput:
    """Read what is to be checked from the state of an agent."""
    if extractor is not None:
        return read_input(extractor(state))
    # Other keys of the state belong to its owner: nothing in them is evidence unless he says so.
    known = {
        "messages": list(part(state, "messages") or ()),
        "structured_response": part(state, "structured_response"),
    }
    return read_input(known)


def marked_as_ours(message: BaseMessage) -> BaseMessage:
    """Mark a message as said by the middleware, so that it is not taken for a question."""
    message.additional_kwargs[_MARK] = STATE_KEY
    return message


def part(state: Any, key: str) -> Any:
    """Give a part of a state that may be a mapping or an object."""
    return state.get(key) if isinstance(state, Mapping) else getattr(state, key, None)


def _final(
    messages: Sequence[BaseMessage],
) -> tuple[AIMessage | ToolMessage | None, AIMessage | None]:
    last = next((m for m in reversed(messages) if isinstance(m, AIMessage | ToolMessage)), None)
    if isinstance(last, AIMessage):
        return (None, None) if last.tool_calls else (last, None)
    if last is None or last.status == "error":
        return None, None
    calls = (m for m in reversed(messages) if isinstance(m, AIMessage))
    return last, next((m for m in calls if _calls(m, last.tool_call_id)), None)


def _holds_documents(artifact: Any) -> bool:
    listed = artifact if isinstance(artifact, list | tuple) else [artifact]
    return any(
        isinstance(item, Document) or (isinstance(item, Mapping) and "page_content" in item)
        for item in listed
    )


def _calls(message: AIMessage, call_id: str) -> bool:
    return any(call["id"] == call_id for call in message.tool_calls)


def _is_question(message: BaseMessage) -> bool:
    return isinstance(message, HumanMessage) and _MARK not in message.additional_kwargs
