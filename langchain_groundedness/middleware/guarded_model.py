"""A chat model whose tokens are checked while they stream, and held until they are verified.

LangChain streams the tokens of an agent from inside its model, before any hook can see them. So
the model itself is stood in for: by a copy whose class differs in how it streams, and in nothing
else that anyone could ask about. Who listens to the stream gets what was verified; who gets the
message gets all of it, since it is checked again before it leaves.
"""

import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator, Sequence
from contextlib import aclosing, closing
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, message_chunk_to_message
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.runnables import RunnableConfig
from pydantic import PrivateAttr

from langchain_groundedness.exceptions import ConfigurationError, VerificationError
from langchain_groundedness.inputs.formats import CheckInput
from langchain_groundedness.llm.usage import counted
from langchain_groundedness.pipeline.events import EventStream
from langchain_groundedness.pipeline.live import LiveCheck
from langchain_groundedness.pipeline.release import Release, ReleaseRules
from langchain_groundedness.pipeline.runs import arun_live, run_live
from langchain_groundedness.runnable import GroundednessRunnable
from langchain_groundedness.types import (
    ClaimVerdict,
    Edit,
    GroundednessResult,
    GroundednessResultChunk,
)

__all__ = ["Listening", "held_model"]

_LOGGER = logging.getLogger(__name__)


@dataclass
class Listening:
    """What is to be heard of one call of a model, and what was found out."""

    checker: GroundednessRunnable
    source: CheckInput
    """Question and documents."""
    config: RunnableConfig
    """For the check."""
    hold: bool
    """Whether text leaves only when it is verified."""
    silent: bool = False
    """Whether no text leaves at all: it is no prose."""
    result: GroundednessResult | None = None
    """What was found out, if the call was streamed."""
    written: AIMessageChunk | None = None
    """All that the model wrote, if the call was streamed."""

    def whole(self, message: AIMessage) -> AIMessage:
        """Give the message that the model wrote, from the one that was let through."""
        if self.written is None:
            return message
        wrote = message_chunk_to_message(self.written)
        kept = ("content", "tool_calls", "invalid_tool_calls", "additional_kwargs")
        return message.model_copy(update={name: getattr(wrote, name) for name in kept})


def held_model(model: Any, listening: Listening) -> Any:
    """Make a copy of a chat model whose stream is listened to."""
    if not isinstance(model, BaseChatModel):
        msg = (
            f"hold_stream and live need a BaseChatModel, got {type(model).__name__}: give the "
            "agent the chat model itself, not a runnable around it"
        )
        raise ConfigurationError(msg)
    held_class = _held_class(type(model))
    held = held_class.__new__(held_class)
    # What a cache holds is not checked, and what streams nothing cannot be held.
    fields = {**model.__dict__, "cache": False, "disable_streaming": False}
    object.__setattr__(held, "__dict__", fields)
    for name in ("__pydantic_fields_set__", "__pydantic_extra__"):
        object.__setattr__(held, name, getattr(model, name))
    private = {**(model.__pydantic_private__ or {}), "_listening": listening, "_original": model}
    object.__setattr__(held, "__pydantic_private__", private)
    return held


