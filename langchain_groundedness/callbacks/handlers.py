"""Callback handlers that check the answers of chains and agents without changing them.

Attach `GroundednessCallbackHandler` (or `AsyncGroundednessCallbackHandler` where the chain is
awaited) by `config={"callbacks": [handler]}`, by `with_config`, in a constructor, or for a block
of code with `collect_groundedness()`. It collects question, documents and answer of each root run,
checks the answer, and reports verdicts one by one.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partialmethod
from inspect import signature
from typing import Any, Literal, TypeAlias, TypeVar, Unpack
from uuid import UUID

from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.outputs import ChatGenerationChunk, GenerationChunk
from langchain_core.runnables import Runnable, run_in_executor
from langchain_core.tracers.context import register_configure_hook
from typing_extensions import override

from langchain_groundedness.audit import AuditLog
from langchain_groundedness.callbacks.base import Handler, collecting
from langchain_groundedness.callbacks.channel import Listener
from langchain_groundedness.callbacks.run_tracker import Kind
from langchain_groundedness.runnable import CheckerOptions
from langchain_groundedness.text.sentences import is_loaded, load
from langchain_groundedness.types import GroundednessResult

__all__ = [
    "AsyncGroundednessCallbackHandler",
    "GroundednessCallbackHandler",
    "collect_groundedness",
]

_Chunk: TypeAlias = GenerationChunk | ChatGenerationChunk


_H = TypeVar("_H", bound=Handler)


class HandlerOptions(CheckerOptions, total=False):
    """Options of the handlers: their own, and those of their checker."""

    on_verdict: Listener | None
    on_event: Listener | None
    background: bool
    max_workers: int
    max_pending: int
    max_runs: int
    max_results: int
    max_events: int
    langsmith_client: Any
    audit_log: AuditLog | None


# LangChain passes the first arguments of hooks by position.


class GroundednessCallbackHandler(Handler, BaseCallbackHandler):
    """Checks the answers of a chain or an agent without changing it.

    One handler serves any number of concurrent runs, in threads and on event loops. An answer is
    checked when its root run ends, by default before the chain returns. The handler never changes
    the answer, and an error in a check never reaches the chain. To change or hold back answers, use
    `GroundednessRunnable` or the agent middleware.

    Passed to the constructor of a chain, the handler sees only that chain's own input and output;
    LangChain propagates handlers to inner runs only from a config.

    If there are no documents, the output cannot be read, or the check fails, the result has the
    verdict `unchecked`, and a warning is logged.

    Example:
        >>> from langchain_groundedness.demo import QUESTION, build_chain
        >>> handler = GroundednessCallbackHandler()
        >>> answer = build_chain().invoke(QUESTION, config={"callbacks": [handler]})
        >>> [result] = handler.results.values()
        >>> result.verdict
        'has_contradictions'
    """

    def _started(self, kind: Kind, _: object, given: Any, /, *, run_id: UUID, **run: Any) -> None:
        self._follow_up(self._tracker.start(kind, run_id, given, **run))

    on_chain_start: Any = partialmethod(_started, "chain")
    on_retriever_start: Any = partialmethod(_started, "retriever")
    on_tool_start: Any = partialmethod(_started, "tool")
    on_llm_start: Any = partialmethod(_started, "model")
    on_chat_model_start = on_llm_start

    @override
    def on_llm_new_token(
        self, token: Any, *, run_id: UUID, chunk: _Chunk | None = None, **run: Any
    ) -> None:
        self._tracker.read(run_id, _text(token, chunk), source="token")

    @override
    def on_stream_event(self, event: Any, *, run_id: UUID, **run: Any) -> None:
        self._tracker.read(run_id, _delta(event), source="event")

    def _ended(self, output: Any, /, *, run_id: UUID, **run: Any) -> None:
        self._follow_up(self._tracker.end(run_id, output, **run))

    def _failed(self, error: BaseException, /, *, run_id: UUID, **run: Any) -> None:
        self._follow_up(self._tracker.fail(run_id, error))

    on_chain_end = on_retriever_end = on_tool_end = on_llm_end = _ended  # type: ignore[assignment]
    on_chain_error = on_retriever_error = _failed  # type: ignore[assignment]
    on_tool_error = on_llm_error = _failed  # type: ignore[assignment]


class AsyncGroundednessCallbackHandler(Handler, AsyncCallbackHandler):
    """Checks the answers of an awaited chain or agent without changing it.

    Like `GroundednessCallbackHandler`, but checks and functions run on the chain's event loop. With
    a sync chain, they run in threads.

    Example:
        >>> import asyncio
        >>> from langchain_groundedness.demo import QUESTION, build_chain
        >>> handler = AsyncGroundednessCallbackHandler()
        >>> config = {"callbacks": [handler]}
        >>> answer = asyncio.run(build_chain().ainvoke(QUESTION, config=config))
        >>> [result.verdict for result in handler.results.values()]
        ['has_contradictions']
    """

    async def _started(
        self, kind: Kind, _: object, given: Any, /, *, run_id: UUID, **run: Any
    ) -> None:
        await self._afollow_up(self._tracker.start(kind, run_id, given, **run))

    on_chain_start: Any = partialmethod(_started, "chain")
    on_retriever_start: Any = partialmethod(_started, "retriever")
    on_tool_start: Any = partialmethod(_started, "tool")
    on_llm_start: Any = partialmethod(_started, "model")
    on_chat_model_start = on_llm_start

    @override
    async def on_llm_new_token(
        self, token: Any, *, run_id: UUID, chunk: _Chunk | None = None, **run: Any
    ) -> None:
        await self._read(run_id, _text(token, chunk), "token")

    @override
    async def on_stream_event(self, event: Any, *, run_id: UUID, **run: Any) -> None:
        await self._read(run_id, _delta(event), "event")

    async def _ended(self, output: Any, /, *, run_id: UUID, **run: Any) -> None:
        await self._afollow_up(self._tracker.end(run_id, output, **run))

    async def _failed(self, error: BaseException, /, *, run_id: UUID, **run: Any) -> None:
        await self._afollow_up(self._tracker.fail(run_id, error))

    on_chain_end = on_retriever_end = on_tool_end = on_llm_end = _ended  # type: ignore[assignment]
    on_chain_error = on_retriever_error = _failed  # type: ignore[assignment]
    on_tool_error = on_llm_error = _failed  # type: ignore[assignment]

    async def _read(self, run_id: UUID, text: str, source: Literal["token", "event"]) -> None:
        if not is_loaded():
            await run_in_executor(None, load)
        loop = asyncio.get_running_loop()
        self._tracker.read(run_id, text, source=source, loop=loop)


class _Collection:
    """A context manager that checks all runs of a block."""

    def __init__(self, checker: Runnable[Any, GroundednessResult] | None, options: Any) -> None:
        self._make: Callable[[Any], Any] = lambda kind: kind(checker, **options)

    def __enter__(self) -> GroundednessCallbackHandler:
        return self._begin(GroundednessCallbackHandler)

    def __exit__(self, *exc_info: object) -> None:
        collecting.reset(self._token)
        with closing(self._handler):
            self._handler.flush()

    async def __aenter__(self) -> AsyncGroundednessCallbackHandler:
        return self._begin(AsyncGroundednessCallbackHandler)

    async def __aexit__(self, *exc_info: object) -> None:
        collecting.reset(self._token)
        with closing(self._handler):
            await self._handler.aflush()

    def _begin(self, kind: type[_H]) -> _H:
        handler: _H = self._make(kind)
        self._handler: Handler = handler
        self._token = collecting.set(handler)
        return handler


def collect_groundedness(
    checker: Runnable[Any, GroundednessResult] | None = None, **options: Unpack[HandlerOptions]
) -> _Collection:
    """Check the answers of all chains and agents that run in a block of code.

    Runs are found wherever the block's context variables propagate: in tasks and in LangChain's
    threads, but not in threads of a plain `ThreadPoolExecutor`. Nested blocks: the innermost one
    applies.

    Args:
        checker: As for `GroundednessCallbackHandler`.
        **options: As for `GroundednessCallbackHandler`.

    Returns:
        A context manager that returns a `GroundednessCallbackHandler` for `with`, and an
        `AsyncGroundednessCallbackHandler` for `async with`. At the end of the block, the handler
        waits for its background checks and is closed.

    Example:
        >>> from langchain_groundedness.demo import QUESTION, build_chain
        >>> with collect_groundedness() as collected:
        ...     answers = build_chain().batch([QUESTION, QUESTION])
        >>> [result.trust_score for result in collected.results.values()]
        [0.4, 0.4]
    """
    return _Collection(checker, options)


_given = signature(Handler).replace(return_annotation=_Collection)
collect_groundedness.__signature__ = _given  # type: ignore[attr-defined]  # as help() reads it


def _text(token: object, chunk: _Chunk | None) -> str:
    """Read the text of a token, which may be a list of content blocks."""
    if isinstance(chunk, ChatGenerationChunk):
        return str(chunk.message.text)
    return token if isinstance(token, str) else ""


def _delta(event: Mapping[str, Any]) -> str:
    """Read the text of an event of LangChain's event stream v3."""
    delta = event.get("delta") if event.get("event") == "content-block-delta" else None
    return str(delta["text"]) if delta and delta.get("type") == "text-delta" else ""


register_configure_hook(collecting, inheritable=True)
