"""Adds annotations and corrected text to an agent's messages, and removes them again.

Pure: every function returns a new message with the old id, so that LangGraph replaces the old one.
"""

import json
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import is_dataclass, replace
from typing import Any, NamedTuple, TypeVar

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    ToolMessage,
    messages_from_dict,
    messages_to_dict,
)
from langchain_core.messages.content import Citation as NativeCitation
from langchain_core.messages.content import NonStandardAnnotation
from pydantic import BaseModel, RootModel, TypeAdapter
from pydantic_core import to_jsonable_python

from langchain_groundedness.inputs.formats import as_mapping, iter_leaves, leaf_text
from langchain_groundedness.middleware.state import plain
from langchain_groundedness.types import Citation, ClaimVerdict, Edit, GroundednessResult

__all__ = [
    "PendingAnswer",
    "annotated",
    "edited_fields",
    "empty_like",
    "in_paragraphs",
    "leaf_values",
    "with_structured_answer",
    "with_text",
    "without_annotations",
]

_OURS = "groundedness"

_WHERE = ("document", "document_id", "start", "end")
"""What an annotation says about the place of a citation."""

_CAN_BE_EMPTY = (str, int, float, bool, list, dict)
"""Types of fields that can be empty."""

MessageT = TypeVar("MessageT", bound=BaseMessage)


class PendingAnswer(NamedTuple):
    """An answer that waits in the state for a reviewer, or is a draft that the model replaces."""

    messages: Sequence[BaseMessage]
    """The messages that hold it."""
    structured: Any = None
    """The structured response, if the agent gives one; as plain data when it is read back."""
    result: dict[str, Any] | None = None
    """The result of its check, as plain data."""

    def packed(self) -> str:
        """Compress it to a text that does not contain its words, since streams show the state."""
        data = plain([messages_to_dict(self.messages), _data_of(self.structured), self.result])
        return b64encode(zlib.compress(json.dumps(data).encode())).decode()

    @classmethod
    def unpacked(cls, packed: str) -> "PendingAnswer":
        """Read it back."""
        messages, structured, result = json.loads(zlib.decompress(b64decode(packed)))
        return cls(messages_from_dict(messages), structured, result)

    def structured_as(self, schema: Any) -> Any:
        """Return the structured response as its type; as plain data if that changes its values."""
        kind: TypeAdapter[Any] = TypeAdapter(schema)
        # What a validator has read already, it may refuse or change; then the model's own words.
        for given in (json.dumps(self.structured), *map(_written, self.messages)):
            with suppress(Exception):  # whatever a validator raises
                # As JSON, which strict types read as well.
                made = kind.validate_json(given, by_alias=True, by_name=True)
                if plain(_data_of(made)) == self.structured:
                    return made
        return self.structured


def empty_like(value: Any) -> Any:
    """Return an empty value of the same type, as the placeholder of a structured response."""
    if is_dataclass(value):
        empty_copy = copy(value)
        for name in value.__dataclass_fields__:
            object.__setattr__(empty_copy, name, None)
        return empty_copy
    if isinstance(value, BaseModel):
        empty = type(value).model_construct()
        fields = {name: getattr(value, name) for name in type(value).model_fields}
        empty.__dict__ |= {
            name: type(v)() for name, v in fields.items() if type(v) in _CAN_BE_EMPTY
        }
        with suppress(Exception):  # whatever a computed field raises that cannot do without
            empty.model_dump(warnings=False)
            return empty
    return {}


def annotated(
    message: AIMessage, result: GroundednessResult, *, in_content: bool = True
) -> AIMessage:
    """Add the verdicts to a message, as native annotations of its text.

    They are in the content, which then consists of blocks, or else in the metadata of the
    message, whose content stays as it is. A supported claim gets one `Citation` per quote, with the
    span of the claim in the text and the quote as `cited_text`; a claim that was corrected gets one
    with the quote that it was corrected after. Every other claim gets a `non_standard_annotation`
    with its verdict.
    """
    blocks: list[dict[str, Any]] = [dict(block) for block in message.content_blocks]
    text = "".join(block["text"] for block in blocks if block["type"] == "text")
    if text != result.answer or not result.claims:
        return message
    if not in_content:
        found = {"annotations": list(_annotations(result, 0, len(text)))}
        metadata = {**message.response_metadata, _OURS: found}
        return message.model_copy(update={"response_metadata": metadata})
    start = 0
    for block in blocks:
        if block["type"] != "text":
            continue
        end = start + len(block["text"])
        if new := list(_annotations(result, start, end)):
            kept = [a for a in block.get("annotations") or () if not _is_ours(a)]
            block["annotations"] = [*kept, *new]
        start = end
    if not any(map(_has_ours, blocks)):
        return message
    # This marks the blocks as LangChain's format, not the provider's.
    marked = {**message.response_metadata, "output_version": "v1"}
    return message.model_copy(update={"content": blocks, "response_metadata": marked})


