"""From one claim and the indexed evidence to a verdict; pure logic around the support model.

`gather_evidence` finds everything that can be known without the encoder, and the pairs that the
encoder should read; `judge` makes the verdict from both. The threshold is in `model/signals.json`,
unless a calibration has another.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np
from langchain_core.documents import Document
from numpy.typing import NDArray

from langchain_groundedness.text.markdown import blocks
from langchain_groundedness.types import Citation, Claim, ClaimVerdict, VerificationTask
from langchain_groundedness.verification.embedded.contradictions import (
    Difference,
    differing_value,
    exchanged_values,
)
from langchain_groundedness.verification.embedded.ellipsis import clause_about
from langchain_groundedness.verification.embedded.encoder import Floats as Logits
from langchain_groundedness.verification.embedded.encoder import Pair
from langchain_groundedness.verification.embedded.expanded_documents import is_question
from langchain_groundedness.verification.embedded.index import EvidenceIndex
from langchain_groundedness.verification.embedded.language import reads_as_english
from langchain_groundedness.verification.embedded.statement import Item, ParsedClaim, read_statement
from langchain_groundedness.verification.embedded.support_model import (
    EncoderLogOdds,
    SupportModel,
    read_logits,
)
from langchain_groundedness.verification.embedded.windows import (
    Match,
    Window,
    encoder_input,
    match_statement,
    signals,
)

__all__ = [
    "OTHER_LANGUAGE",
    "SURE_CONTRADICTION",
    "VERIFIER",
    "ClaimEvidence",
    "find_difference",
    "gather_evidence",
    "judge",
    "overrides_model",
    "own_words_found",
]

VERIFIER = "embedded"

OTHER_LANGUAGE = (
    "the embedded verifier reads English, and the claim or the documents are in another language: "
    "use a chat model (model=...) for them"
)

_NEAR_BEST_RECALL = 0.95
"""Share of the widest window's recall from which a shorter window is cited instead."""

_HALF = 0.5

SURE_CONTRADICTION = 0.6
"""Probability from which the encoder alone calls a claim contradicted, so that it is corrected. Of
the claims held back from training that it calls so, 19 of 76 that people judged are supported after
all, and 42 of 426 others; from .7 on, it is 5 of 29 and 19 of 293."""

_CLOSE_TO_THRESHOLD = 0.05
"""Distance to the threshold that counts as close; probabilities are calibrated about as well."""

_LONGEST_CLAIM = 500
"""Words. No sentence is as long; comparing each of them with each would take too long."""

Floats = NDArray[np.float64]


CLEAR = 0.8
"""Agreement from which a differing value decides, whatever the other signals say."""
_RECALL_FOR_CLAUSES = 0.4
"""Share of a claim that a sentence must say for its clauses to be looked at one by one."""
_RECALL_MARGIN = 0.05
"""By how much more one sentence must say of a claim than another to count as saying more."""


class LocatedDifference(NamedTuple):
    """A difference, and the sentence it was found in."""

    difference: Difference
    window: Window
    alike: frozenset[int] = frozenset()
    """The sentences, by their first unit, that differ in the same value; if they also state the
    claim's value, of something else, that confirms nothing."""


class ClaimEvidence(NamedTuple):
    """One claim and everything the documents say about it."""

    claim: Claim
    documents: Sequence[Document]
    sources: EvidenceIndex
    statement: ParsedClaim
    match: Match
    finding: LocatedDifference | None
    signals: dict[str, float] | None
    """`None` where the documents say nothing of the claim's own words."""
    units: tuple[int, ...]
    """The sentences that are read for the claim, by their indices."""
    pairs: tuple[Pair, ...]
    """What the encoder should read of them; empty where its result would not count."""
    in_english: bool

    def cite(self, units: Iterable[int]) -> tuple[Citation, ...]:
        """Quote sentences, given by their indices; headings only if there is nothing else."""
        places = dict.fromkeys(map(self.sources.source, self._telling(units)))
        return tuple(Citation.from_document(self.documents, *place) for place in places)

    def replacement(self, units: Iterable[int]) -> str | None:
        """Return the first of some sentences with what leads to it, if it can replace another."""
        unit = self._telling(units)[0]
        document, start, end = self.sources.source(unit)
        block, *others = blocks(self.documents[document].page_content[start:end])
        text = self.sources.text(unit, unit).strip()
        states = not others and block.kind in ("prose", "item") and not is_question(text)
        return text if states else None

    def _telling(self, units: Iterable[int]) -> list[int]:
        given = list(units)
        return [unit for unit in given if not self.sources.is_heading(unit)] or given