class _Held:
    """How a held model differs from its original."""

    __slots__ = ()

    _listening: Listening
    _original: BaseChatModel

    def invoke(self, *args: Any, **kwargs: Any) -> AIMessage:
        return self._listening.whole(super().invoke(*args, **kwargs))  # type: ignore[misc]  # of a mixin

    async def ainvoke(self, *args: Any, **kwargs: Any) -> AIMessage:
        return self._listening.whole(await super().ainvoke(*args, **kwargs))  # type: ignore[misc]  # of a mixin

    def _stream(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:
        ear = _Ear(self._listening)
        with closing(ear.pieces(_chunks(self._original, messages, stop, kwargs))) as pieces:
            try:
                with closing(run_live(pieces, ear.live, ear.config)) as steps:
                    for _ in steps:
                        yield from ear.take()
                        ear.publish()
                yield from ear.end()
                ear.publish()
            except Exception as exc:  # noqa: BLE001  (`give_up` raises it again if it must)
                ear.give_up(exc)
                for _ in pieces:
                    yield from ear.take()
                yield from ear.take()

    async def _astream(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        ear = _Ear(self._listening)
        chunks = _achunks(self._original, messages, stop, kwargs)
        async with aclosing(chunks), aclosing(ear.apieces(chunks)) as pieces:
            try:
                async with aclosing(arun_live(pieces, ear.live, ear.config)) as steps:
                    async for _ in steps:
                        for chunk in ear.take():
                            yield chunk
                        await ear.apublish()
                for chunk in ear.end():
                    yield chunk
                await ear.apublish()
            except Exception as exc:  # noqa: BLE001  (`give_up` raises it again if it must)
                ear.give_up(exc)
                async for _ in pieces:
                    for chunk in ear.take():
                        yield chunk
                for chunk in ear.take():
                    yield chunk


@lru_cache(maxsize=64)
def _held_class(model_class: Any) -> Any:
    inside = {
        "__module__": model_class.__module__,
        "__qualname__": model_class.__qualname__,
        "__annotations__": {"_listening": Any, "_original": Any},
        "_listening": PrivateAttr(default=None),
        "_original": PrivateAttr(default=None),
    }
    held = type(model_class)(model_class.__name__, (_Held, model_class), inside)
    for name in ("_stream_chat_model_events", "_astream_chat_model_events"):
        if getattr(held, name, None) is not None:
            # A model's own event stream would go past `_stream`.
            setattr(held, name, None)
    return held


def _streams(model: BaseChatModel) -> bool:
    own = type(model)._stream is not BaseChatModel._stream  # noqa: SLF001  (LangChain's hook)
    return (own or _astreams(model)) and model.disable_streaming is not True


def _astreams(model: BaseChatModel) -> bool:
    return type(model)._astream is not BaseChatModel._astream  # noqa: SLF001  (LangChain's hook)


def _chunks(
    model: BaseChatModel, messages: Any, stop: Any, kwargs: dict[str, Any]
) -> Iterator[ChatGenerationChunk]:
    if _streams(model) and type(model)._stream is not BaseChatModel._stream:  # noqa: SLF001  (LangChain's hook)
        yield from model._stream(messages, stop=stop, **kwargs)  # noqa: SLF001  (LangChain's hook)
    else:
        yield _as_chunk(model._generate(messages, stop=stop, **kwargs))  # noqa: SLF001  (LangChain's hook)


async def _achunks(
    model: BaseChatModel, messages: Any, stop: Any, kwargs: dict[str, Any]
) -> AsyncGenerator[ChatGenerationChunk]:
    if _streams(model):
        async for chunk in model._astream(messages, stop=stop, **kwargs):  # noqa: SLF001  (LangChain's hook)
            yield chunk
    else:
        yield _as_chunk(await model._agenerate(messages, stop=stop, **kwargs))  # noqa: SLF001  (LangChain's hook)


def _as_chunk(result: ChatResult) -> ChatGenerationChunk:
    message = result.generations[0].message
    fields = message.model_dump(exclude={"type", "tool_calls", "invalid_tool_calls"})
    calls = [
        {
            "type": "tool_call_chunk",
            "name": call["name"],
            "args": json.dumps(call["args"]),
            "id": call["id"],
            "index": number,
        }
        for number, call in enumerate(getattr(message, "tool_calls", ()))
    ]
    return ChatGenerationChunk(message=AIMessageChunk(**fields, tool_call_chunks=calls))


@dataclass(frozen=True, kw_only=True)
class _OnlyVerified(ReleaseRules):
    """Nothing leaves of a sentence in which a claim failed and was not corrected."""

    def edits(self, text: str, sentence: Any, made: Sequence[Edit] = ()) -> tuple[Edit, ...]:
        corrected = {edit.claim_id for edit in made}
        if all(v.verdict == "supported" or v.claim.id in corrected for v in sentence.verdicts):
            return tuple(made)
        failed: list[ClaimVerdict] = [
            v.model_copy(update={"verdict": "unchecked", "reason": "not verified"})
            for v in sentence.verdicts
        ]
        return ReleaseRules.edits(self, text, sentence._replace(verdicts=tuple(failed)))


@dataclass
class _Ear:
    """One streamed answer: what comes from the model, what is found out, what leaves."""

    listening: Listening
    live: LiveCheck = field(init=False)
    config: RunnableConfig = field(init=False)

    def __post_init__(self) -> None:
        heard = self.listening
        heard.result, heard.written = None, None
        source = heard.source
        given = {"documents": list(source.documents), "question": source.question}
        self.live = heard.checker.live(removes=heard.hold, **given, **source.labels)
        self.config, self._counter = counted(heard.config)
        rules = _OnlyVerified(
            on_unchecked="hold_back",
            unchecked_marker="",
            check=heard.checker.check,
            blocked_message="",
        )
        self._release = Release(self.live, rules)
        self._events = EventStream(self.config)
        self._due: list[ChatGenerationChunk] = []
        self._error: BaseException | None = None
        self._lost = heard.silent
        self._first = True
        self._untold: list[GroundednessResultChunk] = []

    def pieces(self, chunks: Iterator[ChatGenerationChunk]) -> Generator[str]:
        try:
            for chunk in chunks:
                yield self._hear(chunk)
        except Exception as exc:
            self._error = exc
            raise

    async def apieces(self, chunks: AsyncIterator[ChatGenerationChunk]) -> AsyncGenerator[str]:
        try:
            async for chunk in chunks:
                yield self._hear(chunk)
        except Exception as exc:
            self._error = exc
            raise

    def take(self) -> Iterator[ChatGenerationChunk]:
        """Give what may leave now."""
        due, self._due = self._due, []
        yield from due
        if self.listening.hold and not self._lost and (text := self._release.take()):
            yield self._said(text)

    def end(self) -> Iterator[ChatGenerationChunk]:
        """Give the rest when all is checked."""
        yield from self.take()
        if self.listening.silent:
            return
        result = self.live.conclude(self._counter.usage)
        rest = self._release.finish(result) if self.listening.hold else ""
        self.listening.result = None if self._calls_tools else result
        if rest:
            yield self._said(rest)

    def publish(self) -> None:
        for chunk in self._news():
            self._events.publish(chunk)

    async def apublish(self) -> None:
        for chunk in self._news():
            await self._events.apublish(chunk)

    def _news(self) -> list[GroundednessResultChunk]:
        """Give what can be told: what is said before a tool is called is no answer."""
        self._untold += self.live.take()
        if self._calls_tools or self.listening.silent:
            self._untold.clear()
        if not self.listening.source.documents and not self.live.closed:
            return []
        news, self._untold = self._untold, []
        return news

    def give_up(self, error: Exception) -> None:
        """Let nothing more leave after an error of the check; raise any other."""
        asked_for = isinstance(error, VerificationError) and self.listening.checker.raise_on_failure
        if error is self._error or asked_for:
            raise error
        _LOGGER.warning("groundedness: the live check failed (%s)", type(error).__name__)
        self._lost = True

    def _hear(self, chunk: ChatGenerationChunk) -> str:
        heard, message = self.listening, chunk.message
        assert isinstance(message, AIMessageChunk)  # noqa: S101  (chat models stream these)
        # LangChain completes the chunk that it is given; what was written stays as it came.
        copy = message.model_copy()
        heard.written = copy if heard.written is None else heard.written + copy
        if not heard.hold:
            self._due.append(chunk)
        elif (bare := self._bare(chunk)) is not None:
            self._due.append(bare)
        return "" if heard.silent else str(message.text)

    @property
    def _calls_tools(self) -> bool:
        written = self.listening.written
        return written is not None and bool(written.tool_call_chunks)

    def _bare(self, chunk: ChatGenerationChunk) -> ChatGenerationChunk | None:
        """Give what of a chunk may leave at once; nothing, if that is nothing but the text."""
        message: Any = chunk.message
        first, self._first = self._first, False
        calls = [] if self.listening.silent else message.tool_call_chunks
        about = (calls, message.usage_metadata, message.response_metadata, chunk.generation_info)
        if not first and not any(about):
            return None
        bare = AIMessageChunk(
            content="",
            id=message.id,
            response_metadata=message.response_metadata,
            usage_metadata=message.usage_metadata,
            tool_call_chunks=calls,
        )
        return ChatGenerationChunk(message=bare, generation_info=chunk.generation_info)

    def _said(self, text: str) -> ChatGenerationChunk:
        written = self.listening.written
        return ChatGenerationChunk(
            message=AIMessageChunk(content=text, id=written.id if written else None)
        )
