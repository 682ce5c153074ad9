"""Figures of a run: means, what failed, slices, and how reliable its probabilities are; pure."""

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple

from langchain_groundedness.calibration import CalibrationSample, Reliability, ScoredClaim
from langchain_groundedness.calibration.labelled_data import read_label
from langchain_groundedness.calibration.thresholds import reliability
from langchain_groundedness.calibration.values import main_verifier
from langchain_groundedness.display.escaping import printable
from langchain_groundedness.evals.statistics import (
    LabelAgreement,
    Slice,
    compare_runs,
    estimate_mean,
    run_agreement,
    slice_scores,
)
from langchain_groundedness.evals.values import EvaluatedRow, EvaluationRun, RowScore
from langchain_groundedness.exceptions import ConfigurationError
from langchain_groundedness.report.values import (
    ComparedMetric,
    MetricFigures,
    Reason,
    RunComparison,
    SlicedColumn,
    SliceGroup,
)
from langchain_groundedness.report.words import count, number, title
from langchain_groundedness.types import GroundednessResult

__all__ = [
    "compared",
    "judge",
    "main_result",
    "metrics_of",
    "paired",
    "reliability_of",
    "score_of",
    "slice_value",
    "slices_of",
]

_MOST_VALUES = 50

_LONGEST_VALUE = 80


def metrics_of(run: EvaluationRun) -> tuple[MetricFigures, ...]:
    """Sum up each metric."""
    found: dict[str, list[RowScore]] = {key: [] for key in run.header.evaluators}
    for row in run.rows:
        for score in row.scores:
            found.setdefault(score.key, []).append(score)
    return tuple(_figures(run, key, scores) for key, scores in found.items())


def _figures(run: EvaluationRun, key: str, found: Sequence[RowScore]) -> MetricFigures:
    scores = tuple(each.score for each in found if each.score is not None)
    statuses = Counter(each.status for each in found)
    reasons = Counter((e.status, e.reason) for e in found if e.reason is not None)
    return MetricFigures(
        key=key,
        scores=scores,
        estimate=estimate_mean(scores),
        failed=statuses["failed"],
        skipped=statuses["skipped"],
        reasons=tuple(Reason(*why, rows) for why, rows in reasons.most_common()),
        agreement=_agreement(run, key, scores),
    )


def _agreement(run: EvaluationRun, key: str, scores: Sequence[float]) -> LabelAgreement | None:
    if not scores or min(scores) < 0 or max(scores) > 1:
        return None
    found = run_agreement(run.rows, key)
    return found if found is not None and found.balanced_accuracy is not None else None


def score_of(row: EvaluatedRow, key: str) -> RowScore | None:
    """Find the score of a metric."""
    return next((score for score in row.scores if score.key == key), None)


def main_result(row: EvaluatedRow) -> GroundednessResult | None:
    """Find the verdicts on the answer of a row."""
    results = [score.result for score in row.scores if score.result is not None]
    of_answer = (result for result in results if result.original_answer == row.row.answer)
    return next(of_answer, next(iter(results), None))


def slices_of(run: EvaluationRun, metrics: Sequence[MetricFigures]) -> tuple[SlicedColumn, ...]:
    """Sum up each metric per value of each column that divides the rows into a few groups."""
    columns = dict.fromkeys(name for row in run.rows for name in row.row.metadata)
    return tuple(_sliced(run, name, metrics) for name in columns if _divides(run, name))


