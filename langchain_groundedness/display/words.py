"""What people read about the evidence of a claim: no more than is known of it."""

from langchain_groundedness.types import ClaimVerdict

__all__ = ["SURE", "correction_words", "evidence_words"]

SURE = 0.84
"""Probability of support from which the documents are said to say a claim: the strict threshold of
the embedded verifier."""


def evidence_words(found: ClaimVerdict) -> str:
    """Introduce the quotes of a verdict."""
    likely = found.support_probability is not None and found.support_probability >= SURE
    sure = found.verdict == "supported" and likely and not found.conflicting
    return "The documents say this" if sure else "Closest passage"


def correction_words(found: ClaimVerdict) -> str:
    """Introduce the correction of a verdict, which only some verifiers take from a quote."""
    quoted = found.correction and any(found.correction in c.quote for c in found.citations)
    return "the documents say" if quoted else "suggested correction"