def with_text(message: MessageT, text: str) -> MessageT:
    """Replace the text of a message."""
    extra = {k: v for k, v in message.additional_kwargs.items() if k not in {"parsed", "refusal"}}
    metadata = {k: v for k, v in message.response_metadata.items() if k != _OURS}
    update = {"content": text, "additional_kwargs": extra, "response_metadata": metadata}
    return message.model_copy(update=update)


def without_annotations(message: AnyMessage) -> AnyMessage:
    """Remove our annotations from a message, for a model to read.

    Not every provider accepts annotations that it did not make.
    """
    if isinstance(message.content, str) or not any(map(_has_ours, message.content)):
        return message
    blocks: list[Any] = [_bare(block) for block in message.content]
    if len(blocks) > 1 or set(blocks[0]) != {"type", "text"}:
        return message.model_copy(update={"content": blocks})
    metadata = {k: v for k, v in message.response_metadata.items() if k != "output_version"}
    update = {"content": blocks[0]["text"], "response_metadata": metadata}
    return message.model_copy(update=update)


def _has_ours(block: Any) -> bool:
    return isinstance(block, dict) and any(_is_ours(a) for a in block.get("annotations") or ())


def _bare(block: Any) -> Any:
    if not _has_ours(block):
        return block
    kept = [a for a in block["annotations"] if not _is_ours(a)]
    rest = {key: value for key, value in block.items() if key != "annotations"}
    return {**rest, "annotations": kept} if kept else rest


def _is_ours(annotation: Any) -> bool:
    if not isinstance(annotation, dict):
        return False
    inside = annotation.get("extras") or annotation.get("value") or {}
    return isinstance(inside, dict) and _OURS in inside


def _annotations(result: GroundednessResult, first: int, last: int) -> Iterator[Any]:
    """Yield the annotations between two offsets, relative to the first."""
    edited = {edit.claim_id for edit in result.edits if edit.correction}
    for verdict in result.claims:
        span = span_after_edits(result.edits, verdict)
        if span is None:
            continue
        start, end = max(span[0], first), min(span[1], last)
        if start >= end:
            continue
        found = {"claim": verdict.claim.id, "verdict": verdict.verdict}
        if verdict.verdict == "supported" or verdict.claim.id in edited:
            found["verdict"] = "corrected" if verdict.claim.id in edited else "supported"
            for citation in verdict.citations:
                yield _citation(citation, start - first, end - first, found)
        else:
            value = {"start_index": start - first, "end_index": end - first, _OURS: found}
            yield NonStandardAnnotation(type="non_standard_annotation", value=value)


def _citation(citation: Citation, start: int, end: int, found: dict[str, Any]) -> NativeCitation:
    where = {name: getattr(citation, name) for name in _WHERE}
    native = NativeCitation(
        type="citation",
        start_index=start,
        end_index=end,
        cited_text=citation.quote,
        extras={_OURS: {**found, **where}},
    )
    source = citation.metadata.get("url") or citation.metadata.get("source")
    if isinstance(source, str) and "://" in source:
        native["url"] = source
    title = citation.metadata.get("title")
    if isinstance(title, str):
        native["title"] = title
    return native


def span_after_edits(edits: Sequence[Edit], verdict: ClaimVerdict) -> tuple[int, int] | None:
    """Find the span of a claim in the edited text."""
    start, end = verdict.claim.start, verdict.claim.end
    if start is None or end is None:
        return None
    new_start = _offset_after_edits(edits, start, after=False)
    new_end = _offset_after_edits(edits, end, after=True)
    return (new_start, new_end) if new_start < new_end else None


def _offset_after_edits(edits: Sequence[Edit], place: int, *, after: bool) -> int:
    shift = 0
    for edit in edits:
        grown = len(edit.replacement) - (edit.end - edit.start)
        if edit.end <= place:
            shift += grown
        elif edit.start < place:
            # Inside an edit: the whole replacement belongs to the claim.
            inside = len(edit.replacement) if after else 0
            return edit.start + shift + inside
    return place + shift


class _Leaf(NamedTuple):
    path: tuple[Any, ...]
    start: int
    """First character of its value in the text that was checked."""
    text: str

    @property
    def end(self) -> int:
        return self.start + len(self.text)


