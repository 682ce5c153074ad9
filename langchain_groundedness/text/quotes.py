"""Locates a quote in a text, even if a model copied it with small changes."""

import re
import unicodedata
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from rapidfuzz import fuzz

__all__ = ["locate_quote"]

_DIRECT = 2_000_000  # quote length times text length up to which the whole text is aligned
_SEEDS = 48
_PLACES = 8
_OCCURRENCES = 64
_LONGEST = 4000  # characters; longer quotes are not aligned
_LONGEST_WORD = 40
_MARKS = {
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u02bc`\u00b4", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb", '"'),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d", "-"),
    **dict.fromkeys("\u00ad\u200b\u200c\u200d\u2060\ufeff", ""),
    "\u2026": "...",
}


def locate_quote(quote: str, text: str, *, min_score: float = 90) -> tuple[int, int] | None:
    """Find where a quote is in a text.

    Tries in order: the exact quote; with case, white space, quotation marks, dashes and Unicode
    compatibility forms folded; aligned by edit distance (`rapidfuzz.fuzz.partial_ratio`).

    Args:
        quote: The quote, as a model wrote it.
        text: The text.
        min_score: Least similarity of an alignment, 0 to 100; above 100 disables alignment.

    Returns:
        Start and end in the text, or `None` if the quote is blank or not there.

    Example:
        >>> locate_quote("revenue was  2.1", "In Q3 Revenue was 2.1 billion.")
        (6, 21)
    """
    if not quote.strip():
        return None
    start = text.find(quote)
    if start >= 0:
        return start, start + len(quote)
    folded = _fold_text(text)
    wanted = _fold_text(quote).text
    for form in dict.fromkeys((wanted, wanted.strip("\"'. "))):
        if form and (found := folded.find(form)):
            return found
    if not wanted or len(wanted) > len(folded.text) or min_score > 100:  # noqa: PLR2004  (percent)
        return None
    aligned = _align(wanted, folded.text, min_score)
    return _on_words(text, *folded.origin(*aligned)) if aligned else None


class _FoldedText(NamedTuple):
    """A folded text, and where each of its characters comes from in the original."""

    text: str
    sources: Sequence[int]

    def find(self, wanted: str) -> tuple[int, int] | None:
        """Find a folded quote; return its span in the original text."""
        starts = list(_occurrences(self.text, wanted))
        for whole in (self._is_whole, self._is_edge):
            for start in starts:
                if whole(start) and whole(start + len(wanted)):
                    return self.origin(start, start + len(wanted))
        return self.origin(starts[0], starts[0] + len(wanted)) if starts else None

    def origin(self, start: int, end: int) -> tuple[int, int]:
        """Map a span of the folded text to whole characters of the original."""
        return self.sources[start], self.sources[end - 1] + 1

    def _is_edge(self, at: int) -> bool:
        """Return whether a character of the original starts at a position."""
        return not 0 < at < len(self.text) or self.sources[at - 1] != self.sources[at]

    def _is_whole(self, at: int) -> bool:
        """Return whether a character starts there that is not a combining mark."""
        return self._is_edge(at) and not unicodedata.combining(self.text[at : at + 1] or " ")


class _Folding(dict[int, str]):
    """Folds each character separately, so that folded text maps back to characters."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        folded = _MARKS.get(character)
        if folded is None:
            decomposed = unicodedata.normalize("NFKD", character).casefold()
            folded = unicodedata.normalize("NFKD", decomposed).replace(" ", "")
        self[code] = folded
        return folded


_FOLDING = _Folding()
_CHUNK = re.compile(r"(\s*)(\S{1,64})")


@lru_cache(maxsize=4)  # the quotes of one reply share a text
def _fold_text(text: str) -> _FoldedText:
    parts: list[str] = []
    sources = array("q")
    gap, end = False, 0
    for match in _CHUNK.finditer(text):
        gap = gap or bool(match[1])
        folded = match[2].translate(_FOLDING)
        if not folded:
            continue
        if gap and parts:
            parts.append(" ")
            sources.append(end)
        parts.append(folded)
        gap, (start, end) = False, match.span(2)
        if match[2].isascii():
            sources.extend(range(start, end))
        else:
            letters = enumerate(match[2], start)
            sources.extend(place for place, letter in letters for _ in _FOLDING[ord(letter)])
    return _FoldedText("".join(parts), sources)


def _align(wanted: str, text: str, min_score: float) -> tuple[int, int] | None:
    """Find the span of a folded text that is most similar to a folded quote."""
    if len(wanted) > _LONGEST:
        return None
    best, place = 0.0, None
    for start, end in _regions(wanted, text):
        found = fuzz.partial_ratio_alignment(wanted, text[start:end], score_cutoff=min_score)
        if found and found.score > best:
            best, place = found.score, (start + found.dest_start, start + found.dest_end)
    return place


def _regions(wanted: str, text: str) -> list[tuple[int, int]]:
    """Return the regions of a text to align: all of a short text, else those with most seeds."""
    # A seed is a short piece of the quote; at 90 % similarity, most seeds are unchanged.
    if len(wanted) * len(text) <= _DIRECT:
        return [(0, len(text))]
    size = 8 if len(wanted) >= 32 else 4  # noqa: PLR2004  (half of a short quote's seeds must survive)
    width = max(32, len(wanted) // 4)
    votes: Counter[int] = Counter()
    for offset in range(0, max(1, len(wanted) - size), max(1, len(wanted) // _SEEDS)):
        seed = wanted[offset : offset + size]
        votes.update(max(0, at - offset) // width for at in _occurrences(text, seed))
    margin = len(wanted) // 5 + 32
    return [
        (max(0, place * width - margin), (place + 1) * width + len(wanted) + margin)
        for place, _ in votes.most_common(_PLACES if len(wanted) < _LONGEST // 4 else 2)
    ]


def _occurrences(text: str, wanted: str) -> Iterator[int]:
    """Yield where a text begins to contain another, up to a limit; occurrences may overlap."""
    at = text.find(wanted)
    for _ in range(_OCCURRENCES):
        if at < 0:
            return
        yield at
        at = text.find(wanted, at + 1)


def _on_words(text: str, start: int, end: int) -> tuple[int, int] | None:
    """Move both ends to word boundaries: outwards if most of the word is inside."""
    start = _snap(text, start, inside=end)
    end = _snap(text, end, inside=start)
    piece = text[start:end] if end > start else ""
    if not piece.strip():
        return None
    return start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip())


def _snap(text: str, at: int, *, inside: int) -> int:
    if not 0 < at < len(text) or not (_in_word(text[at - 1]) and _in_word(text[at])):
        return at
    low, high = at, at
    while low > 0 and at - low < _LONGEST_WORD and _in_word(text[low - 1]):
        low -= 1
    while high < len(text) and high - at < _LONGEST_WORD and _in_word(text[high]):
        high += 1
    within, without = (high, low) if inside > at else (low, high)
    return without if abs(within - at) >= abs(without - at) else within


def _in_word(character: str) -> bool:
    return character.isalnum() and not "\u3040" <= character <= "\u9fff"
