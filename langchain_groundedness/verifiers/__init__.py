"""Verifiers: runnables from a task (claims, documents) to one verdict per claim."""

from typing import TypeAlias

from langchain_core.runnables import Runnable

from langchain_groundedness.types import ClaimVerdict, VerificationTask

__all__ = ["Verifier"]

Verifier: TypeAlias = Runnable[VerificationTask, list[ClaimVerdict]]
"""Anything that judges claims: ours, a chain of yours, a `RunnableLambda`.

Verdicts are matched to claims by id; what is missing becomes `unchecked`. A verifier that streams
yields lists, which add up."""
