"""Score claims with an encoder: one row of logits per claim."""

import numpy as np
from claim_sets import Example
from langchain_core.documents import Document
from numpy.typing import NDArray

from langchain_groundedness.verifiers._encoder import Encoder
from langchain_groundedness.verifiers._index import EvidenceIndex
from langchain_groundedness.verifiers._reading import reading_pairs
from langchain_groundedness.verifiers._statement import read_statement
from langchain_groundedness.verifiers._windows import match_statement

__all__ = ["score"]


def score(examples: list[Example], model: Encoder) -> NDArray[np.float32]:
    """Score claims.

    Args:
        examples: The claims.
        model: The encoder.

    Returns:
        A row per claim; nan where the documents say nothing of it.
    """
    pairs, places = [], []
    known: tuple[str, ...] | None = None
    for place, example in enumerate(examples):
        if example.documents != known:
            known = example.documents
            index = EvidenceIndex([Document(page_content=text) for text in known])
        statement = read_statement(example.claim, example.question)
        match = match_statement(statement, index) if statement.items else None
        if match is not None:
            found = reading_pairs(statement, match, index)
            pairs += found
            places += [place] * len(found)
    logits = np.full((len(examples), 3), np.nan, dtype=np.float32)
    for place, row in zip(places, model.logits(pairs), strict=True):
        if np.isnan(logits[place, 0]) or row[0] < logits[place, 0]:
            logits[place] = row
    return logits
