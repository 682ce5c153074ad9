"""Reads question, answer and documents out of whatever a chain or an agent returned.

No I/O, and no text is changed: offsets of later stages refer to the texts exactly as this module
gives them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from math import isfinite
from typing import Any, SupportsFloat

from langchain_core.documents import Document
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    ToolMessage,
    convert_to_messages,
)
from langchain_core.runnables.config import run_in_executor
from pydantic import BaseModel, ConfigDict, Field

from langchain_groundedness._runtime.executors import computed
from langchain_groundedness.exceptions import ConfigurationError, InputFormatError
from langchain_groundedness.types import GroundednessResult

__all__ = [
    "LABELS",
    "NO_DOCUMENTS",
    "CheckInput",
    "GroundednessInput",
    "InputReader",
    "answer_key",
    "no_documents",
    "read_input",
    "reader",
]

_QUESTION_KEYS = ("question", "input", "query")

_ANSWER_KEYS = ("answer", "result", "output", "output_text", "response", "generation")

_DOCUMENT_KEYS = ("documents", "context", "source_documents", "input_documents")

_KNOWN_KEYS = frozenset({*_DOCUMENT_KEYS, "messages"})

_MOST_KEYS = 30

_LONGEST_KEY = 60

NO_DOCUMENTS = "no documents to check against"

_ADVICE = (
    f"Accepted: a mapping with an answer (under {', '.join(map(repr, _ANSWER_KEYS))}) and "
    f"documents (under {', '.join(map(repr, _DOCUMENT_KEYS))}), the state of an agent "
    "({'messages': ...}), a tuple (answer, documents), a str or an AIMessage; documents are "
    "Document objects, texts or one text. For any other shape pass context_extractor=, a function "
    "that returns one of these."
)


class CheckInput(BaseModel):
    """What is checked: an answer, the documents it must rest on, and the question it answers."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    question: str | None = None
    answer: str
    documents: tuple[Document, ...] = ()
    unread: tuple[str, ...] = ()
    """Where no documents were found: the keys of the input in which there may have been some."""
    query_class: str | None = None
    """Of which class the question is, if a classifier before the check has said it."""
    risk_tier: str | None = None
    """How much depends on the answer, in the words of the application, if it has said it."""
    retrieval_score: float | None = None
    """How close the best document is to the question, if what retrieved has said it."""

    @property
    def labels(self) -> dict[str, Any]:
        """What is known about the question, by key; `None` where nothing is."""
        return {name: getattr(self, name) for name in LABELS}

    def labelled(self, labels: Mapping[Any, Any]) -> "CheckInput":
        """Take what is known about the question from elsewhere, where the input does not say it.

        Args:
            labels: Such as the metadata of a run; keys that are no labels do not count.

        Returns:
            The input with them.

        Raises:
            InputFormatError: One of them is of a type that does not fit.
        """
        missing = (name for name, label in self.labels.items() if label is None)
        given = read_labels({name: labels.get(name) for name in missing})
        return self.model_copy(update=given) if given else self


