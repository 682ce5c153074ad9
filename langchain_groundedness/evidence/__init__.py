"""Evidence: from documents to batches of passages that fit a judge, and back to quotes."""

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
