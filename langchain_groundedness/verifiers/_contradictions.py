"""What a claim says differently from a quote that speaks about the same thing."""

import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, Protocol, TypeAlias

from langchain_groundedness.verifiers._polarity import (
    differing_extent,
    negation_differs,
    opposite_words,
)
from langchain_groundedness.verifiers._quantities import (
    Quantity,
    comparable,
    find_quantities,
    same_quantity,
)
from langchain_groundedness.verifiers._rarity import rarity
from langchain_groundedness.verifiers._references import blank_references
from langchain_groundedness.words import STOP_WORDS, Word, find_words

__all__ = ["Difference", "DifferenceKind", "differing_value", "name_spans"]

DifferenceKind = Literal["quantity", "date", "name", "extent", "polarity", "exchange"]

_SAME_SUBJECT = 0.5
"""Share of the claim's other words, weighed by rarity, that the quote must say too."""
_SAME_STATEMENT = 0.85
"""The same for polarity: only a quote that says nearly everything can be the opposite."""
_FEWEST_WORDS = 3
_LONGEST_QUOTE = 4
_NEAR = 4
_LITTLE_ELSE = 2
_NAME = re.compile(
    r"[^\W\d_a-z][\w'\u2019-]*(?:(?:[ -]| (?:van|von|de|der|den|da|di|du|la|le|el|al|bin|of|the) )"
    r"[^\W\d_a-z][\w'\u2019-]*)*"
)


class Difference(NamedTuple):
    """Where a claim and a quote name different things in the same place.

    `claim[claim_start:claim_end] == claim_value` and
    `quote[evidence_start:evidence_end] == evidence_value`. For polarity these are the whole texts.
    """

    kind: DifferenceKind
    claim_value: str
    claim_start: int
    claim_end: int
    evidence_value: str
    evidence_start: int
    evidence_end: int
    agreement: float
    """Share of the claim's other words, weighed by rarity, that the quote says too; 0 .. 1, and 1
    if the claim is nothing but its value."""


class _Span(Protocol):
    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...


_Side: TypeAlias = tuple[str, int, int]
_Around: TypeAlias = tuple[list[str], list[str]]


class _Part(NamedTuple):
    start: int
    end: int


def differing_value(claim_text: str, quote: str) -> Difference | None:
    """Find the value, date, name, extent or polarity in which a claim differs from a quote.

    Args:
        claim_text: The claim.
        quote: Evidence, best a single sentence.

    Returns:
        The difference that is clearest, or `None` if the quote speaks of something else or says
        nothing different.

    Example:
        >>> found = differing_value("Revenue was $2.4B in Q3.", "Q3 revenue came in at $2.1B.")
        >>> found.claim_value, found.evidence_value
        ('$2.4B', '$2.1B')
    """
    claim = blank_references(claim_text)
    claim_words, quote_words = find_words(claim), find_words(quote)
    options = [
        *_quantities(claim, claim_words, quote, quote_words),
        *_names(claim, claim_words, quote, quote_words),
    ]
    if options:
        return max(options, key=lambda option: option[0])[1]
    return _extent(claim, claim_words, quote, quote_words) or _polarity(
        claim_text, claim_words, quote, quote_words
    )


def _quantities(
    claim: str, claim_words: list[Word], quote: str, quote_words: list[Word]
) -> Iterator[tuple[float, Difference]]:
    mine, theirs = find_quantities(claim), find_quantities(quote)
    unmatched = [q for q in mine if not any(same_quantity(q, given) for given in theirs)]
    free = [q for q in theirs if not any(same_quantity(claimed, q) for claimed in mine)]
    agreement = _agreement(claim_words, quote_words, mine)
    if agreement < _SAME_SUBJECT:
        return
    rest = [w for w in claim_words if w.stem not in STOP_WORDS and not _inside(w, mine)]
    # A value and little else, all of which the quote says too: there is no other place for it.
    alone = not rest or (len(rest) <= _LITTLE_ELSE and agreement == 1 and len(mine) == 1)
    around_free = [_around(quote_words, given) for given in free]
    for claimed in unmatched:
        around = _around(claim_words, claimed)
        for given, around_given in zip(free, around_free, strict=True):
            context = _context(around, around_given)
            if not comparable(claimed, given) or not _alike(claimed, given, context, alone=alone):
                continue
            kind: DifferenceKind = "date" if claimed.kind == "date" else "quantity"
            yield (
                context + agreement,
                Difference(kind, *_side(claim, claimed), *_side(quote, given), agreement),
            )


def _side(text: str, span: _Span) -> _Side:
    return text[span.start : span.end], span.start, span.end


def _inside(word: Word, quantities: list[Quantity]) -> bool:
    return any(q.start <= word.start < q.end for q in quantities)


def _alike(claimed: Quantity, given: Quantity, context: float, *, alone: bool) -> bool:
    """Two amounts of money differ; two bare numbers may count different things."""
    if claimed.kind == "number" and claimed.unit in ("$", "€", "£", "¥", "₹"):
        return True
    if given.text == "decade" or claimed.text == "decade":
        return False
    return alone or context >= 1


