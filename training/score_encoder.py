"""What the encoder reads for the claims of a set, and what it says: one row of logits per claim."""

import numpy as np
from claim_sets import Example
from langchain_core.documents import Document
from numpy.typing import NDArray

from langchain_groundedness.verification.embedded.encoder import Encoder, Pair
from langchain_groundedness.verification.embedded.index import EvidenceIndex
from langchain_groundedness.verification.embedded.statement import read_statement
from langchain_groundedness.verification.embedded.support_model import support_log_odds
from langchain_groundedness.verification.embedded.windows import (
    WORDS,
    encoder_input,
    match_statement,
)

__all__ = ["pairs_of", "score"]


def pairs_of(examples: list[Example], *, words: int = WORDS) -> list[list[Pair]]:
    """Give what is read for claims, as the verifier chooses it.

    Args:
        examples: The claims; those with the same documents should be neighbours.
        words: About how many words to read for each.

    Returns:
        The pairs of each claim; none where the documents say nothing of it.
    """
    pairs: list[list[Pair]] = []
    known: tuple[str, ...] | None = None
    for example in examples:
        if example.documents != known:
            known = example.documents
            index = EvidenceIndex([Document(page_content=text) for text in known])
        statement = read_statement(example.claim, example.question)
        match = match_statement(statement, index) if statement.items else None
        pairs.append(
            [] if match is None else list(encoder_input(statement, match, index, words=words).pairs)
        )
    return pairs


def score(examples: list[Example], model: Encoder, *, words: int = WORDS) -> NDArray[np.float32]:
    """Score claims.

    Args:
        examples: The claims.
        model: The encoder.
        words: About how many words to read for each.

    Returns:
        A row per claim, of an overlong one that of the piece supported least; nan where the
        documents say nothing of it.
    """
    pairs = pairs_of(examples, words=words)
    rows = model.logits([pair for each in pairs for pair in each])
    logits = np.full((len(examples), 3), np.nan, dtype=np.float32)
    first = 0
    for place, each in enumerate(pairs):
        mine = rows[first : first + len(each)]
        first += len(each)
        if each:
            logits[place] = mine[support_log_odds(mine).argmin()]
    return logits
