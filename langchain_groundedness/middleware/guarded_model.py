"""A chat model whose tokens are checked while they stream, and held until they are verified.

LangChain streams an agent's tokens from inside its model, before any hook sees them. So a guarded
copy replaces the model; its class differs only in how it streams. Readers of the stream get only
verified text; the message is complete, since it is checked again before it is released.
"""

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, message_chunk_to_message
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.runnables import RunnableConfig
from pydantic import PrivateAttr

from langchain_groundedness._runtime.streams import ClosingStream
from langchain_groundedness.exceptions import ConfigurationError, VerificationError
from langchain_groundedness.inputs.formats import CheckInput
from langchain_groundedness.llm.usage import with_usage_counter
from langchain_groundedness.pipeline.events import EventStream
from langchain_groundedness.pipeline.release import Release, ReleaseRules
from langchain_groundedness.pipeline.runs import arun_live, run_live
from langchain_groundedness.runnable import GroundednessRunnable
from langchain_groundedness.types import (
    Edit,
    GroundednessResult,
    GroundednessResultChunk,
)

__all__ = ["GuardedCall", "guarded_model"]

_LOGGER = logging.getLogger(__name__)

_WRITTEN = ("content", "tool_calls", "invalid_tool_calls", "additional_kwargs")

_RELEASED_AT_ONCE = ("id", "response_metadata", "usage_metadata")


@dataclass
class GuardedCall:
    """One guarded call of a model: its options and its result."""

    checker: GroundednessRunnable
    source: CheckInput
    """Question and documents."""
    config: RunnableConfig
    """For the check."""
    hold: bool
    """Whether text is released only after verification."""
    silent: bool = False
    """Whether no text is released, because it is not prose."""
    result: GroundednessResult | None = None
    """The result of the check, if the call was streamed."""
    written: AIMessageChunk | None = None
    """All that the model wrote, if the call was streamed."""

    def whole(self, message: AIMessage) -> AIMessage:
        """Restore the full message of the model from the released one."""
        if self.written is None:
            return message
        wrote = message_chunk_to_message(self.written)
        return message.model_copy(update={name: getattr(wrote, name) for name in _WRITTEN})


def guarded_model(model: Any, call: GuardedCall) -> Any:
    """Make a copy of a chat model whose stream is checked."""
    if not isinstance(model, BaseChatModel):
        msg = (
            f"hold_stream and live need a BaseChatModel, got {type(model).__name__}: give the "
            "agent the chat model itself, not a runnable around it"
        )
        raise ConfigurationError(msg)
    guarded_class = _guarded_class(type(model))
    guarded = guarded_class.__new__(guarded_class)
    # Cached replies would bypass the check, and a model that does not stream cannot be held.
    fields = {**model.__dict__, "cache": False, "disable_streaming": False}
    object.__setattr__(guarded, "__dict__", fields)
    for name in ("__pydantic_fields_set__", "__pydantic_extra__"):
        object.__setattr__(guarded, name, getattr(model, name))
    private = {**(model.__pydantic_private__ or {}), "_guarded_call": call, "_original": model}
    object.__setattr__(guarded, "__pydantic_private__", private)
    return guarded


