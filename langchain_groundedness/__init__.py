"""Tells, while a RAG chain runs, which claims of an answer the retrieved documents support.

Put `GroundednessRunnable` behind a chain: `chain.pipe(GroundednessRunnable())`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from langchain_groundedness.claims import LLMClaimExtractor, SentenceClaimExtractor
from langchain_groundedness.correction import Corrector
from langchain_groundedness.decision import DecisionPolicy, DecisionRule
from langchain_groundedness.exceptions import (
    ConfigurationError,
    GroundednessError,
    InputFormatError,
    MissingDependencyError,
    VerificationError,
    require,
)
from langchain_groundedness.runnable import GroundednessRunnable
from langchain_groundedness.serialization import load_arguments
from langchain_groundedness.streaming import GroundednessGuard
from langchain_groundedness.types import (
    Citation,
    Claim,
    ClaimVerdict,
    Decision,
    GroundednessResult,
    GroundednessResultChunk,
    VerificationTask,
)
from langchain_groundedness.verification import CachedVerifier, CascadeVerifier, LLMVerifier, Stage
from langchain_groundedness.verification.single_pass import SinglePassJudge

if TYPE_CHECKING:
    from langchain_groundedness.audit import JsonlAuditLog, SQLAuditLog
    from langchain_groundedness.callbacks import (
        AsyncGroundednessCallbackHandler,
        GroundednessCallbackHandler,
        collect_groundedness,
    )
    from langchain_groundedness.middleware import GroundednessMiddleware, groundedness_node
    from langchain_groundedness.verification import (
        CrossEncoderVerifier,
        EmbeddedVerifier,
        EmbeddingVerifier,
    )

__all__ = [
    "AsyncGroundednessCallbackHandler",
    "CachedVerifier",
    "CascadeVerifier",
    "Citation",
    "Claim",
    "ClaimVerdict",
    "ConfigurationError",
    "Corrector",
    "CrossEncoderVerifier",
    "Decision",
    "DecisionPolicy",
    "DecisionRule",
    "EmbeddedVerifier",
    "EmbeddingVerifier",
    "GroundednessCallbackHandler",
    "GroundednessError",
    "GroundednessGuard",
    "GroundednessMiddleware",
    "GroundednessResult",
    "GroundednessResultChunk",
    "GroundednessRunnable",
    "InputFormatError",
    "JsonlAuditLog",
    "LLMClaimExtractor",
    "LLMVerifier",
    "MissingDependencyError",
    "SQLAuditLog",
    "SentenceClaimExtractor",
    "SinglePassJudge",
    "Stage",
    "VerificationError",
    "VerificationTask",
    "collect_groundedness",
    "groundedness_node",
    "load_arguments",
]

_LAZY = {
    "AsyncGroundednessCallbackHandler": "callbacks",
    "CrossEncoderVerifier": "verification",
    "EmbeddedVerifier": "verification",
    "EmbeddingVerifier": "verification",
    "GroundednessCallbackHandler": "callbacks",
    "GroundednessMiddleware": "middleware",
    "JsonlAuditLog": "audit",
    "SQLAuditLog": "audit",
    "collect_groundedness": "callbacks",
    "groundedness_node": "middleware",
}
"""Names that not every check needs, with the subpackage that has them; loaded on first use."""
_AGENTS = frozenset({"GroundednessMiddleware", "groundedness_node"})

if not TYPE_CHECKING:  # `from langchain_groundedness import *` brings what is installed
    from langchain_groundedness._runtime.lazy_imports import absent

    _ABSENT = absent(dict.fromkeys(_AGENTS, "langchain.agents.middleware"))
    __all__ = [name for name in __all__ if name not in _ABSENT]


def __getattr__(name: str) -> Any:
    """Load what not every check needs when it is asked for."""
    if name not in _LAZY:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    if name in _AGENTS:
        require("langchain.agents", extra="agents")
    found = globals()[name] = getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)
    return found


def __dir__() -> list[str]:
    """Name what is loaded when it is asked for, too."""
    return sorted({*globals(), *_LAZY})
