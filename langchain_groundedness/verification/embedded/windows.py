"""Selects the evidence windows that say the most of a claim: up to three neighbouring sentences.

Its own module because training reads windows and signals without a judgement.
"""

import re
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from langchain_groundedness.evidence.windows import encoder_tokens
from langchain_groundedness.verification.embedded.encoder import Pair
from langchain_groundedness.verification.embedded.index import EvidenceIndex
from langchain_groundedness.verification.embedded.quantities import (
    Quantity,
    find_quantities,
    phrase_of,
    same_quantity,
)
from langchain_groundedness.verification.embedded.statement import Item, ParsedClaim

__all__ = [
    "WORDS",
    "Match",
    "Window",
    "chosen_units",
    "encoder_input",
    "join_units",
    "match_statement",
    "signals",
]

_SENTENCES_EXAMINED = 16
"""Sentences that are looked at closely; the others share less with the claim than each of these."""

_MAX_WINDOW_SENTENCES = 3

_BEST_SENTENCES_KEPT = 5

_WINDOWS_KEPT = 16

Floats = NDArray[np.float64]

Ints = NDArray[np.int64]


_GAP = " \u2026 "
_HEAD_WORDS = 12
"""Of the best document's beginning: its title, or who it is about."""
_HEAD_CHARACTERS = 160
_SPACE = re.compile(r"\s+")
_SIGN = re.compile(r"[^\w\s]|_")
WORDS = 110
"""Of evidence for one claim: about 150 tokens."""
_LONGEST_PIECE = 240
"""Estimated tokens of a claim that are read at once; very few sentences have more."""
_LONGEST_PART = 160
"""Characters; a longer word is not a real word."""
_TOKENS_PER_WORD = 3
"""Prose has fewer: numbers and made-up words that have more take up the place of several."""
_LONGEST_READING = 1700
"""Characters: all that is read of a single overlong sentence."""
_NEARLY_ALL = 0.8


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


def match_statement(statement: ParsedClaim, index: EvidenceIndex) -> Match | None:
    """Search all documents for what they say of a statement."""
    places = [_places(item, index, statement) for item in statement.items]
    weights = np.array([item.weight for item in statement.items], dtype=np.float64)
    scores = np.zeros(len(index))
    for weight, (units, found) in zip(weights, places, strict=True):
        scores[units] += weight * found
    if not scores.any():
        return None
    count = min(_SENTENCES_EXAMINED, len(scores))
    top = np.argpartition(-scores, count - 1)[:count]
    top = top[scores[top] > 0]
    columns = _with_neighbours(top, len(index))
    found_per_item = _found_per_item(places, columns)
    ranked = [
        _ranked(found_per_item, columns, index.document_of, weights, size)
        for size in range(1, _MAX_WINDOW_SENTENCES + 1)
    ]
    best = [ranked[0][0]]
    for wider in ranked[1:]:
        # Of two windows that say as much, the shorter one.
        best.append(max((best[-1], *wider[:1]), key=lambda window: window.recall))
    return Match(
        weights=weights,
        best=tuple(best),
        sentences=tuple(ranked[0][:_BEST_SENTENCES_KEPT]),
        pool=tuple(ranked[0]),
        anywhere=np.array([found.max(initial=0.0) for _, found in places]),
    )


def _places(item: Item, index: EvidenceIndex, statement: ParsedClaim) -> tuple[Ints, Floats]:
    if item.quantity is not None:
        units = index.units_with_value(item.quantity, statement.quantities)
        return units, np.ones(len(units))
    likeness = np.zeros(len(index))
    for word, value in sorted(index.similar_stems(item.stem), key=itemgetter(1)):
        likeness[index.units_with(word)] = value
    units = np.flatnonzero(likeness)
    return units, likeness[units]


def _with_neighbours(top: Ints, units: int) -> Ints:
    reach = np.arange(1 - _MAX_WINDOW_SENTENCES, _MAX_WINDOW_SENTENCES)
    columns = np.unique(top[:, None] + reach[None, :])
    return columns[(columns >= 0) & (columns < units)]


