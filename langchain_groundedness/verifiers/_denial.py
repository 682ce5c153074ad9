"""What a text denies: all verbs and nouns that one negation reaches, orders not to do something.

`_polarity` reads a negation only as far as the next content word; the shipped model was trained on
signals that do so. The search for differences reads on.
"""

import re
from functools import lru_cache

from langchain_groundedness.verifiers._parallel import Part
from langchain_groundedness.verifiers._polarity import denied_by_one, negations
from langchain_groundedness.words import STOP_WORDS, Word, find_words

__all__ = ["denial_differs", "denials", "refers_back"]

_AVOID = re.compile(
    r"(?:^|(?<=[.;:!?,] )|(?<=\bplease )|(?<=\bshould )|(?<=\bmust )|(?<=\balways ))"
    r"(?:avoid|refrain from)\b",
    re.IGNORECASE,
)
_INSTEAD = re.compile(r"\b(?:instead of|in place of|rather than)\b", re.IGNORECASE)
_PUNCTUATION = re.compile(r"[,;:.!?()\u2014]")
_CLAUSE_END = re.compile(r"[;:.!?()\u2014]|,? but\b", re.IGNORECASE)
_JOINED = re.compile(r",\s*(?:(?:or|nor|and)\s+)?|\b(?:or|nor)\s+", re.IGNORECASE)
_LAST_JOINED = re.compile(r"\b(?:or|nor)\s+", re.IGNORECASE)
_BUT = re.compile(r"\bbut\b(?! not\b)", re.IGNORECASE)
_BACK = re.compile(r"\b(?:it|them|they|this|these)\b", re.IGNORECASE)


@lru_cache(maxsize=256)
def denials(text: str) -> tuple[Part, ...]:
    """Find what denies or forbids in a text.

    Args:
        text: Any text.

    Returns:
        Where "not", "never", "no longer", "avoid", "instead of" and the like stand.
    """
    found = (match for pattern in (_AVOID, _INSTEAD) for match in pattern.finditer(text))
    return (*negations(text), *(Part(*match.span()) for match in found))


def denial_differs(claim: str, evidence: str) -> bool:
    """Tell whether one of two texts denies what the other one says.

    Args:
        claim: Text of the claim.
        evidence: Text of the evidence.

    Returns:
        True if what a negation reaches in one is said without one in the other.
    """
    mine, theirs = _denied(claim), _denied(evidence)
    if theirs and {word.stem for word in find_words(claim)} & _affirmed(evidence):
        return False
    return denied_by_one(mine, claim, theirs, evidence)


def refers_back(text: str) -> bool:
    """Tell whether a pronoun of a text may stand for what the sentence before names.

    Args:
        text: A sentence.

    Returns:
        True if there is one in the clause that denies something, or, where none does, anywhere.
    """
    pronoun = _BACK.search(text)
    if pronoun is None:
        return False
    reaches = [_reach(text, part) for part in denials(text)]
    return not reaches or any(pronoun.start() < end for end in reaches)


def _reach(text: str, part: Part) -> int:
    """Give where the clause ends that a negation stands in, commas between joined words aside."""
    end = _CLAUSE_END.search(text, part.end)
    stop = end.start() if end else len(text)
    joined = max((m.end() for m in _LAST_JOINED.finditer(text, part.end, stop)), default=part.end)
    comma = text.find(",", joined, stop)
    return stop if comma < 0 else comma


@lru_cache(maxsize=256)
def _denied(text: str) -> frozenset[str]:
    """Give the content word behind each negation, and those that are joined to it."""
    parts = denials(text)
    if not parts:
        return frozenset()
    content = [word for word in find_words(text) if word.stem not in STOP_WORDS]
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
    """Give what stands only behind "but": "not on Monday but on Sunday"."""
    parts = denials(text)
    but = _BUT.search(text, parts[0].end) if parts else None
    if but is None:
        return set()
    words = [word for word in find_words(text) if word.stem not in STOP_WORDS]
    before = {word.stem for word in words if word.start < but.start()}
    return {word.stem for word in words if word.start >= but.end()} - before
