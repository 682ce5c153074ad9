"""Reads question, answer and documents from the output of any chain or agent.

No I/O, and texts are not modified: later stages use offsets into them.
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
    """The input of a check: an answer, its documents and the question."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    question: str | None = None
    answer: str
    documents: tuple[Document, ...] = ()
    unread: tuple[str, ...] = ()
    """If no documents were found: unknown input keys that may contain them."""
    query_class: str | None = None
    """Class of the question, if a classifier assigned one before the check."""
    risk_tier: str | None = None
    """Risk tier of the answer, as named by the application, if known."""
    retrieval_score: float | None = None
    """Score of the best document for the question, if the retriever gave one."""

    @property
    def labels(self) -> dict[str, Any]:
        """The labels of the question by key; `None` if unknown."""
        return {name: getattr(self, name) for name in LABELS}

    def labelled(self, labels: Mapping[Any, Any]) -> "CheckInput":
        """Fill in labels of the question that the input lacks.

        Args:
            labels: Labels by key, such as the metadata of a run; other keys are ignored.

        Returns:
            The input with these labels.

        Raises:
            InputFormatError: A label has the wrong type.
        """
        missing = (name for name, label in self.labels.items() if label is None)
        given = read_labels({name: labels.get(name) for name in missing})
        return self.model_copy(update=given) if given else self


