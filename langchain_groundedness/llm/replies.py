"""What chat models reply, in all its forms: to text, and from text to data that fits a schema."""

import json
import re
from collections.abc import Iterator
from typing import Any, TypeVar

import json_repair
from langchain_core.messages import AIMessage, BaseMessage
from pydantic import BaseModel, ValidationError

__all__ = [
    "answer_start",
    "complete_lines",
    "cut_at_limit",
    "is_refusal",
    "is_refusal_error",
    "message_of",
    "nested_too_deep",
    "numbered_line",
    "numbered_lines",
    "parse_json",
    "reply_fault",
    "reply_in_error",
    "reply_text",
    "tool_calls",
    "whole_text",
]

ReplyT = TypeVar("ReplyT", bound=BaseModel)
_NUMBERED = re.compile(r"\W*(\d{1,4})\b\W*?[\s:.)]\s*(\S.*)", re.DOTALL)
_NONE = re.compile(r"\W*none\W*", re.IGNORECASE)

_THOUGHT = r"(?:think|thinking|thought|thoughts|reasoning|reflection|scratchpad)"

_THOUGHT_BEGINS = re.compile(rf"<{_THOUGHT}>|\[THINK\]", re.IGNORECASE)

_THOUGHT_ENDS = re.compile(rf"</{_THOUGHT}>|\[/THINK\]", re.IGNORECASE)

_CHANNEL, _CHANNEL_BEGINS = "<|channel|>", "<|message|>"

_TURN_ENDS = re.compile(r"(?:<\|(?:return|end|eot_id|im_end|call)\|>\s*)+\Z")
_DEEPEST = 50


def reply_text(raw: Any) -> str:
    """Give the text of a reply without the reasoning before it; nothing if that has no end."""
    text = whole_text(raw)
    start = answer_start(text)
    return "" if start is None else _TURN_ENDS.sub("", text[start:]).strip()


def whole_text(raw: Any) -> str:
    """Give the text of a reply, including its reasoning."""
    message = message_of(raw)
    text = str(message.text) if isinstance(message, BaseMessage) else message
    if not isinstance(text, str):
        return ""
    return text if text.strip() else next((given for _, given in tool_calls(message)), "")


def answer_start(text: str) -> int | None:
    """Find where a text goes on behind its reasoning; `None` if the reasoning does not end.

    Templates may put the beginning of the reasoning into the prompt, so that only its end is seen.
    """
    start = max((match.end() for match in _THOUGHT_ENDS.finditer(text)), default=0)
    if _THOUGHT_BEGINS.search(text, start):
        return None
    if _CHANNEL not in text:
        return start
    before, _, last = text.rpartition(_CHANNEL)
    name, begins, answer = last.partition(_CHANNEL_BEGINS)
    if not begins or name.split()[:1] != ["final"] or f"{_CHANNEL}final" in before:
        return None
    return max(start, len(text) - len(answer))


def message_of(raw: Any) -> Any:
    """Give the message of what a model with or without structured output returned."""
    return raw.get("raw") if isinstance(raw, dict) else raw


def tool_calls(message: Any) -> Iterator[tuple[str | None, str]]:
    """Give the name and the arguments of each tool call of a message, valid JSON or not."""
    for call in getattr(message, "tool_calls", None) or ():
        yield call.get("name"), json.dumps(call.get("args"), ensure_ascii=False)
    for call in getattr(message, "invalid_tool_calls", None) or ():
        yield call.get("name"), call.get("args") or ""


def is_refusal(raw: Any) -> bool:
    """Tell whether the model, or its provider's filter, declined to answer."""
    if isinstance(raw, dict) and "Refusal" in type(raw.get("parsing_error")).__name__:
        return True
    message = message_of(raw)
    if not isinstance(message, BaseMessage):
        return False
    blocks = message.content if isinstance(message.content, list) else []
    return bool(
        message.additional_kwargs.get("refusal")
        or message.response_metadata.get("finish_reason") == "content_filter"
        or message.response_metadata.get("stop_reason") == "refusal"
        or any(isinstance(block, dict) and block.get("type") == "refusal" for block in blocks)
    )


def complete_lines(raw: Any) -> str:
    """Give the lines of a reply that the model finished."""
    text = reply_text(raw)
    return text.rpartition("\n")[0] if cut_at_limit(raw) else text


def cut_at_limit(raw: Any) -> bool:
    """Tell whether a reply ends where the model reached its limit of tokens."""
    metadata = getattr(message_of(raw), "response_metadata", {})
    ended = {metadata.get(key) for key in ("finish_reason", "stop_reason", "done_reason")}
    return bool(ended & {"length", "max_tokens"})


def reply_fault(raw: Any) -> str | None:
    """Say what is plainly wrong with a reply that could not be used."""
    if cut_at_limit(raw):
        return "it was cut off at the limit of tokens, see the model's max_tokens"
    if answer_start(whole_text(raw)) is None:
        return "its reasoning does not end"
    return None if reply_text(raw) else "it is empty"