def _context(claimed: _Around, given: _Around) -> float:
    """Count the content words near both values, the nearest for most."""
    score = 0.0
    for mine, theirs in zip(claimed, given, strict=True):
        score += sum(1.0 for word in mine if word in theirs)
        score += 0.5 if mine and theirs and mine[0] == theirs[0] else 0.0
    return score


def _around(words: list[Word], span: _Span) -> _Around:
    before = [w.stem for w in words if w.end <= span.start and w.stem not in STOP_WORDS]
    after = [w.stem for w in words if w.start >= span.end and w.stem not in STOP_WORDS]
    return before[::-1][:_NEAR], after[:_NEAR]


def _names(
    claim: str, claim_words: list[Word], quote: str, quote_words: list[Word]
) -> Iterator[tuple[float, Difference]]:
    mine = {word.stem for word in claim_words}
    theirs = {word.stem for word in quote_words}
    others = list(_name_spans(quote, quote_words, mine))
    for claimed in _name_spans(claim, claim_words, theirs) if others else ():
        agreement = _agreement(claim_words, quote_words, [claimed])
        if agreement < _SAME_SUBJECT:
            continue
        for given in others:
            if not _same_place(claim_words, claimed, quote_words, given):
                continue
            context = _context(_around(claim_words, claimed), _around(quote_words, given))
            yield (
                context + agreement,
                Difference("name", *_side(claim, claimed), *_side(quote, given), agreement),
            )


def _name_spans(text: str, words: list[Word], other: set[str]) -> Iterator[_Part]:
    """Give the names of a text that share no word with the other text."""
    common = rarity()
    for part in name_spans(text):
        inside = [w for w in words if part.start <= w.start < part.end]
        if not inside or any(w.stem in other for w in inside if w.stem not in STOP_WORDS):
            continue
        opens = not text[: part.start].rstrip() or text[: part.start].rstrip()[-1] in ".!?:"
        lone = len(inside) == 1 and inside[0].stem in common.idf
        if all(w.stem in STOP_WORDS for w in inside):
            continue
        if opens and lone and inside[0].stem not in common.names:
            continue
        yield part


def name_spans(text: str) -> Iterator[_Part]:
    """Give what may be the names of a text: words with a capital, and what joins them.

    Args:
        text: Any text.

    Returns:
        Spans in order.
    """
    for match in _NAME.finditer(text):
        yield _Part(match.start(), match.end())


def _same_place(
    claim_words: list[Word], claimed: _Span, quote_words: list[Word], given: _Span
) -> bool:
    """Tell whether both stand behind the same words: "created by X", "created by Y"."""
    mine = [w.stem for w in claim_words if w.end <= claimed.start][::-1]
    theirs = [w.stem for w in quote_words if w.end <= given.start][::-1]
    if not mine or not theirs or mine[0] != theirs[0]:
        return False
    content_mine = next((w for w in mine if w not in STOP_WORDS), None)
    content_theirs = next((w for w in theirs if w not in STOP_WORDS), None)
    return content_mine is not None and content_mine == content_theirs


def _extent(
    claim: str, claim_words: list[Word], quote: str, quote_words: list[Word]
) -> Difference | None:
    found = differing_extent(claim_words, quote_words)
    if found is None:
        return None
    mine, theirs = found
    agreement = _agreement(claim_words, quote_words, [mine])
    if agreement < _SAME_STATEMENT:
        return None
    return Difference("extent", *_side(claim, mine), *_side(quote, theirs), agreement)


def _polarity(
    claim: str, claim_words: list[Word], quote: str, quote_words: list[Word]
) -> Difference | None:
    content = {word.stem for word in claim_words if word.stem not in STOP_WORDS}
    if len(content) < _FEWEST_WORDS or len(quote_words) > _LONGEST_QUOTE * len(claim_words):
        return None  # too little, or too much else, to be sure that both speak of one thing
    opposite = opposite_words(claim_words, quote_words)
    if negation_differs(claim, quote) == (opposite is not None):
        return None  # neither differs, or both do and cancel out
    skipped = [_Part(w.start, w.end) for w in claim_words if opposite and w.stem == opposite.claim]
    agreement = _agreement(claim_words, quote_words, skipped)
    if agreement < _SAME_STATEMENT:
        return None
    return Difference("polarity", claim, 0, len(claim), quote, 0, len(quote), agreement)


def _agreement(claim_words: list[Word], quote_words: list[Word], without: Sequence[_Span]) -> float:
    table = rarity()
    theirs = {word.stem for word in quote_words}
    rest = {
        w.stem: table.weight(w.stem)
        for w in claim_words
        if w.stem not in STOP_WORDS and not any(s.start <= w.start < s.end for s in without)
    }
    total = sum(rest.values())
    return sum(weight for word, weight in rest.items() if word in theirs) / total if total else 1.0
