"""Who did what to whom: two values of a claim that stand in each other's place in the evidence."""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from langchain_groundedness.verifiers._contradictions import Difference, name_spans
from langchain_groundedness.verifiers._quantities import (
    Quantity,
    comparable,
    find_quantities,
)
from langchain_groundedness.words import find_words, stem

__all__ = ["exchanged_values"]

_MOST_VALUES = 8
_JOINS = frozenset(
    "and or nor with plus versus vs as be is are was were s".split()  # noqa: SIM905  (a word list reads better as words)
)
_BOTH_WAYS = frozenset(
    map(
        stem,
        """
        marry married meet border adjoin merge equal resemble equivalent same similar identical
        parallel adjacent near next close beside between brother sister sibling cousin twin friend
        partner colleague neighbor neighbour rival spouse fight draw tie collaborate cooperate share
        """.split(),  # noqa: SIM905  (a word list reads better as words)
    )
)
"""Words between two names that may be exchanged without a change of meaning."""


class _Value(NamedTuple):
    quantity: Quantity | None
    """`None` for a name."""
    start: int
    end: int

    def may_stand_for(self, other: "_Value") -> bool:
        if self.quantity is None or other.quantity is None:
            return self.quantity is other.quantity
        return comparable(self.quantity, other.quantity)


def exchanged_values(claim: str, quotes: Sequence[str]) -> tuple[int, Difference] | None:
    """Find two values of a claim that a quote gives in exchanged places, word for word else.

    Nothing is found if any quote says the claim as it is, or where the order says nothing:
    "Anna and Peter", "Anna married Peter".

    Args:
        claim: The claim.
        quotes: Evidence, best single sentences.

    Returns:
        Index of the quote and the difference: from the first to the second value; or `None`.

    Example:
        >>> _, found = exchanged_values("Anna hired Peter.", ["In May Peter hired Anna."])
        >>> found.claim_value, found.evidence_value
        ('Anna hired Peter', 'Peter hired Anna')
    """
    said = [f" {' '.join(word.stem for word in find_words(quote))} " for quote in quotes]
    if any(_stems(claim) in each for each in said):
        return None
    for one, other in _pairs(claim):
        stems = _stems(_exchanged(claim, one, other))
        for place, each in enumerate(said):
            if (at := each.find(stems)) >= 0:
                return place, _difference(claim, one, other, quotes[place], each.count(" ", 0, at))
    return None


def _stems(text: str) -> str:
    return f" {' '.join(word.stem for word in find_words(text))} "


def _pairs(claim: str) -> Iterator[tuple[_Value, _Value]]:
    values = [_Value(q, q.start, q.end) for q in find_quantities(claim)]
    values += [
        _Value(None, span.start, span.end)
        for span in name_spans(claim)
        if not any(q.start < span.end and span.start < q.end for q in values)
    ]
    if len(values) > _MOST_VALUES:
        return
    for one, other in combinations(sorted(values, key=lambda value: value.start), 2):
        between = {word.stem for word in find_words(claim[one.end : other.start])}
        score = one.quantity is not None and not between  # 1-7 is not 7-1
        if one.may_stand_for(other) and (between - _JOINS or score) and not between & _BOTH_WAYS:
            yield one, other


def _exchanged(claim: str, one: _Value, other: _Value) -> str:
    return (
        claim[: one.start]
        + claim[other.start : other.end]
        + claim[one.end : other.start]
        + claim[one.start : one.end]
        + claim[other.end :]
    )


def _difference(
    claim: str, one: _Value, other: _Value, quote: str, words_before: int
) -> Difference:
    skipped = len(find_words(claim[: one.start]))
    inside = len(find_words(claim[one.start : other.end]))
    words = find_words(quote)[words_before + skipped :][:inside]
    start, end = words[0].start, words[-1].end
    for quantity in find_quantities(quote):  # with its currency, with its unit
        if quantity.start < start < quantity.end:
            start = quantity.start
        if quantity.start < end < quantity.end:
            end = quantity.end
    return Difference(
        "exchange",
        claim[one.start : other.end],
        one.start,
        other.end,
        quote[start:end],
        start,
        end,
        1.0,
        parallel=True,
    )
