"""An index of the evidence: all sentences of all documents, their words and their quantities."""

import math
from array import array
from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from itertools import takewhile
from operator import eq
from typing import NamedTuple

import numpy as np
from langchain_core.documents import Document
from numpy.typing import NDArray

from langchain_groundedness.text.words import Word, each_word
from langchain_groundedness.verification.embedded.expanded_documents import (
    EvidenceUnit,
    expand_document,
)
from langchain_groundedness.verification.embedded.quantities import (
    Quantity,
    each_quantity,
    same_quantity,
    units_fit,
)

__all__ = ["EvidenceIndex"]

_LONGEST_UNIT = 60
"""Words. A sentence longer than this is most likely a table or a list; it is read in pieces."""

_LONGEST_TEXT = 20_000
"""Characters, about; a longer word stays whole. Each step of reading a sentence holds up all
threads."""

_PREFIX = 4

_LEAST_LIKENESS = 0.6

_NEIGHBOURS = 100
"""Words on either side in the sorted vocabulary, where those that begin alike are together. A
language has fewer derivations of a word; made-up words could be alike without end."""

Ints = NDArray[np.int64]


_DECADE = 10
Floats = NDArray[np.float64]


class Source(NamedTuple):
    """What can be cited: `documents[document].page_content[start:end]`."""

    document: int
    start: int
    end: int


class IndexQuantities:
    """Finds which sentences state a quantity.

    Half a million objects would hold up the event loop whenever Python's garbage collector looks at
    all of them. Documents repeat themselves: each value is kept once, and its places as numbers. No
    document and no sentence is read with array operations of its own: each such operation releases
    the interpreter and takes it back before another thread, such as the event loop's, is awake.
    """

    def __init__(self, texts: Sequence[str], documents: Ints, starts: Ints) -> None:
        """Read all quantities of all documents."""
        codes: dict[Quantity, int] = {}
        rows = array("q")
        for number, text in enumerate(texts):
            for quantity in each_quantity(text):
                code = codes.setdefault(quantity._replace(start=0, end=0), len(codes))
                rows.extend((number, quantity.start, code))
        in_documents, places, self._value_of = _columns(rows, 3)
        self._values = list(codes)
        self._numbers: Floats = np.array([_number(value) for value in codes])
        self._written: Floats = np.array([_number(value.as_written) for value in codes])
        self._years: Floats = np.array([float(value.date[0] or -1) for value in codes])
        self._units = np.array([value.unit for value in codes], dtype=np.str_)
        self._sentence_count = len(documents)
        self._sentences = _sentences_of(in_documents, places, documents, starts)
        self._by_value: Ints = np.argsort(self._value_of, kind="stable")
        self._bounds: Ints = np.searchsorted(
            self._value_of[self._by_value], np.arange(len(codes) + 1)
        )

    def sentences_with_value(self, claimed: Quantity, beside: Collection[Quantity]) -> Ints:
        """Return the sentences that state a quantity."""
        in_claim = {quantity.unit for quantity in beside}
        giving = np.zeros(self._sentence_count, dtype=bool)
        # Where the unit is named, no number without one stands for it.
        fits = ~self._naming(claimed.unit) if claimed.unit else ~giving
        for code in np.flatnonzero(self._near(claimed)).tolist():
            given = self._values[code]
            if same_quantity(claimed, given) and units_fit(
                claimed, given, in_claim=in_claim, beside=()
            ):
                places = self._by_value[self._bounds[code] : self._bounds[code + 1]]
                sentences = self._sentences[places]
                giving[sentences] |= (claimed.unit == given.unit) | fits[sentences]
        return np.flatnonzero(giving)

    def _near(self, claimed: Quantity) -> NDArray[np.bool_]:
        """Return which values may match."""
        if claimed.kind != "date":
            plain = claimed.as_written
            near = _within(claimed, self._numbers) | _within(plain, self._written)
            near |= self._years == plain.value
            return near
        year, month, day = claimed.date
        if year is None:
            return np.ones(len(self._years), dtype=bool)
        near = np.abs(self._years - year) < _DECADE
        if month is None and day is None:
            near |= self._written == year
        return near

    def _naming(self, unit: str) -> NDArray[np.bool_]:
        """Return which sentences name a unit of measure."""
        naming = np.zeros(self._sentence_count, dtype=bool)
        naming[self._sentences[(self._units == unit)[self._value_of]]] = True
        return naming


