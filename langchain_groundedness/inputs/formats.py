"""Reads question, answer and documents from the output of any chain or agent.

No I/O, and texts are not modified: later stages use offsets into them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from enum import Enum
from itertools import pairwise
from math import isfinite
from typing import Any, Literal, SupportsFloat, TypeAlias, TypedDict, Unpack, get_args

from langchain_core.documents import Document
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    ToolMessage,
    convert_to_messages,
)
from langchain_core.runnables.config import run_in_executor
from pydantic import BaseModel, Field

from langchain_groundedness._runtime.executors import run_in_worker
from langchain_groundedness._runtime.options import expand_options, require_one_of
from langchain_groundedness.exceptions import ConfigurationError, InputFormatError
from langchain_groundedness.types import EvidenceSource, FrozenModel, GroundednessResult

__all__ = [
    "EARLIER_CHARACTERS",
    "LABELS",
    "NO_DOCUMENTS",
    "TEXT_KEYS",
    "CheckInput",
    "Evidence",
    "GroundednessInput",
    "InputParts",
    "InputReader",
    "as_document",
    "as_mapping",
    "flatten_documents",
    "is_question",
    "iter_leaves",
    "leaf_text",
    "limit_earlier_documents",
    "mark_as_generated",
    "no_documents",
    "read_input",
    "split_turns",
    "tool_documents",
]

Evidence: TypeAlias = Literal["turn", "thread"]
"""Which tool results of a conversation are evidence: those since the last question, or all."""

_QUESTION_KEYS = ("question", "input", "query")

_ANSWER_KEYS = ("answer", "result", "output", "output_text", "response", "generation")

# In a state with messages or a structured answer these may mean something else.
_MORE_ANSWER_KEYS = ("final_answer", "reply", "completion", "text", "content", "summary")

_DOCUMENT_KEYS = ("documents", "context", "source_documents", "input_documents")

TEXT_KEYS = ("page_content", "text", "content", "snippet")

_TEXT_KEYS_SHOWN = f"{', '.join(map(repr, TEXT_KEYS[:-1]))} or {TEXT_KEYS[-1]!r}"

_GENERATED = "generated"

EARLIER_CHARACTERS = 200_000
"""Most text from earlier turns of a conversation, about 50,000 tokens."""

_MOST_KEYS = 30

_LONGEST_KEY = 60

NO_DOCUMENTS = "no documents to check against"

_ADVICE = (
    "Accepted: a mapping with an answer (under "
    f"{', '.join(map(repr, (*_ANSWER_KEYS, *_MORE_ANSWER_KEYS)))}) and documents (under "
    f"{', '.join(map(repr, _DOCUMENT_KEYS))}, or a list of Document objects under any key), the "
    "state of an agent ({'messages': ...}), a tuple (answer, documents), a str or an AIMessage; "
    "documents are a list of Document objects, texts, search hits (mappings with a text under "
    f"{_TEXT_KEYS_SHOWN}) or (document, score) pairs, or one text. Name other keys with "
    "answer_key= and documents_key=. For any other shape give context_extractor=, a function that "
    "returns one of these, to a GroundednessRunnable."
)


class CheckInput(FrozenModel):
    """The input of a check: an answer, its documents and the question."""

    question: str | None = None
    answer: str
    documents: tuple[Document, ...] = ()
    evidence_source: EvidenceSource = "returned"
    """Where the documents come from."""
    unread: tuple[str, ...] | None = ()
    """If no documents were found: unknown input keys that may contain them; `None` in the check of
    a mere text, which has no keys."""
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


class ReadingOptions(TypedDict, total=False):
    """Where the parts of an input are, and which of them are evidence."""

    evidence: Evidence
    trust_generated: bool
    answer_key: str | None
    documents_key: str | None
    question_key: str | None


class InputParts(TypedDict, total=False):
    """Parts of an input that are given by name."""

    documents: Sequence[Any] | None
    question: str | None
    query_class: object
    risk_tier: object
    retrieval_score: object


def read_input(
    value: object,
    *,
    context_extractor: Callable[[Any], Any] | None = None,
    **options: Unpack[ReadingOptions],
) -> CheckInput:
    """Read question, answer and documents from the output of any chain or agent.

    Accepts the outputs of `create_retrieval_chain`, `RetrievalQA`,
    `ConversationalRetrievalChain`, `RetrievalQAWithSourcesChain`, the combine-documents chains,
    `create_agent` and LCEL sequences, and anything with one of these shapes:

    - a mapping, dataclass or pydantic object; the first key present is used: the answer under
      `answer`, `result`, `output`, `output_text`, `response` or `generation` (without messages also
      `final_answer`, `reply`, `completion`, `text`, `content` or `summary`), the documents under
      `documents`, `context`, `source_documents` or `input_documents`, else a list of `Document`
      objects under any key, the question under `question`, `input` or `query`;
    - agent state with `messages`. The answer is `structured_response` if present, else the last
      message without tool calls. The documents are the artifacts of tool messages if these are
      documents, else the texts of tool messages: those since the last question first, then those of
      earlier turns, newest first, with the number of their turn in the metadata as `turn`. Failed
      tool calls, text that a model wrote inside a tool, and the message with the structured
      response are not evidence;
    - a list of messages, a tuple `(answer, documents)`, a plain answer (`str` or `AIMessage`), a
      `CheckInput`, or a `GroundednessResult`, whose `answer` is then checked again.

    Documents are `Document` objects, texts, mappings with their text under `page_content`, `text`,
    `content` or `snippet`, `(document, score)` pairs, and lists of these.

    If the answer is an object or mapping with one of the first six answer keys, that value is the
    answer; otherwise each value becomes a line `field: value`. Texts in a list become one line
    each.

    A mapping, dataclass or pydantic object may also have the labels `query_class` (text),
    `risk_tier` (text) and `retrieval_score` (number).

    Args:
        value: The output of the chain.
        context_extractor: Converts `value` from any other shape to an accepted one.
        evidence: Whether tool results of earlier turns are evidence too (`thread`), or only those
            since the last question (`turn`).
        trust_generated: Whether text that a model wrote inside a tool is evidence.
        answer_key: Key of the answer, or field of a structured answer, if it is none of those
            above.
        documents_key: Key of the documents, if it is none of those above.
        question_key: Key of the question, if it is none of those above.

    Returns:
        Question, answer and documents. `documents` is empty if none were found; the answer may be
        empty too.

    Raises:
        InputFormatError: The shape is not supported, it contains no answer, several lists could be
            the documents, or `context_extractor` failed.

    Example:
        >>> read = read_input({"input": "Capital?", "context": ["Rome is it."], "answer": "Rome"})
        >>> read.question, read.answer, read.documents[0].page_content
        ('Capital?', 'Rome', 'Rome is it.')
    """
    return InputReader(context_extractor=context_extractor, **options).read(value)


_PLAIN = (dict, str, BaseModel)


@dataclass(frozen=True, kw_only=True)
class InputReader:
    """Reads the inputs of a check, with the options of `read_input`."""

    context_extractor: Callable[[Any], Any] | None = None
    evidence: Evidence = "thread"
    trust_generated: bool = False
    answer_key: str | None = None
    documents_key: str | None = None
    question_key: str | None = None
    given: Mapping[str, Any] = field(default_factory=dict)
    """Parts of the input that the caller gave by name; they win."""
    partial: bool = False
    """Whether an input may lack documents that come later, or from elsewhere."""

    def __post_init__(self) -> None:
        """Check the options."""
        require_one_of("evidence", self.evidence, get_args(Evidence))

    def with_parts(self, owner: str, given: Mapping[str, Any]) -> "InputReader":
        """Return a reader for inputs of which parts were given by name."""
        if unknown := set(given) - {"documents", "question", *LABELS}:
            msg = (
                f"{owner} got unknown arguments {sorted(unknown)}; besides the input and the "
                f"config it accepts documents=, question=, {'=, '.join(LABELS)}="
            )
            raise ConfigurationError(msg)
        return replace(self, given=given)

    def __call__(self, value: Any) -> CheckInput:
        """Read an input."""
        source = self.read(value)
        if self.given:
            whole = read_input({**dict(source), **self.given})
            own = {} if "documents" in self.given else {"evidence_source": source.evidence_source}
            source = whole.model_copy(update=own)
        is_text = self.context_extractor is None and isinstance(value, str | AIMessage)
        lacks = is_text and not source.documents and "documents" not in self.given
        return source.model_copy(update={"unread": None}) if lacks else source

    async def aread(self, value: Any) -> CheckInput:
        """Read an input off the event loop; reading unknown objects may block."""
        if self.context_extractor is not None or not isinstance(value, _PLAIN):
            return await run_in_executor(None, self, value)
        return await run_in_worker(0, self, value)

    def find_answer_key(self, value_of: Callable[[str], object]) -> str | None:
        """Give the first of the keys of an answer that has a value."""
        if self.answer_key is not None:
            return self.answer_key if value_of(self.answer_key) is not None else None
        more = _MORE_ANSWER_KEYS if value_of("messages") is None else ()
        return _first_with_value((*_ANSWER_KEYS, *more), value_of)

    def documents_in(self, inputs: object) -> tuple[Document, ...]:
        """Read the documents, but no messages, from the inputs of a run."""
        try:
            if isinstance(inputs, Mapping):
                return self._given_documents({k: inputs[k] for k in inputs if k != "messages"})
            return _documents(inputs, ()) if _holds_documents(inputs) else ()
        except InputFormatError:
            return ()

    def tool_documents(self, messages: Sequence[BaseMessage]) -> tuple[Document, ...]:
        """Read the tool results of a conversation, the last turn first."""
        turns = split_turns(messages)
        found = list(tool_documents(turns[-1], trust_generated=self.trust_generated))
        if self.evidence == "thread":
            earlier = [
                document.model_copy(update={"metadata": {**document.metadata, "turn": number}})
                for number, turn in reversed([*enumerate(turns[:-1], 1)])
                for document in tool_documents(turn, trust_generated=self.trust_generated)
            ]
            found += limit_earlier_documents(earlier, known=found)
        return tuple(found)

    def read(self, value: object) -> CheckInput:
        """Read what an input itself says."""
        if self.context_extractor is not None:
            value = _extracted(value, self.context_extractor)
        if isinstance(value, CheckInput):
            return value
        if isinstance(value, GroundednessResult):
            return CheckInput(
                question=value.question,
                answer=value.answer,
                documents=value.documents,
                evidence_source=value.evidence_source or "returned",
                **{name: getattr(value, name) for name in LABELS},
            )
        if isinstance(value, tuple) and len(value) == 2:  # noqa: PLR2004  (a pair)
            if _is_conversation(value[0]):
                pair = {"messages": value[0], "documents": value[1]}
                return replace(self, answer_key=None, documents_key=None)(pair)
            return CheckInput(answer=_answer_text(value[0], ()), documents=_documents(value[1], ()))
        if isinstance(value, str | AIMessage):
            return CheckInput(answer=_answer_text(value, ()))
        if _is_conversation(value):
            value = {"messages": value}
        parts = as_mapping(value)
        if parts is None:
            msg = f"cannot read an answer from a value of type {_type(value)}. {_ADVICE}"
            raise InputFormatError(msg)
        return self._read_mapping(parts)

    def _read_mapping(self, parts: Mapping[Any, Any]) -> CheckInput:
        parts = _unwrapped(parts)
        if (key := self.find_answer_key(parts.get)) and _is_conversation(parts[key]):
            parts = {**{k: parts[k] for k in parts if k != key}, "messages": parts[key]}
        keys = _keys_of(parts)
        messages = _conversation(parts.get("messages"), keys)
        answer, evidence = self._find_answer(parts, messages, keys)
        elsewhere = self.partial or "messages" in parts or "documents" in self.given
        if self.documents_key is not None and self.documents_key not in parts and not elsewhere:
            raise _missing_key_error(keys, documents_key=self.documents_key)
        given = self._given_documents(parts)
        documents = given or self.tool_documents(evidence)
        return CheckInput(
            question=self._find_question(parts) or _last_question(split_turns(messages)[-1]),
            answer=answer,
            documents=documents,
            evidence_source="retrieved" if documents and not given else "returned",
            unread=() if documents or self.documents_key else self._unread(keys),
            **read_labels(parts),
        )

    def _given_documents(self, parts: Mapping[Any, Any]) -> tuple[Document, ...]:
        keys = _keys_of(parts)
        if self.documents_key is not None:
            return _documents(parts.get(self.documents_key), keys)
        named = (_documents(parts.get(key), keys) for key in _DOCUMENT_KEYS)
        if found := next(filter(None, named), None):
            return found
        lists = {key: parts[key] for key in parts if _holds_documents(parts[key])}
        if len(lists) > 1:
            several = " and ".join(repr(str(key)[:_LONGEST_KEY]) for key in lists)
            msg = f"there are documents under {several}: name one of them with documents_key="
            raise InputFormatError(msg, keys=keys)
        return next((_documents(value, keys) for value in lists.values()), ())

    def _find_answer(
        self, parts: Mapping[Any, Any], messages: Sequence[BaseMessage], keys: tuple[str, ...]
    ) -> tuple[str, Sequence[BaseMessage]]:
        """Return the answer, and the messages that may be evidence for it."""
        if (key := self.find_answer_key(parts.get)) is not None:
            return _answer_text(parts[key], keys), messages
        if self.answer_key is not None and "messages" not in parts:
            raise _missing_key_error(keys, answer_key=self.answer_key)
        turn = split_turns(messages)[-1]
        final = next((m for m in reversed(turn) if isinstance(m, AIMessage | ToolMessage)), None)
        structured = parts.get("structured_response")
        if structured is not None:
            # Its tool message repeats the answer, which must not be evidence for itself.
            own = final.name if isinstance(final, ToolMessage) else None
            others = [m for m in messages if m is not final and (own is None or m.name != own)]
            named = (as_mapping(structured) or {}).get(self.answer_key)
            return _answer_text(structured if named is None else named, keys), others
        if isinstance(final, AIMessage) and not final.tool_calls:
            return str(final.text), messages
        if isinstance(final, ToolMessage) and not parts.get("__interrupt__"):
            others = [m for m in messages if m is not final or _artifacts(m)]
            return str(final.text), others
        raise InputFormatError(_no_answer_error(parts, keys), keys=keys)

    def _unread(self, keys: tuple[str, ...]) -> tuple[str, ...]:
        """Return the keys that may be those of the documents, if no known key was there."""
        if not {*_DOCUMENT_KEYS, "messages"}.isdisjoint(keys):
            return ()
        own = (self.answer_key, self.question_key)
        read = (*own, *_QUESTION_KEYS, *_ANSWER_KEYS, *_MORE_ANSWER_KEYS, *LABELS)
        return tuple(key for key in keys if key not in read)

    def _find_question(self, parts: Mapping[Any, Any]) -> str | None:
        for key in (self.question_key,) if self.question_key else _QUESTION_KEYS:
            value = parts.get(key)
            if isinstance(value, str):
                return str(value)
            if isinstance(value, HumanMessage):
                return str(value.text)
            if isinstance(value, list | tuple):
                question = _last_question([m for m in value if isinstance(m, BaseMessage)])
                if question is not None:
                    return question
            elif key in ("question", self.question_key) and not _may_not_be_question(value):
                raise _wrong_type(key, value, "a text, a HumanMessage or None")
        return None


expand_options(read_input, InputReader)


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
    if source.unread is None:
        return (
            f"{NO_DOCUMENTS}: the input is only a text; let the chain return its documents too, as "
            "{'answer': ..., 'documents': ...}, or attach a GroundednessCallbackHandler to it, "
            "which finds them"
        )
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


def _missing_key_error(keys: tuple[str, ...], **named: str) -> InputFormatError:
    """Build the error of an input that lacks a key which an option names."""
    [(option, key)] = named.items()
    seen = ", ".join(map(repr, keys)) or "none"
    empty = ", which is None" if key in keys else ""
    part = option.removesuffix("_key")
    msg = f"no {part} under {option}={key!r}{empty}; the keys seen are: {seen}"
    return InputFormatError(msg, keys=keys)


def _unwrapped(parts: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """Return the state inside a typed LangGraph output, or the mapping unchanged."""
    inner = as_mapping(parts.get("value")) if set(parts) == {"value", "interrupts"} else None
    return parts if inner is None else {**inner, "__interrupt__": parts["interrupts"]}


def _first_with_value(keys: Iterable[str], value_of: Callable[[str], object]) -> str | None:
    return next((key for key in keys if value_of(key) is not None), None)


def _no_answer_error(parts: Mapping[Any, Any], keys: tuple[str, ...]) -> str:
    if parts.get("__interrupt__"):
        return "the agent was interrupted before it gave an answer: resume it, then check"
    if "messages" in parts:
        return (
            "the messages after the last question contain no answer: no model message without "
            f"tool calls, and no final tool result. {_ADVICE}"
        )
    listed = ", ".join(map(repr, keys)) or "none"
    key = next((key for key in (*_ANSWER_KEYS, *_MORE_ANSWER_KEYS) if key in parts), None)
    empty = f": {key!r} is None" if key else ""
    return f"no answer found{empty}; the keys seen are: {listed}. {_ADVICE}"


def _answer_text(value: object, keys: tuple[str, ...]) -> str:
    if isinstance(value, str):
        return str(value)  # drops subclasses; LangChain's is callable
    if isinstance(value, AIMessage | ToolMessage):
        return str(value.text)
    if isinstance(value, list) and any(isinstance(b, dict) and "type" in b for b in value):
        return str(AIMessage(content=value).text)
    parts = as_mapping(value)
    if parts is not None and (key := _first_with_value(_ANSWER_KEYS, parts.get)) is not None:
        return _answer_text(parts[key], keys)
    if parts is None and not isinstance(value, list | tuple | bool | int | float):
        msg = f"the answer is of type {_type(value)}. {_ADVICE}"
        raise InputFormatError(msg, keys=keys)
    return "\n".join(prefix + leaf_text(leaf) for _, prefix, leaf in iter_leaves(value))


def iter_leaves(
    value: object, path: tuple[Any, ...] = (), label: str = ""
) -> Iterator[tuple[tuple[Any, ...], str, Any]]:
    """Yield the values in a structure with their paths, and what stands before each in its line."""
    parts = as_mapping(value)
    if parts is not None:
        for key, inner in parts.items():
            named = f"{label} {str(key).replace('_', ' ')}".strip()
            yield from iter_leaves(inner, (*path, key), named)
    elif isinstance(value, list | tuple | set | frozenset):
        for place, inner in enumerate(value):
            yield from iter_leaves(inner, (*path, place), label)
    elif value is not None:
        yield path, f"{label}: " if label else "", value


def leaf_text(leaf: object) -> str:
    """Return a single value as text."""
    shown = leaf.value if isinstance(leaf, Enum) else leaf
    return str(shown).lower() if isinstance(shown, bool) else str(shown)


def _is_conversation(value: object) -> bool:
    return (
        isinstance(value, list) and bool(value) and all(isinstance(m, BaseMessage) for m in value)
    )


def _conversation(messages: object, keys: tuple[str, ...]) -> Sequence[BaseMessage]:
    if messages is None:
        return ()
    listed: list[Any] = list(messages) if isinstance(messages, list | tuple) else [messages]
    try:
        return convert_to_messages(listed)
    except (NotImplementedError, TypeError, ValueError):
        msg = f"'messages' contains a value that is not a message. {_ADVICE}"
        raise InputFormatError(msg, keys=keys) from None  # the cause contains the message


def split_turns(messages: Sequence[BaseMessage]) -> list[Sequence[BaseMessage]]:
    """Split a conversation into turns: before each question but the first."""
    starts = [place for place, message in enumerate(messages) if is_question(message)]
    places = [0, *starts[1:], len(messages)]
    return [messages[start:end] for start, end in pairwise(places)]


def is_question(message: BaseMessage) -> bool:
    """Tell whether a message begins a turn."""
    # Middleware adds user messages too (conversation summaries), with this mark.
    return isinstance(message, HumanMessage) and "lc_source" not in message.additional_kwargs


def _last_question(messages: Sequence[BaseMessage]) -> str | None:
    return next((str(m.text) for m in reversed(messages) if is_question(m)), None)


def mark_as_generated(message: ToolMessage) -> ToolMessage:
    """Mark a tool's result as text that a model wrote."""
    marked = {**message.response_metadata, _GENERATED: True}
    return message.model_copy(update={"response_metadata": marked})