def read_input(
    value: object, *, context_extractor: Callable[[Any], Any] | None = None
) -> CheckInput:
    """Read question, answer and documents from the output of any chain or agent.

    Accepted unchanged are the outputs of `create_retrieval_chain`, `RetrievalQA`,
    `ConversationalRetrievalChain`, `RetrievalQAWithSourcesChain`, the combine-documents chains,
    `create_agent` and LCEL sequences, and everything else that has one of these shapes:

    - a mapping, dataclass or pydantic object; the first key present counts: the answer under
      `answer`, `result`, `output`, `output_text`, `response` or `generation`, the documents under
      `documents`, `context`, `source_documents` or `input_documents`, the question under
      `question`, `input` or `query`;
    - agent state with `messages`, of which only the turn since the last question counts. The
      answer is `structured_response` if there is one, else the last message that calls no tool;
      the documents are the artifacts of tool messages where these are documents, else their
      texts. Failed tool calls and the message that hands over a structured response are no
      evidence;
    - a list of messages, a tuple `(answer, documents)`, a plain answer (`str` or `AIMessage`), a
      `CheckInput`, or a `GroundednessResult`, whose `answer` is then checked afresh.

    An answer that is an object or a mapping is read as its own `answer` field if it has one of the
    answer keys, and otherwise as one line `field: value` for each value in it; texts in a list are
    one line each.

    A mapping, dataclass or pydantic object may also say of which class the question is under
    `query_class`, how much depends on the answer under `risk_tier`, and how close the best document
    is to the question under `retrieval_score`: two texts and a number.

    Args:
        value: What the chain returned.
        context_extractor: Reads any other shape: called with `value`, returns an accepted one.

    Returns:
        The three parts. `documents` is empty if there are none to be found; an empty answer is
        an answer.

    Raises:
        InputFormatError: The shape cannot be read, there is no answer in it, or
            `context_extractor` failed.

    Example:
        >>> read = read_input({"input": "Capital?", "context": ["Rome is it."], "answer": "Rome"})
        >>> read.question, read.answer, read.documents[0].page_content
        ('Capital?', 'Rome', 'Rome is it.')
    """
    if context_extractor is not None:
        value = _extracted(value, context_extractor)
    if isinstance(value, CheckInput):
        return value
    if isinstance(value, GroundednessResult):
        return CheckInput(
            question=value.question,
            answer=value.answer,
            documents=value.documents,
            **{name: getattr(value, name) for name in LABELS},
        )
    if isinstance(value, tuple) and len(value) == 2:  # noqa: PLR2004  (a pair)
        return CheckInput(answer=_answer_text(value[0], ()), documents=_documents(value[1], ()))
    if isinstance(value, str | AIMessage):
        return CheckInput(answer=_answer_text(value, ()))
    if isinstance(value, list) and value and all(isinstance(m, BaseMessage) for m in value):
        value = {"messages": value}
    parts = _as_mapping(value)
    if parts is None:
        msg = f"cannot read an answer from a value of type {_type(value)}. {_ADVICE}"
        raise InputFormatError(msg)
    return _read_mapping(parts)


def has_text(documents: Iterable[Document]) -> bool:
    """Return whether there is anything to read."""
    return any(document.page_content.strip() for document in documents)


def no_documents(source: CheckInput) -> str:
    """Say why an input cannot be checked that has no documents.

    Args:
        source: The input.

    Returns:
        The reason, with the keys that were not read, if it had any.
    """
    if not source.unread:
        return NO_DOCUMENTS
    unread, accepted = (", ".join(map(repr, k)) for k in (source.unread, _DOCUMENT_KEYS))
    return f"{NO_DOCUMENTS}: the input has {unread}; documents are read from {accepted}"


def _extracted(value: object, context_extractor: Callable[[Any], Any]) -> object:
    try:
        return context_extractor(value)
    except Exception as exc:
        keys = _seen(value) if isinstance(value, Mapping) else ()
        came = f"keys {', '.join(map(repr, keys))}" if keys else f"type {_type(value)}"
        msg = (
            f"context_extractor= failed with {type(exc).__name__} on an input with {came}; it must "
            "return one of the accepted shapes"
        )
        raise InputFormatError(msg, keys=keys) from exc


def _read_mapping(parts: Mapping[Any, Any]) -> CheckInput:
    parts = _unwrapped(parts)
    keys = _seen(parts)
    turn = _last_turn(parts.get("messages"), keys)
    answer, evidence = _find_answer(parts, turn, keys)
    given = (_documents(parts.get(key), keys) for key in _DOCUMENT_KEYS)
    documents = next(filter(None, given), ()) or tuple(_tool_documents(evidence))
    return CheckInput(
        question=_find_question(parts) or _asked(turn),
        answer=answer,
        documents=documents,
        unread=() if documents or not _KNOWN_KEYS.isdisjoint(keys) else _unread(keys),
        **read_labels(parts),
    )