class EvidenceIndex:
    """Finds where a word or a quantity is in the documents; built once, then only read."""

    def __init__(self, documents: Sequence[Document]) -> None:
        """Read all documents."""
        self.vocabulary: dict[str, int] = {}
        self._texts: list[str] = []

        # Numbers: objects by the hundred thousand would hold up the event loop whenever the garbage
        # collector looks at them all.
        stems, rows = array("q"), array("q")
        for number, document in enumerate(documents):
            text, sentences = expand_document(document.page_content)
            self._texts.append(text)
            for unit, words in _units(text, sentences):
                rows.extend((number, len(words), *unit))
                stems.extend(
                    self.vocabulary.setdefault(word.stem, len(self.vocabulary)) for word in words
                )
        columns = _columns(rows, 2 + len(EvidenceUnit._fields))
        self.document_of, sizes, self._starts, self._ends = columns[:4]
        self._source_starts, self._source_ends, _, self._headings = columns[4:]
        self.stems: Ints = np.array(stems, dtype=np.int64)
        self.first: Ints = np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))
        self._index_words(sizes)

    def __len__(self) -> int:
        """Count the sentences, and the pieces of overlong ones."""
        return len(self.document_of)

    def source(self, unit: int) -> Source:
        """Return the place of a sentence, or of a piece of an overlong one, in its document.

        A heading says nothing alone; its place includes the sentence under it.
        """
        document, last = int(self.document_of[unit]), unit
        while self.is_heading(last) and document == self._document_after(last):
            last += 1
        return Source(document, int(self._source_starts[unit]), int(self._source_ends[last]))

    def is_heading(self, unit: int) -> bool:
        """Return whether a unit is a heading."""
        return bool(self._headings[unit])

    def _document_after(self, unit: int) -> int:
        return int(self.document_of[unit + 1]) if unit + 1 < len(self) else -1

    def _index_words(self, sizes: Ints) -> None:
        unit_of = np.repeat(np.arange(len(sizes), dtype=np.int64), sizes)
        keys = _distinct(self.stems * max(len(sizes), 1) + unit_of)
        self._posting_units = keys % max(len(sizes), 1)
        bounds = np.searchsorted(
            keys // max(len(sizes), 1), np.arange(len(self.vocabulary) + 1, dtype=np.int64)
        )
        self._posting_bounds: list[int] = bounds.tolist()

    @property
    def words(self) -> int:
        """Number of words in all documents."""
        return len(self.stems)

    def units_with(self, word: int) -> Ints:
        """Return the units that hold a word of the vocabulary, in order."""
        return self._posting_units[self._posting_bounds[word] : self._posting_bounds[word + 1]]

    def stems_in(self, first: int, last: int) -> Ints:
        """Return the words of neighbouring units, in order."""
        return self.stems[self.first[first] : self.first[last + 1]]

    def similar_stems(self, stem: str) -> list[tuple[int, float]]:
        """Find the words of the vocabulary that are written like a stem: its derivations."""
        exact = self.vocabulary.get(stem)
        found = [] if exact is None else [(exact, 1.0)]
        if len(stem) <= _PREFIX or stem.isdigit():
            return found
        ordered = self._ordered
        beginning = stem[: max(_PREFIX, math.ceil(_LEAST_LIKENESS * len(stem) - 1e-9))]
        place = bisect_left(ordered, stem)
        first = max(bisect_left(ordered, beginning), place - _NEIGHBOURS)
        for other in ordered[first : place + _NEIGHBOURS]:
            likeness = _shared_beginning(stem, other) / max(len(stem), len(other))
            if other.startswith(beginning) and likeness >= _LEAST_LIKENESS and other != stem:
                found.append((self.vocabulary[other], likeness))
        return found

    @cached_property
    def _ordered(self) -> list[str]:
        return sorted(self.vocabulary)

    @cached_property
    def _quantities(self) -> IndexQuantities:
        return IndexQuantities(self._texts, self.document_of, self._starts)

    def units_with_value(self, claimed: Quantity, beside: Collection[Quantity] = ()) -> Ints:
        """Return the units that state a quantity."""
        return self._quantities.sentences_with_value(claimed, beside)

    def text(self, first: int, last: int) -> str:
        """Return the text of neighbouring units of one document, written out."""
        document = int(self.document_of[first])
        return self._texts[document][int(self._starts[first]) : int(self._ends[last])]


def _units(
    text: str, sentences: Sequence[EvidenceUnit]
) -> Iterator[tuple[EvidenceUnit, list[Word]]]:
    """Cut overlong sentences into pieces, and give each with its words."""
    words = each_word(text)
    word = next(words, None)
    for sentence in sentences:
        start, mine = sentence.start, list[Word]()
        while word is not None and word.start < sentence.end:
            if mine and (len(mine) == _LONGEST_UNIT or word.end - start > _LONGEST_TEXT):
                yield _part(text, sentence, start, word.start), mine
                start, mine = word.start, []
            mine.append(word)
            word = next(words, None)
        if mine:
            yield _part(text, sentence, start, sentence.end), mine


def _part(text: str, sentence: EvidenceUnit, start: int, end: int) -> EvidenceUnit:
    end = start + len(text[start:end].rstrip())
    if not sentence.is_verbatim:
        return sentence._replace(start=start, end=end)
    moved = sentence.source_start - sentence.start
    return sentence._replace(
        start=start, end=end, source_start=start + moved, source_end=end + moved
    )


def _columns(rows: "array[int]", number: int) -> Ints:
    """Read rows of so many numbers, written one after the other, as columns."""
    return np.array(rows, dtype=np.int64).reshape(-1, number).T.copy()


def _distinct(keys: Ints) -> Ints:
    """Sort keys and leave out repetitions."""
    # From numpy 2.3 on, np.unique fills a hash table instead. For keys that hardly repeat this
    # takes many times as long, and blocks other threads, such as the event loop's.
    ordered = np.sort(keys)
    return ordered[np.append(True, ordered[1:] != ordered[:-1])] if len(keys) else keys


def _shared_beginning(one: str, other: str) -> int:
    return sum(takewhile(bool, map(eq, one, other)))


def _sentences_of(in_documents: Ints, places: Ints, documents: Ints, starts: Ints) -> Ints:
    """Map offsets in documents to sentence numbers, counted through all documents."""
    # Text before the first sentence of its document ("$" on a line of its own) counts as part of
    # it.
    within = int(max(places.max(initial=0), starts.max(initial=0))) + 1
    found = np.searchsorted(
        documents * within + starts, in_documents * within + places, side="right"
    )
    last = max(len(documents) - 1, 0)
    first: Ints = np.minimum(np.searchsorted(documents, in_documents), last)
    return np.maximum(found - 1, first)


def _number(quantity: Quantity) -> float:
    return math.nan if quantity.kind == "date" else quantity.value


def _within(claimed: Quantity, numbers: Floats) -> NDArray[np.bool_]:
    """Return which numbers may be what is claimed."""
    low, high = claimed.range
    slack = abs(claimed.value) * 1e-9
    return (numbers >= low - slack) & (numbers <= high + slack)
