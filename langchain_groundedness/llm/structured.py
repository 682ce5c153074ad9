"""The ladder from any chat model's reply to a validated schema.

1. Structured output as the model offers it; where the model or its server refuses that, function
   calling, then JSON mode, then a plain prompt. The step that worked is remembered for the model.
2. Parsed? Else JSON found in the text, mended if it is broken; of a reply that was cut off, the
   complete entries. Else the prompt's own line protocol.
3. One repair call. 4. `OutputParsingError`.

The ladder is a generator that yields calls and receives replies, so it is written once; `invoke`
and `ainvoke` only carry the calls out.
"""

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.prompts.chat import BaseChatPromptTemplate
from langchain_core.runnables import Runnable
from langchain_core.runnables.base import RunnableBindingBase
from pydantic import BaseModel, PrivateAttr, SkipValidation
from typing_extensions import override

from langchain_groundedness._runtime.flow import Flow, FlowRunnable, ModelCall
from langchain_groundedness._runtime.timeouts import RetryBudget
from langchain_groundedness.exceptions import OutputParsingError
from langchain_groundedness.llm.chat_models import cache_value, cached_value
from langchain_groundedness.llm.prompts import sanitized
from langchain_groundedness.llm.replies import (
    complete_lines,
    is_refusal,
    is_refusal_error,
    parse_json,
    reply_fault,
    reply_in_error,
    reply_text,
)

__all__ = ["ModelRefusedError", "StructuredModel", "may_be_unsupported"]

_SUBJECT = "structured output"
_FAILED = "structured output failed once"
_NAMES_THE_FORM = re.compile(
    r"support|response_format|json|schema|grammar|tool|function|format|implement|unknown|unrecogni"
    r"|invalid|argument|parameter|option",
    re.IGNORECASE,
)

ReplyT = TypeVar("ReplyT", bound=BaseModel)


class ModelRefusedError(OutputParsingError):
    """The model declined to answer; asking again in another form would not be right."""


class StructuredModel(FlowRunnable[dict[str, Any], ReplyT], Generic[ReplyT]):
    """A prompt, a model and a schema: from the prompt's variables to a validated reply.

    Works with every chat model: with structured output, with tools, with JSON mode or with
    nothing but text. Keep the object: it learns what its model can do.
    """

    model: SkipValidation[Runnable[Any, Any]]
    """A chat model, also bound (`.bind`, `.with_retry`, `.with_fallbacks`), or any runnable from
    messages to a message or text."""
    prompt: BaseChatPromptTemplate
    reply_schema: type[ReplyT]
    """Flat, all fields required, enums as strings: what every provider accepts."""
    name: str
    """Name of the prompt, in traces and errors."""
    from_text: Callable[[str], ReplyT | None] | None = None
    """Reads a reply that is no JSON, or gives `None`. With it, the plain step of the ladder
    trusts the prompt to describe the lines; without it, the schema is spelled out."""
    why_unusable: Callable[[ReplyT], str | None] | None = None
    """Says why a reply that fits the schema makes no sense, in a clause about "it", or gives
    `None` if it does; one that does not is asked for again in plain form, where models that lose
    the thread inside a schema do better."""
    timeout: float | None = None
    """Seconds to wait for a reply of the model."""
    plain: bool = False
    """Whether to ask in plain form from the start, without a schema; needs `from_text`."""

    _built: dict[int, Runnable[Any, Any] | None] = PrivateAttr(default_factory=dict)
    """By step of the ladder: what asks the model there, which takes longer to make than to use."""

    @override
    def _flow(
        self,
        values: dict[str, Any],
        /,
        *,
        budget: RetryBudget | None = None,
        read: Callable[[Any], tuple[Any, str | None]] | None = None,
        **_: Any,
    ) -> Flow[ReplyT]:
        """Call the model, and once more if the reply cannot be used."""
        # read parses the reply in place of the schema. It returns the parsed reply, or None and
        # the reason why the reply cannot be used.
        has_lines = read is not None or self.from_text is not None
        instructions = partial(_instructions, self.reply_schema, has_lines=has_lines)
        messages = self.prompt.format_messages(**values)
        raw = yield from self._first_reply(messages, budget, instructions)
        reply, why = self._read(raw, read)
        then = "and no call was left for a second attempt"
        if reply is None and (budget is None or budget.take()):
            again = [*messages, *self._retry_messages(raw, why), *instructions(_PLAIN)]
            raw = yield ModelCall(self.model, again, self.timeout)
            reply, why = self._read(raw, read)
            then = "and neither could the second one"
            if reply is not None:
                self._remember(_SUBJECT, _PLAIN)
        if reply is None:
            msg = f"the model's reply to {self.name!r} could not be used, {then}: {why}"
            raise OutputParsingError(msg, raw=reply_text(raw), prompt_name=self.name)
        return reply

    def _retry_messages(self, raw: Any, why: str) -> list[BaseMessage]:
        """Describe the fault; only a model asked in plain text is shown its own reply again."""
        # A small model repeats a bad reply that it is shown, but an unchanged prompt would get
        # the same reply.
        if self._known_method != _PLAIN:
            return [HumanMessage(f"A first reply does not count: {why}.")]
        complaint = f"That reply does not count: {why}. Give the reply in the form asked for."
        return [AIMessage(sanitized(reply_text(raw)) or "…"), HumanMessage(complaint)]

    def _first_reply(
        self,
        messages: Sequence[BaseMessage],
        budget: RetryBudget | None,
        instructions: Callable[[int], list[BaseMessage]],
    ) -> Flow[Any]:
        """Try each structured-output method until the model accepts one, and remember it."""
        # A method that failed only once is tried again: the server may have had an outage.
        proven = self._known_method
        step, sure, failed = proven or 0, True, cached_value(self.model, _FAILED) is not None
        while True:
            if step not in self._built:
                self._built[step] = _built(self.model, self.reply_schema, step)
            runnable = self._built[step]
            if runnable is None:
                step += 1
                continue
            try:
                raw = yield ModelCall(runnable, [*messages, *instructions(step)], self.timeout)
            except Exception as exc:
                if is_refusal_error(exc):
                    raise self._refusal(None) from exc
                raw = reply_in_error(exc)
                if raw is None:
                    if proven is not None or step == _PLAIN or not may_be_unsupported(exc):
                        raise
                    if budget is not None and not budget.take():
                        raise
                    step, sure = step + 1, sure and (failed or not _may_be_transient(exc))
                    continue
            self._remember(_SUBJECT if sure else _FAILED, step)
            return raw

    @property
    def _known_method(self) -> int | None:
        """The step of the ladder that is known to work; when asked for it plainly, the last."""
        return _PLAIN if self.plain else cached_value(self.model, _SUBJECT)

    def _remember(self, subject: str, step: int) -> None:
        """Remember what worked, unless nothing else was tried."""
        if not self.plain:
            cache_value(self.model, subject, step)

    def _refusal(self, raw: Any) -> ModelRefusedError:
        msg = f"the model refused to answer {self.name!r}"
        return ModelRefusedError(msg, raw=reply_text(raw), prompt_name=self.name)

    def _read(
        self, raw: Any, read: Callable[[Any], tuple[Any, str | None]] | None
    ) -> tuple[ReplyT | None, str]:
        """Give what can be used of a reply; else `None`, and what is wrong with it."""
        if is_refusal(raw):
            raise self._refusal(raw)
        if read is not None:
            reply, why = read(raw)
            return reply, why or ""
        parsed = raw.get("parsed") if isinstance(raw, dict) else None
        is_reply = isinstance(parsed, self.reply_schema)
        reply = parsed if is_reply else parse_json(raw, self.reply_schema)
        if reply is None and self.from_text is not None:
            reply = self.from_text(complete_lines(raw))
        if reply is None:
            return None, reply_fault(raw) or "it is not in the form that was asked for"
        why = self.why_unusable(reply) if self.why_unusable else None
        return (reply, "") if why is None else (None, reply_fault(raw) or why)