class _Guarded:
    """How a guarded model differs from its original."""

    __slots__ = ()

    _guarded_call: GuardedCall
    _original: BaseChatModel

    def invoke(self, *args: Any, **kwargs: Any) -> AIMessage:
        return self._guarded_call.whole(super().invoke(*args, **kwargs))  # type: ignore[misc]  # of a mixin

    async def ainvoke(self, *args: Any, **kwargs: Any) -> AIMessage:
        return self._guarded_call.whole(await super().ainvoke(*args, **kwargs))  # type: ignore[misc]  # of a mixin

    def _stream(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:
        observer = _StreamObserver(self._guarded_call)
        with closing(observer.texts(self._original, messages, stop=stop, **kwargs)) as texts:
            try:
                with closing(run_live(texts, observer.live, observer.config)) as steps:
                    for _ in steps:
                        yield from observer.released()
                        observer.publish()
                yield from observer.finish()
                observer.publish()
            except Exception as exc:  # noqa: BLE001  (`on_error` raises it again if it must)
                observer.on_error(exc)
                for _ in texts:
                    yield from observer.released()
                yield from observer.released()

    async def _astream(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        observer = _StreamObserver(self._guarded_call)
        written = observer.atexts(self._original, messages, stop=stop, **kwargs)
        async with ClosingStream(written) as texts:
            try:
                async with ClosingStream(arun_live(texts, observer.live, observer.config)) as steps:
                    async for _ in steps:
                        for chunk in observer.released():
                            yield chunk
                        await observer.apublish()
                for chunk in observer.finish():
                    yield chunk
                await observer.apublish()
            except Exception as exc:  # noqa: BLE001  (`on_error` raises it again if it must)
                observer.on_error(exc)
                async for _ in texts:
                    for chunk in observer.released():
                        yield chunk
                for chunk in observer.released():
                    yield chunk


@lru_cache(maxsize=64)
def _guarded_class(model_class: Any) -> Any:
    inside: dict[str, Any] = {
        "__module__": model_class.__module__,
        "__qualname__": model_class.__qualname__,
        "__annotations__": {"_guarded_call": Any, "_original": Any},
        "_guarded_call": PrivateAttr(default=None),
        "_original": PrivateAttr(default=None),
    }
    guarded = type(model_class)(model_class.__name__, (_Guarded, model_class), inside)
    # A model's own event stream would bypass `_stream`.
    for name in ("_stream_chat_model_events", "_astream_chat_model_events"):
        if getattr(guarded, name, None) is not None:
            setattr(guarded, name, None)
    return guarded


def _streams(model: BaseChatModel, *methods: str) -> bool:
    """Tell whether a model streams, by a method of its own."""
    own = any(getattr(type(model), each) is not getattr(BaseChatModel, each) for each in methods)
    return own and model.disable_streaming is not True


def _as_chunk(result: ChatResult) -> ChatGenerationChunk:
    fields = result.generations[0].message.model_dump(exclude={"type"})
    return ChatGenerationChunk(message=AIMessageChunk(**fields))


@dataclass(frozen=True, kw_only=True)
class _VerifiedOnlyRules(ReleaseRules):
    """Withholds sentences with a failed claim that was not corrected."""

    def edits(self, text: str, sentence: Any, made: Sequence[Edit] = ()) -> tuple[Edit, ...]:
        corrected = {edit.claim_id for edit in made}
        if all(v.verdict == "supported" or v.claim.id in corrected for v in sentence.verdicts):
            return tuple(made)
        refused = {"verdict": "unchecked", "reason": "not verified"}
        failed = tuple(v.model_copy(update=refused) for v in sentence.verdicts)
        return ReleaseRules.edits(self, text, replace(sentence, verdicts=failed))


class _StreamObserver:
    """Checks one streamed answer and releases its verified text."""

    def __init__(self, call: GuardedCall) -> None:
        """Begin to check."""
        call.result, call.written = None, None
        source, checker = call.source, call.checker
        given = {"documents": list(source.documents), "question": source.question, **source.labels}
        self.live = checker.live(removes=call.hold, **given)
        self.config, self._counter = with_usage_counter(call.config)
        rules = _VerifiedOnlyRules(
            on_unchecked="hold_back",
            unchecked_marker="",
            contradicted_marker="",
            check=checker.check,
            blocked_message="",
        )
        self._call = call
        self._release = Release(self.live, rules)
        self._events = EventStream(self.config)
        self._due: list[ChatGenerationChunk] = []
        self._model_error: BaseException | None = None
        self._holds_rest = call.silent
        self._any_released = False
        self._unpublished: list[GroundednessResultChunk] = []

    def texts(self, model: BaseChatModel, /, *given: Any, **kwargs: Any) -> Generator[str]:
        """Call the model, and give its texts."""
        try:
            if not _streams(model, "_stream"):
                yield self._take(_as_chunk(model._generate(*given, **kwargs)))  # noqa: SLF001  (LangChain's hook)
                return
            for chunk in model._stream(*given, **kwargs):  # noqa: SLF001  (LangChain's hook)
                yield self._take(chunk)
        except Exception as exc:
            self._model_error = exc
            raise

    async def atexts(
        self, model: BaseChatModel, /, *given: Any, **kwargs: Any
    ) -> AsyncGenerator[str]:
        """Call the model, and give its texts."""
        try:
            if not _streams(model, "_stream", "_astream"):
                yield self._take(_as_chunk(await model._agenerate(*given, **kwargs)))  # noqa: SLF001  (LangChain's hook)
                return
            async with ClosingStream(model._astream(*given, **kwargs)) as chunks:  # noqa: SLF001  (LangChain's hook)
                async for chunk in chunks:
                    yield self._take(chunk)
        except Exception as exc:
            self._model_error = exc
            raise

    def released(self) -> Iterator[ChatGenerationChunk]:
        """Yield the chunks that may be released now."""
        due, self._due = self._due, []
        yield from due
        if self._call.hold and not self._holds_rest and (text := self._release.take()):
            yield self._with_text(text)

    def finish(self) -> Iterator[ChatGenerationChunk]:
        """Yield the rest after the last verdict."""
        yield from self.released()
        if self._call.silent:
            return
        own = {"evidence_source": self._call.source.evidence_source}
        result = self.live.conclude(self._counter.usage, own)
        rest = self._release.finish(result) if self._call.hold else ""
        self._call.result = None if self._calls_tools else result
        if rest:
            yield self._with_text(rest)

    def publish(self) -> None:
        """Publish new events."""
        for chunk in self._new_chunks():
            self._events.publish(chunk)

    async def apublish(self) -> None:
        """Publish new events."""
        for chunk in self._new_chunks():
            await self._events.apublish(chunk)

    def on_error(self, error: Exception) -> None:
        """Release nothing more after an error of the check; raise any other error."""
        wanted = isinstance(error, VerificationError) and self._call.checker.raise_on_failure
        if error is self._model_error or wanted:
            raise error
        _LOGGER.warning("groundedness: the live check failed (%s)", type(error).__name__)
        self._holds_rest = True

    @property
    def _calls_tools(self) -> bool:
        return bool(self._call.written and self._call.written.tool_call_chunks)

    def _new_chunks(self) -> list[GroundednessResultChunk]:
        """Return new events; text before a tool call is not an answer."""
        self._unpublished += self.live.take()
        if self._calls_tools or self._call.silent:
            self._unpublished.clear()
        if not self._call.source.documents and not self.live.closed:
            return []
        news, self._unpublished = self._unpublished, []
        return news

    def _take(self, chunk: ChatGenerationChunk) -> str:
        call, message = self._call, chunk.message
        assert isinstance(message, AIMessageChunk)  # noqa: S101  (chat models stream these)
        # LangChain modifies the chunk it gets, so keep a copy of the original.
        copy = message.model_copy()
        call.written = copy if call.written is None else call.written + copy
        if not call.hold:
            self._due.append(chunk)
        elif (bare := self._without_text(chunk)) is not None:
            self._due.append(bare)
        return "" if call.silent else str(message.text)

    def _without_text(self, chunk: ChatGenerationChunk) -> ChatGenerationChunk | None:
        """Return the chunk without its text; `None` if only text is in it."""
        message: Any = chunk.message
        calls = [] if self._call.silent else message.tool_call_chunks
        about = (calls, message.usage_metadata, message.response_metadata, chunk.generation_info)
        if self._any_released and not any(about):
            return None
        self._any_released = True
        kept = {name: getattr(message, name) for name in _RELEASED_AT_ONCE}
        bare = AIMessageChunk(content="", tool_call_chunks=calls, **kept)
        return ChatGenerationChunk(message=bare, generation_info=chunk.generation_info)

    def _with_text(self, text: str) -> ChatGenerationChunk:
        identity = self._call.written.id if self._call.written else None
        return ChatGenerationChunk(message=AIMessageChunk(content=text, id=identity))
