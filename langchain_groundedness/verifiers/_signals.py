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

_WORST_RUN = 4
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
    local = weights * (1 - np.minimum(match.spread, 0.9))
    greedy2, greedy3 = _greedy(match)
    coverage = {
        "recall_1": one.recall,
        "recall_2": two.recall,
        "recall_3": three.recall,
        "recall_all": _share(match.anywhere, weights),
        "recall_context": _share(in_context, weights),
        "recall_context_1": _share(np.maximum(one.found, _CONTEXT_SHARE * match.context), weights),
        "recall_greedy_2": greedy2,
        "recall_greedy_3": greedy3,
        "exact_1": _share(one.found >= 1, weights),
        "exact_3": _share(three.found >= 1, weights),
        "exact_all": _share(match.anywhere >= 1, weights),
        "count_1": float((one.found > _HALF).mean()),
        "count_3": float((three.found > _HALF).mean()),
        "local_1": _share(one.found, local),
        "local_3": _share(three.found, local),
        "own_3": _share(three.found[own], weights[own]) if own.any() else three.recall,
        "own_all": _share(match.anywhere[own], weights[own]) if own.any() else three.recall,
        **_news(statement, match, in_context),
        "together": _together(match, own),
        "missing_sum": float(((1 - in_context) * weights).sum()),
        "missing_sum_all": float(((1 - match.anywhere) * weights).sum()),
        "missing_most": float(((1 - in_context) * weights).max()),
        "missing_most_all": float(((1 - match.anywhere) * weights).max()),
        "missing_count": float((in_context < _HALF).sum()),
        "missing_count_all": float((match.anywhere < _HALF).sum()),
        "worst_run": _worst_run(in_context, weights),
        "worst_run_all": _worst_run(match.anywhere, weights),
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


def _together(match: Match, own: NDArray[np.bool_]) -> float:
    """Recall of the best sentence in what the claim itself says and in what its question says."""
    if own.all() or not own.any():
        return match.best[0].recall
    return max(
        min(
            _share(window.found[own], match.weights[own]),
            _share(window.found[~own], match.weights[~own]),
        )
        for window in match.pool
    )


def _greedy(match: Match) -> tuple[float, float]:
    """Recall of the best two and three sentences, wherever they stand."""
    covered = match.best[0].found
    recalls = []
    for _ in range(2):
        options = [np.maximum(covered, window.found) for window in match.pool]
        covered = max(options, key=lambda found: float(found @ match.weights))
        recalls.append(_share(covered, match.weights))
    return recalls[0], recalls[1]


def _worst_run(found: Floats, weights: Floats) -> float:
    """The least recall of any four neighbouring items: one invented phrase is enough."""
    if len(found) <= _WORST_RUN:
        return _share(found, weights)
    kernel = np.ones(_WORST_RUN)
    covered = np.convolve(found * weights, kernel, "valid")
    return float((covered / np.convolve(weights, kernel, "valid")).min())


def _kinds(statement: Statement, match: Match) -> dict[str, float]:
    names = np.array([item.is_name for item in statement.items])
    numbers = np.array([item.quantity is not None for item in statement.items])
    plain = ~(names | numbers)
    three = match.best[2].found
    in_context = np.maximum(three, match.context)
    result: dict[str, float] = {}
    for label, mask in (("name", names), ("number", numbers), ("plain", plain)):
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
