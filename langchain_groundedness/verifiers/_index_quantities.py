"""The quantities of all documents, kept as columns: ten megabytes of prose name half a million."""

import math
from array import array
from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from langchain_groundedness.verifiers._quantities import Quantity, same_quantity, units_fit
from langchain_groundedness.verifiers._quantity_reading import each_quantity

__all__ = ["IndexQuantities"]

_DECADE = 10

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class IndexQuantities:
    """Finds which sentences state a quantity.

    Half a million objects would hold up the event loop whenever Python's garbage collector looks
    at all of them. Documents repeat themselves: each value is kept once, and where it stands as
    numbers. No document and no sentence is read with array operations of its own: each of them lets
    go of the interpreter and takes it back before another thread, the event loop's say, is awake.
    """

    def __init__(self, texts: Sequence[str], documents: Ints, starts: Ints) -> None:
        """Read all quantities of all documents.

        Args:
            texts: The documents.
            documents: For each sentence, which of them it is in; in order.
            starts: For each sentence, where in it it begins.
        """
        codes: dict[Quantity, int] = {}
        places, values, counts = array("q"), array("q"), array("q")
        for text in texts:
            before = len(places)
            for quantity in each_quantity(text):
                places.append(quantity.start)
                values.append(codes.setdefault(quantity._replace(start=0, end=0), len(codes)))
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
        self._sentence_count = len(documents)
        self._sentences = _sentences_of(
            np.repeat(np.arange(len(texts)), np.array(counts, dtype=np.int64)),
            np.array(places, dtype=np.int64),
            documents,
            starts,
        )
        self._value_of: Ints = np.array(values, dtype=np.int64)
        self._by_value: Ints = np.argsort(self._value_of, kind="stable")
        self._bounds: Ints = np.searchsorted(
            self._value_of[self._by_value], np.arange(len(codes) + 1)
        )

    def sentences_giving(self, claimed: Quantity, beside: Collection[Quantity]) -> Ints:
        """Give the sentences that state a quantity.

        Args:
            claimed: The quantity, however it is written.
            beside: All quantities of the claim.

        Returns:
            Their indices, in order, without repetition.
        """
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

    def _naming(self, unit: str) -> NDArray[np.bool_]:
        """Tell which sentences name a unit of measure."""
        naming = np.zeros(self._sentence_count, dtype=bool)
        values = self._measure_of == self._measures.get(unit, -1)
        naming[self._sentences[values[self._value_of]]] = True
        return naming


def _sentences_of(in_documents: Ints, places: Ints, documents: Ints, starts: Ints) -> Ints:
    """Give the sentences, counted through all documents, that places in documents are in.

    What stands before the first sentence of its document ("$" on a line of its own) counts as its.
    """
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
    """Tell which numbers may be what is claimed."""
    low, high = claimed.range
    slack = abs(claimed.value) * 1e-9
    return (numbers >= low - slack) & (numbers <= high + slack)
