"""Scripted parts for tests, and contracts that every runnable of LangChain should keep.

Nothing here calls a model. `ScriptedChatModel` and `ScriptedServer` replace the model,
`ScriptedClaimExtractor` and `ScriptedVerifier` the stages that would call one. `FaultyServer` fails
as real servers do, in every way listed in `FAULTS`; `HonestJudge` gives its correct replies.
`RunnableContract`, `CallbackHandlerContract` and `AgentMiddlewareContract` are test classes to
inherit from; they test a runnable, a handler or a middleware of yours.
"""

from langchain_groundedness.testing.contract import (
    AgentMiddlewareContract,
    CallbackHandlerContract,
    Probe,
    ProbeError,
    RunnableContract,
)
from langchain_groundedness.testing.faults import FAULTS, Fault, FaultyServer
from langchain_groundedness.testing.scripted import (
    ScriptedChatModel,
    ScriptedClaimExtractor,
    ScriptedVerifier,
)
from langchain_groundedness.testing.server import (
    HonestJudge,
    KnownClaim,
    ScriptedRequest,
    ScriptedResponse,
    ScriptedServer,
)

__all__ = [
    "FAULTS",
    "AgentMiddlewareContract",
    "CallbackHandlerContract",
    "Fault",
    "FaultyServer",
    "HonestJudge",
    "KnownClaim",
    "Probe",
    "ProbeError",
    "RunnableContract",
    "ScriptedChatModel",
    "ScriptedClaimExtractor",
    "ScriptedRequest",
    "ScriptedResponse",
    "ScriptedServer",
    "ScriptedVerifier",
]