def numbered_line(line: str) -> tuple[int, str] | None:
    """Read a line such as `2: text`, `- 2. text` or `2) text`."""
    found = _NUMBERED.fullmatch(line.strip())
    return (int(found[1]), found[2].strip()) if found else None


def numbered_lines(text: str) -> list[str] | None:
    """Read a plain reply that consists of numbered lines, or of the word `none`."""
    lines = [line for line in text.splitlines() if numbered_line(line)]
    return lines if lines or _NONE.fullmatch(text) else None


def is_refusal_error(exc: Exception) -> bool:
    """Tell whether an error says that the model, or its provider's filter, declined to answer."""
    names = [cls.__name__ for cls in type(exc).__mro__]
    return any("Refusal" in name or "ContentFilter" in name for name in names)


def reply_in_error(exc: Exception) -> AIMessage | None:
    """Find the reply inside an error that a client raised because it could not parse it.

    The OpenAI client parses structured replies itself and raises on a reply that is cut off
    (`LengthFinishReasonError.completion`) or no JSON (pydantic's error; LangChain adds the HTTP
    response to it).
    """
    completion = getattr(exc, "completion", None)
    try:
        if completion is not None:
            choice = completion.choices[0]
            return _ended(choice.message.content, choice.finish_reason)
        if isinstance(exc, ValidationError) and (response := getattr(exc, "response", None)):
            found = response.json()["choices"][0]
            return _ended(found["message"]["content"], found.get("finish_reason"))
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        pass
    return None


def _ended(text: str | None, how: Any) -> AIMessage:
    return AIMessage(text or "", response_metadata={"finish_reason": how})


def parse_json(raw: Any, schema: type[ReplyT]) -> ReplyT | None:
    """Read a reply as a schema, from tool calls or from JSON anywhere in its text.

    Broken JSON is mended. Of JSON that was cut off, the last entry of its last list is dropped:
    it may be half of what it was going to be.
    """
    arguments = [given for _, given in tool_calls(message_of(raw))]
    for text in (*arguments, reply_text(raw)):
        reply = _validated(_loads(text, tuple(schema.model_fields)), schema)
        if reply is not None:
            return reply
    return None


def _loads(text: str, fields: tuple[str, ...]) -> Any:
    start = next((m.start() for m in re.finditer(r"\{", text)), -1)
    if text.lstrip("` \n").removeprefix("json").lstrip().startswith("["):
        start = text.index("[")
    elif start < 0 or not any(name in text[start:] for name in fields):
        return None
    block = text[start:]
    if nested_too_deep(block):
        return None
    try:
        return json.JSONDecoder().raw_decode(block)[0]
    except (ValueError, RecursionError):
        pass
    try:
        data = json_repair.loads(block)
    except (ValueError, RecursionError):  # thousands of digits, brackets behind a lone quote
        return None
    is_cut_off = list(_depths(block))[-1] > 0
    return _without_last_entry(data) if is_cut_off else data


def nested_too_deep(text: str) -> bool:
    """Tell whether JSON has more brackets in each other than any reply needs.

    Parsers call themselves at each bracket. Where the stack is nearly full, finalizers that the
    garbage collector runs fail too, and what they should have closed stays open.
    """
    brackets = text.count("[") + text.count("{")
    return brackets > _DEEPEST and max(_depths(text)) > _DEEPEST


def _depths(text: str) -> Iterator[int]:
    """Yield how many brackets and quotation marks are open after each character."""
    depth, quoted, escaped = 0, False, False
    for char in text:
        if escaped:
            escaped = False
        elif char == "\\":
            escaped = True
        elif char == '"':
            quoted = not quoted
        elif not quoted and char in "[{":
            depth += 1
        elif not quoted and char in "]}":
            depth -= 1
        yield depth + quoted


def _without_last_entry(data: Any) -> Any:
    if isinstance(data, list):
        return data[:-1]
    if isinstance(data, dict) and data:
        *_, last = data
        if isinstance(data[last], list):
            return {**data, last: data[last][:-1]}
        return {name: value for name, value in data.items() if name != last}
    return None


def _validated(data: Any, schema: type[ReplyT]) -> ReplyT | None:
    fields = schema.model_fields
    if isinstance(data, list) and len(fields) == 1:
        data = {next(iter(fields)): data}
    if not isinstance(data, dict):
        return None
    known = {
        name: _strings(value) if fields[name].annotation == list[str] else value
        for name, value in data.items()
        if name in fields
    }
    try:
        return schema.model_validate(known)
    except ValidationError:
        return None


def _strings(value: Any) -> Any:
    """Read what models put where a list of strings was asked for."""
    if isinstance(value, str):
        return value.splitlines()
    if not isinstance(value, list):
        return value
    return [text for item in value if (text := _string(item))]


def _string(item: Any) -> str:
    if isinstance(item, dict):
        return " ".join(str(value) for value in item.values())
    return "" if item is None or isinstance(item, list) else str(item)
