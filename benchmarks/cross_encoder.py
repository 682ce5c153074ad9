"""Any cross-encoder for sentence-transformers, given the evidence that our encoder reads."""

from typing import TYPE_CHECKING

import numpy as np
from score_encoder import pairs_of

if TYPE_CHECKING:
    from claim_sets import Example
    from numpy.typing import NDArray

__all__ = ["cross_encoder_scores"]


def cross_encoder_scores(examples: "list[Example]", *, model: str) -> "NDArray[np.float64]":
    """Score claims by a cross-encoder: its one number, or its probability of entailment.

    Args:
        examples: The claims; those with the same documents should be neighbours.
        model: Folder of the model.

    Returns:
        One score per claim; the lowest where the documents say nothing of it.

    Raises:
        SystemExit: `sentence-transformers` is not installed.
    """
    try:
        from sentence_transformers import CrossEncoder  # noqa: PLC0415  (optional)
    except ImportError as exc:
        msg = "--cross-encoder needs sentence-transformers: pip install sentence-transformers"
        raise SystemExit(msg) from exc
    judge = CrossEncoder(model, device="cpu")
    found = pairs_of(examples)
    places = [place for place, each in enumerate(found) for _ in each]
    pairs = [tuple(pair) for each in found for pair in each]
    rows = np.asarray(judge.predict(pairs, apply_softmax=judge.config.num_labels > 1))
    if rows.ndim > 1:
        names = [str(name).lower() for name in judge.config.id2label.values()]
        rows = rows[:, names.index("entailment") if "entailment" in names else -1]
    scores = np.full(len(examples), np.inf)
    np.minimum.at(scores, places, rows)  # of an overlong claim, the piece supported least
    return np.where(np.isinf(scores), rows.min(initial=0.0), scores)