def _found_per_item(places: list[tuple[Ints, Floats]], columns: Ints) -> Floats:
    found_per_item = np.zeros((len(places), len(columns)))
    for row, (units, found) in enumerate(places):
        if len(units):
            at = np.minimum(np.searchsorted(units, columns), len(units) - 1)
            hit = units[at] == columns
            found_per_item[row, hit] = found[at[hit]]
    return found_per_item


def _ranked(
    found_per_item: Floats, columns: Ints, document_of: Ints, weights: Floats, size: int
) -> list[Window]:
    """Return the best windows of exactly `size` sentences, best first."""
    starts = np.flatnonzero(
        (columns[size - 1 :] - columns[: len(columns) - size + 1] == size - 1)
        & (document_of[columns[size - 1 :]] == document_of[columns[: len(columns) - size + 1]])
    )
    if not len(starts):
        return []
    cover = np.max([found_per_item[:, starts + shift] for shift in range(size)], axis=0)
    recalls = weights @ cover / weights.sum()
    order = np.argsort(-recalls, kind="stable")[:_WINDOWS_KEPT]
    return [
        Window(int(columns[starts[i]]), int(columns[starts[i]]) + size - 1, cover[:, i], recall)
        for i, recall in zip(order.tolist(), recalls[order].tolist(), strict=True)
    ]


class EncoderInput(NamedTuple):
    """What is read for one claim."""

    units: tuple[int, ...]
    """The sentences, by their indices, in order."""
    pairs: tuple[Pair, ...]
    """One, or several for an overlong claim: all of it must be supported."""


def encoder_input(
    statement: ParsedClaim, match: Match, index: EvidenceIndex, *, words: int = WORDS
) -> EncoderInput:
    """Return what the encoder is to read for a claim.

    The question of the answer is not among it, unless the claim is too short without: what only
    the question says, the evidence need not support.
    """
    units = chosen_units(match, index, words=words)
    evidence = join_units(units, match, index)[:_LONGEST_READING]
    claim = _with_values_of_evidence(statement, units, index)
    return EncoderInput(tuple(units), tuple(Pair(evidence, piece) for piece in _pieces(claim)))


def _with_values_of_evidence(
    statement: ParsedClaim, units: Sequence[int], index: EvidenceIndex
) -> str:
    """Rewrite the values of a claim in the form in which the evidence gives them."""
    # The encoder cannot compare numbers: that 7 is fewer than 10 is worked out for it.
    claim = statement.text
    for quantity in sorted(statement.quantities, reverse=True):
        start, end = phrase_of(claim, quantity)
        given = _same_value_in_evidence(quantity, statement, units, index)
        if quantity.start >= statement.own_start and given:
            claim = claim[:start] + given + claim[end:]
    return claim


def _same_value_in_evidence(
    claimed: Quantity, statement: ParsedClaim, units: Sequence[int], index: EvidenceIndex
) -> str | None:
    """Return how the evidence puts a value of the claim; nothing if it uses the same words."""
    giving = set(index.units_with_value(claimed, statement.quantities).tolist())
    start, end = phrase_of(statement.text, claimed)
    value = re.compile(rf"(?<!\w){re.escape(statement.text[start:end])}(?!\w)", re.IGNORECASE)
    texts = [index.text(unit, unit) for unit in units if unit in giving]
    if any(map(value.search, texts)):
        return None
    for text in texts:
        for quantity in find_quantities(text):
            if quantity.kind == claimed.kind and same_quantity(claimed, quantity):
                first, last = phrase_of(text, quantity)
                return text[first:last]
    return None


def _pieces(claim: str) -> Iterator[str]:
    piece = ""
    for word in claim.split():
        for part in _cut(word):
            longer = f"{piece} {part}" if piece else part
            if piece and _tokens(longer) > _LONGEST_PIECE:
                yield piece
                longer = part
            piece = longer
    if piece:
        yield piece


def _cut(word: str) -> list[str]:
    if _tokens(word) <= _LONGEST_PIECE:
        return [word]
    # an unspaced script, or no words at all
    return [word[start : start + _LONGEST_PART] for start in range(0, len(word), _LONGEST_PART)]


