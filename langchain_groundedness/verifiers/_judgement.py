"""From one claim and the indexed evidence to a verdict; pure logic around the support model.

`examine` finds out all that can be known without the encoder, and names what the encoder should
read; `conclude` makes the verdict of both.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from langchain_core.documents import Document
from numpy.typing import NDArray

from langchain_groundedness.types import Citation, Claim, ClaimVerdict, VerificationTask
from langchain_groundedness.verifiers._contradictions import Difference
from langchain_groundedness.verifiers._encoder import Floats as Logits
from langchain_groundedness.verifiers._encoder import Pair
from langchain_groundedness.verifiers._findings import CLEAR, Finding, decides, find_difference
from langchain_groundedness.verifiers._index import EvidenceIndex
from langchain_groundedness.verifiers._language import reads_as_english
from langchain_groundedness.verifiers._reading import read_for
from langchain_groundedness.verifiers._signals import signals
from langchain_groundedness.verifiers._statement import Statement, read_statement
from langchain_groundedness.verifiers._support_model import SupportModel, read_logits
from langchain_groundedness.verifiers._windows import Match, Window, match_statement

__all__ = [
    "OTHER_LANGUAGE",
    "VERIFIER",
    "Case",
    "conclude",
    "examine",
    "own_words_found",
]

VERIFIER = "embedded"
OTHER_LANGUAGE = (
    "the embedded verifier reads English, and claim or documents are in another language: "
    "use a chat model (model=...) for them"
)
_ENOUGH = 0.95
"""Share of the widest window's recall from which a shorter window is cited instead."""
_HALF = 0.5
_LONGEST_CLAIM = 500
"""Words. No sentence is as long; comparing each of them with each would take too long."""

Floats = NDArray[np.float64]


class Case(NamedTuple):
    """One claim and all that was found out about it."""

    claim: Claim
    documents: Sequence[Document]
    evidence: EvidenceIndex
    statement: Statement
    match: Match
    finding: Finding | None
    signals: dict[str, float] | None
    """`None` where the documents say nothing of the claim's own words."""
    units: tuple[int, ...]
    """The sentences that are read for the claim, by their indices."""
    pairs: tuple[Pair, ...]
    """What the encoder should read of them; empty where its word would not count."""
    in_english: bool

    def cite(self, units: Iterable[int]) -> tuple[Citation, ...]:
        """Quote sentences, given by their indices."""
        places = dict.fromkeys(self.evidence.unit(unit) for unit in units)
        return tuple(Citation.from_document(self.documents, *place) for place in places)


def examine(claim: Claim, task: VerificationTask, index: EvidenceIndex) -> Case | ClaimVerdict:
    """Find out what the documents say of a claim.

    Args:
        claim: The claim.
        task: The task it is from: documents, and the question that a short answer is read with.
        index: The documents, indexed.

    Returns:
        The case, or the verdict where nothing is left to decide.
    """
    statement = read_statement(claim.text, task.question)
    if len(statement.words) > _LONGEST_CLAIM:
        reason = f"the claim has more than {_LONGEST_CLAIM:,} words, too many to be judged as one"
        return ClaimVerdict.unchecked(claim, reason, verifier=VERIFIER)
    match = match_statement(statement, index) if statement.items else None
    if match is None and not reads_as_english(claim.text):
        return ClaimVerdict.unchecked(claim, OTHER_LANGUAGE, verifier=VERIFIER)
    if match is None:
        chance = 0.0 if statement.items else None
        return _unverifiable(claim, chance, _silence(statement, match))
    measured = signals(statement, match, index) if own_words_found(statement, match) else None
    read = read_for(statement, match, index)
    in_english = all(reads_as_english(text) for pair in read.pairs for text in pair)
    return Case(
        claim=claim,
        documents=task.documents,
        evidence=index,
        statement=statement,
        match=match,
        finding=find_difference(statement, match, index),
        signals=measured,
        units=read.units,
        pairs=read.pairs if measured is not None and in_english else (),
        in_english=in_english,
    )


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


def conclude(
    case: Case, logits: Logits, model: SupportModel, *, threshold: float | None
) -> ClaimVerdict:
    """Judge a claim.

    Args:
        case: What is known of it.
        logits: What the encoder says, a row for each of `case.pairs`.
        model: The model that weighs signals and encoder.
        threshold: The probability from which it counts as supported; `None` for the model's own.

    Returns:
        The verdict.
    """
    if not case.in_english and not _is_quoted(case):
        return ClaimVerdict.unchecked(case.claim, OTHER_LANGUAGE, verifier=VERIFIER)
    reading = read_logits(logits)
    probability = 0.0 if case.signals is None else model.probability(case.signals, reading)
    if threshold is None:
        threshold = model.threshold_for(reading)
    finding = case.finding
    if case.statement.denies:
        return _judge_denial(case, probability, model, threshold)
    if finding is not None and decides(finding, case.statement, case.match):
        probability = min(probability, model.support_despite[finding.difference.kind])
    if probability >= threshold:
        return _supported(case, probability)
    if finding is not None:
        return _contradicted(case, probability, finding)
    if model.contradicts(reading):
        return _opposed(case, probability)
    return _unverifiable(case.claim, probability, _silence(case.statement, case.match))


def _supported(case: Case, probability: float) -> ClaimVerdict:
    window = next(w for w in case.match.best if w.recall >= _ENOUGH * case.match.best[-1].recall)
    elsewhere = _filling(window, case)
    cited = [
        *_sharing(window, case.statement, case.evidence),
        *(other.first for other in elsewhere),
    ]
    against = case.finding if case.finding and _conflicts(case.finding, cited) else None
    said = np.max([window.found, *(other.found for other in elsewhere)], axis=0)
    missing = _missing(case.statement, said)
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


def _filling(window: Window, case: Case) -> list[Window]:
    """Give the sentences that were read and say what a window leaves out of the claim."""
    filling: list[Window] = []
    said = window.found
    for other in case.match.pool:
        new = (other.found >= _HALF) & (said < _HALF)
        if new.any() and other.first in case.units:
            filling.append(other)
            said = np.maximum(said, other.found)
    return filling


def _conflicts(finding: Finding, cited: Sequence[int]) -> bool:
    sure = finding.difference.kind in ("quantity", "date") and (
        finding.difference.agreement >= CLEAR
    )
    return sure and finding.window.first not in cited


def _contradicted(case: Case, probability: float, finding: Finding) -> ClaimVerdict:
    return ClaimVerdict(
        claim=case.claim,
        verdict="contradicted",
        support_probability=probability,
        explanation=_wording(finding.difference),
        citations=case.cite([finding.window.first]),
        correction=finding.difference.evidence_value,
        verifier=VERIFIER,
    )


def _is_quoted(case: Case) -> bool:
    """Tell whether a sentence of the documents is the claim, word for word: in any language so."""
    unknown = -1
    claim = [case.evidence.vocabulary.get(word.stem, unknown) for word in case.statement.words]
    best = case.match.best[0]
    there: list[int] = case.evidence.stems_in(best.first, best.last).tolist()
    return there == claim


def _opposed(case: Case, probability: float) -> ClaimVerdict:
    return ClaimVerdict(
        claim=case.claim,
        verdict="contradicted",
        support_probability=probability,
        explanation="A passage about the same thing says otherwise.",
        citations=case.cite(_sharing(case.match.best[-1], case.statement, case.evidence)),
        verifier=VERIFIER,
    )


def _judge_denial(
    case: Case, probability: float, model: SupportModel, threshold: float
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
            unit in index.units_giving(item.quantity, statement.quantities)
            for item in statement.items
            if item.quantity
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
