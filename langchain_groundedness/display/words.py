"""What people read about the evidence of a claim: no more than is known of it."""

from langchain_groundedness.types import ClaimVerdict

__all__ = ["SURE", "correction_words", "evidence_words"]

SURE = 0.88
"""Probability of support from which the documents are said to say a claim: the strict threshold of
the embedded verifier."""

_PASSAGES = {"supported": "Supporting", "contradicted": "Contradicting"}


def evidence_words(found: ClaimVerdict) -> str:
    """Introduce the quotes of a verdict, or the closest sentence if it has none."""
    kind = _PASSAGES.get(found.verdict) if found.citations else None
    if found.conflicting and kind:
        return "Passages for and against"
    if found.verdict == "supported" and kind and (found.support_probability or 0) >= SURE:
        return "The documents say this"
    return f"{kind or 'Closest'} passage{'s' if len(found.citations) > 1 else ''}"


def correction_words(found: ClaimVerdict) -> str:
    """Introduce the correction of a verdict, which only some verifiers take from a quote."""
    quoted = found.correction and any(found.correction in c.quote for c in found.citations)
    return "the documents say" if quoted else "suggested correction"
