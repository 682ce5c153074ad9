"""An index of the evidence: all sentences of all documents, their words and their quantities."""

import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Sequence
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from langchain_core.documents import Document
from numpy.typing import NDArray

from langchain_groundedness.sentences import split_sentences
from langchain_groundedness.verifiers._quantities import (
    Quantity,
    find_quantities,
    same_quantity,
    units_fit,
)
from langchain_groundedness.words import Word, find_words

__all__ = ["EvidenceIndex", "Unit"]

_LONGEST_UNIT = 60
"""Words. A sentence longer than this is most likely a table or a list; it is read in pieces."""
_PREFIX = 4
_LEAST_LIKENESS = 0.6
_NEIGHBOURS = 100
"""Words on either side in the sorted vocabulary, where those that begin alike stand. A language
has fewer derivations of a word; made-up words could be alike without end."""

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class Unit(NamedTuple):
    """A sentence, or a piece of an overlong one: `documents[document].page_content[start:end]`."""

    document: int
    start: int
    end: int


class EvidenceIndex:
    """Finds where in the documents a word or a quantity stands; built once, then only read."""

    def __init__(self, documents: Sequence[Document]) -> None:
        """Read all documents.

        Args:
            documents: Any number, of any length; every word of each is indexed.
        """
        self.texts = [document.page_content for document in documents]
        self.units: list[Unit] = []
        self.vocabulary: dict[str, int] = {}
        stems: list[int] = []
        sizes: list[int] = []
        for number, text in enumerate(self.texts):
            for unit, words in _units(number, text):
                self.units.append(unit)
                sizes.append(len(words))
                stems.extend(
                    self.vocabulary.setdefault(word.stem, len(self.vocabulary)) for word in words
                )
        self.stems: Ints = np.array(stems, dtype=np.int64)
        self.first: Ints = np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))
        self.document_of: Ints = np.array([u.document for u in self.units], dtype=np.int64)
        self._index_words(sizes)

    def _index_words(self, sizes: list[int]) -> None:
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
        """Give the units that hold a word of the vocabulary, in order.

        Args:
            word: Its number in `vocabulary`.

        Returns:
            Their indices in `units`.
        """
        return self._posting_units[self._posting_bounds[word] : self._posting_bounds[word + 1]]

    def stems_in(self, first: int, last: int) -> Ints:
        """Give the words of neighbouring units, in order.

        Args:
            first: Index of the first unit.
            last: Index of the last one, included.

        Returns:
            Numbers in `vocabulary`.
        """
        return self.stems[self.first[first] : self.first[last + 1]]

    def like(self, stem: str) -> list[tuple[int, float]]:
        """Find the words of the vocabulary that are written like a stem: its derivations.

        Args:
            stem: A stem.

        Returns:
            Numbers in `vocabulary` with the share, in 0.6 .. 1, of the longer one's letters that
            both begin with; the stem itself, if it is there, has 1. Of very many, those nearest
            in the alphabet.
        """
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
    def _quantities(self) -> list[tuple[int, Quantity]]:
        """All quantities of all documents, each with the unit it begins in."""
        starts: defaultdict[int, list[int]] = defaultdict(list)
        offsets: dict[int, int] = {}
        for position, unit in enumerate(self.units):
            offsets.setdefault(unit.document, position)
            starts[unit.document].append(unit.start)
        return [
            (offsets[document] + bisect_right(begins, q.start) - 1, q)
            for document, begins in starts.items()
            for q in find_quantities(self.texts[document])
        ]

    @cached_property
    def _quantity_keys(self) -> tuple[Floats, Floats, Floats]:
        """Numbers in base units, numbers as written, and years."""
        found = [q for _, q in self._quantities]
        numbers = [math.nan if q.kind == "date" else q.value for q in found]
        written = [math.nan if q.kind == "date" else q.as_written.value for q in found]
        years = [q.date[0] or -1 for q in found]
        return np.array(numbers), np.array(written), np.array(years, dtype=np.float64)

    @cached_property
    def _named(self) -> dict[int, set[str]]:
        """The units of measure that each unit names."""
        named: defaultdict[int, set[str]] = defaultdict(set)
        for unit, quantity in self._quantities:
            if quantity.unit:
                named[unit].add(quantity.unit)
        return named

    def units_giving(self, claimed: Quantity, beside: Collection[Quantity] = ()) -> Ints:
        """Give the units that state a quantity.

        Args:
            claimed: The quantity, however it is written.
            beside: All quantities of the claim.

        Returns:
            Indices in `units`, in order, without repetition.
        """
        numbers, written, years = self._quantity_keys
        in_claim = {quantity.unit for quantity in beside}
        if claimed.kind == "date":
            year, month, day = claimed.date
            near = np.ones(len(years), dtype=bool) if year is None else abs(years - year) < 10  # noqa: PLR2004
            if year is not None and month is None and day is None:
                near |= written == year
        else:
            plain = claimed.as_written
            near = _within(claimed, numbers) | _within(plain, written) | (years == plain.value)
        hits = {
            unit
            for unit, given in (self._quantities[i] for i in np.flatnonzero(near).tolist())
            if same_quantity(claimed, given)
            and units_fit(claimed, given, in_claim=in_claim, beside=self._named.get(unit, ()))
        }
        return np.array(sorted(hits), dtype=np.int64)

    def quantities_in(self, first: int, last: int) -> list[Quantity]:
        """Give the quantities that neighbouring units of one document state.

        Args:
            first: Index of the first unit.
            last: Index of the last one, included.

        Returns:
            The quantities, with offsets in the text from the first unit's start on.
        """
        start, end = self.units[first].start, self.units[last].end
        return find_quantities(self.texts[self.units[first].document][start:end])

    def text(self, first: int, last: int) -> str:
        """Give the text of neighbouring units of one document.

        Args:
            first: Index of the first unit.
            last: Index of the last one, included.

        Returns:
            What stands in the document from the first one's start to the last one's end.
        """
        start, end = self.units[first].start, self.units[last].end
        return self.texts[self.units[first].document][start:end]


def _units(number: int, text: str) -> list[tuple[Unit, list[Word]]]:
    words = find_words(text)
    found: list[tuple[Unit, list[Word]]] = []
    at = 0
    for sentence in split_sentences(text):
        mine = at
        while at < len(words) and words[at].start < sentence.end:
            at += 1
        if at == mine:
            continue
        cuts = [*range(mine, at, _LONGEST_UNIT), at]
        edges = [sentence.start, *(words[c].start for c in cuts[1:-1]), sentence.end]
        for (first, last), (start, end) in zip(pairwise(cuts), pairwise(edges), strict=True):
            stripped = start + len(text[start:end].rstrip())
            found.append((Unit(number, start, stripped), words[first:last]))
    return found


def _within(claimed: Quantity, numbers: Floats) -> NDArray[np.bool_]:
    """Tell which numbers may be what is claimed."""
    low, high = claimed.range
    slack = abs(claimed.value) * 1e-9
    return (numbers >= low - slack) & (numbers <= high + slack)


def _distinct(keys: Ints) -> Ints:
    """Sort keys and leave out repetitions.

    `np.unique` fills a table of hashes instead from numpy 2.3 on, which takes many times as long
    for keys that hardly repeat, and other threads, the event loop's among them, wait for it.
    """
    ordered = np.sort(keys)
    return ordered[np.append(True, ordered[1:] != ordered[:-1])] if len(keys) else keys


def _shared_beginning(one: str, other: str) -> int:
    same = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        same += 1
    return same
