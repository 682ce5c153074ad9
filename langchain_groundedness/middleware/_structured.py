"""Structured answers of agents: edited field by field, in every place that repeats them.

Pure. `inputs` reads a structured answer as one line `field: value` for each value; the edits of
these lines are carried back to the fields here.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, is_dataclass, replace
from enum import Enum
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from pydantic import BaseModel, ValidationError

from langchain_groundedness.middleware._messages import with_text
from langchain_groundedness.middleware._record import plain
from langchain_groundedness.types import Edit

__all__ = ["edited_fields", "in_paragraphs", "rewritten"]


class _Leaf(NamedTuple):
    path: tuple[Any, ...]
    start: int
    """First character of its value in the text that was checked."""
    value: Any
    text: str


def edited_fields(value: Any, text: str, edits: Sequence[Edit]) -> Any | None:
    """Carry edits of the text of a structured answer back to its fields.

    A text that an edit empties becomes an empty text, any other value `None`. Corrections stand in
    the fields without their markers, since programs read them.

    Args:
        value: The structured answer: a mapping, a pydantic object or a dataclass.
        text: How it was read.
        edits: Edits of the text, in order.

    Returns:
        A new value of the same type; `None` if an edit is not within one field, or if the type
        does not accept what it makes.
    """
    leaves = _leaves(value, text)
    changes: dict[tuple[Any, ...], str] = {}
    shifts: dict[tuple[Any, ...], int] = {}
    for edit in edits:
        leaf = next((each for each in leaves if _concerns(each, edit)), None)
        if leaf is None:
            return None
        inside = leaf.start + shifts.get(leaf.path, 0)
        new = edit.correction or edit.replacement
        start, end = max(edit.start, leaf.start), min(edit.end, leaf.start + len(leaf.text))
        if new and (start, end) != (edit.start, edit.end):
            return None
        old = changes.get(leaf.path, leaf.text)
        at = start - leaf.start + inside - leaf.start
        changes[leaf.path] = old[:at] + new + old[at + end - start :]
        shifts[leaf.path] = shifts.get(leaf.path, 0) + len(new) - (end - start)
    try:
        return _rebuilt(value, {leaf.path: _new(leaf, changes) for leaf in leaves})
    except (ValidationError, TypeError, ValueError):
        return None


def in_paragraphs(value: Any, text: str) -> str:
    """Set the values of a structured answer apart, so that no two of them read as one sentence.

    Args:
        value: The structured answer.
        text: How it was read: one line for each value.

    Returns:
        The text with empty lines between the values; the same text if it was read otherwise.
    """
    parts = [
        f"{label}: {_shown(leaf)}" if label else _shown(leaf)
        for _, label, leaf in _walk(value, (), "")
    ]
    return "\n\n".join(parts) if "\n".join(parts) == text else text


def rewritten(messages: Sequence[BaseMessage], value: Any, text: str) -> list[BaseMessage]:
    """Put a new structured answer into the messages that repeat the old one.

    Args:
        messages: The call of the answering tool and its result, or the one message whose text is
            the answer.
        value: The new answer; `None` if it is withheld.
        text: What the last of the messages then says, instead of the answer.

    Returns:
        The messages, with their ids.
    """
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
    """Give a structured answer as the arguments of the call that gives it.

    Args:
        value: A mapping, a pydantic object or a dataclass.

    Returns:
        Plain data.
    """
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    fields = asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
    return {str(key): inner for key, inner in plain(fields).items()}


def _new(leaf: _Leaf, changes: Mapping[tuple[Any, ...], str]) -> Any:
    if leaf.path not in changes:
        return leaf.value
    text = changes[leaf.path].strip()
    return text if text or isinstance(leaf.value, str) else None


def _concerns(leaf: _Leaf, edit: Edit) -> bool:
    return edit.start < leaf.start + len(leaf.text) and leaf.start < edit.end


def _leaves(value: Any, text: str) -> list[_Leaf]:
    """Find the values in the text; none if it was read in another way."""
    for between in ("\n\n", "\n"):
        found = _placed(value, between)
        lines = all(text[leaf.start : leaf.start + len(leaf.text)] == leaf.text for leaf in found)
        if found and lines and found[-1].start + len(found[-1].text) == len(text):
            return found
    # The text is one of the fields.
    return [
        _Leaf(path, 0, leaf, text)
        for path, _, leaf in _walk(value, (), "")
        if isinstance(leaf, str) and leaf == text
    ][:1]


def _placed(value: Any, between: str) -> list[_Leaf]:
    found: list[_Leaf] = []
    at = 0
    for path, label, leaf in _walk(value, (), ""):
        shown = _shown(leaf)
        at += len(f"{label}: ") if label else 0
        found.append(_Leaf(path, at, leaf, shown))
        at += len(shown) + len(between)
    return found


def _walk(
    value: Any, path: tuple[Any, ...], label: str
) -> Iterator[tuple[tuple[Any, ...], str, Any]]:
    parts = _parts(value)
    if parts is not None:
        for key, inner in parts.items():
            yield from _walk(inner, (*path, key), f"{label} {str(key).replace('_', ' ')}".strip())
    elif isinstance(value, list | tuple):
        for place, inner in enumerate(value):
            yield from _walk(inner, (*path, place), label)
    elif value is not None:
        yield path, label, value


def _shown(leaf: Any) -> str:
    shown = leaf.value if isinstance(leaf, Enum) else leaf
    return str(shown).lower() if isinstance(shown, bool) else str(shown)


def _parts(value: Any) -> Mapping[Any, Any] | None:
    if isinstance(value, Mapping):
        return value
    if isinstance(value, BaseModel):
        return dict(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {name: getattr(value, name) for name in value.__dataclass_fields__}
    return None


def _rebuilt(value: Any, changes: Mapping[tuple[Any, ...], Any]) -> Any:
    """Give a value with some of its leaves changed, checked by its own type."""
    if () in changes:
        return changes[()]
    below: dict[Any, dict[tuple[Any, ...], Any]] = {}
    for path, new in changes.items():
        below.setdefault(path[0], {})[path[1:]] = new
    if isinstance(value, list | tuple):
        items = [_rebuilt(v, below[n]) if n in below else v for n, v in enumerate(value)]
        return type(value)(items)
    parts = _parts(value) or {}
    fields = {key: _rebuilt(parts[key], inner) for key, inner in below.items()}
    if isinstance(value, BaseModel):
        return type(value).model_validate({**dict(value), **fields})
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **fields)
    return {**parts, **fields}