def tool_documents(
    messages: Sequence[BaseMessage], *, trust_generated: bool = False
) -> Iterator[Document]:
    """Read the results of tools: documents in their artifacts, else their texts."""
    for message in messages:
        if not isinstance(message, ToolMessage) or message.status == "error":
            continue
        found = _artifacts(message)
        text = str(message.text)
        if found:
            yield from found
        elif text.strip() and (trust_generated or not message.response_metadata.get(_GENERATED)):
            origin = {"tool": message.name, "tool_call_id": message.tool_call_id}
            yield Document(page_content=text, metadata=origin)


def limit_earlier_documents(
    documents: Iterable[Document], *, known: Sequence[Document]
) -> list[Document]:
    """Keep the first documents of earlier turns that are new, up to a limit of text."""
    texts = {document.page_content for document in known}
    kept, left = [], EARLIER_CHARACTERS
    for document in documents:
        if document.page_content in texts:
            continue
        left -= len(document.page_content)
        if left < 0:
            break
        texts.add(document.page_content)
        kept.append(document)
    return kept


def _artifacts(message: BaseMessage) -> Sequence[Document]:
    artifact = message.artifact if isinstance(message, ToolMessage) else None
    listed = artifact if isinstance(artifact, list | tuple) else [artifact]
    return [found for item in listed if (found := _record(item)) is not None]


