"""Reads the last turn from an agent's state, and writes the result of its check.

It also keeps the tool results of the conversation there, since messages are trimmed and summarised.
Pure. It writes plain data, which any checkpointer can store.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langchain_groundedness.inputs.formats import (
    EARLIER_CHARACTERS,
    LABELS,
    CheckInput,
    InputReader,
    is_question,
    limit_earlier_documents,
    mark_as_generated,
    split_turns,
    tool_documents,
)
from langchain_groundedness.types import GroundednessResult

__all__ = [
    "EVIDENCE_KEY",
    "KEPT",
    "STATE_KEY",
    "Outcome",
    "Turn",
    "kept_evidence",
    "message_to_model",
    "messages_of",
    "plain",
    "plain_result",
    "read_answer",
    "read_result",
    "read_turn",
    "record_of",
    "state_record",
    "state_value",
    "turn_record",
]

STATE_KEY = "groundedness"
"""State key of the verdicts."""

_MARK = "lc_source"
"""Key with which LangChain's middleware marks messages it writes as the user."""


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
    """Ids of this turn's refused answers that are still in the state, and of their feedback."""

    @property
    def is_returned_directly(self) -> bool:
        """Whether a tool's own result, with no documents beside it, is the answer."""
        if not isinstance(self.final, ToolMessage) or self.structured is not None:
            return False
        return not any(tool_documents([mark_as_generated(self.final)]))

    @property
    def own_messages(self) -> tuple[BaseMessage, ...]:
        """The messages that hold the answer, in order."""
        return tuple(m for m in (self.call, self.final) if m is not None)


def read_turn(state: Any) -> Turn:
    """Read the last turn from the state of an agent or a graph."""
    messages = messages_of(state)
    asked = max((n for n, m in enumerate(messages) if is_question(m)), default=-1)
    key = (messages[asked].id or str(asked)) if asked >= 0 else ""
    record = record_of(state, key)
    final, call = _final(messages[asked + 1 :])
    present = {message.id for message in messages}
    return Turn(
        key=key,
        final=final,
        call=call,
        structured=state_value(state, "structured_response"),
        retries=int(record.get("retries", 0)),
        drafts=tuple(draft for draft in record.get("drafts", ()) if draft in present),
    )


def message_to_model(text: str, **fields: Any) -> HumanMessage:
    """Make a message to the model that does not count as a question."""
    return HumanMessage(text, additional_kwargs={_MARK: STATE_KEY}, **fields)


def state_value(state: Any, key: str) -> Any:
    """Give a value of a state that may be a mapping or an object."""
    return state.get(key) if isinstance(state, Mapping) else getattr(state, key, None)


def messages_of(state: Any) -> list[BaseMessage]:
    """Give the messages of a state."""
    return [m for m in state_value(state, "messages") or () if isinstance(m, BaseMessage)]


def record_of(state: Any, turn: str | None = None) -> Mapping[str, Any]:
    """Give what was stored about the last answer; nothing if it was in another turn."""
    record = state_value(state, STATE_KEY)
    known = isinstance(record, Mapping) and (turn is None or record.get("turn") == turn)
    return record if known else {}


def _final(
    messages: Sequence[BaseMessage],
) -> tuple[AIMessage | ToolMessage | None, AIMessage | None]:
    last = next((m for m in reversed(messages) if isinstance(m, AIMessage | ToolMessage)), None)
    if isinstance(last, AIMessage):
        return (None, None) if last.tool_calls else (last, None)
    if last is None or last.status == "error":
        return None, None
    calls = (m for m in reversed(messages) if isinstance(m, AIMessage))
    asked = (m for m in calls if last.tool_call_id in (call["id"] for call in m.tool_calls))
    return last, next(asked, None)


Outcome: TypeAlias = Literal[
    "passed",
    "annotated",
    "corrected",
    "retrying",
    "blocked",
    "approved",
    "edited",
    "rejected",
    "responded",
    "not_judged",
    "waiting",
]
"""The action taken on an answer; `waiting` until it is taken."""

KEPT = (
    *("verdict", "trust_score", "is_trusted", "decision", "final", "claims", "edits", "usage"),
    "evidence_source",
    *LABELS,
)
"""Fields of a result that are kept in the state."""


def state_record(result: GroundednessResult, turn: Turn, outcome: Outcome) -> dict[str, Any]:
    """Convert a result to the plain data kept in the state."""
    return {**turn_record(turn, outcome), **plain_result(result, KEPT)}