def gather_evidence(
    claim: Claim, task: VerificationTask, index: EvidenceIndex
) -> ClaimEvidence | ClaimVerdict:
    """Find out what the documents say of a claim."""
    statement = read_statement(claim.text, task.question)
    if len(statement.words) > _LONGEST_CLAIM:
        reason = f"the claim has more than {_LONGEST_CLAIM:,} words, too many to be judged as one"
        return ClaimVerdict.unchecked(claim, reason, verifier=VERIFIER)
    match = match_statement(statement, index) if statement.items else None
    if match is None and not reads_as_english(claim.text):
        return ClaimVerdict.unchecked(claim, OTHER_LANGUAGE, verifier=VERIFIER)
    if match is None:
        chance = 0.0 if statement.items else None
        return _unverifiable(claim, chance, _why_unverifiable(statement, match))
    measured = signals(statement, match, index) if own_words_found(statement, match) else None
    read = encoder_input(statement, match, index)
    in_english = all(map(_in_english, read.pairs))
    return ClaimEvidence(
        claim=claim,
        documents=task.documents,
        sources=index,
        statement=statement,
        match=match,
        finding=find_difference(statement, match, index),
        signals=measured,
        units=read.units,
        pairs=read.pairs if measured is not None and in_english else (),
        in_english=in_english,
    )


def _in_english(pair: Pair) -> bool:
    """Return whether the encoder can read a pair; rows of names show a language only beside it."""
    return reads_as_english(pair.claim) and reads_as_english(f"{pair.evidence} {pair.claim}")


def own_words_found(statement: ParsedClaim, match: Match) -> bool:
    """Return whether the documents say anything of the claim itself, not just of its question."""
    return any(
        found > 0 for item, found in zip(statement.items, match.anywhere, strict=True) if item.own
    )


def judge(
    evidence: ClaimEvidence,
    logits: Logits,
    model: SupportModel,
    *,
    threshold: float | None = None,
    strict: bool = False,
) -> ClaimVerdict:
    """Judge a claim; one whose probability is close to the threshold says so."""
    if not evidence.in_english and not _is_quoted(evidence):
        return ClaimVerdict.unchecked(evidence.claim, OTHER_LANGUAGE, verifier=VERIFIER)
    reading = read_logits(logits)
    probability = 0.0 if evidence.signals is None else model.probability(evidence.signals, reading)
    if threshold is None:
        threshold = model.threshold_for(reading, strict=strict)
    verdict = _judge(evidence, reading, probability, model, threshold)
    p = verdict.support_probability
    if p is None or abs(p - threshold) > _CLOSE_TO_THRESHOLD:
        return verdict
    close = "Likely, but close" if verdict.verdict == "supported" else "This is close"
    close = f"{close}: the probability is {p:.2f}, the threshold {threshold:.2f}."
    return verdict.model_copy(update={"explanation": f"{verdict.explanation} {close}".strip()})


def _judge(
    evidence: ClaimEvidence,
    reading: EncoderLogOdds | None,
    probability: float,
    model: SupportModel,
    threshold: float,
) -> ClaimVerdict:
    finding = evidence.finding
    overridden = finding is not None and overrides_model(
        finding, evidence.statement, evidence.match
    )
    if evidence.statement.denies:
        denied = finding if overridden else None
        return _judge_denial(evidence, denied, probability, model, threshold)
    if finding is not None and overridden:
        probability = min(probability, model.support_despite[finding.difference.kind])
    if probability >= threshold:
        return _supported(evidence, probability)
    if finding is not None:
        cited = evidence.cite([finding.window.first])
        correction = finding.difference.evidence_value
        explanation = _wording(finding.difference)
        return _contradicted(evidence, probability, explanation, cited, correction)
    if (
        reading
        and (1 - probability) * model.contradiction_probability(reading) >= SURE_CONTRADICTION
    ):
        return _opposed(evidence, probability)
    return _unverifiable(
        evidence.claim, probability, _why_unverifiable(evidence.statement, evidence.match)
    )


