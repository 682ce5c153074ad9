"""Who did what to whom: two values of a claim that stand in each other's place in the evidence."""

import re
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from langchain_groundedness.verifiers._contradictions import Difference, name_spans
from langchain_groundedness.verifiers._parallel import Part
from langchain_groundedness.verifiers._quantities import Quantity, comparable
from langchain_groundedness.verifiers._quantity_reading import find_quantities
from langchain_groundedness.words import Word, find_words, stem

__all__ = ["exchanged_values"]

_MOST_VALUES = 16
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
        agree differ different talk compete overlap resemble
        """.split(),  # noqa: SIM905  (a word list reads better as words)
    )
)
"""Words between two names that may be exchanged without a change of meaning."""
_ALIKE = dict.fromkeys(map(stem, ("his", "her", "its", "their")), "their")
"""Whoever is exchanged may have another pronoun."""
_LEGAL_FORMS = frozenset(map(stem, ("corp", "corporation", "inc", "ltd", "llc", "plc", "gmbh")))
"""Left aside: "Acme" is "Acme Corp"."""
_NOUN = re.compile(
    r"\b(?:the|an?|his|her|its|their|our|my) (?=(?P<one>[\w'\u2019-]+)(?P<two> [\w'\u2019-]+)?)",
    re.IGNORECASE,
)
"""An article and the one or two words behind it."""


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
    said = [_stems(quote) for quote in quotes]
    mine = _stems(claim)
    if any(mine in each for each in said):
        return None
    if not any(set(mine.split()) <= set(each.split()) for each in said):
        return None
    for one, other in _pairs(claim):
        stems = _stems(_exchanged(claim, one, other))
        for place, each in enumerate(said):
            if (at := each.find(stems)) >= 0:
                return place, _difference(claim, one, other, quotes[place], each.count(" ", 0, at))
    return None


def _stems(text: str) -> str:
    return f" {' '.join(_ALIKE.get(word.stem, word.stem) for word in _words(text))} "


def _words(text: str) -> list[Word]:
    return [word for word in find_words(text) if word.stem not in _LEGAL_FORMS]


def _pairs(claim: str) -> Iterator[tuple[_Value, _Value]]:
    values = [_Value(q, q.start, q.end) for q in find_quantities(claim)]
    for part in (_names(claim), _noun_spans(claim)):
        values += [
            _Value(None, span.start, span.end)
            for span in part
            if not any(v.start < span.end and span.start < v.end for v in values if v.quantity)
        ]
    if len(values) > _MOST_VALUES:
        return
    for one, other in combinations(sorted(values, key=lambda value: value.start), 2):
        if one.end > other.start:
            continue
        between = [word.stem for word in find_words(claim[one.end : other.start])]
        score = one.quantity is not None and not between  # 1-7 is not 7-1
        both_ways = _BOTH_WAYS.intersection(between) or between.count("as") > 1
        if one.may_stand_for(other) and (set(between) - _JOINS or score) and not both_ways:
            yield one, other


def _names(claim: str) -> Iterator[Part]:
    """Give names, of "Anna's" the name alone."""
    for start, end in name_spans(claim):
        yield Part(start, end - 2 if claim[start:end].endswith(("'s", "\u2019s")) else end)


def _noun_spans(claim: str) -> Iterator[Part]:
    """Give what stands behind articles, with them and without: "the dog", "dog"."""
    for found in _NOUN.finditer(claim):
        for words in ("one", "two"):
            if found[words]:
                yield Part(found.start(), found.end(words))
                yield Part(found.start("one"), found.end(words))


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
    skipped = len(_words(claim[: one.start]))
    inside = len(_words(claim[one.start : other.end]))
    words = _words(quote)[words_before + skipped :][:inside]
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
