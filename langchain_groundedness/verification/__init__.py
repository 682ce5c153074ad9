"""Verifiers: runnables that take a task (claims, documents) and return one verdict per claim."""

from typing import TYPE_CHECKING

from langchain_groundedness._runtime.lazy import lazy_names

if TYPE_CHECKING:  # what `_NAMES_BY_MODULE` says; a test compares them
    from langchain_groundedness.verification.base import Verifier as Verifier
    from langchain_groundedness.verification.cached import CachedVerifier as CachedVerifier
    from langchain_groundedness.verification.cascade import CascadeVerifier as CascadeVerifier
    from langchain_groundedness.verification.cascade import Stage as Stage
    from langchain_groundedness.verification.cross_encoder import (
        CrossEncoderVerifier as CrossEncoderVerifier,
    )
    from langchain_groundedness.verification.embedded.cross_encoder import (
        EmbeddedCrossEncoder as EmbeddedCrossEncoder,
    )
    from langchain_groundedness.verification.embedded.decision_model import (
        EmbeddedDecisionModel as EmbeddedDecisionModel,
    )
    from langchain_groundedness.verification.embedded.verifier import (
        EmbeddedVerifier as EmbeddedVerifier,
    )
    from langchain_groundedness.verification.embedding import EmbeddingVerifier as EmbeddingVerifier
    from langchain_groundedness.verification.llm import LLMVerifier as LLMVerifier

_NAMES_BY_MODULE = {
    "base": "Verifier",
    "cached": "CachedVerifier",
    "cascade": "CascadeVerifier Stage",
    "cross_encoder": "CrossEncoderVerifier",
    "embedded.cross_encoder": "EmbeddedCrossEncoder",
    "embedded.decision_model": "EmbeddedDecisionModel",
    "embedded.verifier": "EmbeddedVerifier",
    "embedding": "EmbeddingVerifier",
    "llm": "LLMVerifier",
}
"""The public names, by the module that each is imported from on first use."""

if not TYPE_CHECKING:
    __all__, __getattr__, __dir__ = lazy_names(
        __name__, _NAMES_BY_MODULE, {"embedded.decision_model": "langchain_core.decisions"}
    )
