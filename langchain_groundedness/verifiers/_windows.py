"""The evidence windows that speak most about a claim: up to three neighbouring sentences."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from langchain_groundedness.verifiers._index import EvidenceIndex
from langchain_groundedness.verifiers._statement import Item, Statement

__all__ = ["Match", "Window", "match_statement"]

_CANDIDATES = 16
"""Sentences that are looked at closely; the others share less with the claim than each of these."""
_WIDEST = 3
_KEPT = 5
_POOL = 16

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Window(NamedTuple):
    """Neighbouring units `first` to `last` of one document, and what of the claim they say."""

    first: int
    last: int
    found: Floats
    """Per item of the statement: 1 if the window says it, less for a word merely like it."""
    recall: float
    """Share of the statement's weight that is found."""


class Match(NamedTuple):
    """What the evidence says of one statement."""

    weights: Floats
    best: tuple[Window, ...]
    """The best windows of one, two and three sentences."""
    sentences: tuple[Window, ...]
    """The best single sentences, best first."""
    pool: tuple[Window, ...]
    """All sentences that were looked at closely."""
    anywhere: Floats
    """Per item: what the whole of the documents says of it."""
    context: Floats
    """Per item: what the first sentence of the best window's document says of it."""


def match_statement(statement: Statement, index: EvidenceIndex) -> Match | None:
    """Search all documents for what they say of a statement.

    Args:
        statement: The statement.
        index: The documents.

    Returns:
        The match, or `None` if no sentence says anything of it.
    """
    places = [_places(item, index, statement) for item in statement.items]
    weights = np.array([item.weight for item in statement.items], dtype=np.float64)
    scores = np.zeros(len(index))
    for weight, (units, found) in zip(weights, places, strict=True):
        scores[units] += weight * found
    if not scores.any():
        return None
    count = min(_CANDIDATES, len(scores))
    top = np.argpartition(-scores, count - 1)[:count]
    top = top[scores[top] > 0]
    columns = _with_neighbours(top, len(index))
    said = _said(places, columns)
    ranked = [
        _ranked(said, columns, index.document_of, weights, size) for size in range(1, _WIDEST + 1)
    ]
    best = [ranked[0][0]]
    for wider in ranked[1:]:
        # Of two windows that say as much, the shorter one.
        best.append(max((best[-1], *wider[:1]), key=lambda window: window.recall))
    home = int(np.searchsorted(index.document_of, index.document_of[best[-1].first]))
    return Match(
        weights=weights,
        best=tuple(best),
        sentences=tuple(ranked[0][:_KEPT]),
        pool=tuple(ranked[0]),
        anywhere=np.array([found.max(initial=0.0) for _, found in places]),
        context=_said(places, np.array([home]))[:, 0],
    )


def _places(item: Item, index: EvidenceIndex, statement: Statement) -> tuple[Ints, Floats]:
    if item.quantity is not None:
        units = index.units_giving(item.quantity, statement.quantities)
        return units, np.ones(len(units))
    words = index.like(item.stem)
    if not words:
        return np.zeros(0, dtype=np.int64), np.zeros(0)
    if len(words) == 1:
        units = index.units_with(words[0][0])
        return units, np.full(len(units), words[0][1])
    likeness = np.zeros(len(index))
    for word, value in sorted(words, key=lambda pair: pair[1]):
        likeness[index.units_with(word)] = value
    units = np.flatnonzero(likeness)
    return units, likeness[units]


def _with_neighbours(top: Ints, units: int) -> Ints:
    reach = np.arange(1 - _WIDEST, _WIDEST)
    columns = np.unique(top[:, None] + reach[None, :])
    return columns[(columns >= 0) & (columns < units)]


def _said(places: list[tuple[Ints, Floats]], columns: Ints) -> Floats:
    said = np.zeros((len(places), len(columns)))
    for row, (units, found) in enumerate(places):
        if len(units):
            at = np.minimum(np.searchsorted(units, columns), len(units) - 1)
            hit = units[at] == columns
            said[row, hit] = found[at[hit]]
    return said


def _ranked(
    said: Floats, columns: Ints, document_of: Ints, weights: Floats, size: int
) -> list[Window]:
    """Give the best windows of exactly `size` sentences, best first."""
    starts = np.flatnonzero(
        (columns[size - 1 :] - columns[: len(columns) - size + 1] == size - 1)
        & (document_of[columns[size - 1 :]] == document_of[columns[: len(columns) - size + 1]])
    )
    if not len(starts):
        return []
    cover = np.max([said[:, starts + shift] for shift in range(size)], axis=0)
    recalls = weights @ cover / weights.sum()
    order = np.argsort(-recalls, kind="stable")[:_POOL]
    return [
        Window(int(columns[starts[i]]), int(columns[starts[i]]) + size - 1, cover[:, i], recall)
        for i, recall in zip(order.tolist(), recalls[order].tolist(), strict=True)
    ]