def edited_fields(value: Any, text: str, edits: Sequence[Edit]) -> Any | None:
    """Carry edits of the text of a structured answer back to its fields.

    A text that an edit empties becomes an empty text, any other value `None`. Corrections have no
    markers in the fields, since programs read them.
    """
    leaves = _leaves(value, text)
    changes: dict[tuple[Any, ...], str] = {}
    for edit in reversed(edits):  # from the end, so that the places of the others stay
        leaf = next(
            (each for each in leaves if each.start < edit.end and edit.start < each.end), None
        )
        if leaf is None:
            return None
        new = edit.correction or edit.replacement
        start, end = max(edit.start, leaf.start), min(edit.end, leaf.end)
        if new and (start, end) != (edit.start, edit.end):
            return None
        old = changes.get(leaf.path, leaf.text)
        changes[leaf.path] = old[: start - leaf.start] + new + old[end - leaf.start :]
    values = dict(leaf_values(value))
    new_leaves = {
        path: new.strip() or ("" if isinstance(values[path], str) else None)
        for path, new in changes.items()
    }
    try:
        new_value = _rebuilt(value, new_leaves)
        as_arguments(new_value)
    except Exception:  # noqa: BLE001  (whatever a validator or a computed field raises)
        return None
    # A validator may change what it has read already.
    kept = dict(leaf_values(new_value))
    same = all(kept.get(path) == leaf for path, leaf in values.items() if path not in changes)
    return new_value if same else None


def in_paragraphs(value: Any, text: str) -> str:
    """Separate the values of a structured answer, so that no two read as one sentence."""
    parts = [prefix + leaf_text(leaf) for _, prefix, leaf in iter_leaves(value)]
    return "\n\n".join(parts) if "\n".join(parts) == text else text


def with_structured_answer(
    messages: Sequence[BaseMessage], value: Any, text: str
) -> list[BaseMessage]:
    """Replace a structured answer in the messages that repeat it."""
    arguments = {} if value is None else as_arguments(value)
    new: list[BaseMessage] = []
    for message in messages:
        if isinstance(message, AIMessage) and message.tool_calls:
            calls = [{**call, "args": arguments} for call in message.tool_calls]
            bare = with_text(message, "" if value is None else message.text)
            extra = {k: v for k, v in bare.additional_kwargs.items() if k != "tool_calls"}
            update = {"tool_calls": calls, "additional_kwargs": extra}
            new.append(bare.model_copy(update=update))
        elif value is None or isinstance(message, ToolMessage):
            new.append(with_text(message, text))
        else:
            new.append(with_text(message, json.dumps(arguments, ensure_ascii=False)))
    return new


def as_arguments(value: Any) -> dict[str, Any]:
    """Return a structured answer as arguments of its tool call."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    arguments: dict[str, Any] = to_jsonable_python(value, by_alias=False, fallback=str)
    return arguments


def _written(message: BaseMessage) -> str:
    """Return the JSON of a structured answer as the model wrote it."""
    calls = message.tool_calls if isinstance(message, AIMessage) else ()
    return json.dumps(calls[0]["args"]) if calls else str(message.text)


def _data_of(value: Any) -> Any:
    """Return plain data from which the type of a value makes it again, with its excluded fields."""
    if isinstance(value, RootModel):
        return _data_of(value.root)
    if (parts := as_mapping(value)) is not None:
        return {key: _data_of(inner) for key, inner in parts.items()}
    if isinstance(value, list | tuple):
        return [_data_of(inner) for inner in value]
    if isinstance(value, set | frozenset):
        return sorted((_data_of(inner) for inner in value), key=repr)
    return to_jsonable_python(value, fallback=str)


def _leaves(value: Any, text: str) -> list[_Leaf]:
    """Find the values in the text; none if they do not match it."""
    walked = [(path, prefix, leaf_text(leaf)) for path, prefix, leaf in iter_leaves(value)]
    for between in ("\n\n", "\n"):
        if between.join(prefix + shown for _, prefix, shown in walked) != text:
            continue
        found, at = [], 0
        for path, prefix, shown in walked:
            found.append(_Leaf(path, at + len(prefix), shown))
            at = found[-1].end + len(between)
        return found
    # The text is one of the fields.
    return [_Leaf(path, 0, text) for path, leaf in leaf_values(value) if leaf == text][:1]


def leaf_values(value: Any) -> list[tuple[tuple[Any, ...], Any]]:
    """Give the values of a structured answer with their places."""
    return [(path, leaf) for path, _, leaf in iter_leaves(value)]


def _rebuilt(value: Any, changes: Mapping[tuple[Any, ...], Any]) -> Any:
    """Return a value with some leaves changed, validated by its type."""
    if () in changes:
        return changes[()]
    below: dict[Any, dict[tuple[Any, ...], Any]] = {}
    for path, new in changes.items():
        below.setdefault(path[0], {})[path[1:]] = new
    if isinstance(value, list | tuple | set | frozenset):
        items = [_rebuilt(v, below[n]) if n in below else v for n, v in enumerate(value)]
        return type(value)(items)
    parts = as_mapping(value) or {}
    fields = {key: _rebuilt(parts[key], inner) for key, inner in below.items()}
    if isinstance(value, BaseModel):
        return type(value).model_validate({**dict(value), **fields}, by_alias=True, by_name=True)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **fields)
    return {**parts, **fields}