def _documents(value: object, keys: tuple[str, ...]) -> tuple[Document, ...]:
    if value is None or (isinstance(value, str) and not value.strip()):
        return ()
    alone = not isinstance(value, list | tuple)
    return tuple(_document(item, keys, alone=alone) for item in flatten_documents(value))


def flatten_documents(value: object) -> Iterator[object]:
    """Yield the documents in nested lists, without the scores beside them."""
    if not isinstance(value, list | tuple):
        yield value
    elif len(value) == 2 and isinstance(value[1], SupportsFloat):  # noqa: PLR2004  (a pair)
        yield value[0]
    else:
        for item in value:
            yield from flatten_documents(item)


def _holds_documents(value: object) -> bool:
    """Tell whether a value is a list of documents, and of nothing else."""
    items = flatten_documents(value) if isinstance(value, list | tuple) else iter(())
    first = next(items, None)
    return _record(first) is not None and all(_record(item) is not None for item in items)


def _document(item: object, keys: tuple[str, ...], *, alone: bool) -> Document:
    if (found := as_document(item)) is None:
        came = f"{'are' if alone else 'contain a value'} of type {_type(item)}"
        if isinstance(item, Mapping):
            own = ", ".join(map(repr, _keys_of(item))) or "none"
            came += f" with the keys {own}; its text is read from {_TEXT_KEYS_SHOWN}"
        elif alone:
            came += "; pass a list"
        msg = f"the documents {came}. {_ADVICE}"
        raise InputFormatError(msg, keys=keys)
    return found


