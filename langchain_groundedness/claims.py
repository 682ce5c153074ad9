"""Claim extraction: from an answer to the statements in it that can be checked."""

from typing import TypeAlias

from langchain_core.runnables import Runnable

from langchain_groundedness.types import Claim, ExtractionTask

__all__ = ["ClaimExtractor"]

ClaimExtractor: TypeAlias = Runnable[ExtractionTask | str, list[Claim]]
"""Anything that finds the claims of an answer: ours, a chain of yours, a `RunnableLambda`."""
