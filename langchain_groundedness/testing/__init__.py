"""Scripted parts for tests, and contracts that every runnable of LangChain should keep.

Nothing here asks a model. `ScriptedChatModel` and `ScriptedServer` stand in for the model,
`ScriptedClaimExtractor` and `ScriptedVerifier` for the stages that would ask one.
`RunnableContract` is a test class to inherit from: it tells what a runnable of yours gets wrong.
"""

from langchain_groundedness.testing.contract import RunnableContract
from langchain_groundedness.testing.scripted import (
    ScriptedChatModel,
    ScriptedClaimExtractor,
    ScriptedVerifier,
)
from langchain_groundedness.testing.server import (
    ScriptedRequest,
    ScriptedResponse,
    ScriptedServer,
)

__all__ = [
    "RunnableContract",
    "ScriptedChatModel",
    "ScriptedClaimExtractor",
    "ScriptedRequest",
    "ScriptedResponse",
    "ScriptedServer",
    "ScriptedVerifier",
]
