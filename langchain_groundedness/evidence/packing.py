"""Packs documents into batches of passages, and maps quotes back to their offsets.

Nothing is truncated: text that does not fit one batch goes to the next, and every character of a
document that is not white space is in some passage.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from numbers import Real
from operator import itemgetter
from typing import Annotated

from langchain_core.documents import Document
from langchain_core.load.serializable import (
    Serializable,
    SerializedConstructor,
    SerializedNotImplemented,
)
from pydantic import ConfigDict, Field
from typing_extensions import override

from langchain_groundedness._runtime.options import CheckedOptions
from langchain_groundedness.evidence.windows import cut_sentence
from langchain_groundedness.text.markdown import Outline
from langchain_groundedness.text.quotes import locate_quote
from langchain_groundedness.text.sentences import split_sentences
from langchain_groundedness.text.words import content_words
from langchain_groundedness.types import EvidenceBatch, Passage

__all__ = [
    "EvidencePacker",
    "SentenceIndex",
    "approximate_tokens",
    "locate_quote",
    "passage_sentences",
    "shares_content_word",
]

_SCORE_KEYS = ("relevance_score", "score")
_CHARACTERS_PER_TOKEN = 4


def approximate_tokens(text: str) -> int:
    """Estimate tokens at four characters each, like langchain-core's `count_tokens_approximately`.

    Args:
        text: Any text.

    Returns:
        Tokens, rounded up, without the overhead of a message.
    """
    return math.ceil(len(text) / _CHARACTERS_PER_TOKEN)


class EvidencePacker(CheckedOptions, Serializable):
    """Packs documents into batches of passages under a token budget.

    Documents are sorted by retriever score if each has one (`relevance_score`, else `score`, in its
    metadata; higher is better), else kept in the given order. A document over the budget is split
    into overlapping windows at sentence boundaries; a sentence over the budget is split between
    words, and a word over the budget anywhere. Batches are filled in that order. Each batch has its
    best passage first and its second best last, because models pay less attention to the middle of
    a long context (Liu et al. 2023, "Lost in the Middle").

    Example:
        >>> documents = [Document(page_content=text) for text in ("First.", "Second.", "Third.")]
        >>> [batch] = EvidencePacker(max_tokens=100).pack(documents)
        >>> [passage.text for passage in batch.passages]
        ['First.', 'Third.', 'Second.']
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    _can_be_saved = True

    max_tokens: Annotated[int, Field(ge=1)]
    """Most tokens of the texts of the passages of one batch, without their headings. Only a single
    character with more tokens can exceed it."""
    count_tokens: Callable[[str], int] = approximate_tokens
    """Counts the tokens of a text; called a few times per passage."""
    overlap_sentences: Annotated[int, Field(ge=0)] = 1
    """How many sentences a window repeats from the previous one, if the budget allows."""

    @override
    def to_json(self) -> SerializedConstructor | SerializedNotImplemented:
        stored = super().to_json()
        if stored["type"] == "constructor" and self.count_tokens is approximate_tokens:
            del stored["kwargs"]["count_tokens"]  # a function cannot be saved
        return stored

    def pack(self, documents: Sequence[Document]) -> list[EvidenceBatch]:
        """Pack documents.

        Args:
            documents: All documents of a task; blank ones are skipped.

        Returns:
            The batches, best documents first; deterministic.
        """
        batches: list[EvidenceBatch] = []
        batch: list[Passage] = []
        used = 0
        for passage, tokens in self._passages(documents):
            if batch and used + tokens > self.max_tokens:
                batches.append(_best_at_both_ends(batch, used))
                batch, used = [], 0
            batch.append(passage)
            used += tokens
        return [*batches, _best_at_both_ends(batch, used)] if batch else batches

    def _passages(self, documents: Sequence[Document]) -> Iterator[tuple[Passage, int]]:
        for index, score in _ranked(documents):
            text = documents[index].page_content
            outline: Outline | None = None
            for start, end, tokens in self._windows(text):
                heading = ""
                if text[:start].strip():
                    outline = outline or Outline(text)
                    heading = outline.heading(start)
                found = {"start": start, "end": end, "text": text[start:end], "heading": heading}
                yield Passage(document=index, score=score, **found), tokens

    def _windows(self, text: str) -> Iterator[tuple[int, int, int]]:
        start, end = len(text) - len(text.lstrip()), len(text.rstrip())
        tokens = self.count_tokens(text[start:end])
        if tokens <= self.max_tokens:
            yield start, end, tokens
            return
        units = [
            (piece.start, piece.end, self.count_tokens(piece.text))
            for sentence in split_sentences(text)
            for piece in cut_sentence(sentence, self.max_tokens, self.count_tokens)
        ]
        first = 0
        while first < len(units):
            last = self._last_fitting_unit(units, first)
            step = 1
            while True:
                tokens = self.count_tokens(text[units[first][0] : units[last][1]])
                if tokens <= self.max_tokens or last == first:
                    break
                last, step = (max(first, last - step), step * 2)  # the sum was too low
            yield units[first][0], units[last][1], tokens
            first = self._next_window_start(units, first, last)

    def _last_fitting_unit(self, units: list[tuple[int, int, int]], first: int) -> int:
        """Return the last unit that fits the window starting at `first`, by the sum of tokens."""
        last, total = first, units[first][2]
        while last + 1 < len(units) and total + units[last + 1][2] + _GAP <= self.max_tokens:
            last += 1
            total += units[last][2] + _GAP
        return last

    def _next_window_start(self, units: list[tuple[int, int, int]], first: int, last: int) -> int:
        """Return the first unit of the next window, with overlap if new text still fits."""
        if last + 1 >= len(units):
            return len(units)
        start, total = last + 1, units[last + 1][2]
        for _ in range(self.overlap_sentences):
            if start - 1 <= first or total + units[start - 1][2] + _GAP > self.max_tokens:
                break
            start -= 1
            total += units[start][2] + _GAP
        return start


