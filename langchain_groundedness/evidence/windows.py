"""Evidence windows for encoders: neighbouring sentences within a token limit."""

from bisect import bisect
from collections.abc import Callable, Iterator, Sequence

from langchain_core.documents import Document

from langchain_groundedness.text.sentences import Sentence, split_sentences
from langchain_groundedness.types import Passage

__all__ = ["cut_sentence", "encoder_tokens", "evidence_windows"]

_BYTES_PER_TOKEN = 3


def encoder_tokens(text: str) -> int:
    """Estimate the tokens of a text for an encoder, at three bytes of UTF-8 each.

    A Chinese or Japanese character counts as one token; English prose is overestimated by about a
    third. Texts of mostly digits and symbols can have more tokens.
    """
    return -(-len(text.encode("utf-8", "surrogatepass")) // _BYTES_PER_TOKEN)


def evidence_windows(
    documents: Sequence[Document],
    *,
    sentences: int,
    max_tokens: int,
    overlap: int | None = None,
    count_tokens: Callable[[str], int] = encoder_tokens,
) -> list[Passage]:
    """Cover documents with windows of neighbouring sentences.

    A window starts at every sentence, or, with `overlap`, so that it shares at most that many
    sentences with the one before, and includes the following ones up to the limits. A sentence over
    the budget is split, at white space if possible. All text except white space is covered.
    """
    windows: list[Passage] = []
    for place, document in enumerate(documents):
        text = document.page_content
        units = [
            u for s in split_sentences(text) for u in cut_sentence(s, max_tokens, count_tokens)
        ]
        reached = following_start = 0
        for first, unit in enumerate(units):
            if first < following_start:
                continue
            end, last = unit.end, first
            for number, following in enumerate(units[first + 1 : first + sentences], first + 1):
                if count_tokens(text[unit.start : following.end]) > max_tokens:
                    break
                end, last = following.end, number
            if overlap is not None:
                following_start = last + 1 - overlap
            if end > reached:  # else the previous window covers this one
                windows.append(
                    Passage(document=place, start=unit.start, end=end, text=text[unit.start : end])
                )
                reached = end
    return windows


def cut_sentence(
    sentence: Sentence, max_tokens: int, count_tokens: Callable[[str], int]
) -> Iterator[Sentence]:
    """Split a sentence into pieces within the budget."""
    text, offset, _ = sentence
    if count_tokens(text) <= max_tokens:
        yield sentence
        return
    start = 0
    while start < len(text):
        end = _fitting(text, start, max_tokens, count_tokens)
        if end < len(text):
            space = max(text.rfind(blank, start + 1, end + 1) for blank in " \n\t")
            end = space if space > start else end
        piece = text[start:end].rstrip()
        if piece:
            yield Sentence(piece, offset + start, offset + start + len(piece))
        start = end
        while start < len(text) and text[start].isspace():
            start += 1


def _fitting(text: str, start: int, max_tokens: int, count_tokens: Callable[[str], int]) -> int:
    """Return the end of the longest piece from `start` within the budget."""
    length = 64
    while start + length < len(text) and count_tokens(text[start : start + length]) <= max_tokens:
        length *= 2
    ends = range(start + 2, min(start + length, len(text)) + 1)
    return start + 1 + bisect(ends, max_tokens, key=lambda end: count_tokens(text[start:end]))
