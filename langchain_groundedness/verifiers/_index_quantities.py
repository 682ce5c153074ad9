"""The quantities of all documents, kept as columns: ten megabytes of prose name half a million."""

import math
from array import array
from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from langchain_groundedness.verifiers._quantities import (
    Quantity,
    each_quantity,
    quantity_at,
    same_quantity,
    units_fit,
)

__all__ = ["IndexQuantities"]

_DECADE = 10

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class IndexQuantities:
    """Finds which sentences state a quantity.

    Half a million objects would hold up the event loop whenever Python's garbage collector looks
    at all of them, so only numbers are kept; the few that come into question are read again.
    """

    def __init__(self, texts: Sequence[str], documents: Ints, starts: Ints) -> None:
        """Read all quantities of all documents.

        Args:
            texts: The documents.
            documents: For each sentence, which of them it is in; in order.
            starts: For each sentence, where in it it begins.
        """
        self._texts = texts
        places, numbers, written = array("q"), array("d"), array("d")
        years, measures = array("d"), array("q")
        self._measures: dict[str, int] = {"": 0}
        of_sentence: list[Ints] = []
        self._document_of_sentence = documents
        for document, text in enumerate(texts):
            before = len(places)
            for quantity in each_quantity(text):
                is_date = quantity.kind == "date"
                places.append(quantity.start)
                numbers.append(math.nan if is_date else quantity.value)
                written.append(math.nan if is_date else quantity.as_written.value)
                years.append(quantity.date[0] or -1)
                measures.append(self._measures.setdefault(quantity.unit, len(self._measures)))
            first, last = np.searchsorted(documents, [document, document + 1])
            mine = np.frombuffer(places, dtype=np.int64)[before:].copy()
            of_sentence.append(first - 1 + np.searchsorted(starts[first:last], mine, side="right"))
        self._starts: Ints = np.array(places, dtype=np.int64)
        self._numbers: Floats = np.array(numbers)
        self._written: Floats = np.array(written)
        self._years: Floats = np.array(years)
        self._measure_of: Ints = np.array(measures, dtype=np.int64)
        self._sentences: Ints = np.concatenate([np.zeros(0, dtype=np.int64), *of_sentence])

    def sentences_giving(self, claimed: Quantity, beside: Collection[Quantity]) -> Ints:
        """Give the sentences that state a quantity.

        Args:
            claimed: The quantity, however it is written.
            beside: All quantities of the claim.

        Returns:
            Their indices, in order, without repetition.
        """
        in_claim = {quantity.unit for quantity in beside}
        giving = {
            int(self._sentences[place])
            for place in np.flatnonzero(self._near(claimed)).tolist()
            if same_quantity(claimed, given := self._read(place))
            and units_fit(
                claimed,
                given,
                in_claim=in_claim,
                beside=self._named_beside(place) if claimed.unit != given.unit else (),
            )
        }
        return np.array(sorted(giving), dtype=np.int64)

    def _near(self, claimed: Quantity) -> NDArray[np.bool_]:
        """Tell which come into question."""
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

    def _read(self, place: int) -> Quantity:
        document = self._document_of_sentence[self._sentences[place]]
        return quantity_at(self._texts[document], int(self._starts[place]))

    def _named_beside(self, place: int) -> set[str]:
        """Give the units of measure that the sentence of a quantity names."""
        first, last = np.searchsorted(self._sentences, self._sentences[place] + np.arange(2))
        codes = set(self._measure_of[first:last].tolist())
        return {measure for measure, code in self._measures.items() if code in codes}


def _within(claimed: Quantity, numbers: Floats) -> NDArray[np.bool_]:
    """Tell which numbers may be what is claimed."""
    low, high = claimed.range
    slack = abs(claimed.value) * 1e-9
    return (numbers >= low - slack) & (numbers <= high + slack)
