"""Tells, while a RAG chain runs, which claims of an answer the retrieved documents support.

Put `GroundednessRunnable` behind a chain: `chain.pipe(GroundednessRunnable())`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from langchain_groundedness.audit import JsonlAuditLog, SQLAuditLog
    from langchain_groundedness.callbacks import (
        AsyncGroundednessCallbackHandler,
        GroundednessCallbackHandler,
        collect_groundedness,
    )
    from langchain_groundedness.claims import LLMClaimExtractor, SentenceClaimExtractor
    from langchain_groundedness.correction import Corrector
    from langchain_groundedness.decision import DecisionPolicy, DecisionRule
    from langchain_groundedness.exceptions import (
        ConfigurationError,
        GroundednessError,
        InputFormatError,
        MissingDependencyError,
        VerificationError,
    )
    from langchain_groundedness.middleware import GroundednessMiddleware, groundedness_node
    from langchain_groundedness.runnable import GroundednessRunnable, acheck, check
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
    from langchain_groundedness.verification import (
        CachedVerifier,
        CascadeVerifier,
        CrossEncoderVerifier,
        EmbeddedVerifier,
        EmbeddingVerifier,
        LLMVerifier,
        Stage,
    )
    from langchain_groundedness.verification.single_pass import SinglePassJudge

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
    "acheck",
    "check",
    "collect_groundedness",
    "groundedness_node",
    "load_arguments",
]

_NAMES_BY_MODULE = {
    "audit": "JsonlAuditLog SQLAuditLog",
    "callbacks": (
        "AsyncGroundednessCallbackHandler GroundednessCallbackHandler collect_groundedness"
    ),
    "claims": "LLMClaimExtractor SentenceClaimExtractor",
    "correction": "Corrector",
    "decision": "DecisionPolicy DecisionRule",
    "exceptions": (
        "ConfigurationError GroundednessError InputFormatError MissingDependencyError "
        "VerificationError"
    ),
    "middleware": "GroundednessMiddleware groundedness_node",
    "runnable": "GroundednessRunnable acheck check",
    "serialization": "load_arguments",
    "streaming": "GroundednessGuard",
    "types": (
        "Citation Claim ClaimVerdict Decision GroundednessResult GroundednessResultChunk "
        "VerificationTask"
    ),
    "verification": (
        "CachedVerifier CascadeVerifier CrossEncoderVerifier EmbeddedVerifier EmbeddingVerifier "
        "LLMVerifier Stage"
    ),
    "verification.single_pass": "SinglePassJudge",
}
_MODULE_OF = {name: module for module, names in _NAMES_BY_MODULE.items() for name in names.split()}
"""Where each name is imported from on first use, so that importing the package costs little."""

if not TYPE_CHECKING:  # a star import brings what is installed
    from langchain_groundedness._runtime.installed import absent

    _NEEDS = dict.fromkeys(_NAMES_BY_MODULE["middleware"].split(), "langchain.agents.middleware")
    __all__ = [name for name in __all__ if name not in absent(_NEEDS)]


def __getattr__(name: str) -> Any:
    """Import a name when it is first used."""
    if name not in _MODULE_OF:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    if _MODULE_OF[name] == "middleware":
        from langchain_groundedness.exceptions import require  # noqa: PLC0415  (names load lazily)

        require("langchain.agents", extra="agents")
    found = globals()[name] = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    return found


def __dir__() -> list[str]:
    """List the names that are not imported yet, too."""
    return sorted({*globals(), *_MODULE_OF})
