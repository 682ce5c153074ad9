"""Sentence boundaries with exact offsets, for whole texts and for texts that are being written.

Where a full stop, question or exclamation mark ends a sentence is decided by `sentencex`. Around
it lies what no library does: markdown blocks are kept apart, citation markers and emoji stay with
the sentence they follow, a missing space after a full stop does no harm, and every decision looks
only at the words next to the mark, so that a text can be split while it still arrives.
`benchmarks/sentences.py` holds the comparison that the choice of library rests on.
"""

from collections.abc import Iterator
from typing import NamedTuple

from langchain_groundedness._boundaries import Hold, Look, next_candidate
from langchain_groundedness._markdown import Block, BlockScanner, blocks

__all__ = ["Sentence", "SentenceSplitter", "each_sentence", "split_sentences"]


class Sentence(NamedTuple):
    """A sentence of a text: `text == whole[start:end]`, without surrounding white space."""

    text: str
    start: int
    end: int


def split_sentences(text: str) -> list[Sentence]:
    """Split a text into sentences.

    A heading, a list item's first line, a table row and a code block are never joined with what
    stands before or after them. A sentence without any mark of its end stays whole, however long.

    Args:
        text: Prose, markdown, or a mixture, in any script.

    Returns:
        The sentences in order; they do not overlap, and only white space lies between them.

    Example:
        >>> [s.text for s in split_sentences("Dr. Oak paid $2.1B. She left.")]
        ['Dr. Oak paid $2.1B.', 'She left.']
    """
    return list(each_sentence(text))


def each_sentence(text: str) -> Iterator[Sentence]:
    """Split a long text into sentences one by one.

    Args:
        text: As for `split_sentences`.

    Yields:
        The same sentences.

    Example:
        >>> next(each_sentence("Dr. Oak paid $2.1B. She left.")).text
        'Dr. Oak paid $2.1B.'
    """
    for block in blocks(text):
        yield from split_block(text, block)


def split_block(text: str, block: Block) -> Iterator[Sentence]:
    """Split one block of a text into sentences.

    Args:
        text: The whole text.
        block: The block, as `blocks` found it.

    Yields:
        Its sentences, with offsets in the whole text.
    """
    scan = BlockScan(block)
    yield from scan.advance(text, block)
    yield from scan.finish(text, block)


class SentenceSplitter:
    """Splits a text that arrives in pieces, as a model writes it.

    A sentence is given as soon as no further text can change it, which is mostly one word after
    its end. All that `feed` and `close` give, taken together, equals `split_sentences` of the
    whole text, however it was cut up.

    Example:
        >>> splitter = SentenceSplitter()
        >>> [s.text for s in splitter.feed("It rose by 3.")]
        []
        >>> [s.text for s in splitter.feed("5%. Then it fell a")]
        ['It rose by 3.5%.']
        >>> splitter.close()
        [Sentence(text='Then it fell a', start=17, end=31)]
    """

    def __init__(self) -> None:
        """Start at the beginning of a text."""
        self._scanner = BlockScanner()
        self._scan: BlockScan | None = None
        self._dropped = 0

    def feed(self, text: str) -> list[Sentence]:
        """Read on.

        Args:
            text: The next piece, of any length.

        Returns:
            The sentences that are certain now, with offsets in the whole text so far.
        """
        found = self._read(text, final=False)
        if (block := self._scanner.open) is not None:
            self._scan = self._scan or BlockScan(block)
            found += self._scan.advance(self._scanner.text, block, closed=False)
        found = [self._placed(sentence) for sentence in found]
        self._forget()
        return found

    def close(self) -> list[Sentence]:
        """End the text.

        Returns:
            The sentences that were still open. The splitter is then at the start of a new text.
        """
        found = [self._placed(sentence) for sentence in self._read("", final=True)]
        self._scanner, self._scan, self._dropped = BlockScanner(), None, 0
        return found

    def _read(self, text: str, *, final: bool) -> list[Sentence]:
        found: list[Sentence] = []
        for block in self._scanner.feed(text, final=final):
            scan, self._scan = self._scan or BlockScan(block), None
            found += scan.advance(self._scanner.text, block)
            found += scan.finish(self._scanner.text, block)
        return found

    def _placed(self, sentence: Sentence) -> Sentence:
        text, start, end = sentence
        return Sentence(text, start + self._dropped, end + self._dropped)

    def _forget(self) -> None:
        # What lies before the open sentence is kept a while: it is looked back at, and dropping
        # a little at a time would copy the rest each time.
        drop = (self._scan.start if self._scan else self._scanner.settled) - _LOOK_BACK
        if drop > _KEPT:
            self._scanner.forget(drop)
            self._dropped += drop
            if self._scan:
                self._scan.shift(drop)


_KEPT = 4096
_LOOK_BACK = 80


class BlockScan:
    """Where the reading of one block stands."""

    def __init__(self, block: Block) -> None:
        self.start = block.start
        self._at = block.body

    def shift(self, count: int) -> None:
        """Follow the text when its first characters are dropped."""
        self.start, self._at = self.start - count, self._at - count

    def advance(self, text: str, block: Block, *, closed: bool = True) -> Iterator[Sentence]:
        """Give the sentences that end before the end of the block, as far as that is certain."""
        if block.kind not in ("prose", "item", "title"):
            return
        try:
            while match := next_candidate(text, self._at, block.end):
                end = Look(text, self.start, block.end, closed=closed).boundary(match)
                self._at = max(match.end(), end or 0)
                if end is not None:
                    yield from _trimmed(text, self.start, end)
                    self.start = end
        except Hold:
            return
        if not closed:  # a word that is not complete may still become part of a longer match
            self._at = max(self._at, text.rfind(" ", self._at, block.end))

    def finish(self, text: str, block: Block) -> list[Sentence]:
        """Give what is left of a block that has ended."""
        return _trimmed(text, self.start, block.end)


def _trimmed(text: str, start: int, end: int) -> list[Sentence]:
    piece = text[start:end]
    body = piece.strip()
    if not body:
        return []
    start += len(piece) - len(piece.lstrip())
    return [Sentence(body, start, start + len(body))]
