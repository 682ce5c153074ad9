"""A text cut where marks begin and end, so that marks may overlap; pure."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

__all__ = ["Segment", "Span", "cut"]

Span = tuple[int, int]
"""First character of a mark, and one past its last."""


class Segment(NamedTuple):
    """A piece of a text that the same marks cover from its beginning to its end."""

    text: str
    covering: tuple[int, ...]
    """Which marks cover it."""
    opening: tuple[int, ...]
    """Which of them begin with it."""
    closing: tuple[int, ...]
    """Which of them end with it."""


def cut(text: str, spans: Sequence[Span]) -> list[Segment]:
    """Cut a text at the ends of marks.

    Args:
        text: The text.
        spans: Where the marks are; each inside the text, and not empty.

    Returns:
        The pieces in order; together they are the text.

    Example:
        >>> [(s.text, s.covering) for s in cut("one two", [(0, 3), (2, 7)])]
        [('on', (0,)), ('e', (0, 1)), (' two', (1,))]
    """
    borders = sorted({0, len(text), *(place for span in spans for place in span)})
    opening: dict[int, list[int]] = {}
    closing: dict[int, list[int]] = {}
    for number, (start, end) in enumerate(spans):
        opening.setdefault(start, []).append(number)
        closing.setdefault(end, []).append(number)
    pieces, open_now = [], set[int]()
    for start, end in pairwise(borders):
        open_now |= set(opening.get(start, ()))
        ends = tuple(closing.get(end, ()))
        pieces.append(
            Segment(text[start:end], tuple(sorted(open_now)), tuple(opening.get(start, ())), ends)
        )
        open_now -= set(ends)
    return pieces
