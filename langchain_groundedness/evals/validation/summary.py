"""A validation summed up."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from pydantic import BaseModel, ConfigDict

from langchain_groundedness.calibration.labelled_data import read_label
from langchain_groundedness.evals.judged import QUALITY_DIMENSIONS
from langchain_groundedness.evals.statistics import (
    Estimate,
    LabelAgreement,
    estimate_mean,
    label_agreement,
)
from langchain_groundedness.evals.validation.validator import SOURCE, Bands, Criteria
from langchain_groundedness.evals.validation.values import (
    Outcome,
    ReasonCode,
    RowValidation,
    SourceClaim,
    ValidatedRow,
)
from langchain_groundedness.evals.values import BadRow
from langchain_groundedness.types import Usage, VerdictLabel

__all__ = ["Setting", "SweepLine", "Sweeping", "ValidationSummary", "summed_up"]

COMPOSITE = "composite"

_HALF = 0.5

Knob = Literal["pass_score", "min_source", "accept", "reject"]


class SweepLine(BaseModel):
    """What one threshold would have done, all others as they are."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    option: Knob
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


class ValidationSummary(BaseModel):
    """What became of the rows of a data set."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    total: int
    """Rows in both files, of this run and of those it goes on with."""
    passed: int
    rejected: int
    unchecked: int
    """Rows of which it could not be told; they stand among the rejected ones."""
    pass_rate: float | None
    """Share of all rows that passed; `None` without rows."""
    scores: dict[str, Estimate]
    """The mean of each score over the rows that have it, and of `composite`."""
    reasons: dict[ReasonCode, int]
    """How many rows have not passed for which reason, the most frequent first; a row may have
    several."""
    bad_rows: tuple[BadRow, ...] = ()
    """Rows that could not be read; they are in neither file."""
    resumed: int = 0
    """Rows that stood in the files before, and were not validated again."""
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
    """What model calls have cost, those of earlier runs included."""
    seconds: float | None = None
    """Of this run."""


Replayed: TypeAlias = Outcome | Literal["unknown"]
"""`unknown`: a judge would have to be asked that was not."""

_Label: TypeAlias = VerdictLabel | Literal["unknown"]


class Setting(NamedTuple):
    """Thresholds of the whole pipeline."""

    bands: Bands
    criteria: Criteria
    has_judge: bool
    has_quality: bool

    def replay(self, found: RowValidation, then: "Setting") -> Replayed:
        """Tell what would have become of a row.

        A claim that loses its support counts as unverifiable, though it may be contradicted.
        """
        if self == then:
            return found.outcome
        if found.stage == "source" and found.outcome == "unchecked" and not found.claims:
            return "unchecked"
        labels = [self._label(claim, then) for claim in found.claims]
        outcomes = {self._outcome(found, guess) for guess in _guesses(labels)}
        return outcomes.pop() if len(outcomes) == 1 else "unknown"

    def _label(self, claim: SourceClaim, then: "Setting") -> _Label:
        """Tell what the verdict on a claim would have been."""
        said = claim.verdict.verdict
        near = claim.similarity
        if self.bands == then.bands or near is None:
            return said
        if not self.has_judge:
            if near >= self.bands.middle:
                # A refusal that is contradicted has the probability that it is right, too.
                return "supported" if said != "contradicted" or near < then.bands.middle else said
            return "unverifiable" if said == "supported" else said
        settled = self._settled(claim, near, then.bands)
        if settled is None:
            return said if claim.band == "judge" else "unknown"
        return settled

    def _settled(
        self, claim: SourceClaim, near: float, then: Bands
    ) -> Literal["supported", "unverifiable"] | None:
        """Tell what similarity would have said; cosines are rounded, so that words count first."""
        accept, reject = self.bands.accept, self.bands.reject
        if claim.band == "accept" and accept <= then.accept:
            return "supported"
        if claim.band == "reject" and reject >= then.reject:
            return "unverifiable"
        if claim.differs:
            return None
        if near >= accept and not (claim.band == "judge" and accept >= then.accept):
            return "supported"
        if near < reject and not (claim.band == "judge" and reject <= then.reject):
            return "unverifiable"
        return None

    def _outcome(self, found: RowValidation, labels: Sequence[VerdictLabel]) -> Replayed:
        if self.criteria.against_source(labels) is not None:
            return "rejected"
        if "unchecked" in labels:
            return "unchecked"
        scores = {n: found.scores[n] for n in QUALITY_DIMENSIONS if n in found.scores}
        if self.has_quality and len(scores) < len(QUALITY_DIMENSIONS):
            return "unchecked" if found.outcome == "unchecked" else "unknown"
        source = self.criteria.source_score(labels)
        if source is None and not scores:
            return "unchecked"
        scores |= {} if source is None else {SOURCE: source}
        composite = self.criteria.of_scores(scores).score
        if composite is None:
            return "unchecked"
        against = any(True for _ in self.criteria.against_scores(scores, composite))
        return "rejected" if against else "passed"


def summed_up(
    rows: Iterable[ValidatedRow], setting: Setting, *, notes: Sequence[str]
) -> ValidationSummary:
    """Sum up what was found."""
    sweeping = Sweeping(setting)
    outcomes: Counter[str] = Counter()
    reasons: Counter[ReasonCode] = Counter()
    scores: dict[str, tuple[list[float], list[str]]] = {}
    passes, labels, ids = [], [], []
    usage = Usage()
    for row in rows:
        sweeping.add(row)
        outcomes[row.outcome] += 1
        reasons.update({reason.code for reason in row.reasons})
        for name, score in _scores(row):
            values, groups = scores.setdefault(name, ([], []))
            values.append(score)
            groups.append(row.group)
        ids.append(row.id)
        labels.append(row.label)
        passes.append(None if row.outcome == "unchecked" else float(row.outcome == "passed"))
        usage = _added(usage, row.usage)
    total = outcomes.total()
    means = {name: estimate_mean(*each[:1], groups=each[1]) for name, each in scores.items()}
    return ValidationSummary(
        total=total,
        passed=outcomes["passed"],
        rejected=outcomes["rejected"],
        unchecked=outcomes["unchecked"],
        pass_rate=outcomes["passed"] / total if total else None,
        scores={name: mean for name, mean in means.items() if mean is not None},
        reasons=dict(sorted(reasons.items(), key=lambda each: (-each[1], each[0]))),
        complete=True,
        notes=tuple(notes),
        agreement=(
            label_agreement(passes, labels, ids=ids, threshold=_HALF)
            if any(label is not None for label in labels)
            else None
        ),
        sweep=sweeping.lines(),
        usage=usage,
    )


def _scores(row: ValidatedRow) -> list[tuple[str, float]]:
    composite = [] if row.composite is None else [(COMPOSITE, row.composite)]
    return [*composite, *row.scores.items()]


def _added(one: Usage, other: Usage) -> Usage:
    return Usage(
        model_calls=one.model_calls + other.model_calls,
        input_tokens=_sum(one.input_tokens, other.input_tokens),
        output_tokens=_sum(one.output_tokens, other.output_tokens),
        cached_verdicts=one.cached_verdicts + other.cached_verdicts,
    )


def _sum(one: int | None, other: int | None) -> int | None:
    return (one or 0) + (other or 0) if one is not None or other is not None else None


_STEPS = tuple(step / 20 for step in range(1, 20))


class Sweeping:
    """Counts, row by row, what every threshold would have made of it."""

    def __init__(self, setting: Setting) -> None:
        """Line up the thresholds to try."""
        self._now = setting
        self._tried = list(_tried(setting))
        self._counts: list[Counter[Replayed]] = [Counter() for _ in self._tried]
        self._right: list[Counter[Replayed]] = [Counter() for _ in self._tried]
        self._labelled: list[Counter[Replayed]] = [Counter() for _ in self._tried]

    def add(self, row: ValidatedRow) -> None:
        """Count a row."""
        is_right = _is_right(row.label)
        for place, (_, _, setting) in enumerate(self._tried):
            outcome = setting.replay(row, self._now)
            self._counts[place][outcome] += 1
            if is_right is not None:
                self._labelled[place][outcome] += 1
                self._right[place][outcome] += is_right

    def lines(self) -> tuple[SweepLine, ...]:
        """Give the table."""
        return tuple(self._line(place) for place in range(len(self._tried)))

    def _line(self, place: int) -> SweepLine:
        knob, value, setting = self._tried[place]
        counts, right = self._counts[place], self._right[place]
        total = counts.total()
        return SweepLine(
            option=knob,
            value=value,
            is_current=setting == self._now,
            passed=counts["passed"],
            rejected=counts["rejected"],
            unchecked=counts["unchecked"],
            unknown=counts["unknown"],
            pass_rate=counts["passed"] / total if total else None,
            precision=_share(right["passed"], self._labelled[place]["passed"]),
            recall=_share(right["passed"], right.total()),
        )


def _tried(now: Setting) -> Iterator[tuple[Knob, float, Setting]]:
    criteria, bands = now.criteria, now.bands
    for value in _values(criteria.pass_score, least=_HALF):
        yield "pass_score", value, now._replace(criteria=criteria._replace(pass_score=value))
    for value in _values(criteria.min_source):
        yield "min_source", value, now._replace(criteria=criteria._replace(min_source=value))
    if now.has_judge:
        for value in _values(bands.accept, least=bands.reject):
            yield "accept", value, now._replace(bands=bands._replace(accept=value))
    for value in _values(bands.reject, most=bands.accept if now.has_judge else 1.0):
        accept = max(bands.accept, value)
        yield "reject", value, now._replace(bands=Bands(accept, value, bands.support))


def _values(current: float, *, least: float = 0.0, most: float = 1.0) -> list[float]:
    return sorted({current, *(step for step in _STEPS if least <= step <= most)})


def _is_right(label: Any) -> bool | None:
    try:
        return None if label is None else read_label(label)
    except ValueError:
        return None


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _guesses(labels: Sequence[_Label]) -> Iterator[list[VerdictLabel]]:
    """Give the best and the worst that claims nobody has judged may turn out to be."""
    guesses: tuple[VerdictLabel, ...] = ("supported", "contradicted", "unverifiable")
    for guess in guesses if "unknown" in labels else guesses[:1]:
        yield [guess if label == "unknown" else label for label in labels]
