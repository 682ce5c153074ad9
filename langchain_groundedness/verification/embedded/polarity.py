"""Polarity: what one text denies or forbids and another states."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from langchain_groundedness.text.words import (
    AUXILIARIES,
    STOP_WORDS,
    Word,
    find_words,
    informative_words,
    stem,
)
from langchain_groundedness.verification.embedded.model_files import inverse_frequencies
from langchain_groundedness.verification.embedded.quantities import Quantity

__all__ = [
    "Part",
    "Span",
    "denial_differs",
    "denials",
    "is_parallel",
    "is_verb",
    "says_no",
]

_NEGATION = re.compile(
    r"\b(?:(?:there (?:is|was) )?no evidence (?:that|of|for)|(?:it is )?(?:a )?myth that"
    r"|rumou?rs? that|(?:no|any) longer|no(?! matter\b)"
    r"|not(?! (?:only|just|merely|but)\b)(?![^,;.]{0,80} until\b)"
    r"|never|none|neither|nor|nobody|nothing|without|except(?: for)?|cannot|hardly|unable to"
    r"|fail(?:s|ed|ing)? to|lack(?:s|ed|ing)?|refus(?:es|ed|ing) to|den(?:y|ies|ied))\b"
    r"|n['\u2019]t\b(?![^,;.]{0,80} until\b)",
    re.IGNORECASE,
)

_PUNCTUATION = re.compile(r"[,;:.!?()\u2014]")

_AVOID = re.compile(
    r"(?:^|(?<=[.;:!?,] )|(?<=\bplease )|(?<=\bshould )|(?<=\bmust )|(?<=\balways ))"
    r"(?:avoid|refrain from)\b",
    re.IGNORECASE,
)
_INSTEAD = re.compile(r"\b(?:instead of|in place of|rather than)\b", re.IGNORECASE)
_CLAUSE_END = re.compile(r"[;:.!?()\u2014]|,? but\b", re.IGNORECASE)
_JOINED = re.compile(r",\s*(?:(?:or|nor|and)\s+)?|\b(?:or|nor)\s+", re.IGNORECASE)
_LAST_JOINED = re.compile(r"\b(?:or|nor)\s+", re.IGNORECASE)
_BUT = re.compile(r"\bbut\b(?! not\b)", re.IGNORECASE)
_VERBS = frozenset(
    map(
        stem,
        """
        accept apply arrive attend become beat begin belong boil borrow build buy call carry charge
        close come consist contain cost cover cross deliver demand depart drink drive earn eat
        employ enjoy enter export face fall feed finish fit fly follow gain get give go grow hold
        import include join keep last lead learn leave lend let lie like live lose make marry
        measure move need offer open order own pay play prefer premiere produce provide publish
        reach receive refund release require ride rise run sell send serve ship sit sleep speak
        spend stand start stay stop store study supply support swim take teach travel use visit
        vote want wear weigh win work write
        """.split(),  # noqa: SIM905  (a word list reads better as words)
    )
)
_PAST = re.compile(r"[a-z]{3,}ed")


_PARALLEL = 0.8
"""Share, weighted by rarity, of what is left of either that the other must say too."""
_FEWEST_IN_CLAUSE = 2
_PARALLEL_CLAUSE_END = re.compile(r"[,;:()\u2013\u2014](?!\d)")


def says_no(text: str) -> bool:
    """Return whether a text negates anything, in English."""
    return _NEGATION.search(text) is not None


class Part(NamedTuple):
    """A part of a text."""

    start: int
    end: int


Span: TypeAlias = Part | Quantity
"""The place of something in a text."""


@lru_cache(maxsize=256)
def denials(text: str) -> tuple[Part, ...]:
    """Find what denies or forbids in a text."""
    patterns = (_NEGATION, _AVOID, _INSTEAD)
    return tuple(Part(*m.span()) for pattern in patterns for m in pattern.finditer(text))


def denial_differs(claim: str, evidence: str) -> bool:
    """Return whether only one of two texts denies something, which the other one says."""
    mine, theirs = _denied(claim), _denied(evidence)
    if bool(mine) == bool(theirs):
        return False
    if mine:
        return any(word.stem in mine for word in find_words(evidence))
    said = {word.stem for word in find_words(claim)}
    return bool(theirs & said) and not said & _affirmed(evidence)


@lru_cache(maxsize=256)
def _denied(text: str) -> frozenset[str]:
    """Return the content word after each negation, and those that are joined to it."""
    parts = denials(text)
    if not parts:
        return frozenset()
    content = informative_words(text)
    denied: set[str] = set()
    for part in parts:
        end = _CLAUSE_END.search(text, part.end)
        stop = end.start() if end else len(text)
        next_to = _PUNCTUATION.search(text, part.end)
        denied.add(_first(content, part.end, next_to.start() if next_to else len(text)))
        last = max((m.end() for m in _LAST_JOINED.finditer(text, part.end, stop)), default=-1)
        denied |= {
            _first(content, joined.end(), stop)
            for joined in _JOINED.finditer(text, part.end, stop)
            if joined.end() <= last
        }
    return frozenset(denied)


def _first(content: list[Word], start: int, stop: int) -> str:
    return next((word.stem for word in content if start <= word.start < stop), "")


def _affirmed(text: str) -> set[str]:
    """Return the words that are only after "but": "not on Monday but on Sunday"."""
    parts = denials(text)
    but = _BUT.search(text, parts[0].end) if parts else None
    if but is None:
        return set()
    words = informative_words(text)
    before = {word.stem for word in words if word.start < but.start()}
    return {word.stem for word in words if word.start >= but.end()} - before


@lru_cache(maxsize=4096)
def is_verb(word: str) -> bool:
    """Return whether a word may be the verb of a clause."""
    folded = word.casefold()
    return (
        folded in AUXILIARIES
        or stem(folded) in _VERBS
        or (word == folded and _PAST.fullmatch(folded) is not None)
    )


def is_parallel(
    claim_words: Sequence[Word], claimed: Span, quote: str, quote_words: Sequence[Word], given: Span
) -> bool:
    """Return whether a quote, or a clause of it, makes the claim's statement, except for a part."""
    mine = _content(claim_words, claimed)
    for clause in _clauses(quote, given):
        inside = [w for w in quote_words if clause.start <= w.start < clause.end]
        theirs = _content(inside, given)
        if len(mine) < _FEWEST_IN_CLAUSE and clause.end - clause.start < len(quote):
            continue
        shared = _weight(mine & theirs)
        if shared >= _PARALLEL * max(_weight(mine), _weight(theirs)) > 0:
            return True
    return False


def _content(words: Sequence[Word], without: Span) -> set[str]:
    return {
        w.stem
        for w in words
        if w.stem not in STOP_WORDS and not without.start <= w.start < without.end
    }


def _weight(stems: set[str]) -> float:
    table = inverse_frequencies()
    return sum(table.weight(word) for word in stems)


def _clauses(quote: str, part: Span) -> Iterator[Part]:
    """Yield a quote, and the clause of it that a part is in."""
    yield Part(0, len(quote))
    ends = [m.start() for m in _PARALLEL_CLAUSE_END.finditer(quote)]
    yield Part(
        max((end for end in ends if end <= part.start), default=0),
        min((end for end in ends if end >= part.end), default=len(quote)),
    )
