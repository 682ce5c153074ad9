"""Verifiers: runnables from a task (claims, documents) to one verdict per claim."""

from typing import TypeAlias

from langchain_core.runnables import Runnable

from langchain_groundedness.types import ClaimVerdict, VerificationTask
from langchain_groundedness.verifiers.cascade import CascadeVerifier, Stage
from langchain_groundedness.verifiers.cross_encoder import CrossEncoderVerifier
from langchain_groundedness.verifiers.embedded import EmbeddedVerifier
from langchain_groundedness.verifiers.embedding import EmbeddingVerifier
from langchain_groundedness.verifiers.llm import LLMVerifier

__all__ = [
    "CascadeVerifier",
    "CrossEncoderVerifier",
    "EmbeddedVerifier",
    "EmbeddingVerifier",
    "LLMVerifier",
    "Stage",
    "Verifier",
]

Verifier: TypeAlias = Runnable[VerificationTask, list[ClaimVerdict]]
"""Anything that judges claims: ours, a chain of yours, a `RunnableLambda`.

Verdicts are matched to claims by id; what is missing becomes `unchecked`. A verifier that streams
yields lists, which add up."""
