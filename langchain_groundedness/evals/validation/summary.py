"""Summary of a validation, and a sweep over other thresholds."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, TypeAlias

from langchain_groundedness.calibration.labelled_data import read_label
from langchain_groundedness.evals.judged import QUALITY_DIMENSIONS
from langchain_groundedness.evals.statistics import (
    Estimate,
    LabelAgreement,
    estimate_mean,
    label_agreement,
)
from langchain_groundedness.evals.validation.validator import (
    SOURCE,
    Bands,
    Outcome,
    ReasonCode,
    RowValidation,
    SourceClaim,
    Thresholds,
    ValidatedRow,
)
from langchain_groundedness.evals.values import BadRow, add_usage
from langchain_groundedness.types import FrozenModel, Usage, VerdictLabel

__all__ = [
    "NAMES",
    "REASONS",
    "SweepLine",
    "ValidationSummary",
    "replay",
    "summarize_rows",
]

REASONS: dict[ReasonCode, str] = {
    "contradicted": "the documents contradict a claim",
    "source": "too few claims are supported",
    "minimum": "a score is below its minimum",
    "composite": "the composite score is too low",
    "no_answer": "no answer",
    "no_documents": "no documents",
    "no_claims": "no claim to check",
    "not_cited": "the cited documents are missing",
    "claims_unchecked": "a claim could not be checked",
    "quality_unchecked": "the quality could not be judged",
    "failed": "the validation failed",
}
NAMES = {
    "composite": "composite score",
    SOURCE: "supported claims",
    "pass_score": "--pass-score",
    "min_source": "--min-source",
    "accept": "--accept",
    "reject": "--reject",
}
"""Scores and options, for a reader; other scores keep their names."""

_HALF = 0.5
_STEPS = tuple(step / 20 for step in range(1, 20))

ThresholdName = Literal["pass_score", "min_source", "accept", "reject"]


class SweepLine(FrozenModel):
    """What one threshold would have done, all others as they are."""

    option: ThresholdName
    value: float
    is_current: bool
    """Whether this is the value in force."""
    passed: int
    rejected: int
    unchecked: int
    unknown: int
    """Rows that would have to be judged again to tell."""
    pass_rate: float | None
    """Of all rows; `None` without rows, and too low by what is unknown."""
    precision: float | None = None
    """Of the labelled rows that pass, the share that is right; `None` without any."""
    recall: float | None = None
    """Of the labelled rows that are right, the share that passes."""


class ValidationSummary(FrozenModel):
    """Outcome counts of a validated data set."""

    total: int
    """Rows in both files, of this run and of the earlier runs that it resumes."""
    passed: int
    rejected: int
    unchecked: int
    """Rows that could not be checked; they are among the rejected ones."""
    pass_rate: float | None
    """Share of all rows that passed; `None` without rows."""
    scores: dict[str, Estimate]
    """The mean of each score over the rows that have it, and of `composite`."""
    reasons: dict[ReasonCode, int]
    """How many rows did not pass, by reason, the most frequent first; a row may have several."""
    bad_rows: tuple[BadRow, ...] = ()
    """Rows that could not be read; they are in neither file."""
    resumed: int = 0
    """Rows that were in the files already, and were not validated again."""
    elsewhere: int = 0
    """Rows in the files that are not in the data set."""
    complete: bool
    """False if rows are left to be validated."""
    notes: tuple[str, ...] = ()
    """What else to know, such as that there was no second stage."""
    agreement: LabelAgreement | None = None
    """Of passing with the labels, where rows have some: positive is a row that passed."""
    sweep: tuple[SweepLine, ...] = ()
    usage: Usage = Usage()
    """Model calls and tokens, including those of earlier runs."""
    seconds: float | None = None
    """Of this run."""


def summarize_rows(rows: Iterable[ValidatedRow], thresholds: Thresholds) -> ValidationSummary:
    """Sum up what was found; the rows are read once, and not kept."""
    tried = [(*each, Counter[Any]()) for each in _alternatives(thresholds)]
    outcomes: Counter[str] = Counter()
    reasons: Counter[ReasonCode] = Counter()
    scores: dict[str, tuple[list[float], list[str]]] = {}
    passes, labels, ids = [], [], []
    usage = Usage()
    for row in rows:
        is_right = _is_right(row)
        for _, _, others, counts in tried:
            outcome = replay(row, thresholds, others)
            counts.update(("rows", outcome, is_right, (outcome, is_right)))
        outcomes[row.outcome] += 1
        reasons.update({reason.code for reason in row.reasons})
        composite = {} if row.composite is None else {"composite": row.composite}
        for name, score in (composite | row.scores).items():
            values, groups = scores.setdefault(name, ([], []))
            values.append(score)
            groups.append(row.group)
        ids.append(row.id)
        labels.append(row.label)
        passes.append(None if row.outcome == "unchecked" else float(row.outcome == "passed"))
        usage = add_usage(usage, row.usage)
    total = outcomes.total()
    means = {name: estimate_mean(each, groups=groups) for name, (each, groups) in scores.items()}
    has_labels = any(label is not None for label in labels)
    return ValidationSummary(
        total=total,
        passed=outcomes["passed"],
        rejected=outcomes["rejected"],
        unchecked=outcomes["unchecked"],
        pass_rate=_share(outcomes["passed"], total),
        scores={name: mean for name, mean in means.items() if mean is not None},
        reasons=dict(sorted(reasons.items(), key=lambda each: (-each[1], each[0]))),
        complete=True,
        agreement=label_agreement(passes, labels, ids=ids, threshold=_HALF) if has_labels else None,
        sweep=tuple(
            SweepLine(
                option=name,
                value=value,
                is_current=others == thresholds,
                **{each: counts[each] for each in ("passed", "rejected", "unchecked", "unknown")},
                pass_rate=_share(counts["passed"], counts["rows"]),
                precision=_share(good := counts["passed", True], good + counts["passed", False]),
                recall=_share(good, counts[True]),
            )
            for name, value, others, counts in tried
        ),
        usage=usage,
    )


ReplayedOutcome: TypeAlias = Outcome | Literal["unknown"]
"""`unknown`: a judge that was not asked would have to decide."""

_Label: TypeAlias = VerdictLabel | Literal["unknown"]


def replay(found: RowValidation, then: Thresholds, now: Thresholds) -> ReplayedOutcome:
    """Return the outcome that a row, validated with some thresholds, would have with others.

    A claim that loses its support counts as unverifiable, though it may be contradicted.
    """
    if now == then:
        return found.outcome
    if found.stage == "source" and found.outcome == "unchecked" and not found.claims:
        return "unchecked"
    labels = [_replayed_label(claim, then, now) for claim in found.claims]
    guesses: tuple[VerdictLabel, ...] = ("supported", "contradicted", "unverifiable")
    outcomes = {
        _replayed_outcome(found, [guess if label == "unknown" else label for label in labels], now)
        for guess in guesses
    }
    return outcomes.pop() if len(outcomes) == 1 else "unknown"


def _replayed_label(claim: SourceClaim, then: Thresholds, now: Thresholds) -> _Label:
    """Tell what the verdict on a claim would have been."""
    said, near = claim.verdict.verdict, claim.similarity
    if now.bands == then.bands or near is None:
        return said
    if now.has_judge:
        unasked = said if claim.band == "judge" else "unknown"
        return _label_by_similarity(claim, near, then.bands, now.bands) or unasked
    if near >= now.bands.middle:
        # A refusal that is contradicted has the probability that it is right, too.
        return "supported" if said != "contradicted" or near < then.bands.middle else said
    return "unverifiable" if said == "supported" else said


def _label_by_similarity(
    claim: SourceClaim, near: float, then: Bands, now: Bands
) -> Literal["supported", "unverifiable"] | None:
    """Tell what similarity would have said; cosines are rounded, so the band counts first."""
    if claim.band == "accept" and now.accept <= then.accept:
        return "supported"
    if claim.band == "reject" and now.reject >= then.reject:
        return "unverifiable"
    if claim.differs:
        return None
    if near >= now.accept and not (claim.band == "judge" and now.accept >= then.accept):
        return "supported"
    if near < now.reject and not (claim.band == "judge" and now.reject <= then.reject):
        return "unverifiable"
    return None


def _replayed_outcome(
    found: RowValidation, labels: Sequence[VerdictLabel], now: Thresholds
) -> ReplayedOutcome:
    if now.against_source(labels) is not None:
        return "rejected"
    if "unchecked" in labels:
        return "unchecked"
    scores = {n: found.scores[n] for n in QUALITY_DIMENSIONS if n in found.scores}
    if now.has_quality and len(scores) < len(QUALITY_DIMENSIONS):
        return "unchecked" if found.outcome == "unchecked" else "unknown"
    if labels:
        scores[SOURCE] = labels.count("supported") / len(labels)
    if not scores:
        return "unchecked"
    combined, against = now.combined(scores)
    if combined.score is None:
        return "unchecked"
    return "rejected" if against else "passed"


def _alternatives(now: Thresholds) -> Iterator[tuple[ThresholdName, float, Thresholds]]:
    bands = now.bands
    for value in _values(now.pass_score, least=_HALF):
        yield "pass_score", value, now._replace(pass_score=value)
    for value in _values(now.min_source):
        yield "min_source", value, now._replace(min_source=value)
    if now.has_judge:
        for value in _values(bands.accept, least=bands.reject):
            yield "accept", value, now._replace(bands=bands._replace(accept=value))
    for value in _values(bands.reject, most=bands.accept):
        yield "reject", value, now._replace(bands=bands._replace(reject=value))


def _values(current: float, *, least: float = 0.0, most: float = 1.0) -> list[float]:
    return sorted({current, *(step for step in _STEPS if least <= step <= most)})


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _is_right(row: ValidatedRow) -> bool | None:
    try:
        return None if row.label is None else read_label(row.label)
    except ValueError:
        return None
