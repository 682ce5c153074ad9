"""What a check reports while it runs: chunks of its result, and custom events about them."""

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from langchain_core.callbacks import BaseCallbackManager
from langchain_core.callbacks.manager import adispatch_custom_event, dispatch_custom_event
from langchain_core.runnables import RunnableConfig
from pydantic_core import to_jsonable_python

from langchain_groundedness.inputs.formats import CheckInput
from langchain_groundedness.pipeline.check import CheckState
from langchain_groundedness.types import (
    Claim,
    ClaimVerdict,
    Edit,
    GroundednessResult,
    GroundednessResultChunk,
)

__all__ = ["ChunkMaker", "EventStream"]


class ChunkMaker:
    """Turns the growing states of one check into chunks that add up to its result."""

    def __init__(self) -> None:
        """Start with nothing reported."""
        self.state: CheckState | None = None
        self._reported: dict[str, ClaimVerdict] = {}

    def feed(self, state: CheckState) -> Iterator[GroundednessResultChunk]:
        """Give what a state adds to the one before."""
        known = None if self.state is None else self.state.claims
        self.state = state
        if state.claims is not None and (known is None or len(known) < len(state.claims)):
            yield self.claims(state.source, state.claims[len(known or ()) :])
        yield from self.verdicts(state.verdicts)

    def claims(self, source: CheckInput, claims: Sequence[Claim]) -> GroundednessResultChunk:
        """Give the chunk that says which claims were found."""
        return GroundednessResultChunk(
            question=source.question,
            answer=source.answer,
            original_answer=source.answer,
            documents=source.documents,
            extracted=tuple(claims),
            **source.labels,
        )

    def verdicts(self, verdicts: Sequence[ClaimVerdict]) -> Iterator[GroundednessResultChunk]:
        """Give the chunk that says what was found out, if it is new."""
        if new := self._new(verdicts):
            yield GroundednessResultChunk(claims=new)

    def close(self, result: GroundednessResult) -> GroundednessResultChunk:
        """Give what the result adds to all states."""
        fields = {name: getattr(result, name) for name in GroundednessResult.model_fields}
        fields["claims"] = self._new(result.claims)
        fields["extracted"] = tuple(verdict.claim for verdict in result.claims)
        return GroundednessResultChunk(**fields)

    def _new(self, verdicts: Sequence[ClaimVerdict]) -> tuple[ClaimVerdict, ...]:
        new = tuple(v for v in verdicts if self._reported.get(v.claim.id) != v)
        self._reported.update({v.claim.id: v for v in new})
        return new


class EventStream:
    """Reports what is new in the chunks of one check.

    The events are `groundedness.claim`, `.verdict`, `.correction` and `.decision`. Each goes to the
    callbacks of the config, which `astream_events` reads, and inside a LangGraph graph to its
    stream writer (`stream_mode="custom"`) as `{"event": name, "data": data}`: neither sees what
    the other gets. The data can be written as JSON.
    """

    def __init__(self, config: RunnableConfig) -> None:
        """Find out who listens."""
        self._config = config
        manager = config.get("callbacks")
        handlers = manager.handlers if isinstance(manager, BaseCallbackManager) else ()
        self._has_listeners = any(not handler.ignore_custom_event for handler in handlers)
        self._write = _graph_writer(config)
        self._reported: dict[str, Claim | ClaimVerdict | Edit] = {}

    def publish(self, chunk: GroundednessResultChunk) -> None:
        """Say what is new in a chunk."""
        for name, data in self._events(chunk):
            self.send(name, data)

    async def apublish(self, chunk: GroundednessResultChunk) -> None:
        """Say what is new in a chunk."""
        for name, data in self._events(chunk):
            await self.asend(name, data)

    def send(self, name: str, data: dict[str, Any]) -> None:
        """Send one event."""
        if self._has_listeners:
            dispatch_custom_event(name, data, config=self._config)
        if self._write is not None:
            self._write({"event": name, "data": data})

    async def asend(self, name: str, data: dict[str, Any]) -> None:
        """Send one event."""
        if self._has_listeners:
            await adispatch_custom_event(name, data, config=self._config)
        if self._write is not None:
            self._write({"event": name, "data": data})

    def _events(self, chunk: GroundednessResultChunk) -> Iterator[tuple[str, dict[str, Any]]]:
        if not self._has_listeners and self._write is None:
            return
        news: tuple[tuple[str, tuple[Claim | ClaimVerdict | Edit, ...]], ...] = (
            ("claim", chunk.extracted),
            ("verdict", chunk.claims),
            ("correction", chunk.edits),
        )
        for kind, values in news:
            for value in values:
                key = f"{kind} {_claim_id(value)}"
                if self._reported.get(key) != value:
                    self._reported[key] = value
                    yield f"groundedness.{kind}", _plain(value.model_dump())
        if "decision" in chunk.model_fields_set:
            fields = {"decision", "verdict", "trust_score", "is_trusted"}
            yield "groundedness.decision", _plain(chunk.model_dump(include=fields))


def _plain(value: dict[str, Any]) -> Any:
    # Metadata of documents may be of any kind.
    return to_jsonable_python(value, fallback=str, bytes_mode="base64")


def _claim_id(value: Claim | ClaimVerdict | Edit) -> str:
    if isinstance(value, Claim):
        return value.id
    return value.claim.id if isinstance(value, ClaimVerdict) else value.claim_id


def _graph_writer(config: RunnableConfig) -> Callable[[Any], None] | None:
    """Give the stream writer of the graph around us, if there is one."""
    langgraph = sys.modules.get("langgraph.config")
    if langgraph is None or not config.get("configurable"):
        return None
    try:
        writer: Callable[[Any], None] = langgraph.get_stream_writer()
    except (KeyError, RuntimeError):  # not inside a graph
        return None
    return writer
