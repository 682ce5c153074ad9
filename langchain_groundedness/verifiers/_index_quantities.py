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
    at all of them. Documents repeat themselves: each value is kept once, and where it stands as
    numbers. There is no array operation per document or per sentence: each of them lets go of the
    interpreter and takes it back before another thread, such as the event loop's, is awake.
    """

    def __init__(self, texts: Sequence[str], documents: Ints, starts: Ints) -> None:
        """Read all quantities of all documents.

        Args:
            texts: The documents.
            documents: For each sentence, which of them it is in; in order.
            starts: For each sentence, where in it it begins.
        """
        self._texts = texts
        self._documents = documents
        codes: dict[Quantity, int] = {}
        places, values, counts = array("q"), array("q"), array("q")
        for text in texts:
            before = len(places)
            for quantity in each_quantity(text):
                places.append(quantity.start)
                value = quantity._replace(start=0, end=0, beside=("", ""))
                values.append(codes.setdefault(value, len(codes)))
            counts.append(len(places) - before)
        self._values = list(codes)
        self._numbers: Floats = np.array([_number(value) for value in codes])
        self._written: Floats = np.array([_number(value.as_written) for value in codes])
        self._years: Floats = np.array([float(value.date[0] or -1) for value in codes])
        self._measures = {"": 0}
        self._measure_of: Ints = np.array(
            [self._measures.setdefault(value.unit, len(self._measures)) for value in codes],
            dtype=np.int64,
        )
        self._places: Ints = np.array(places, dtype=np.int64)
        self._sentences = self._sentences_of(starts, np.array(counts, dtype=np.int64))
        self._value_of: Ints = np.array(values, dtype=np.int64)
        self._by_value: Ints = np.argsort(self._value_of, kind="stable")
        self._bounds: Ints = np.searchsorted(
            self._value_of[self._by_value], np.arange(len(codes) + 1)
        )

    def _sentences_of(self, starts: Ints, counts: Ints) -> Ints:
        """Give the sentences that the quantities begin in, counted through all documents."""
        sizes = np.array([len(text) for text in self._texts], dtype=np.int64)
        before = np.cumsum(sizes) - sizes
        places = np.repeat(before, counts) + self._places
        found: Ints = np.searchsorted(before[self._documents] + starts, places, side="right") - 1
        return found

    def sentences_giving(self, claimed: Quantity, beside: Collection[Quantity]) -> Ints:
        """Give the sentences that state a quantity.

        Args:
            claimed: The quantity, however it is written.
            beside: All quantities of the claim.

        Returns:
            Their indices, in order, without repetition.
        """
        in_claim = {quantity.unit for quantity in beside}
        giving = np.zeros(len(self._documents), dtype=bool)
        for code in np.flatnonzero(self._near(claimed)).tolist():
            given = self._values[code]
            if not units_fit(claimed, given, in_claim=in_claim, beside=()):
                continue
            places = self._places_giving(claimed, code)
            sentences = self._sentences[places]
            if claimed.unit and claimed.unit != given.unit:
                sentences = sentences[~self._naming(claimed.unit)[sentences]]
            giving[sentences] = True
        return np.flatnonzero(giving)

    def _places_giving(self, claimed: Quantity, code: int) -> Ints | list[int]:
        """Give where a value stands, if it is what is claimed."""
        given = self._values[code]
        places = self._by_value[self._bounds[code] : self._bounds[code + 1]]
        if "ordinal" in (claimed.kind, given.kind) and claimed.kind != given.kind:
            # Whether they are the same is told by what stands beside them.
            return [p for p in places.tolist() if same_quantity(claimed, self._read(p))]
        return places if same_quantity(claimed, given) else []

    def _near(self, claimed: Quantity) -> NDArray[np.bool_]:
        """Tell which values come into question."""
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
        document = self._documents[self._sentences[place]]
        return quantity_at(self._texts[document], int(self._places[place]))

    def _naming(self, unit: str) -> NDArray[np.bool_]:
        """Tell which sentences name a unit of measure."""
        naming = np.zeros(len(self._documents), dtype=bool)
        values = self._measure_of == self._measures.get(unit, -1)
        naming[self._sentences[values[self._value_of]]] = True
        return naming


def _number(quantity: Quantity) -> float:
    return math.nan if quantity.kind == "date" else quantity.value


def _within(claimed: Quantity, numbers: Floats) -> NDArray[np.bool_]:
    """Tell which numbers may be what is claimed."""
    low, high = claimed.range
    slack = abs(claimed.value) * 1e-9
    return (numbers >= low - slack) & (numbers <= high + slack)
