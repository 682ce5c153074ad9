"""A validation summed up."""

from collections import Counter
from collections.abc import Iterable, Sequence

from pydantic import BaseModel, ConfigDict

from langchain_groundedness.evals.statistics import (
    Estimate,
    LabelAgreement,
    estimate_mean,
    label_agreement,
)
from langchain_groundedness.evals.validation._replay import Setting
from langchain_groundedness.evals.validation.sweep import Sweeping, SweepLine
from langchain_groundedness.evals.validation.values import ReasonCode, ValidatedRow
from langchain_groundedness.evals.values import BadRow
from langchain_groundedness.types import Usage

__all__ = ["ValidationSummary", "summed_up"]

COMPOSITE = "composite"
_HALF = 0.5


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


def summed_up(
    rows: Iterable[ValidatedRow], setting: Setting, *, notes: Sequence[str]
) -> ValidationSummary:
    """Sum up what was found.

    Args:
        rows: What was found, each row once.
        setting: The thresholds in force.
        notes: What else to know.

    Returns:
        The summary, as far as it can be told from the rows.
    """
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