def _unread(keys: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(key for key in keys if key not in (*_QUESTION_KEYS, *_ANSWER_KEYS, *LABELS))


def _unwrapped(parts: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """Return the state inside the typed output of a LangGraph graph, or the parts as they are."""
    inner = _as_mapping(parts.get("value")) if set(parts) == {"value", "interrupts"} else None
    return parts if inner is None else {**inner, "__interrupt__": parts["interrupts"]}


def _find_answer(
    parts: Mapping[Any, Any], turn: Sequence[BaseMessage], keys: tuple[str, ...]
) -> tuple[str, Sequence[BaseMessage]]:
    """Give the answer, and the messages whose texts may be evidence for it."""
    if (key := answer_key(parts.get)) is not None:
        return _answer_text(parts[key], keys), turn
    final = next((m for m in reversed(turn) if isinstance(m, AIMessage | ToolMessage)), None)
    structured = parts.get("structured_response")
    if structured is not None:
        # Its tool message repeats the answer, which would then be evidence for itself.
        own = final.name if isinstance(final, ToolMessage) else None
        others = [m for m in turn if m is not final and (own is None or m.name != own)]
        return _answer_text(structured, keys), others
    if isinstance(final, AIMessage) and not final.tool_calls:
        return _message_text(final), turn
    if isinstance(final, ToolMessage) and not parts.get("__interrupt__"):
        return _message_text(final), [m for m in turn if m is not final or _artifacts(m)]
    raise InputFormatError(_no_answer(parts, keys), keys=keys)


def answer_key(value_of: Callable[[str], object]) -> str | None:
    """Give the first of the keys of an answer that has a value."""
    return next((key for key in _ANSWER_KEYS if value_of(key) is not None), None)


def _no_answer(parts: Mapping[Any, Any], keys: tuple[str, ...]) -> str:
    if parts.get("__interrupt__"):
        return "the agent was interrupted before it gave an answer: resume it, then check"
    if "messages" in parts:
        return (
            "the last turn of the messages holds no answer: no message of the model after the "
            f"last question that calls no tool, and no tool result after it. {_ADVICE}"
        )
    listed = ", ".join(map(repr, keys)) or "none"
    return f"no answer found; the keys seen are: {listed}. {_ADVICE}"


def _answer_text(value: object, keys: tuple[str, ...]) -> str:
    if isinstance(value, str):
        return str(value)  # drops subclasses, of which LangChain's is callable
    if isinstance(value, AIMessage | ToolMessage):
        return _message_text(value)
    if isinstance(value, list) and any(isinstance(b, dict) and "type" in b for b in value):
        return _message_text(AIMessage(content=value))
    parts = _as_mapping(value)
    if parts is not None and (key := answer_key(parts.get)) is not None:
        return _answer_text(parts[key], keys)
    if parts is None and not isinstance(value, list | tuple | bool | int | float):
        msg = f"the answer is of type {_type(value)}. {_ADVICE}"
        raise InputFormatError(msg, keys=keys)
    return "\n".join(_lines(value, ""))


def _lines(value: object, label: str) -> Iterator[str]:
    parts = _as_mapping(value)
    if parts is not None:
        for key, inner in parts.items():
            yield from _lines(inner, f"{label} {str(key).replace('_', ' ')}".strip())
    elif isinstance(value, list | tuple | set | frozenset):
        for inner in value:
            yield from _lines(inner, label)
    elif value is not None:
        shown = value.value if isinstance(value, Enum) else value
        text = str(shown).lower() if isinstance(shown, bool) else str(shown)
        yield f"{label}: {text}" if label else text


def _message_text(message: BaseMessage) -> str:
    return str(message.text)


def _last_turn(messages: object, keys: tuple[str, ...]) -> Sequence[BaseMessage]:
    """Return the messages from the last question on; earlier turns are no evidence."""
    if messages is None:
        return ()
    listed: list[Any] = list(messages) if isinstance(messages, list | tuple) else [messages]
    try:
        whole = convert_to_messages(listed)
    except (NotImplementedError, TypeError, ValueError):
        msg = f"'messages' contains a value that is not a message. {_ADVICE}"
        raise InputFormatError(msg, keys=keys) from None  # the cause quotes the message
    asked = (place for place, message in enumerate(whole) if _is_question(message))
    return whole[max(asked, default=0) :]


def _is_question(message: BaseMessage) -> bool:
    # Middleware speaks as the user too (summaries of the conversation) and marks what it says.
    return isinstance(message, HumanMessage) and "lc_source" not in message.additional_kwargs


def _asked(messages: Sequence[BaseMessage]) -> str | None:
    return next((_message_text(m) for m in reversed(messages) if _is_question(m)), None)


def _find_question(parts: Mapping[Any, Any]) -> str | None:
    for key in _QUESTION_KEYS:
        value = parts.get(key)
        if isinstance(value, str):
            return str(value)
        if isinstance(value, HumanMessage):
            return _message_text(value)
        if isinstance(value, list | tuple):
            question = _asked([m for m in value if isinstance(m, BaseMessage)])
            if question is not None:
                return question
    return None


def _tool_documents(messages: Sequence[BaseMessage]) -> Iterator[Document]:
    for message in messages:
        if not isinstance(message, ToolMessage) or message.status == "error":
            continue
        found = _artifacts(message)
        text = _message_text(message)
        if found:
            yield from found
        elif text.strip():
            origin = {"tool": message.name, "tool_call_id": message.tool_call_id}
            yield Document(page_content=text, metadata=origin)


def _artifacts(message: BaseMessage) -> Sequence[Document]:
    artifact = message.artifact if isinstance(message, ToolMessage) else None
    listed = artifact if isinstance(artifact, list | tuple) else [artifact]
    return [found for item in listed if (found := _record(item)) is not None]


def _documents(value: object, keys: tuple[str, ...]) -> tuple[Document, ...]:
    if value is None or (isinstance(value, str) and not value.strip()):
        return ()
    return tuple(
        _document(item, keys) for item in (value if isinstance(value, list | tuple) else [value])
    )


def _document(item: object, keys: tuple[str, ...]) -> Document:
    found = Document(page_content=str(item)) if isinstance(item, str) else _record(item)
    if found is None:
        msg = f"the documents contain a value of type {_type(item)}. {_ADVICE}"
        raise InputFormatError(msg, keys=keys)
    return found


def _record(item: object) -> Document | None:
    """Return a document that came as such or as its JSON, or `None` for anything else."""
    if isinstance(item, Document):
        return item
    if isinstance(item, Mapping) and isinstance(item.get("page_content"), str):
        return Document(
            page_content=str(item["page_content"]),
            metadata=dict(item.get("metadata") or {}),
            id=item.get("id"),
        )
    return None


def _as_mapping(value: object) -> Mapping[Any, Any] | None:
    if isinstance(value, BaseMessage | Document):
        return None
    if isinstance(value, Mapping):
        return value
    if isinstance(value, BaseModel):
        return dict(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    return None


def _seen(parts: Mapping[Any, Any]) -> tuple[str, ...]:
    keys = list(parts)[:_MOST_KEYS]
    return tuple(key[:_LONGEST_KEY] if isinstance(key, str) else _type(key) for key in keys)


def _type(value: object) -> str:
    return type(value).__name__


LABELS = ("query_class", "risk_tier", "retrieval_score")
"""The keys. A key that is absent says as much as `None`."""


def read_labels(parts: Mapping[Any, Any]) -> dict[str, Any]:
    """Read what is there."""
    read = {"query_class": _text, "risk_tier": _text, "retrieval_score": _number}
    found = {name: read[name](name, parts.get(name)) for name in LABELS}
    return {name: value for name, value in found.items() if value is not None}


def _text(name: str, value: object) -> str | None:
    if isinstance(value, Enum):
        value = value.value
    label = getattr(value, "label", value)  # what classifiers give
    if label is None or isinstance(label, str):
        return (str(label).strip() or None) if label else None
    raise _unfit(name, value, "a text, an object with a text as its `label`, or None")


def _number(name: str, value: object) -> float | None:
    score = getattr(value, "score", value)  # what gates give
    if score is None:
        return None
    if isinstance(score, SupportsFloat) and not isinstance(score, bool) and isfinite(score):
        return float(score)
    raise _unfit(name, value, "a finite number, an object with one as its `score`, or None")


def _unfit(name: str, value: object, accepted: str) -> InputFormatError:
    return InputFormatError(
        f"{name!r} is of type {type(value).__name__}; accepted: {accepted}", keys=(name,)
    )


class GroundednessInput(BaseModel):
    """The plainest input; outputs of chains and agents are accepted as they are."""

    answer: str
    documents: list[Any] = Field(default_factory=list)
    """`Document`s or texts."""
    question: str | None = None
    query_class: str | None = None
    risk_tier: str | None = None
    retrieval_score: float | None = None
    """These three are for the policy."""


_PLAIN = (dict, str, BaseModel)


@dataclass(frozen=True)
class InputReader:
    """Reads the inputs of a check."""

    context_extractor: Callable[[Any], Any] | None
    given: Mapping[str, Any]

    def __call__(self, value: Any) -> CheckInput:
        """Read an input."""
        source = read_input(value, context_extractor=self.context_extractor)
        return read_input({**dict(source), **self.given}) if self.given else source

    async def aread(self, value: Any) -> CheckInput:
        """Read an input off the event loop; foreign objects may block while they are read."""
        if self.context_extractor is not None or not isinstance(value, _PLAIN):
            return await run_in_executor(None, self, value)
        return await computed(0, self, value)


def reader(
    owner: str, context_extractor: Callable[[Any], Any] | None, given: Mapping[str, Any]
) -> InputReader:
    """Make what reads the inputs of a check."""
    if unknown := set(given) - {"documents", "question", *LABELS}:
        msg = (
            f"{owner} got {sorted(unknown)}; besides the input and the config it "
            f"accepts documents=, question=, {'=, '.join(LABELS)}=, for inputs that carry none"
        )
        raise ConfigurationError(msg)

    return InputReader(context_extractor, given)
