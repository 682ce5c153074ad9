"""Scripted parts for tests, and contracts that every runnable of LangChain should keep.

Nothing here asks a model. `ScriptedChatModel` and `ScriptedServer` stand in for the model,
`ScriptedClaimExtractor` and `ScriptedVerifier` for the stages that would ask one. `FaultyServer`
goes wrong as real servers do, in every way that `FAULTS` names; `HonestJudge` is what goes wrong.
`RunnableContract`, `CallbackHandlerContract` and `AgentMiddlewareContract` are test classes to
inherit from: they tell what a runnable, a handler or a middleware of yours gets wrong.
"""

from langchain_groundedness.testing.contract import Probe, ProbeError, RunnableContract
from langchain_groundedness.testing.faults import FAULTS, Fault, FaultyServer
from langchain_groundedness.testing.handler_contract import CallbackHandlerContract
from langchain_groundedness.testing.middleware_contract import AgentMiddlewareContract
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
