"""From one claim and the indexed evidence to a verdict; pure logic around the support model."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from langchain_core.documents import Document
from numpy.typing import NDArray

from langchain_groundedness.types import Citation, Claim, ClaimVerdict, VerificationTask
from langchain_groundedness.verifiers._contradictions import Difference, differing_value
from langchain_groundedness.verifiers._exchange import exchanged_values
from langchain_groundedness.verifiers._index import EvidenceIndex
from langchain_groundedness.verifiers._polarity import find_extents
from langchain_groundedness.verifiers._signals import signals
from langchain_groundedness.verifiers._statement import Item, Statement, read_statement
from langchain_groundedness.verifiers._support_model import SupportModel
from langchain_groundedness.verifiers._windows import Match, Window, match_statement
from langchain_groundedness.words import find_words

__all__ = ["VERIFIER", "Finding", "decides", "find_difference", "judge", "own_words_found"]

VERIFIER = "embedded"
_CLEAR = 0.8
"""Agreement from which a differing value decides, whatever the rest of the signals say."""
_ENOUGH = 0.95
"""Share of the widest window's recall from which a shorter window is cited instead."""
_HALF = 0.5
_MARGIN = 0.05
"""By how much more one sentence must say of a claim than another to count as saying more."""
_LONGEST_CLAIM = 500
"""Words. No sentence is as long; comparing each of them with each would take too long."""

Floats = NDArray[np.float64]


class Finding(NamedTuple):
    """A difference, and the sentence it was found in."""

    difference: Difference
    window: Window


class _Case(NamedTuple):
    """One claim and all that was found out about it."""

    claim: Claim
    documents: Sequence[Document]
    evidence: EvidenceIndex
    statement: Statement
    match: Match
    finding: Finding | None

    def cite(self, units: Iterable[int]) -> tuple[Citation, ...]:
        places = dict.fromkeys(self.evidence.units[unit] for unit in units)
        return tuple(Citation.from_document(self.documents, *place) for place in places)


def judge(
    claim: Claim,
    task: VerificationTask,
    index: EvidenceIndex,
    model: SupportModel,
    *,
    threshold: float,
) -> ClaimVerdict:
    """Judge one claim.

    Args:
        claim: The claim.
        task: The task it is from: documents, and the question that a short answer is read with.
        index: The documents, indexed.
        model: The model.
        threshold: The probability from which a claim counts as supported.

    Returns:
        The verdict.
    """
    statement = read_statement(claim.text, task.question)
    if len(statement.words) > _LONGEST_CLAIM:
        reason = f"the claim has more than {_LONGEST_CLAIM:,} words, too many to be judged as one"
        return ClaimVerdict.unchecked(claim, reason, verifier=VERIFIER)
    match = match_statement(statement, index) if statement.items else None
    if match is None:
        chance = 0.0 if statement.items else None
        return _unverifiable(claim, chance, _silence(statement, match))
    finding = find_difference(statement, match, index)
    case = _Case(claim, task.documents, index, statement, match, finding)
    probability = (
        model.probability(signals(statement, match, index))
        if own_words_found(statement, match)
        else 0.0
    )
    if statement.denies:
        return _judge_denial(case, probability, model, threshold)
    if finding is not None and decides(finding, statement, match):
        probability = min(probability, model.support_despite[finding.difference.kind])
    if probability >= threshold:
        return _supported(case, probability)
    if finding is not None:
        return _contradicted(case, probability, finding)
    return _unverifiable(claim, probability, _silence(statement, match))


def own_words_found(statement: Statement, match: Match) -> bool:
    """Tell whether the documents say anything of the claim itself, not just of its question.

    Args:
        statement: The claim, perhaps read with its question.
        match: What the documents say of it.

    Returns:
        True if any word or quantity of the claim is in the documents.
    """
    return any(
        found > 0 for item, found in zip(statement.items, match.anywhere, strict=True) if item.own
    )


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
        if (difference := differing_value(statement.text, text))
        and (difference.kind == "polarity" or difference.claim_start >= statement.own_start)
        and not (difference.kind == "extent" and _says_extent(statement, difference, texts))
    ]
    return max(found, key=lambda finding: finding.difference.agreement, default=None)


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
    if difference.agreement < _CLEAR:
        return False
    if difference.kind in ("extent", "polarity"):
        return finding.window == match.sentences[0]
    value = np.array([_inside(difference, item, statement) for item in statement.items])
    if not (match.anywhere[value] > _HALF).any():
        return True
    said = max(
        (_rest(w, value, match) for w in match.pool if (w.found[value] > _HALF).any()), default=0.0
    )
    return difference.parallel and said + _MARGIN < _rest(finding.window, value, match)


def _inside(difference: Difference, item: Item, statement: Statement) -> bool:
    start = item.quantity.start if item.quantity else statement.words[item.position].start
    return difference.claim_start <= start < difference.claim_end


