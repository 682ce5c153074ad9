"""Sentence boundaries with exact offsets."""

import re
from typing import NamedTuple

__all__ = ["Sentence", "split_sentences"]


class Sentence(NamedTuple):
    """A sentence of a text: `text == whole[start:end]`, without surrounding white space."""

    text: str
    start: int
    end: int


def split_sentences(text: str) -> list[Sentence]:
    """Split a text into sentences.

    Args:
        text: Prose, markdown, or a mixture.

    Returns:
        The sentences in order; they do not overlap, and only white space lies between them.

    Example:
        >>> [s.text for s in split_sentences("One. Two.")]
        ['One.', 'Two.']
    """
    pieces = re.finditer(r"\S.*?(?:[.!?](?=\s)|\n|$)", text, re.DOTALL)
    spans = ((m.start(), m.start() + len(m.group().rstrip())) for m in pieces)
    return [Sentence(text[a:b], a, b) for a, b in spans]