def _divides(run: EvaluationRun, column: str) -> bool:
    given = [row for row in run.rows if row.row.metadata.get(column) is not None]
    values = {slice_value(row, column) for row in given}
    few = min(_MOST_VALUES, len(run.rows) // 2)
    return None not in values and 1 < len(values) <= few


def slice_value(row: EvaluatedRow, column: str) -> str | None:
    """Name the group of a row."""
    value = row.row.metadata.get(column)
    if isinstance(value, str):
        return _shortened(value)
    return json.dumps(value) if isinstance(value, bool | int) else None


def _sliced(run: EvaluationRun, column: str, metrics: Sequence[MetricFigures]) -> SlicedColumn:
    keys = [each.key for each in metrics if any(score_of(row, each.key) for row in run.rows)]
    by_key = {key: slice_scores(run.rows, key, column) for key in keys}
    groups = []
    for place, part in enumerate(next(iter(by_key.values()), ())):
        scores = {key: slices[place].score for key, slices in by_key.items()}
        known = {key: score for key, score in scores.items() if score is not None}
        groups.append(SliceGroup(_name(part), part.value is not None, part.rows, known))
    return SlicedColumn(column, tuple(groups))


def _name(part: Slice) -> str:
    if part.is_rest:
        return f"{part.values} other values"
    return "without a value" if part.value is None else printable(_shortened(part.value))


def _shortened(value: str) -> str:
    """Shorten a long value so that it still differs from others that begin as it does."""
    if len(value) <= _LONGEST_VALUE:
        return value
    number = sha256(value.encode("utf-8", "surrogatepass")).hexdigest()[:6]
    return f"{value[: _LONGEST_VALUE - 10]}… ({number})"


def reliability_of(run: EvaluationRun) -> Reliability | None:
    """Compare the probabilities of the verdicts to what people have said."""
    samples = [sample for row in run.rows if (sample := _sample(row)) is not None]
    return reliability(samples, main_verifier(samples))


def _sample(row: EvaluatedRow) -> CalibrationSample | None:
    result = main_result(row)
    if row.row.label is None or result is None or result.original_answer != row.row.answer:
        return None
    try:
        is_right = read_label(row.row.label)
    except ValueError:
        return None
    claims = tuple(map(ScoredClaim.of, result.claims))
    return CalibrationSample(unit="answer", is_right=is_right, claims=claims)


Rows = dict[str, EvaluatedRow]


def compared(run: EvaluationRun, baseline: EvaluationRun) -> RunComparison:
    """Compare a run with an earlier one, by the ids of their rows."""
    before = paired(run, baseline)
    now = {row.row.id: row for row in run.rows if row.row.id in before}
    there = {row.row.id for row in baseline.rows}
    shared = [key for key in _keys(run) if key in _keys(baseline)]
    return RunComparison(
        baseline=title(baseline),
        metrics=tuple(
            ComparedMetric(key, compare_runs(baseline, run, key), _lost(before, now, key))
            for key in shared
        ),
        both=len(before),
        only_now=sum(row.row.id not in there for row in run.rows),
        only_before=len(there - {row.row.id for row in run.rows}),
        other_question=sum(row.row.id in there for row in run.rows) - len(before),
        other_answer=sum(_given(row) != _given(now[name]) for name, row in before.items()),
    )


def paired(run: EvaluationRun, baseline: EvaluationRun) -> Rows:
    """Find the rows of a run in another one."""
    asked = {row.row.id: row.row.question for row in run.rows}
    return {
        row.row.id: row
        for row in baseline.rows
        if row.row.id in asked and asked[row.row.id] == row.row.question
    }


def _keys(run: EvaluationRun) -> dict[str, None]:
    return dict.fromkeys(score.key for row in run.rows for score in row.scores)


def _lost(before: Rows, now: Rows, key: str) -> int:
    return sum(
        _score(row, key) is not None and _score(now[name], key) is None
        for name, row in before.items()
    )


def _given(row: EvaluatedRow) -> tuple[str | None, list[str]]:
    """Give what a pipeline gave: its answer, and what it had read."""
    return row.row.answer, [document.page_content for document in row.row.documents or ()]


def _score(row: EvaluatedRow, key: str) -> float | None:
    found = score_of(row, key)
    return None if found is None else found.score


class Verdict(NamedTuple):
    """What a threshold says about a metric."""

    key: str
    threshold: float
    passed: bool
    text: str
    """Why, in one line."""


def judge(
    run: EvaluationRun, fail_under: Mapping[str, float], *, max_failed: int = 0
) -> list[Verdict]:
    """Compare means with thresholds, as `langchain-groundedness evaluate --fail-under` does.

    What was not checked does not pass: a run that was interrupted fails, and so does a metric
    without any score. Skipped rows do not count: there is nothing that the metric could be of.
    """
    metrics = {metric.key: metric for metric in metrics_of(run)}
    for key, threshold in fail_under.items():
        _check(key, threshold, list(metrics))
        _check_range(key, threshold, str(run.header.evaluators.get(key, {}).get("class", "")))
    return [_judged(run, metrics[key], least, max_failed) for key, least in fail_under.items()]


def _check(key: str, threshold: float, known: Sequence[str]) -> None:
    if key not in known:
        msg = f"the run has no metric {key!r}; it has {', '.join(known) or 'none'}"
        raise ConfigurationError(msg)
    if not math.isfinite(threshold):
        msg = f"the threshold of {key} must be a finite number, got {threshold}"
        raise ConfigurationError(msg)


def _check_range(key: str, threshold: float, made_by: str) -> None:
    """Refuse what scores of our own metrics are never: a gate of 80 would never open."""
    own = made_by.startswith("langchain_groundedness.")
    lowest = -1 if made_by.endswith("SemanticSimilarityEvaluator") else 0
    if own and not lowest <= threshold <= 1:
        msg = f"the threshold of {key}: scores are from {lowest} to 1, got {threshold:g}"
        raise ConfigurationError(msg)


def _judged(run: EvaluationRun, metric: MetricFigures, least: float, max_failed: int) -> Verdict:
    lost = metric.failed + len(run.bad_rows)
    if metric.estimate is None:
        return Verdict(metric.key, least, passed=False, text=f"{metric.key}: no row has a score")
    mean = metric.estimate.mean
    faults = []
    if mean < least:
        faults.append(f"{_exact(mean, least)} is below {least:g}")
    if lost > max_failed:
        faults.append(f"{count(lost)} failed or could not be read, more than {max_failed:,}")
    if not run.complete:
        faults.append("the run was interrupted, rows are missing")
    text = "; ".join(faults) or f"{_exact(mean, least)} is not below {least:g}"
    return Verdict(metric.key, least, passed=not faults, text=f"{metric.key}: {text}")


def _exact(mean: float, least: float) -> str:
    """Write a mean so that it does not look like the threshold that it misses."""
    short = number(mean)
    return short if mean == least or float(short) != least else repr(mean)
