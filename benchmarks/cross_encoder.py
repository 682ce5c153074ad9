"""Any cross-encoder for sentence-transformers, given the evidence that our encoder reads."""

from typing import TYPE_CHECKING

import numpy as np
from langchain_core.documents import Document

from langchain_groundedness.verifiers._index import EvidenceIndex
from langchain_groundedness.verifiers._reading import reading_pairs
from langchain_groundedness.verifiers._statement import read_statement
from langchain_groundedness.verifiers._windows import match_statement

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
        from sentence_transformers import CrossEncoder  # noqa: PLC0415
    except ImportError as exc:
        msg = "--cross-encoder needs sentence-transformers: pip install sentence-transformers"
        raise SystemExit(msg) from exc
    judge = CrossEncoder(model, device="cpu")
    pairs, places = [], []
    known: tuple[str, ...] | None = None
    for place, example in enumerate(examples):
        if example.documents != known:
            known = example.documents
            index = EvidenceIndex([Document(page_content=text) for text in known])
        statement = read_statement(example.claim, example.question)
        match = match_statement(statement, index) if statement.items else None
        if match is not None:
            pairs.append(tuple(reading_pairs(statement, match, index)[0]))
            places.append(place)
    rows = np.asarray(judge.predict(pairs, apply_softmax=judge.config.num_labels > 1))
    if rows.ndim > 1:
        names = [str(name).lower() for name in judge.config.id2label.values()]
        rows = rows[:, names.index("entailment") if "entailment" in names else -1]
    scores = np.full(len(examples), rows.min() if len(rows) else 0.0)
    scores[places] = rows
    return scores
