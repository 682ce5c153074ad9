"""Marks the claims in an answer."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from langchain_groundedness.types import ClaimVerdict, VerdictLabel

__all__ = ["SIGNS", "MarkedPiece", "Span", "is_located", "mark", "split_at_marks"]

SIGNS: dict[VerdictLabel, str] = {
    "supported": "✓",
    "contradicted": "✗",
    "unverifiable": "?",
    "unchecked": "!",
}
"""Signs that distinguish verdicts without colour."""

_WORST_FIRST: tuple[VerdictLabel, ...] = ("contradicted", "unchecked", "unverifiable", "supported")

Span = tuple[int, int]
"""First character of a mark, and one past its last."""


class MarkedPiece(NamedTuple):
    """A piece of an answer that is covered by the same claims throughout."""

    text: str
    verdict: VerdictLabel | None
    """The worst verdict of the claims that cover it; `None` if none does."""
    claims: tuple[int, ...]
    """Their numbers, from 1."""
    ends: tuple[int, ...]
    """The numbers of the claims that end with it."""


def is_located(found: ClaimVerdict, answer: str) -> bool:
    """Return whether a claim can be marked in an answer."""
    start, end = _span(found)
    return start < end <= len(answer)


def mark(answer: str, claims: Sequence[ClaimVerdict]) -> list[MarkedPiece]:
    """Split an answer where claims begin and end."""
    numbers = [n for n, found in enumerate(claims, start=1) if is_located(found, answer)]
    pieces = []
    for segment in split_at_marks(answer, [_span(claims[number - 1]) for number in numbers]):
        covering = tuple(numbers[place] for place in segment.covering)
        verdicts = {claims[number - 1].verdict for number in covering}
        worst = next((verdict for verdict in _WORST_FIRST if verdict in verdicts), None)
        ends = tuple(numbers[place] for place in segment.closing)
        pieces.append(MarkedPiece(segment.text, worst, covering, ends))
    return pieces


def _span(found: ClaimVerdict) -> Span:
    return found.claim.start or 0, found.claim.end or 0


class Segment(NamedTuple):
    """A piece of a text that is covered by the same marks throughout."""

    text: str
    covering: tuple[int, ...]
    """Which marks cover it."""
    opening: tuple[int, ...]
    """Which of them begin with it."""
    closing: tuple[int, ...]
    """Which of them end with it."""


def split_at_marks(text: str, spans: Sequence[Span]) -> list[Segment]:
    """Split a text where marks begin and end."""
    borders = sorted({0, len(text), *(place for span in spans for place in span)})
    opening, closing = defaultdict[int, list[int]](list), defaultdict[int, list[int]](list)
    for number, (start, end) in enumerate(spans):
        opening[start].append(number)
        closing[end].append(number)
    pieces, open_now = [], set[int]()
    for start, end in pairwise(borders):
        begins, ends = tuple(opening[start]), tuple(closing[end])
        open_now.update(begins)
        pieces.append(Segment(text[start:end], tuple(sorted(open_now)), begins, ends))
        open_now.difference_update(ends)
    return pieces