def _supported(evidence: ClaimEvidence, probability: float) -> ClaimVerdict:
    window = next(
        w
        for w in evidence.match.best
        if w.recall >= _NEAR_BEST_RECALL * evidence.match.best[-1].recall
    )
    elsewhere = _complementary(window, evidence)
    units = _overlapping_units(window, evidence.statement, evidence.sources)
    cited = _decisive_first([*units, *(other.first for other in elsewhere)], evidence)
    against = evidence.finding if evidence.finding and _conflicts(evidence.finding, cited) else None
    found = np.max([window.found, *(other.found for other in elsewhere)], axis=0)
    missing = _missing(evidence.statement, found)
    explanation = f"Words not found there: {', '.join(missing)}." if missing else ""
    citations = evidence.cite(cited)
    if against:
        differing = f"Elsewhere the documents differ: {_wording(against.difference)}"
        explanation = f"{explanation} {differing}".strip()
        opposed = evidence.cite([against.window.first])  # apart: even a heading must be shown
        citations += tuple(each for each in opposed if each not in citations)
    return ClaimVerdict(
        claim=evidence.claim,
        verdict="supported",
        support_probability=probability,
        explanation=explanation,
        citations=citations,
        conflicting=against is not None,
        verifier=VERIFIER,
    )


def _complementary(window: Window, evidence: ClaimEvidence) -> list[Window]:
    """Return the sentences that were read and say what a window leaves out of the claim."""
    filling: list[Window] = []
    found = window.found
    for other in evidence.match.pool:
        new = (other.found >= _HALF) & (found < _HALF)
        if new.any() and other.first in evidence.units:
            filling.append(other)
            found = np.maximum(found, other.found)
    return filling


def _conflicts(finding: LocatedDifference, cited: Sequence[int]) -> bool:
    sure = finding.difference.kind in ("quantity", "date") and (
        finding.difference.agreement >= CLEAR
    )
    return sure and finding.window.first not in cited


def _contradicted(
    evidence: ClaimEvidence,
    probability: float,
    explanation: str,
    citations: tuple[Citation, ...],
    correction: str | None,
) -> ClaimVerdict:
    return ClaimVerdict(
        claim=evidence.claim,
        verdict="contradicted",
        support_probability=probability,
        explanation=explanation,
        citations=citations,
        correction=correction,
        verifier=VERIFIER,
    )


def _is_quoted(evidence: ClaimEvidence) -> bool:
    """Return whether a sentence of the documents is the claim, word for word, in any language."""
    unknown = -1
    claim = [
        evidence.sources.vocabulary.get(word.stem, unknown) for word in evidence.statement.words
    ]
    best = evidence.match.best[0]
    evidence_words: list[int] = evidence.sources.stems_in(best.first, best.last).tolist()
    return evidence_words == claim


def _decisive_first(units: list[int], evidence: ClaimEvidence) -> list[int]:
    """Sort sentences, given by their indices, by how much of the claim they say."""
    says = {each.first: each.recall for each in evidence.match.pool}
    return sorted(units, key=lambda unit: says.get(unit, 0.0), reverse=True)


def _opposed(evidence: ClaimEvidence, probability: float) -> ClaimVerdict:
    units = _overlapping_units(evidence.match.best[-1], evidence.statement, evidence.sources)
    claimed = {evidence.sources.vocabulary.get(word.stem) for word in evidence.statement.words}
    # What the claim says too does not contradict it.
    others = [u for u in units if not claimed.issuperset(evidence.sources.stems_in(u, u).tolist())]
    against = _decisive_first(others or units, evidence)
    none_to_insert = all(map(evidence.sources.is_heading, others))
    correction = None if none_to_insert else evidence.replacement(against)
    explanation = "A passage about the same thing says otherwise."
    return _contradicted(evidence, probability, explanation, evidence.cite(against), correction)


def _judge_denial(
    evidence: ClaimEvidence,
    denied: LocatedDifference | None,
    probability: float,
    model: SupportModel,
    threshold: float,
) -> ClaimVerdict:
    """Judge a bare "no": evidence that contradicts the question supports it, and vice versa."""
    # A difference that would not override the model does not count here either: a year beside
    # the one in the question denies nothing.
    if denied is not None:
        return ClaimVerdict(
            claim=evidence.claim,
            verdict="supported",
            support_probability=1 - model.support_despite[denied.difference.kind],
            explanation=f"What the question asks is denied. {_wording(denied.difference)}",
            citations=evidence.cite([denied.window.first]),
            verifier=VERIFIER,
        )
    if probability < threshold:
        return _unverifiable(evidence.claim, None, "No passage denies what the question asks.")
    units = [evidence.match.best[0].first]
    cited, correction = evidence.cite(units), evidence.replacement(units)
    explanation = "The documents affirm what the question asks."
    return _contradicted(evidence, 1 - probability, explanation, cited, correction)


def _unverifiable(claim: Claim, probability: float | None, explanation: str) -> ClaimVerdict:
    return ClaimVerdict(
        claim=claim,
        verdict="unverifiable",
        support_probability=probability,
        explanation=explanation,
        verifier=VERIFIER,
    )


