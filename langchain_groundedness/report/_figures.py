"""Figures of a run: means, what failed, slices, and how reliable its probabilities are; pure."""

import json
from collections import Counter
from collections.abc import Sequence
from hashlib import sha256

from langchain_groundedness._printable import printable
from langchain_groundedness.calibration import CalibrationSample, Reliability, ScoredClaim
from langchain_groundedness.calibration._choosing import reliability
from langchain_groundedness.calibration._knobs import main_verifier
from langchain_groundedness.calibration._labelled import read_label
from langchain_groundedness.evals.statistics import (
    LabelAgreement,
    Slice,
    estimate_mean,
    run_agreement,
    slice_scores,
)
from langchain_groundedness.evals.values import EvaluatedRow, EvaluationRun, RowScore
from langchain_groundedness.report._values import (
    MetricFigures,
    Reason,
    SlicedColumn,
    SliceGroup,
)
from langchain_groundedness.types import GroundednessResult

__all__ = ["main_result", "metrics_of", "reliability_of", "score_of", "slice_value", "slices_of"]

_MOST_VALUES = 50
_LONGEST_VALUE = 80


def metrics_of(run: EvaluationRun) -> tuple[MetricFigures, ...]:
    """Sum up each metric.

    Args:
        run: The run.

    Returns:
        The figures, in the order of the run's evaluators.
    """
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
    """Find the score of a metric.

    Args:
        row: A row.
        key: The name of the metric.

    Returns:
        The score, or `None` if the row was not asked for it.
    """
    return next((score for score in row.scores if score.key == key), None)


def main_result(row: EvaluatedRow) -> GroundednessResult | None:
    """Find the verdicts on the answer of a row.

    Args:
        row: A row.

    Returns:
        The first result over the answer itself, or else over another text, such as the reference.
    """
    results = [score.result for score in row.scores if score.result is not None]
    of_answer = (result for result in results if result.original_answer == row.row.answer)
    return next(of_answer, next(iter(results), None))


def slices_of(run: EvaluationRun, metrics: Sequence[MetricFigures]) -> tuple[SlicedColumn, ...]:
    """Sum up each metric per value of each column that divides the rows into a few groups.

    Args:
        run: The run.
        metrics: Its metrics.

    Returns:
        The slices, in the order of the columns.
    """
    columns = dict.fromkeys(name for row in run.rows for name in row.row.metadata)
    return tuple(_sliced(run, name, metrics) for name in columns if _divides(run, name))


def _divides(run: EvaluationRun, column: str) -> bool:
    given = [row for row in run.rows if row.row.metadata.get(column) is not None]
    values = {slice_value(row, column) for row in given}
    few = min(_MOST_VALUES, len(run.rows) // 2)
    return None not in values and 1 < len(values) <= few


def slice_value(row: EvaluatedRow, column: str) -> str | None:
    """Name the group of a row.

    Args:
        row: A row.
        column: A column of the metadata.

    Returns:
        Its value in words, shortened if it is long; `None` if it has none, or one that cannot
        name a group.
    """
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
    """Compare the probabilities of the verdicts to what people have said.

    Args:
        run: The run.

    Returns:
        The comparison, of an answer by its least likely claim; `None` without labels or without
        probabilities.
    """
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
