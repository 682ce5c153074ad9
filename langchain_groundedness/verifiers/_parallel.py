"""Whether a quote makes the claim's own statement but for a part of it."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from langchain_groundedness.verifiers._rarity import rarity
from langchain_groundedness.words import STOP_WORDS, Word

__all__ = ["Part", "Span", "is_parallel"]

_PARALLEL = 0.8
"""Share, weighed by rarity, of what is left of either that the other must say too."""
_FEWEST_IN_CLAUSE = 2
_CLAUSE_END = re.compile(r"[,;:()\u2013\u2014](?!\d)")


class Span(Protocol):
    """Where something stands in a text."""

    @property
    def start(self) -> int:
        """Offset of its first character."""
        ...

    @property
    def end(self) -> int:
        """Offset behind its last character."""
        ...


class Part(NamedTuple):
    """A part of a text."""

    start: int
    end: int


def is_parallel(
    claim_words: Sequence[Word],
    claim_parts: Sequence[Span],
    quote: str,
    quote_words: Sequence[Word],
    quote_parts: Sequence[Span],
) -> bool:
    """Tell whether a quote, or a clause of it, makes the claim's statement, but for some parts.

    Args:
        claim_words: Words of the claim.
        claim_parts: What of the claim is not compared.
        quote: The evidence.
        quote_words: Its words.
        quote_parts: What of it is not compared; the clause is the one that holds the first.

    Returns:
        True if each says nearly all that the other one says, apart from these parts.
    """
    mine = _content(claim_words, claim_parts)
    for clause in _clauses(quote, quote_parts):
        inside = [w for w in quote_words if clause.start <= w.start < clause.end]
        theirs = _content(inside, quote_parts)
        if len(mine) < _FEWEST_IN_CLAUSE and clause.end - clause.start < len(quote):
            continue
        shared = _weight(mine & theirs)
        if shared >= _PARALLEL * max(_weight(mine), _weight(theirs)) > 0:
            return True
    return False


def _content(words: Sequence[Word], without: Sequence[Span]) -> set[str]:
    return {
        w.stem
        for w in words
        if w.stem not in STOP_WORDS and not any(s.start <= w.start < s.end for s in without)
    }


def _weight(stems: set[str]) -> float:
    table = rarity()
    return sum(table.weight(word) for word in stems)


def _clauses(quote: str, parts: Sequence[Span]) -> Iterator[Part]:
    yield Part(0, len(quote))
    if parts:
        ends = [m.start() for m in _CLAUSE_END.finditer(quote)]
        yield Part(
            max((end for end in ends if end <= parts[0].start), default=0),
            min((end for end in ends if end >= parts[0].end), default=len(quote)),
        )