def turn_record(turn: Turn, outcome: Outcome) -> dict[str, Any]:
    """Convert what is known without a result to the plain data kept in the state."""
    return {
        "turn": turn.key,
        "message_id": turn.final.id if turn.final else None,
        "outcome": outcome,
        "retries": turn.retries,
        "drafts": list(turn.drafts),
        "feedback": None,
    }


def plain_result(
    result: GroundednessResult, fields: Iterable[str] = GroundednessResult.model_fields
) -> dict[str, Any]:
    """Convert a result to plain data, without the documents."""
    data: dict[str, Any] = plain({n: getattr(result, n) for n in fields if n != "documents"})
    return data


def read_result(data: Mapping[str, Any], source: CheckInput) -> GroundednessResult:
    """Read a result back."""
    return GroundednessResult.model_validate({**data, "documents": source.documents})


def plain(value: Any) -> Any:
    """Convert values of this package and their metadata to plain data."""
    return json.loads(json.dumps(value, default=_as_data, skipkeys=True))


def _as_data(value: Any) -> Any:
    dump = getattr(value, "model_dump", None)
    return dump() if callable(dump) else str(value)


EVIDENCE_KEY = "groundedness_evidence"
"""State key of the tool results of a conversation."""


def kept_evidence(state: Any, reader: InputReader) -> dict[str, Any]:
    """Return what the state must keep: the tool results it has kept, and those in its messages.

    Turns are numbered from the start of the conversation, even if its first messages are gone.
    """
    known = state_value(state, EVIDENCE_KEY) or {}
    messages = messages_of(state)
    questions = [message.id for message in messages if is_question(message)]
    number, question = known.get("turn", 0), known.get("question")
    if known and question in questions:
        number += len(questions) - 1 - questions.index(question)
    elif questions:
        number += 1 if known else len(questions)
    results = {result["message"]: result for result in known.get("results", ())}
    for back, turn in enumerate(reversed(split_turns(messages))):
        for message in turn:
            if isinstance(message, ToolMessage) and (back == 0 or _id(message) not in results):
                results[_id(message)] = _result(message, number - back, reader)
    return {
        "turn": number,
        "question": questions[-1] if questions else question,
        "results": list(_bounded(results.values())),
    }


def read_answer(state: Any, reader: InputReader) -> CheckInput:
    """Read the input of the check, with kept tool results beside those of the last turn."""
    # Other keys belong to the application and are evidence only if an option says so.
    named = (reader.answer_key, reader.documents_key, reader.question_key)
    keys = (*filter(None, named), "structured_response")
    known = {key: state_value(state, key) for key in keys}
    known["messages"] = list(state_value(state, "messages") or ())
    source = replace(reader, evidence="turn")(known)
    if source.documents and source.evidence_source == "returned":
        return source
    messages = messages_of(state)
    read = {_id(m) for m in split_turns(messages)[-1] if isinstance(m, ToolMessage)}
    kept = kept_evidence(state, reader)
    turn = kept["turn"]
    others = [
        document
        for result in kept["results"]
        if result["message"] not in read and (reader.evidence == "thread" or result["turn"] == turn)
        for document in _documents(result, now=turn)
    ]
    documents = (*source.documents, *limit_earlier_documents(others, known=source.documents))
    return source.model_copy(update={"documents": documents, "evidence_source": "retrieved"})


def _result(message: ToolMessage, turn: int, reader: InputReader) -> dict[str, Any]:
    found = tool_documents([message], trust_generated=reader.trust_generated)
    documents = [
        {"page_content": d.page_content, "metadata": d.metadata, "id": d.id} for d in found
    ]
    return plain({"turn": turn, "message": _id(message), "documents": documents})  # type: ignore[no-any-return]  # a dict


def _bounded(results: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Keep the latest results, the last turn first, up to a limit of text."""
    left = EARLIER_CHARACTERS
    for result in sorted(results, key=lambda result: -result["turn"]):
        left -= sum(len(document["page_content"]) for document in result["documents"])
        if left < 0:
            return
        if result["documents"]:
            yield result


def _documents(result: Mapping[str, Any], *, now: int) -> Iterator[Document]:
    turn = {} if result["turn"] == now else {"turn": result["turn"]}
    for document in result["documents"]:
        yield Document(**{**document, "metadata": {**document["metadata"], **turn}})


def _id(message: ToolMessage) -> str:
    return message.id or message.tool_call_id
