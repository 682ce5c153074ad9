"""Live verdicts of an agent's run, for those who read its events."""

from typing import Any, ClassVar

from langgraph.stream import StreamTransformer
from langgraph.stream._types import ProtocolEvent
from langgraph.stream.stream_channel import StreamChannel

from langchain_groundedness.middleware._turn import STATE_KEY

__all__ = ["GroundednessTransformer"]

_PREFIX = "groundedness."


class GroundednessTransformer(StreamTransformer):
    """Picks the events of the check out of a run's custom events: `run.extensions["groundedness"]`.

    Each item is `{"event": "groundedness.claim" | ".verdict" | ".correction" | ".decision",
    "data": {...}}`, in the order in which they became known.
    """

    required_stream_modes: ClassVar[tuple[str, ...]] = ("custom",)

    def __init__(self, scope: tuple[str, ...] = ()) -> None:
        """Take the place in the graph whose events count.

        Args:
            scope: Namespace of the run.
        """
        super().__init__(scope)
        self._channel: StreamChannel[dict[str, Any]] = StreamChannel()

    def init(self) -> dict[str, Any]:
        """Offer the channel.

        Returns:
            The channel, under the key that it has in `run.extensions`.
        """
        return {STATE_KEY: self._channel}

    def process(self, event: ProtocolEvent) -> bool:
        """Take an event of the run.

        Args:
            event: Any event.

        Returns:
            True: the event also stays among the custom events.
        """
        params = event["params"]
        if event["method"] == "custom" and params["namespace"] == list(self.scope):
            data = params["data"]
            if isinstance(data, dict) and str(data.get("event", "")).startswith(_PREFIX):
                self._channel.push(data)
        return True