def may_be_unsupported(exc: Exception) -> bool:
    """Tell whether an error may mean that the model or its server does not support an option."""
    if any("ContextOverflow" in cls.__name__ for cls in type(exc).__mro__):
        return False
    if (status := _status(exc)) is not None:
        return status in {400, 404, 405, 415, 422, 500, 501}
    return isinstance(exc, NotImplementedError | TypeError | ValueError)


def _may_be_transient(exc: Exception) -> bool:
    """Tell whether an error may have nothing to do with the form that was asked for."""
    return _status(exc) in {404, 500} and not _NAMES_THE_FORM.search(str(exc))


def _status(exc: Exception) -> Any:
    found = (getattr(each, "status_code", None) for each in (exc, getattr(exc, "response", None)))
    return next((status for status in found if status is not None), None)


_METHODS = (None, "function_calling", "json_mode")
"""How structured output is asked for, best first: by the model's own choice, then by these."""

_PLAIN = len(_METHODS)
"""The last step of the ladder: no structured output."""


def _built(
    model: Runnable[Any, Any], schema: type[BaseModel], step: int
) -> Runnable[Any, Any] | None:
    """Make what asks the model at a step of the ladder; `None` if the model cannot."""
    if step == _PLAIN:
        return model
    options = {} if (method := _METHODS[step]) is None else {"method": method}
    try:
        return _structured(model, schema, options)
    except (AttributeError, ImportError, NotImplementedError, TypeError, ValueError):
        return None


def _structured(
    model: Runnable[Any, Any], schema: type[BaseModel], options: dict[str, str]
) -> Runnable[Any, Any]:
    """Ask the chat model inside any wrapping for structured output, and wrap the result again."""
    if not isinstance(model, RunnableBindingBase):
        structured: Runnable[Any, Any] = model.with_structured_output(  # type: ignore[attr-defined]  # a model has it
            schema, include_raw=True, **options
        )
        return structured
    inner: Any = model.bound
    if model.kwargs:
        # Structured output is a sequence, which drops bound arguments; those that are also
        # fields of the model (temperature, max_tokens, …) can be set there instead.
        known = set(getattr(type(inner), "model_fields", ()))
        if unknown := set(model.kwargs) - known:
            raise TypeError(sorted(unknown))
        inner = inner.model_copy(update=dict(model.kwargs))
    return model.model_copy(update={"bound": _structured(inner, schema, options), "kwargs": {}})


def _instructions(schema: type[BaseModel], step: int, *, has_lines: bool) -> list[BaseMessage]:
    """Ask for JSON in words, where neither the model nor the prompt knows the form."""
    if step < _PLAIN - 1 or (step == _PLAIN and has_lines):
        return []
    fields = ", ".join(
        f'"{name}": {_json_type(field.annotation)}' for name, field in schema.model_fields.items()
    )
    return [HumanMessage(f"Reply as one JSON object: {{{fields}}}")]


def _json_type(annotation: Any) -> str:
    if annotation == list[str]:
        return '["…", "…"]'
    return {str: '"…"', int: "0", float: "0.0", bool: "true"}.get(annotation, "…")
