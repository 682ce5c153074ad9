"""Packs documents into batches of passages, and maps quotes back to documents."""

from langchain_groundedness.evidence.packing import (
    EvidencePacker,
    SentenceIndex,
    approximate_tokens,
    locate_quote,
    passage_sentences,
    shares_content_word,
)

__all__ = [
    "EvidencePacker",
    "SentenceIndex",
    "approximate_tokens",
    "locate_quote",
    "passage_sentences",
    "shares_content_word",
]
