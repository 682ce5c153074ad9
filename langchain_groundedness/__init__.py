"""Tells, while a RAG chain runs, which claims of an answer the retrieved documents support.

Put `GroundednessRunnable` after a chain: `chain.pipe(GroundednessRunnable())`.
"""

from typing import TYPE_CHECKING

from langchain_groundedness._runtime.lazy import lazy_names

if TYPE_CHECKING:  # what `_NAMES_BY_MODULE` says; a test compares them
    from langchain_groundedness.audit import JsonlAuditLog as JsonlAuditLog
    from langchain_groundedness.audit import SQLAuditLog as SQLAuditLog
    from langchain_groundedness.callbacks import (
        AsyncGroundednessCallbackHandler as AsyncGroundednessCallbackHandler,
    )
    from langchain_groundedness.callbacks import (
        GroundednessCallbackHandler as GroundednessCallbackHandler,
    )
    from langchain_groundedness.callbacks import collect_groundedness as collect_groundedness
    from langchain_groundedness.claims import LLMClaimExtractor as LLMClaimExtractor
    from langchain_groundedness.claims import SentenceClaimExtractor as SentenceClaimExtractor
    from langchain_groundedness.correction import Corrector as Corrector
    from langchain_groundedness.decision import DecisionPolicy as DecisionPolicy
    from langchain_groundedness.decision import DecisionRule as DecisionRule
    from langchain_groundedness.exceptions import ConfigurationError as ConfigurationError
    from langchain_groundedness.exceptions import GroundednessError as GroundednessError
    from langchain_groundedness.exceptions import InputFormatError as InputFormatError
    from langchain_groundedness.exceptions import MissingDependencyError as MissingDependencyError
    from langchain_groundedness.exceptions import VerificationError as VerificationError
    from langchain_groundedness.middleware import GroundednessMiddleware as GroundednessMiddleware
    from langchain_groundedness.middleware import groundedness_node as groundedness_node
    from langchain_groundedness.runnable import GroundednessRunnable as GroundednessRunnable
    from langchain_groundedness.runnable import acheck as acheck
    from langchain_groundedness.runnable import check as check
    from langchain_groundedness.serialization import load_arguments as load_arguments
    from langchain_groundedness.streaming import GroundednessGuard as GroundednessGuard
    from langchain_groundedness.types import Citation as Citation
    from langchain_groundedness.types import Claim as Claim
    from langchain_groundedness.types import ClaimVerdict as ClaimVerdict
    from langchain_groundedness.types import Decision as Decision
    from langchain_groundedness.types import GroundednessResult as GroundednessResult
    from langchain_groundedness.types import GroundednessResultChunk as GroundednessResultChunk
    from langchain_groundedness.types import VerificationTask as VerificationTask
    from langchain_groundedness.verification import CachedVerifier as CachedVerifier
    from langchain_groundedness.verification import CascadeVerifier as CascadeVerifier
    from langchain_groundedness.verification import CrossEncoderVerifier as CrossEncoderVerifier
    from langchain_groundedness.verification import EmbeddedVerifier as EmbeddedVerifier
    from langchain_groundedness.verification import EmbeddingVerifier as EmbeddingVerifier
    from langchain_groundedness.verification import LLMVerifier as LLMVerifier
    from langchain_groundedness.verification import Stage as Stage
    from langchain_groundedness.verification.single_pass import SinglePassJudge as SinglePassJudge

_NAMES_BY_MODULE = {
    "audit": "JsonlAuditLog SQLAuditLog",
    "callbacks": "AsyncGroundednessCallbackHandler GroundednessCallbackHandler "
    "collect_groundedness",
    "claims": "LLMClaimExtractor SentenceClaimExtractor",
    "correction": "Corrector",
    "decision": "DecisionPolicy DecisionRule",
    "exceptions": "ConfigurationError GroundednessError InputFormatError MissingDependencyError "
    "VerificationError",
    "middleware": "GroundednessMiddleware groundedness_node",
    "runnable": "GroundednessRunnable acheck check",
    "serialization": "load_arguments",
    "streaming": "GroundednessGuard",
    "types": "Citation Claim ClaimVerdict Decision GroundednessResult GroundednessResultChunk "
    "VerificationTask",
    "verification": "CachedVerifier CascadeVerifier CrossEncoderVerifier EmbeddedVerifier "
    "EmbeddingVerifier LLMVerifier Stage",
    "verification.single_pass": "SinglePassJudge",
}
"""The public names, by the module that each is imported from on first use."""

if not TYPE_CHECKING:
    __all__, __getattr__, __dir__ = lazy_names(
        __name__, _NAMES_BY_MODULE, {"middleware": "langchain.agents.middleware"}
    )