def _rest(window: Window, value: NDArray[np.bool_], match: Match) -> float:
    """Share of what the claim says besides a value that a window says."""
    return float(window.found[~value] @ match.weights[~value]) / max(
        float(match.weights[~value].sum()), 1e-9
    )


def _supported(case: _Case, probability: float) -> ClaimVerdict:
    window = next(w for w in case.match.best if w.recall >= _ENOUGH * case.match.best[-1].recall)
    cited = _sharing(window, case.statement, case.evidence)
    against = case.finding if case.finding and _conflicts(case.finding, window) else None
    missing = _missing(case.statement, window.found)
    explanation = "The documents say this."
    if missing:
        explanation = f"The documents say this, though not in these words: {', '.join(missing)}."
    if against:
        explanation += f" Elsewhere they differ: {_wording(against.difference)}"
        cited = [*cited, against.window.first]
    return ClaimVerdict(
        claim=case.claim,
        verdict="supported",
        support_probability=probability,
        explanation=explanation,
        citations=case.cite(cited),
        conflicting=against is not None,
        verifier=VERIFIER,
    )


def _conflicts(finding: Finding, window: Window) -> bool:
    sure = finding.difference.kind in ("quantity", "date") and (
        finding.difference.agreement >= _CLEAR
    )
    return sure and not window.first <= finding.window.first <= window.last


def _contradicted(case: _Case, probability: float, finding: Finding) -> ClaimVerdict:
    return ClaimVerdict(
        claim=case.claim,
        verdict="contradicted",
        support_probability=probability,
        explanation=_wording(finding.difference),
        citations=case.cite([finding.window.first]),
        correction=finding.difference.evidence_value,
        verifier=VERIFIER,
    )


def _judge_denial(
    case: _Case, probability: float, model: SupportModel, threshold: float
) -> ClaimVerdict:
    """Judge a bare "no": supported by what contradicts the question, and the other way round.

    A difference that would not outweigh the model is none here either: another year beside the
    one that was asked for denies nothing.
    """
    if case.finding is not None and decides(case.finding, case.statement, case.match):
        difference = case.finding.difference
        return ClaimVerdict(
            claim=case.claim,
            verdict="supported",
            support_probability=1 - model.support_despite[difference.kind],
            explanation=f"What the question asks is denied. {_wording(difference)}",
            citations=case.cite([case.finding.window.first]),
            verifier=VERIFIER,
        )
    if probability < threshold:
        return _unverifiable(case.claim, None, "No passage denies what the question asks.")
    cited = case.cite([case.match.best[0].first])
    return ClaimVerdict(
        claim=case.claim,
        verdict="contradicted",
        support_probability=1 - probability,
        explanation="The documents affirm what the question asks.",
        citations=cited,
        correction=cited[0].quote,
        verifier=VERIFIER,
    )


def _unverifiable(claim: Claim, probability: float | None, explanation: str) -> ClaimVerdict:
    return ClaimVerdict(
        claim=claim,
        verdict="unverifiable",
        support_probability=probability,
        explanation=explanation,
        verifier=VERIFIER,
    )


def _sharing(window: Window, statement: Statement, index: EvidenceIndex) -> list[int]:
    """Give the units of a window that share a word or a quantity with the statement."""
    stems = {index.vocabulary.get(item.stem) for item in statement.items}
    sharing = [
        unit
        for unit in range(window.first, window.last + 1)
        if stems & set(index.stems_in(unit, unit).tolist())
        or any(
            unit in index.units_giving(item.quantity) for item in statement.items if item.quantity
        )
    ]
    return sharing or [window.first]


def _wording(difference: Difference) -> str:
    if difference.kind == "polarity":
        return "The documents say the opposite."
    return (
        f"The documents say {difference.evidence_value}, the claim says {difference.claim_value}."
    )


def _silence(statement: Statement, match: Match | None) -> str:
    if not statement.items:
        return "The claim says nothing that could be looked for."
    missing = _missing(statement, match.best[-1].found if match else None)
    if missing:
        return f"No passage speaks about: {', '.join(missing)}."
    return "The words of the claim are in the documents, but no passage says this."


def _missing(statement: Statement, found: Floats | None) -> list[str]:
    """Name what was not found; neighbouring words make one phrase."""
    spans: list[tuple[int, int]] = []
    before_was_missing = False
    for number, item in enumerate(statement.items):
        missing = item.own and (found is None or found[number] < _HALF)
        if missing:
            word = statement.words[item.position]
            start = item.quantity.start if item.quantity else word.start
            end = item.quantity.end if item.quantity else word.end
            if before_was_missing:
                spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
            else:
                spans.append((start, end))
        before_was_missing = missing
    return list(dict.fromkeys(statement.text[start:end] for start, end in spans))