_GAP = 1  # most tokens that white space between two sentences adds


def _ranked(documents: Sequence[Document]) -> list[tuple[int, float | None]]:
    known = [(i, d) for i, d in enumerate(documents) if d.page_content.strip()]
    for key in _SCORE_KEYS:
        scores = [_number(document.metadata.get(key)) for _, document in known]
        if known and None not in scores:
            ranked = [(i, score) for (i, _), score in zip(known, scores, strict=True)]
            return sorted(ranked, key=lambda pair: -(pair[1] or 0.0))
    return [(i, None) for i, _ in known]


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        return None
    return float(value)


def _best_at_both_ends(ranked: list[Passage], tokens: int) -> EvidenceBatch:
    return EvidenceBatch(passages=(*ranked[::2], *ranked[1::2][::-1]), tokens=tokens)


def shares_content_word(claim: str, quote: str) -> bool:
    """Return whether a quote shares a content word with a claim.

    Args:
        claim: The claim.
        quote: The cited evidence.

    Returns:
        True if both contain the same content word.
    """
    return not content_words(claim).isdisjoint(content_words(quote))


class SentenceIndex:
    """An index of the sentences of passages, for matching claims.

    Example:
        >>> text = "Rome is in Italy. It lies on the Tiber."
        >>> index = SentenceIndex([Passage(document=0, start=0, end=39, text=text)])
        >>> found = index.best("The Tiber flows through the city.")
        >>> found.text, found.start
        ('It lies on the Tiber.', 18)
    """

    def __init__(self, passages: Sequence[Passage]) -> None:
        """Index the passages."""
        self.sentences = tuple(
            sentence
            for passage in passages
            for sentence, is_structure in passage_sentences(passage)
            if not is_structure
        )
        """The sentences as passages, with offsets in their documents; headings are left out."""
        self._words = [content_words(sentence.text) for sentence in self.sentences]
        self._frequency = Counter(word for words in self._words for word in words)

    def best(self, claim: str) -> Passage | None:
        """Find the sentence that matches a claim best.

        Args:
            claim: The claim.

        Returns:
            The sentence with the greatest share of the claim's content words, weighted by inverse
            document frequency over the sentences; a shorter sentence wins a near tie. `None` if no
            sentence shares a word.
        """
        wanted = content_words(claim)
        weight = {
            word: math.log1p(len(self._words) / number)
            for word in sorted(wanted)
            if (number := self._frequency[word])
        }
        total = sum(weight.values())
        best: tuple[float, Passage | None] = -math.inf, None
        for sentence, words in zip(self.sentences, self._words, strict=True):
            if shared := wanted & words:
                # A tenth, so that length only breaks ties.
                excess = 1 - len(shared) / len(words)
                score = sum(map(weight.__getitem__, shared)) - 0.1 * total * excess
                best = max(best, (score, sentence), key=itemgetter(0))
        return best[1]


def passage_sentences(passage: Passage) -> list[tuple[Passage, bool]]:
    """Split a passage into its sentences.

    Args:
        passage: The passage.

    Returns:
        Each sentence as a passage, with offsets in its document, and whether it is a heading, a
        table header or a ruler, which is no evidence alone. If nothing else is there, none is.
    """
    sentences = split_sentences(passage.text)
    outline = Outline(passage.text)
    structure = [outline.is_structure(sentence.start) for sentence in sentences]
    offset, only_structure = passage.start, all(structure)
    places = [{"start": offset + s.start, "end": offset + s.end, "text": s.text} for s in sentences]
    return [
        (passage.model_copy(update=place), is_structure and not only_structure)
        for place, is_structure in zip(places, structure, strict=True)
    ]
