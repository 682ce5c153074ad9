"""What the encoder reads for a claim: the windows that speak most about it, joined to one text."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from langchain_groundedness.verifiers._encoder import Pair
from langchain_groundedness.verifiers._encoder_windows import estimate_tokens
from langchain_groundedness.verifiers._index import EvidenceIndex
from langchain_groundedness.verifiers._statement import Statement
from langchain_groundedness.verifiers._windows import Match

__all__ = ["WORDS", "Reading", "chosen_units", "joined", "read_for"]

_GAP = " \u2026 "
_HEAD_WORDS = 12
"""Of the best document's beginning: its title, or who it is about."""
_HEAD_CHARACTERS = 160
_SPACE = re.compile(r"\s+")
_SIGN = re.compile(r"[^\w\s]|_")
WORDS = 110
"""Of evidence for one claim: about 150 tokens."""
_LONGEST_PIECE = 240
"""Estimated tokens of a claim that are read at once; very few sentences have more."""
_LONGEST_PART = 160
"""Characters of a word that is no word."""
_TOKENS_PER_WORD = 3
"""Prose has fewer: numbers and made-up words that have more take up the place of several."""
_LONGEST_READING = 1700
"""Characters: all that is read of a single overlong sentence."""


class Reading(NamedTuple):
    """What is read for one claim."""

    units: tuple[int, ...]
    """The sentences, by their indices, in order."""
    pairs: tuple[Pair, ...]
    """One, or several for an overlong claim: all of it must be supported."""


def read_for(
    statement: Statement, match: Match, index: EvidenceIndex, *, words: int = WORDS
) -> Reading:
    """Give what the encoder is to read for a claim.

    The question of the answer is not among it, unless the claim is too short without: what only
    the question says, the evidence need not support.

    Args:
        statement: The claim.
        match: What the documents say of it.
        index: The documents.
        words: About how many words of them to read.

    Returns:
        The sentences chosen, and the pairs made of them.
    """
    units = chosen_units(match, index, words=words)
    evidence = joined(units, match, index)[:_LONGEST_READING]
    return Reading(tuple(units), tuple(Pair(evidence, piece) for piece in _pieces(statement.text)))


def _pieces(claim: str) -> Iterator[str]:
    piece = ""
    for word in claim.split():
        for part in _cut(word):
            longer = f"{piece} {part}" if piece else part
            if piece and _tokens(longer) > _LONGEST_PIECE:
                yield piece
                longer = part
            piece = longer
    if piece:
        yield piece


def _cut(word: str) -> list[str]:
    if _tokens(word) <= _LONGEST_PIECE:
        return [word]
    # an unspaced script, or no words at all
    return [word[start : start + _LONGEST_PART] for start in range(0, len(word), _LONGEST_PART)]


def _tokens(text: str) -> int:
    """Estimate tokens on the high side; each sign, of which tables are full, is one."""
    return estimate_tokens(text) + len(_SIGN.findall(text))


def joined(units: Sequence[int], match: Match, index: EvidenceIndex) -> str:
    """Put together what a claim is to be compared with.

    Args:
        units: The sentences to read, by their indices, in order.
        match: What the documents say of the claim.
        index: The documents.

    Returns:
        The text, led by the first words of the best sentence's document; places that are not
        neighbours are parted by an ellipsis.
    """
    return _GAP.join([*_head(units, match, index), *_runs(units, index)])


def chosen_units(match: Match, index: EvidenceIndex, *, words: int) -> list[int]:
    """Choose the sentences to read.

    Evidence may lie in several places and documents: the best sentence, those that say what is
    missing there, then the neighbours and the runners-up.

    Args:
        match: What the documents say of the claim.
        index: The documents.
        words: About how many words they may have together.

    Returns:
        Their indices, in order; at least one.
    """
    chosen: list[int] = []
    left = words
    for unit in dict.fromkeys(_by_use(match)):
        size = _size(unit, index)
        if not chosen or size <= left:
            chosen.append(unit)
            left -= size
    return sorted(chosen)


def _size(unit: int, index: EvidenceIndex) -> int:
    words = int(index.first[unit + 1] - index.first[unit])
    return max(words, -(-_tokens(index.text(unit, unit)) // _TOKENS_PER_WORD))


def _by_use(match: Match) -> Iterator[int]:
    """Give sentences, the most useful first."""
    best, wide = match.best[0], match.best[-1]
    yield best.first
    covered = best.found
    rest = [window for window in match.pool if window.first != best.first]
    while rest:
        gains = [float(np.maximum(window.found - covered, 0) @ match.weights) for window in rest]
        most = int(np.argmax(gains))
        if gains[most] <= 0:
            break
        covered = np.maximum(covered, rest[most].found)
        yield rest.pop(most).first
    yield from range(wide.first, wide.last + 1)
    yield from (window.first for window in rest)


def _head(units: Sequence[int], match: Match, index: EvidenceIndex) -> list[str]:
    document = int(index.document_of[match.best[0].first])
    first = int(np.searchsorted(index.document_of, document))
    if first in units:
        return []
    return [" ".join(index.text(first, first).split()[:_HEAD_WORDS])[:_HEAD_CHARACTERS]]


def _runs(units: Sequence[int], index: EvidenceIndex) -> Iterator[str]:
    start = 0
    for place in range(1, len(units) + 1):
        if (
            place == len(units)
            or units[place] != units[place - 1] + 1
            or index.document_of[units[place]] != index.document_of[units[place - 1]]
        ):
            yield _SPACE.sub(" ", index.text(units[start], units[place - 1])).strip()
            start = place
