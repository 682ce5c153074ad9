"""Custom events of a check, for whoever listens: callbacks, `astream_events`, LangGraph streams."""

import sys
from collections.abc import Callable, Iterator
from typing import Any

from langchain_core.callbacks import BaseCallbackManager
from langchain_core.callbacks.manager import adispatch_custom_event, dispatch_custom_event
from langchain_core.runnables import RunnableConfig
from pydantic_core import to_jsonable_python

from langchain_groundedness.types import Claim, ClaimVerdict, Edit, GroundednessResultChunk

__all__ = ["EventStream"]


class EventStream:
    """Says what is new in the chunks of one check.

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
        self._heard = any(not handler.ignore_custom_event for handler in handlers)
        self._write = _graph_writer(config)
        self._said: dict[str, Claim | ClaimVerdict | Edit] = {}

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
        if self._heard:
            dispatch_custom_event(name, data, config=self._config)
        if self._write is not None:
            self._write({"event": name, "data": data})

    async def asend(self, name: str, data: dict[str, Any]) -> None:
        """Send one event."""
        if self._heard:
            await adispatch_custom_event(name, data, config=self._config)
        if self._write is not None:
            self._write({"event": name, "data": data})

    def _events(self, chunk: GroundednessResultChunk) -> Iterator[tuple[str, dict[str, Any]]]:
        if not self._heard and self._write is None:
            return
        news: tuple[tuple[str, tuple[Claim | ClaimVerdict | Edit, ...]], ...] = (
            ("claim", chunk.extracted),
            ("verdict", chunk.claims),
            ("correction", chunk.edits),
        )
        for kind, values in news:
            for value in values:
                key = f"{kind} {_claim_id(value)}"
                if self._said.get(key) != value:
                    self._said[key] = value
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
