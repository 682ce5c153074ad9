"""Callback handlers that check the answers of chains and agents without changing them.

Attach `GroundednessCallbackHandler` (or `AsyncGroundednessCallbackHandler` where the chain is
awaited) by `config={"callbacks": [handler]}`, by `with_config`, in a constructor, or for a block
of code with `collect_groundedness()`. It collects question, documents and answer of each root run,
checks the answer, and reports verdicts one by one.
"""

from langchain_groundedness.callbacks.channel import GroundednessEvent
from langchain_groundedness.callbacks.handlers import (
    AsyncGroundednessCallbackHandler,
    GroundednessCallbackHandler,
    collect_groundedness,
)

__all__ = [
    "AsyncGroundednessCallbackHandler",
    "GroundednessCallbackHandler",
    "GroundednessEvent",
    "collect_groundedness",
]