def read_input(
    value: object, *, context_extractor: Callable[[Any], Any] | None = None
) -> CheckInput:
    """Read question, answer and documents from the output of any chain or agent.

    Accepts the outputs of `create_retrieval_chain`, `RetrievalQA`,
    `ConversationalRetrievalChain`, `RetrievalQAWithSourcesChain`, the combine-documents chains,
    `create_agent` and LCEL sequences, and anything with one of these shapes:

    - a mapping, dataclass or pydantic object; the first key present is used: the answer under
      `answer`, `result`, `output`, `output_text`, `response` or `generation`, the documents under
      `documents`, `context`, `source_documents` or `input_documents`, the question under
      `question`, `input` or `query`;
    - agent state with `messages`; only the turn since the last question is read. The answer is
      `structured_response` if present, else the last message without tool calls. The documents are
      the artifacts of tool messages if these are documents, else the texts of tool messages.
      Failed tool calls and the message with the structured response are not evidence;
    - a list of messages, a tuple `(answer, documents)`, a plain answer (`str` or `AIMessage`), a
      `CheckInput`, or a `GroundednessResult`, whose `answer` is then checked again.

    If the answer is an object or mapping with one of the answer keys, that value is the answer;
    otherwise each value becomes a line `field: value`. Texts in a list become one line each.

    A mapping, dataclass or pydantic object may also have the labels `query_class` (text),
    `risk_tier` (text) and `retrieval_score` (number).

    Args:
        value: The output of the chain.
        context_extractor: Converts `value` from any other shape to an accepted one.

    Returns:
        Question, answer and documents. `documents` is empty if none were found; the answer may be
        empty too.

    Raises:
        InputFormatError: The shape is not supported, it contains no answer, or
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
    """Return whether any document contains text."""
    return any(document.page_content.strip() for document in documents)


def no_documents(source: CheckInput) -> str:
    """Explain why an input without documents cannot be checked.

    Args:
        source: The input.

    Returns:
        The reason, with the input keys that were not read.
    """
    if not source.unread:
        return NO_DOCUMENTS
    unread, accepted = (", ".join(map(repr, k)) for k in (source.unread, _DOCUMENT_KEYS))
    return f"{NO_DOCUMENTS}: the input has {unread}; documents are read from {accepted}"


def _extracted(value: object, context_extractor: Callable[[Any], Any]) -> object:
    try:
        return context_extractor(value)
    except Exception as exc:
        keys = _keys_of(value) if isinstance(value, Mapping) else ()
        came = f"keys {', '.join(map(repr, keys))}" if keys else f"type {_type(value)}"
        msg = (
            f"context_extractor= failed with {type(exc).__name__} on an input with {came}; it must "
            "accept this input and return one of the accepted shapes"
        )
        raise InputFormatError(msg, keys=keys) from exc


def _read_mapping(parts: Mapping[Any, Any]) -> CheckInput:
    parts = _unwrapped(parts)
    keys = _keys_of(parts)
    turn = _last_turn(parts.get("messages"), keys)
    answer, evidence = _find_answer(parts, turn, keys)
    given = (_documents(parts.get(key), keys) for key in _DOCUMENT_KEYS)
    documents = next(filter(None, given), ()) or tuple(_tool_documents(evidence))
    return CheckInput(
        question=_find_question(parts) or _last_question(turn),
        answer=answer,
        documents=documents,
        unread=() if documents or not _KNOWN_KEYS.isdisjoint(keys) else _unread(keys),
        **read_labels(parts),
    )


def _unread(keys: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(key for key in keys if key not in (*_QUESTION_KEYS, *_ANSWER_KEYS, *LABELS))


def _unwrapped(parts: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """Return the state inside a typed LangGraph output, or the mapping unchanged."""
    inner = _as_mapping(parts.get("value")) if set(parts) == {"value", "interrupts"} else None
    return parts if inner is None else {**inner, "__interrupt__": parts["interrupts"]}


def _find_answer(
    parts: Mapping[Any, Any], turn: Sequence[BaseMessage], keys: tuple[str, ...]
) -> tuple[str, Sequence[BaseMessage]]:
    """Return the answer, and the messages that may be evidence for it."""
    if (key := answer_key(parts.get)) is not None:
        return _answer_text(parts[key], keys), turn
    final = next((m for m in reversed(turn) if isinstance(m, AIMessage | ToolMessage)), None)
    structured = parts.get("structured_response")
    if structured is not None:
        # Its tool message repeats the answer, which must not be evidence for itself.
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
            "the messages after the last question contain no answer: no model message without "
            f"tool calls, and no final tool result. {_ADVICE}"
        )
    listed = ", ".join(map(repr, keys)) or "none"
    return f"no answer found; the keys seen are: {listed}. {_ADVICE}"


def _answer_text(value: object, keys: tuple[str, ...]) -> str:
    if isinstance(value, str):
        return str(value)  # drops subclasses; LangChain's is callable
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
        raise InputFormatError(msg, keys=keys) from None  # the cause contains the message
    asked = (place for place, message in enumerate(whole) if _is_question(message))
    return whole[max(asked, default=0) :]


def _is_question(message: BaseMessage) -> bool:
    # Middleware adds user messages too (conversation summaries), with this mark.
    return isinstance(message, HumanMessage) and "lc_source" not in message.additional_kwargs


def _last_question(messages: Sequence[BaseMessage]) -> str | None:
    return next((_message_text(m) for m in reversed(messages) if _is_question(m)), None)


def _find_question(parts: Mapping[Any, Any]) -> str | None:
    for key in _QUESTION_KEYS:
        value = parts.get(key)
        if isinstance(value, str):
            return str(value)
        if isinstance(value, HumanMessage):
            return _message_text(value)
        if isinstance(value, list | tuple):
            question = _last_question([m for m in value if isinstance(m, BaseMessage)])
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
    """Convert a document or its JSON form; `None` for anything else."""
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


def _keys_of(parts: Mapping[Any, Any]) -> tuple[str, ...]:
    keys = list(parts)[:_MOST_KEYS]
    return tuple(key[:_LONGEST_KEY] if isinstance(key, str) else _type(key) for key in keys)


def _type(value: object) -> str:
    return type(value).__name__


LABELS = ("query_class", "risk_tier", "retrieval_score")
"""Keys of the labels; an absent key equals `None`."""


def read_labels(parts: Mapping[Any, Any]) -> dict[str, Any]:
    """Read the labels that are set."""
    read = {"query_class": _text, "risk_tier": _text, "retrieval_score": _number}
    found = {name: read[name](name, parts.get(name)) for name in LABELS}
    return {name: value for name, value in found.items() if value is not None}


def _text(name: str, value: object) -> str | None:
    if isinstance(value, Enum):
        value = value.value
    label = getattr(value, "label", value)  # of a classifier's result
    if label is None or isinstance(label, str):
        return (str(label).strip() or None) if label else None
    raise _wrong_type(name, value, "a text, an object with a text as its `label`, or None")


def _number(name: str, value: object) -> float | None:
    score = getattr(value, "score", value)  # of a retrieval gate's result
    if score is None:
        return None
    if isinstance(score, SupportsFloat) and not isinstance(score, bool) and isfinite(score):
        return float(score)
    raise _wrong_type(name, value, "a finite number, an object with one as its `score`, or None")


def _wrong_type(name: str, value: object, accepted: str) -> InputFormatError:
    return InputFormatError(
        f"{name!r} is of type {type(value).__name__}; accepted: {accepted}", keys=(name,)
    )


class GroundednessInput(BaseModel):
    """The basic input schema; outputs of chains and agents are accepted too."""

    answer: str
    documents: list[Any] = Field(default_factory=list)
    """`Document` objects or texts."""
    question: str | None = None
    query_class: str | None = None
    risk_tier: str | None = None
    retrieval_score: float | None = None
    """Used by the policy, like the two labels above."""


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
        """Read an input off the event loop; reading unknown objects may block."""
        if self.context_extractor is not None or not isinstance(value, _PLAIN):
            return await run_in_executor(None, self, value)
        return await computed(0, self, value)


def reader(
    owner: str, context_extractor: Callable[[Any], Any] | None, given: Mapping[str, Any]
) -> InputReader:
    """Build the reader for the inputs of a check."""
    if unknown := set(given) - {"documents", "question", *LABELS}:
        msg = (
            f"{owner} got unknown arguments {sorted(unknown)}; besides the input and the config it "
            f"accepts documents=, question=, {'=, '.join(LABELS)}="
        )
        raise ConfigurationError(msg)

    return InputReader(context_extractor, given)