def _tokens(text: str) -> int:
    """Estimate tokens on the high side; each sign, of which tables are full, is one."""
    return encoder_tokens(text) + len(_SIGN.findall(text))


def join_units(units: Sequence[int], match: Match, index: EvidenceIndex) -> str:
    """Put together what a claim is to be compared with."""
    return _GAP.join([*_head(units, match, index), *_runs(units, index)])


def chosen_units(match: Match, index: EvidenceIndex, *, words: int) -> list[int]:
    """Choose the sentences to read.

    Evidence may lie in several places and documents: the best sentence, those that say what is
    missing there, then the neighbours and the runners-up.
    """
    chosen: list[int] = []
    left = words
    for unit in dict.fromkeys(_most_useful_first(match)):
        size = _size(unit, index)
        if not chosen or size <= left:
            chosen.append(unit)
            left -= size
    return sorted(chosen)


def _size(unit: int, index: EvidenceIndex) -> int:
    words = int(index.first[unit + 1] - index.first[unit])
    return max(words, -(-_tokens(index.text(unit, unit)) // _TOKENS_PER_WORD))


def _most_useful_first(match: Match) -> Iterator[int]:
    """Yield sentences, the most useful first."""
    best, wide = match.best[0], match.best[-1]
    yield best.first
    covered = best.found
    rest = [window for window in match.pool if window.first != best.first]
    while rest:
        gains = [float(np.maximum(window.found - covered, 0) @ match.weights) for window in rest]
        most = int(np.argmax(gains))
        if gains[most] <= 0:
            break
        covered = np.maximum(covered, rest[most].found)
        yield rest.pop(most).first
    yield from range(wide.first, wide.last + 1)
    yield from (window.first for window in rest)


def _head(units: Sequence[int], match: Match, index: EvidenceIndex) -> list[str]:
    document = int(index.document_of[match.best[0].first])
    first = int(np.searchsorted(index.document_of, document))
    if first in units:
        return []
    return [" ".join(index.text(first, first).split()[:_HEAD_WORDS])[:_HEAD_CHARACTERS]]


def _runs(units: Sequence[int], index: EvidenceIndex) -> Iterator[str]:
    places = np.array(units)
    breaks = (np.diff(places) != 1) | (np.diff(index.document_of[places]) != 0)
    for run in np.split(places, np.flatnonzero(breaks) + 1):
        yield _SPACE.sub(" ", index.text(run[0], run[-1])).strip()


def signals(statement: ParsedClaim, match: Match, index: EvidenceIndex) -> dict[str, float]:
    """Measure how much of a statement the evidence says, as five shares of 0 to 1.

    Each is given once more above `_NEARLY_ALL`, so that a linear model sees that the last fifth
    counts for more.
    """
    own = np.array([item.own for item in statement.items])
    names = np.array([item.is_name for item in statement.items])
    numbers = np.array([item.quantity is not None for item in statement.items])
    recalls = {
        "window_recall": _recall(match.best[-1].found, own, match.weights),
        "recall": _recall(match.anywhere, own, match.weights),
        "word_recall": _word_recall(statement, match.best[-1], index),
        "name_recall": _recall(match.anywhere, names, match.weights),
        "number_recall": _recall(match.anywhere, numbers, match.weights),
    }
    return recalls | {f"{n}_full": max(0.0, value - _NEARLY_ALL) for n, value in recalls.items()}


def _recall(found: Floats, some: NDArray[np.bool_], weights: Floats) -> float:
    """Share of some items that is found; all of none."""
    return float(found[some] @ weights[some] / weights[some].sum()) if some.any() else 1.0


def _word_recall(statement: ParsedClaim, window: Window, index: EvidenceIndex) -> float:
    """Share of the claim's words, the small ones included, that a window says."""
    own = {word.stem for word in statement.words if word.start >= statement.own_start}
    evidence_words = set(index.stems_in(window.first, window.last).tolist())
    return sum(index.vocabulary.get(stem, -1) in evidence_words for stem in own) / max(len(own), 1)
