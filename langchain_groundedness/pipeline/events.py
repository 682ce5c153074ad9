"""Progress of a running check: chunks of its result, and custom events."""

import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
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
    """Converts the successive states of a check into chunks that add up to its result."""

    def __init__(self) -> None:
        """Start without a state."""
        self.state: CheckState | None = None
        self._reported: dict[str, ClaimVerdict] = {}

    def feed(self, state: CheckState) -> Iterator[GroundednessResultChunk]:
        """Yield chunks for what a state adds to the previous one."""
        known = None if self.state is None else self.state.claims
        self.state = state
        if state.claims is not None and (known is None or len(known) < len(state.claims)):
            yield self.claims(state.source, state.claims[len(known or ()) :])
        yield from self.verdicts(state.verdicts)

    def claims(self, source: CheckInput, claims: Sequence[Claim]) -> GroundednessResultChunk:
        """Return the chunk with newly found claims."""
        return GroundednessResultChunk(
            question=source.question,
            answer=source.answer,
            original_answer=source.answer,
            documents=source.documents,
            extracted=tuple(claims),
            **source.labels,
        )

    def verdicts(self, verdicts: Sequence[ClaimVerdict]) -> Iterator[GroundednessResultChunk]:
        """Yield a chunk with the verdicts that are new."""
        if new := self._new(verdicts):
            yield GroundednessResultChunk(claims=new)

    def close(self, result: GroundednessResult) -> GroundednessResultChunk:
        """Return the last chunk: what the result adds to the states."""
        fields = {name: getattr(result, name) for name in GroundednessResult.model_fields}
        fields["claims"] = self._new(result.claims)
        fields["extracted"] = tuple(verdict.claim for verdict in result.claims)
        return GroundednessResultChunk(**fields)

    def _new(self, verdicts: Sequence[ClaimVerdict]) -> tuple[ClaimVerdict, ...]:
        new = tuple(v for v in verdicts if self._reported.get(v.claim.id) != v)
        self._reported.update({v.claim.id: v for v in new})
        return new


class EventStream:
    """Publishes the chunks of one check as custom events.

    The events are `groundedness.claim`, `.verdict`, `.correction` and `.decision`. Each is sent to
    the callbacks of the config, which `astream_events` reads, and inside a LangGraph graph also to
    its stream writer (`stream_mode="custom"`) as `{"event": name, "data": data}`. The data is
    JSON-serializable.
    """

    def __init__(self, config: RunnableConfig) -> None:
        """Find the listeners of a config."""
        self._config = config
        manager = config.get("callbacks")
        handlers = manager.handlers if isinstance(manager, BaseCallbackManager) else ()
        self._has_listeners = any(not handler.ignore_custom_event for handler in handlers)
        self._write = _graph_writer(config)
        self._reported: dict[tuple[str, str], Claim | ClaimVerdict | Edit] = {}

    def publish(self, chunk: GroundednessResultChunk) -> None:
        """Send the events of a chunk."""
        for name, data in self._events(chunk):
            self.send(name, data)

    async def apublish(self, chunk: GroundednessResultChunk) -> None:
        """Send the events of a chunk."""
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
        found: Iterator[tuple[str, str, Claim | ClaimVerdict | Edit]] = chain(
            (("claim", claim.id, claim) for claim in chunk.extracted),
            (("verdict", verdict.claim.id, verdict) for verdict in chunk.claims),
            (("correction", edit.claim_id, edit) for edit in chunk.edits),
        )
        for kind, claim_id, value in found:
            if self._reported.get((kind, claim_id)) != value:
                self._reported[kind, claim_id] = value
                yield f"groundedness.{kind}", _plain(value.model_dump())
        if "decision" in chunk.model_fields_set:
            fields = {"decision", "verdict", "trust_score", "is_trusted", "final"}
            yield "groundedness.decision", _plain(chunk.model_dump(include=fields))


def _plain(value: dict[str, Any]) -> Any:
    # Document metadata may hold any type.
    return to_jsonable_python(value, fallback=str, bytes_mode="base64")


def _graph_writer(config: RunnableConfig) -> Callable[[Any], None] | None:
    """Return the stream writer of the surrounding graph, if any."""
    langgraph = sys.modules.get("langgraph.config")
    if langgraph is None or not config.get("configurable"):
        return None
    try:
        writer: Callable[[Any], None] = langgraph.get_stream_writer()
    except (KeyError, RuntimeError):  # not inside a graph
        return None
    return writer