def _overlapping_units(window: Window, statement: ParsedClaim, index: EvidenceIndex) -> list[int]:
    """Return the units of a window that share a word or a quantity with the statement."""
    stems = {index.vocabulary.get(item.stem) for item in statement.items}
    giving = {
        unit
        for quantity in statement.quantities
        for unit in index.units_with_value(quantity, statement.quantities).tolist()
    }
    sharing = [
        unit
        for unit in range(window.first, window.last + 1)
        if unit in giving or stems & set(index.stems_in(unit, unit).tolist())
    ]
    return sharing or [window.first]


def _wording(difference: Difference) -> str:
    if difference.kind == "polarity":
        return "The documents say the opposite."
    return (
        f"The documents say {difference.evidence_value}, the claim says {difference.claim_value}."
    )


def _why_unverifiable(statement: ParsedClaim, match: Match | None) -> str:
    if not statement.items:
        return "The claim contains nothing to search for."
    missing = _missing(statement, match.best[-1].found if match else None)
    if missing:
        return f"No passage mentions {' or '.join(missing)}."
    return "The words of the claim are in the documents, but no passage says this."


def _missing(statement: ParsedClaim, found: Floats | None) -> list[str]:
    """Quote what was not found; neighbouring words make one phrase."""

    def is_missing(numbered: tuple[int, Item]) -> bool:
        number, item = numbered
        return item.own and (found is None or bool(found[number] < _HALF))

    phrases = []
    for missing, run in groupby(enumerate(statement.items), key=is_missing):
        places = [statement.place(item) for _, item in run]
        if missing:
            phrases.append(statement.text[places[0].start : max(place.end for place in places)])
    return [f"“{phrase}”" if '"' in phrase else f'"{phrase}"' for phrase in dict.fromkeys(phrases)]


def find_difference(
    statement: ParsedClaim, match: Match, index: EvidenceIndex
) -> LocatedDifference | None:
    """Find the sentence that differs from the statement most clearly; a question states nothing."""
    texts = [index.text(window.first, window.last) for window in match.sentences]
    texts = ["" if is_question(text) else text for text in texts]
    exchange = exchanged_values(statement.text, texts)
    if exchange is not None and exchange[1].claim_start >= statement.own_start:
        return LocatedDifference(exchange[1], match.sentences[exchange[0]])
    found = [
        LocatedDifference(difference, window)
        for window, text in zip(match.sentences, texts, strict=True)
        if (difference := _differing(statement.text, text, window))
        and (difference.kind == "polarity" or difference.claim_start >= statement.own_start)
    ]
    clearest = max(found, key=_clarity, default=None)
    if clearest is None:
        return None
    start = clearest.difference.claim_start
    alike = (each.window.first for each in found if each.difference.claim_start == start)
    return clearest._replace(alike=frozenset(alike))


def _clarity(finding: LocatedDifference) -> tuple[float, int]:
    """Rank a difference; of two as clear, the later value is what is said of the earlier one."""
    return finding.difference.agreement, finding.difference.claim_start


def _differing(claim: str, sentence: str, window: Window) -> Difference | None:
    """Compare a claim with a sentence, or with the clause of it that is about the same thing."""
    clause = clause_about(claim, sentence) if window.recall >= _RECALL_FOR_CLAUSES else None
    if clause is None:
        return differing_value(claim, sentence)
    difference = differing_value(claim, clause)
    if difference is None or difference.kind != "polarity":
        return difference
    return difference._replace(
        evidence_value=sentence, evidence_start=0, evidence_end=len(sentence)
    )


def overrides_model(finding: LocatedDifference, statement: ParsedClaim, match: Match) -> bool:
    """Return whether a difference outweighs the model."""
    difference = finding.difference
    if difference.kind == "exchange":
        return True
    if difference.agreement < CLEAR:
        return False
    if difference.kind == "polarity":
        return finding.window == match.sentences[0]
    starts = np.array([statement.place(item).start for item in statement.items])
    value = (difference.claim_start <= starts) & (starts < difference.claim_end)
    elsewhere = [
        _recall_without_value(window, value, match)
        for window in match.pool
        if window.first not in finding.alike and (window.found[value] > _HALF).any()
    ]
    here = _recall_without_value(finding.window, value, match)
    more = max(elsewhere, default=0.0) + _RECALL_MARGIN < here
    return more and (difference.parallel or not elsewhere)


def _recall_without_value(window: Window, value: NDArray[np.bool_], match: Match) -> float:
    """Share of what a claim says besides a value that a window says too; 1 if it is only that."""
    weights = match.weights[~value]
    return float(window.found[~value] @ weights / weights.sum()) if weights.any() else 1.0
