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
from collections.abc import Callable, Generator, Sequence
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from langchain_core.callbacks import (
    AsyncCallbackManagerForChainRun,
    CallbackManagerForChainRun,
)
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.prompts.chat import BaseChatPromptTemplate
from langchain_core.runnables import (
    Runnable,
    RunnableConfig,
    RunnableSerializable,
    patch_config,
)
from langchain_core.runnables.base import RunnableBindingBase
from pydantic import BaseModel, ConfigDict, PrivateAttr, SkipValidation
from typing_extensions import override

from langchain_groundedness._defused import defused
from langchain_groundedness._lanes import computed
from langchain_groundedness._learnt import learn, recall
from langchain_groundedness._replies import (
    complete_lines,
    declined,
    parse_json,
    refused,
    reply_text,
    salvaged,
)
from langchain_groundedness.exceptions import OutputParsingError

__all__ = [
    "Flow",
    "ModelCall",
    "ModelRefusedError",
    "StructuredModel",
    "adrive",
    "drive",
    "learn",
    "quiet",
    "recall",
    "unsupported",
]

_SUBJECT = "structured output"
_FAILED = "structured output failed once"
_NAMES_THE_FORM = re.compile(
    r"support|response_format|json|schema|grammar|tool|function|format|implement|unknown|unrecogni"
    r"|invalid|argument|parameter|option",
    re.IGNORECASE,
)

ReplyT = TypeVar("ReplyT", bound=BaseModel)
ResultT = TypeVar("ResultT")


class ModelCall(NamedTuple):
    """A call that a flow asks its driver to make."""

    runnable: Runnable[Any, Any]
    input: Any


class ModelRefusedError(OutputParsingError):
    """The model declined to answer; asking again in another form would not be right."""


Flow: TypeAlias = Generator[ModelCall, Any, ResultT]
"""Logic without I/O: yields calls, receives what they returned or raised, returns a result."""


def drive(flow: Flow[ResultT], config: RunnableConfig) -> ResultT:
    """Run a flow to its end.

    Args:
        flow: The flow; an exception of a call is raised inside it, where it asked for the call.
        config: Config for every call.

    Returns:
        What the flow returns.
    """
    step = _advanced(flow, None, None)
    while isinstance(step, ModelCall):
        try:
            reply = step.runnable.invoke(step.input, config)
        except Exception as exc:  # noqa: BLE001  (the flow decides what it means)
            step = _advanced(flow, None, exc)
        else:
            step = _advanced(flow, reply, None)
    return step.result  # type: ignore[no-any-return]  # untyped


async def adrive(flow: Flow[ResultT], config: RunnableConfig, *, size: int = 0) -> ResultT:
    """Run a flow to its end without blocking the event loop.

    Args:
        flow: As for `drive`.
        config: As for `drive`.
        size: Characters of the text that the flow itself reads; if there are many, it computes
            off the event loop.

    Returns:
        What the flow returns.
    """
    reply, error = None, None
    while True:
        if size > _MANY:
            step = await computed(size, _advanced, flow, reply, error)
        else:
            step = _advanced(flow, reply, error)
        if isinstance(step, _End):
            return step.result  # type: ignore[no-any-return]  # untyped
        reply = error = None
        try:
            reply = await step.runnable.ainvoke(step.input, config)
        except Exception as exc:  # noqa: BLE001  (the flow decides what it means)
            error = exc


_MANY = 5_000
"""Characters whose sentences take some five milliseconds to find."""


class _End(NamedTuple):
    """What a flow has returned; no thread can hand over a `StopIteration`."""

    result: Any


def _advanced(flow: Flow[Any], reply: Any, error: Exception | None) -> ModelCall | _End:
    try:
        return flow.send(reply) if error is None else flow.throw(error)
    except StopIteration as end:
        return _End(end.value)


def quiet(config: RunnableConfig) -> RunnableConfig:
    """Keep model calls made under this config out of the token streams that users read.

    Args:
        config: A config.

    Returns:
        The config with LangGraph's tag for that, `"nostream"`.
    """
    return {**config, "tags": list(dict.fromkeys([*(config.get("tags") or []), "nostream"]))}