def as_document(item: object) -> Document | None:
    """Convert a text, a document or a search hit; `None` for anything else."""
    if isinstance(item, str):
        return Document(page_content=str(item))
    found = _record(item)
    return _search_hit(item) if found is None and isinstance(item, Mapping) else found


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


def _search_hit(item: Mapping[Any, Any]) -> Document | None:
    """Convert a mapping with a text, as search engines return them; the rest is metadata."""
    key = next((key for key in TEXT_KEYS if isinstance(item.get(key), str)), None)
    if key is None:
        return None
    inner = item.get("metadata")
    rest = {str(k): item[k] for k in item if k not in (key, "metadata", "id")}
    metadata = {**rest, **(inner if isinstance(inner, Mapping) else {})}
    identity = item.get("id")
    return Document(
        page_content=str(item[key]),
        metadata=metadata,
        id=None if identity is None else str(identity),
    )


def as_mapping(value: object) -> Mapping[Any, Any] | None:
    """Return the fields of a mapping, a pydantic object or a dataclass."""
    if isinstance(value, BaseMessage | Document):
        return None
    if isinstance(value, Mapping):
        return value
    if isinstance(value, BaseModel):
        return dict(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    return None


def _may_not_be_question(value: object) -> bool:
    """Tell whether a value under the question's key may be something other than a question."""
    return value is None or isinstance(value, BaseMessage) or as_mapping(value) is not None


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
