"""Verifiers: runnables that take a task (claims, documents) and return one verdict per claim."""

from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

from langchain_core.runnables import Runnable

from langchain_groundedness._runtime.installed import absent
from langchain_groundedness.types import ClaimVerdict, VerificationTask
from langchain_groundedness.verification.cached import CachedVerifier
from langchain_groundedness.verification.cascade import CascadeVerifier, Stage
from langchain_groundedness.verification.llm import LLMVerifier

if TYPE_CHECKING:
    from langchain_groundedness.verification.cross_encoder import CrossEncoderVerifier
    from langchain_groundedness.verification.embedded.cross_encoder import EmbeddedCrossEncoder
    from langchain_groundedness.verification.embedded.decision_model import EmbeddedDecisionModel
    from langchain_groundedness.verification.embedded.verifier import EmbeddedVerifier
    from langchain_groundedness.verification.embedding import EmbeddingVerifier

__all__ = [
    "CachedVerifier",
    "CascadeVerifier",
    "CrossEncoderVerifier",
    "EmbeddedCrossEncoder",
    "EmbeddedDecisionModel",
    "EmbeddedVerifier",
    "EmbeddingVerifier",
    "LLMVerifier",
    "Stage",
    "Verifier",
]

Verifier: TypeAlias = Runnable[VerificationTask, list[ClaimVerdict]]
"""Anything that judges claims: a verifier of this package, your own chain, a `RunnableLambda`.

Verdicts are matched to claims by id; a claim without a verdict becomes `unchecked`. A verifier that
streams yields lists, which are concatenated."""

_LAZY_MODULES = {
    "CrossEncoderVerifier": "cross_encoder",
    "EmbeddedCrossEncoder": "embedded.cross_encoder",
    "EmbeddedDecisionModel": "embedded.decision_model",
    "EmbeddedVerifier": "embedded.verifier",
    "EmbeddingVerifier": "embedding",
}
"""Modules with numerical code, by class. They take half of the import time, and a chat model as the
judge needs none of them."""
_WITH_NEWER_CORE = ("EmbeddedDecisionModel",)

if not TYPE_CHECKING:  # a star import exports only what is installed
    _ABSENT = absent(dict.fromkeys(_WITH_NEWER_CORE, "langchain_core.decisions"))
    __all__ = [name for name in __all__ if name not in _ABSENT]


def __getattr__(name: str) -> Any:
    """Load numerical modules on first use; some need langchain-core 1.8."""
    if name not in _LAZY_MODULES:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    found = globals()[name] = getattr(import_module(f"{__name__}.{_LAZY_MODULES[name]}"), name)
    return found


def __dir__() -> list[str]:
    """Include the names that are loaded on first use."""
    return sorted({*globals(), *_LAZY_MODULES})