class StructuredModel(RunnableSerializable[dict[str, Any], ReplyT], Generic[ReplyT]):
    """A prompt, a model and a schema: from the prompt's variables to a validated reply.

    Works with every chat model: with structured output, with tools, with JSON mode or with
    nothing but text. Keep the object: it learns what its model can do.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

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
    usable: Callable[[ReplyT], bool] | None = None
    """Tells whether a reply that fits the schema makes sense; one that does not is asked for again
    in plain form, where models that lose the thread inside a schema do better."""

    _built: dict[int, Runnable[Any, Any] | None] = PrivateAttr(default_factory=dict)
    """By place on the ladder: what asks the model there, which takes longer to make than to use."""

    @override
    def invoke(
        self, input: dict[str, Any], config: RunnableConfig | None = None, **_: Any
    ) -> ReplyT:
        return self._call_with_config(self._ask, input, config)

    @override
    async def ainvoke(
        self, input: dict[str, Any], config: RunnableConfig | None = None, **_: Any
    ) -> ReplyT:
        return await self._acall_with_config(self._aask, input, config)

    def _ask(
        self,
        values: dict[str, Any],
        run_manager: CallbackManagerForChainRun,
        config: RunnableConfig,
    ) -> ReplyT:
        config = quiet(patch_config(config, callbacks=run_manager.get_child()))
        return drive(self._flow(values), config)

    async def _aask(
        self,
        values: dict[str, Any],
        run_manager: AsyncCallbackManagerForChainRun,
        config: RunnableConfig,
    ) -> ReplyT:
        config = quiet(patch_config(config, callbacks=run_manager.get_child()))
        return await adrive(self._flow(values), config)

    def _flow(self, values: dict[str, Any]) -> Flow[ReplyT]:
        messages = self.prompt.format_messages(**values)
        raw = yield from self._first_reply(messages)
        reply = self._read(raw)
        if reply is None:
            raw = yield ModelCall(self.model, [*messages, *self._second_request(raw)])
            reply = self._read(raw)
            if reply is not None:
                learn(self.model, _SUBJECT, len(_RUNGS) - 1)
        if reply is None:
            msg = f"the model's reply to {self.name!r} does not fit, nor does its second attempt"
            raise OutputParsingError(msg, raw=reply_text(raw), prompt_name=self.name)
        return reply

    def _second_request(self, raw: Any) -> list[BaseMessage]:
        """Ask plainly; a model that was asked plainly sees its reply, others start afresh.

        A small model repeats a bad reply that it is shown, but asked the same in the same way it
        would give the same reply.
        """
        form = _RUNGS[-1].instruct(self.reply_schema, self.from_text is not None)
        if recall(self.model, _SUBJECT) != len(_RUNGS) - 1:
            return form
        complaint = "That is not the form that was asked for. Give the reply in that form."
        return [AIMessage(defused(reply_text(raw)) or "…"), HumanMessage(complaint), *form]

    def _first_reply(self, messages: Sequence[BaseMessage]) -> Flow[Any]:
        """Climb down the ladder until the model takes the call; remember where that was.

        A form that failed once, for what may have been a bad minute of the server, is tried again.
        """
        proven = recall(self.model, _SUBJECT)
        place, sure, failed = proven or 0, True, recall(self.model, _FAILED) is not None
        while True:
            rung = _RUNGS[place]
            if place not in self._built:
                self._built[place] = rung.build(self.model, self.reply_schema)
            runnable = self._built[place]
            if runnable is None:
                place += 1
                continue
            asked = [*messages, *rung.instruct(self.reply_schema, self.from_text is not None)]
            try:
                raw = yield ModelCall(runnable, asked)
            except Exception as exc:
                if declined(exc):
                    raise self._refusal(None) from exc
                raw = salvaged(exc)
                if raw is None:
                    if proven is not None or rung is _RUNGS[-1] or not unsupported(exc):
                        raise
                    place, sure = place + 1, sure and (failed or not _may_pass(exc))
                    continue
            learn(self.model, _SUBJECT if sure else _FAILED, place)
            return raw

    def _refusal(self, raw: Any) -> ModelRefusedError:
        msg = f"the model refused to answer {self.name!r}"
        return ModelRefusedError(msg, raw=reply_text(raw), prompt_name=self.name)

    def _read(self, raw: Any) -> ReplyT | None:
        if refused(raw):
            raise self._refusal(raw)
        parsed = raw.get("parsed") if isinstance(raw, dict) else None
        if isinstance(parsed, self.reply_schema):
            reply: ReplyT | None = parsed
        else:
            reply = parse_json(raw, self.reply_schema)
        if reply is None and self.from_text is not None:
            reply = self.from_text(complete_lines(raw))
        if reply is not None and self.usable is not None and not self.usable(reply):
            return None
        return reply


def unsupported(exc: Exception) -> bool:
    """Tell whether an error may mean that the model or its server does not know an option.

    Args:
        exc: What a call raised.

    Returns:
        True for `NotImplementedError`, `TypeError`, `ValueError` and HTTP 400, 404, 405, 415,
        422, 500 and 501 (local servers answer 500 to a `response_format` they do not know).
        False for what would fail again in any form: no access, rate limits, timeouts, a prompt
        that is too long.
    """
    if any("ContextOverflow" in cls.__name__ for cls in type(exc).__mro__):
        return False
    if (status := _status(exc)) is not None:
        return status in {400, 404, 405, 415, 422, 500, 501}
    return isinstance(exc, NotImplementedError | TypeError | ValueError)


def _may_pass(exc: Exception) -> bool:
    """Tell whether an error may have nothing to do with the form that was asked for."""
    return _status(exc) in {404, 500} and not _NAMES_THE_FORM.search(str(exc))


def _status(exc: Exception) -> Any:
    status = getattr(exc, "status_code", None)
    return (
        getattr(getattr(exc, "response", None), "status_code", None) if status is None else status
    )


class _Rung(NamedTuple):
    """One way of asking for a schema."""

    build: Callable[[Runnable[Any, Any], type[BaseModel]], Runnable[Any, Any] | None]
    instruct: Callable[[type[BaseModel], bool], list[BaseMessage]]


def _native(method: str | None) -> Callable[..., Runnable[Any, Any] | None]:
    def build(model: Runnable[Any, Any], schema: type[BaseModel]) -> Runnable[Any, Any] | None:
        options = {} if method is None else {"method": method}
        try:
            return _structured(model, schema, options)
        except (AttributeError, ImportError, NotImplementedError, TypeError, ValueError):
            return None

    return build


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


def _plain(model: Runnable[Any, Any], _: type[BaseModel]) -> Runnable[Any, Any]:
    return model


def _nothing(_: type[BaseModel], __: bool) -> list[BaseMessage]:  # noqa: FBT001  (as the others)
    return []


def _as_json(schema: type[BaseModel], _: bool) -> list[BaseMessage]:  # noqa: FBT001  (as the others)
    fields = ", ".join(
        f'"{name}": {_json_type(field.annotation)}' for name, field in schema.model_fields.items()
    )
    return [HumanMessage(f"Reply as one JSON object: {{{fields}}}")]


def _json_type(annotation: Any) -> str:
    if annotation == list[str]:
        return '["…", "…"]'
    return {str: '"…"', int: "0", float: "0.0", bool: "true"}.get(annotation, "…")


def _as_text(schema: type[BaseModel], has_lines: bool) -> list[BaseMessage]:  # noqa: FBT001  (as the others)
    return [] if has_lines else _as_json(schema, has_lines)


_RUNGS = (
    _Rung(_native(None), _nothing),
    _Rung(_native("function_calling"), _nothing),
    _Rung(_native("json_mode"), _as_json),
    _Rung(_plain, _as_text),
)
