"""Signals: numbers that say how well the best evidence windows cover a claim."""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from rapidfuzz import fuzz
from rapidfuzz.distance import LCSseq

from langchain_groundedness.verifiers._index import EvidenceIndex
from langchain_groundedness.verifiers._polarity import polarity_signals
from langchain_groundedness.verifiers._statement import Statement
from langchain_groundedness.verifiers._windows import Match, Window

__all__ = ["signals"]

_HALF = 0.5
_NEARLY_ALL = 0.8
_CONTEXT_SHARE = 0.8

Floats = NDArray[np.float64]


def signals(statement: Statement, match: Match, index: EvidenceIndex) -> dict[str, float]:
    """Measure how well the evidence covers a statement.

    Args:
        statement: The statement.
        match: Its best windows.
        index: The documents they are from.

    Returns:
        The signals by name, in an order that never changes.
    """
    one, two, three = match.best
    weights = match.weights
    own = np.array([item.own for item in statement.items])
    in_context = np.maximum(three.found, _CONTEXT_SHARE * match.context)
    coverage = {
        "recall_1": one.recall,
        "recall_2": two.recall,
        "recall_3": three.recall,
        "recall_all": _share(match.anywhere, weights),
        "recall_context": _share(in_context, weights),
        "recall_greedy_3": _greedy(match),
        "exact_3": _share(three.found >= 1, weights),
        "exact_all": _share(match.anywhere >= 1, weights),
        "own_3": _share(three.found[own], weights[own]) if own.any() else three.recall,
        "own_all": _share(match.anywhere[own], weights[own]) if own.any() else three.recall,
        **_all_words(statement, three, index),
        **_news(statement, match, in_context),
        "missing_most": float(((1 - in_context) * weights).max()),
        "missing_most_all": float(((1 - match.anywhere) * weights).max()),
        **_kinds(statement, match),
        **_order(statement, match.best, index),
    }
    polarity = polarity_signals(statement, index.text(two.first, two.last))
    return coverage | _bends(coverage) | polarity


def _bends(coverage: dict[str, float]) -> dict[str, float]:
    """Let a linear model see that the last fifth of a recall, and the first gap, count for more."""
    return {
        f"{name}_any" if "missing" in name else f"{name}_full": (
            min(value, 1.0) if "missing" in name else max(0.0, value - _NEARLY_ALL)
        )
        for name, value in coverage.items()
    }


def _share(found: Floats | NDArray[np.bool_], weights: Floats) -> float:
    return float(found @ weights / max(float(weights.sum()), 1e-9))


def _all_words(statement: Statement, window: Window, index: EvidenceIndex) -> dict[str, float]:
    """Recall of all words, the small ones included, each counting the same."""
    own = {w.stem for w in statement.words if w.start >= statement.own_start}
    ids = {index.vocabulary.get(stem, -1) for stem in own}
    there = set(index.stems_in(window.first, window.last).tolist())
    known = sum(stem in index.vocabulary for stem in own)
    return {
        "words_3": len(ids & there) / max(len(own), 1),
        "words_all": known / max(len(own), 1),
    }


def _news(statement: Statement, match: Match, in_context: Floats) -> dict[str, float]:
    """Recall of what the claim says beyond its question."""
    news = np.array([item.own and not item.asked for item in statement.items])
    if not news.any():
        news = np.ones(len(news), dtype=bool)
    weights = match.weights[news]
    return {
        "news_3": _share(in_context[news], weights),
        "news_all": _share(match.anywhere[news], weights),
        "news_missing": float(((1 - match.anywhere[news]) * weights).sum()),
    }


def _greedy(match: Match) -> float:
    """Recall of the best three sentences, wherever they stand."""
    covered = match.best[0].found
    for _ in range(2):
        options = [np.maximum(covered, window.found) for window in match.pool]
        covered = max(options, key=lambda found: float(found @ match.weights))
    return _share(covered, match.weights)


def _kinds(statement: Statement, match: Match) -> dict[str, float]:
    names = np.array([item.is_name for item in statement.items])
    numbers = np.array([item.quantity is not None for item in statement.items])
    three = match.best[2].found
    in_context = np.maximum(three, match.context)
    result: dict[str, float] = {}
    for label, mask in (("name", names), ("number", numbers)):
        some = bool(mask.any())
        weights = match.weights[mask]
        result |= {
            f"{label}_recall": _share(three[mask], weights) if some else 1.0,
            f"{label}_recall_all": _share(match.anywhere[mask], weights) if some else 1.0,
            f"{label}_missing": float((in_context[mask] < _HALF).sum()),
            f"{label}_missing_all": float((match.anywhere[mask] < _HALF).sum()),
        }
    return result


def _order(
    statement: Statement, best: tuple[Window, ...], index: EvidenceIndex
) -> dict[str, float]:
    ids = [index.vocabulary.get(w.stem, -1 - i) for i, w in enumerate(statement.words)]
    lcs = pairs = triples = near = likeness = 0.0
    text = statement.text.lower()
    content = [ids[i.position] for i in statement.items if i.quantity is None]
    for window in dict.fromkeys((w.first, w.last) for w in best):
        there = index.stems_in(*window).tolist()
        lcs = max(lcs, LCSseq.similarity(ids, there) / max(len(ids), 1))
        pairs = max(pairs, _runs_shared(ids, there, 2))
        triples = max(triples, _runs_shared(ids, there, 3))
        near = max(near, _pairs_near(content, there))
        likeness = max(likeness, fuzz.partial_ratio(text, index.text(*window).lower()[:2000]) / 100)
    return {"lcs": lcs, "pairs": pairs, "triples": triples, "near": near, "likeness": likeness}


def _runs_shared(claim: list[int], evidence: list[int], length: int) -> float:
    mine = list(zip(*(claim[i:] for i in range(length)), strict=False))
    theirs = set(zip(*(evidence[i:] for i in range(length)), strict=False))
    return sum(run in theirs for run in mine) / len(mine) if mine else 0.0


def _pairs_near(content: list[int], evidence: list[int]) -> float:
    """Share of the claim's neighbouring content words that are at most five words apart."""
    reach = 5
    places: dict[int, list[int]] = {}
    for place, word in enumerate(evidence):
        places.setdefault(word, []).append(place)
    mine = list(pairwise(content))
    close = sum(
        any(abs(i - j) <= reach for i in places.get(a, ()) for j in places.get(b, ()))
        for a, b in mine
    )
    return close / len(mine) if mine else 0.0
