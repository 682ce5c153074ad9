"""Claims: the statements of an answer that documents can support or contradict."""

from langchain_groundedness.claims.extractors import (
    ClaimExtractor,
    ExtractionExample,
    LLMClaimExtractor,
    SentenceClaimExtractor,
)

__all__ = ["ClaimExtractor", "ExtractionExample", "LLMClaimExtractor", "SentenceClaimExtractor"]
