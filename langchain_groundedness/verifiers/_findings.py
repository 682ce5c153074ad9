"""Differences between a claim and the sentences that speak about it, and which of them decide."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from langchain_groundedness.verifiers._contradictions import Difference, differing_value
from langchain_groundedness.verifiers._denial import refers_back
from langchain_groundedness.verifiers._ellipsis import clause_about
from langchain_groundedness.verifiers._exchange import exchanged_values
from langchain_groundedness.verifiers._index import EvidenceIndex
from langchain_groundedness.verifiers._polarity import find_extents
from langchain_groundedness.verifiers._statement import Item, Statement
from langchain_groundedness.verifiers._windows import Match, Window
from langchain_groundedness.words import find_words

__all__ = ["CLEAR", "Finding", "decides", "find_difference"]

CLEAR = 0.8
"""Agreement from which a differing value decides, whatever the rest of the signals say."""
_HALF = 0.5
_SAYS_MUCH = 0.4
"""Share of a claim that a sentence must say for its clauses to be looked at one by one."""
_FARTHEST_BACK = 3
"""Sentences in which what a pronoun stands for is looked for."""
_MARGIN = 0.05
"""By how much more one sentence must say of a claim than another to count as saying more."""


class Finding(NamedTuple):
    """A difference, and the sentence it was found in."""

    difference: Difference
    window: Window
    alike: frozenset[int] = frozenset()
    """The sentences, by their first unit, that differ in the same value; that they say it as well,
    of something else, bears nothing out."""


def find_difference(statement: Statement, match: Match, index: EvidenceIndex) -> Finding | None:
    """Find the sentence that differs from the statement most clearly.

    Args:
        statement: The statement.
        match: Its windows.
        index: The documents.

    Returns:
        The clearest difference in the claim's own words, or `None`.
    """
    texts = [index.text(window.first, window.last) for window in match.sentences]
    exchange = exchanged_values(statement.text, texts)
    if exchange is not None and exchange[1].claim_start >= statement.own_start:
        return Finding(exchange[1], match.sentences[exchange[0]])
    found = [
        Finding(difference, window)
        for window, text in zip(match.sentences, texts, strict=True)
        if (difference := _differing(statement.text, text, window, index))
        and (difference.kind == "polarity" or difference.claim_start >= statement.own_start)
        and not (difference.kind == "extent" and _says_extent(statement, difference, texts))
    ]
    clearest = max(found, key=lambda finding: finding.difference.agreement, default=None)
    if clearest is None:
        return None
    start = clearest.difference.claim_start
    alike = (each.window.first for each in found if each.difference.claim_start == start)
    return clearest._replace(alike=frozenset(alike))


def _differing(
    claim: str, sentence: str, window: Window, index: EvidenceIndex
) -> Difference | None:
    """Compare a claim with a sentence, or with that clause of it which is about the same thing."""
    before = _before(window, index) if refers_back(sentence) else ""
    clause = clause_about(claim, sentence) if window.recall >= _SAYS_MUCH else None
    if clause is None:
        return differing_value(claim, sentence, before=before)
    difference = differing_value(claim, clause, before=before)
    if difference is None or difference.kind != "polarity":
        return difference
    return difference._replace(
        evidence_value=sentence, evidence_start=0, evidence_end=len(sentence)
    )


def _before(window: Window, index: EvidenceIndex) -> str:
    """Give the sentence before a window; if it refers back in turn, with those that it leans on."""
    document = index.document_of[window.first]
    first = window.first
    while (
        first > max(0, window.first - _FARTHEST_BACK) and index.document_of[first - 1] == document
    ):
        first -= 1
        if not refers_back(index.text(first, first)):
            break
    return index.text(first, window.first - 1) if first < window.first else ""


def _says_extent(statement: Statement, difference: Difference, texts: Sequence[str]) -> bool:
    """Tell whether any sentence gives the claim's own extent: "all members"."""
    mine = next(e for e in find_extents(statement.words) if e.start == difference.claim_start)
    return any(
        (each.degree, each.of) == (mine.degree, mine.of)
        for text in texts
        for each in find_extents(find_words(text))
    )


def decides(finding: Finding, statement: Statement, match: Match) -> bool:
    """Tell whether a difference outweighs the model.

    Args:
        finding: The difference.
        statement: The statement.
        match: Its windows.

    Returns:
        True if the best sentence of all says the opposite, if one says the claim with two values
        exchanged, or if the sentence says nearly all the
        rest of the claim, with another value, and the claim's own value is nowhere, or, where the
        sentence makes the same statement and no other, in no sentence that says the rest as well.
    """
    difference = finding.difference
    if difference.kind == "exchange":
        return True
    if difference.agreement < CLEAR:
        return False
    if difference.kind in ("extent", "polarity"):
        return finding.window == match.sentences[0]
    value = np.array([_inside(difference, item, statement) for item in statement.items])
    if not (match.anywhere[value] > _HALF).any():
        return True
    giving = [w for w in match.pool if (w.found[value] > _HALF).any()]
    others = [w for w in giving if w.first not in finding.alike]
    if giving and not others:
        return True
    said = max((_rest(w, value, match) for w in others), default=0.0)
    return difference.parallel and said + _MARGIN < _rest(finding.window, value, match)


def _inside(difference: Difference, item: Item, statement: Statement) -> bool:
    start = item.quantity.start if item.quantity else statement.words[item.position].start
    return difference.claim_start <= start < difference.claim_end


def _rest(window: Window, value: NDArray[np.bool_], match: Match) -> float:
    """Share of what the claim says besides a value that a window says."""
    return float(window.found[~value] @ match.weights[~value]) / max(
        float(match.weights[~value].sum()), 1e-9
    )
