"""Figures of a run: means, what failed, slices, and how reliable its probabilities are; pure."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from langchain_groundedness._printable import printable
from langchain_groundedness.calibration import CalibrationSample, Reliability, ScoredClaim
from langchain_groundedness.calibration._choosing import reliability
from langchain_groundedness.calibration._knobs import main_verifier
from langchain_groundedness.evals.values import EvaluatedRow, EvaluationRun, RowScore
from langchain_groundedness.report._statistics import estimate, read_label
from langchain_groundedness.report._values import MetricFigures, Reason, Slice, SliceGroup
from langchain_groundedness.types import GroundednessResult

__all__ = ["main_result", "metrics_of", "reliability_of", "score_of", "slice_value", "slices_of"]

_MOST_GROUPS = 20
_LONGEST_NAME = 80


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
    return tuple(_figures(key, run.header.evaluators.get(key, {}), of) for key, of in found.items())


def _figures(key: str, options: Mapping[str, Any], found: Sequence[RowScore]) -> MetricFigures:
    scores = tuple(each.score for each in found if each.score is not None)
    statuses = Counter(each.status for each in found)
    reasons = Counter((e.status, e.reason) for e in found if e.reason is not None)
    return MetricFigures(
        key=key,
        about=str(options.get("class", options.get("type", ""))),
        scores=scores,
        estimate=estimate(scores),
        failed=statuses["failed"],
        skipped=statuses["skipped"],
        reasons=tuple(Reason(status, text, rows) for (status, text), rows in reasons.most_common()),
    )


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


def slices_of(run: EvaluationRun, metrics: Sequence[MetricFigures]) -> tuple[Slice, ...]:
    """Sum up each metric per value of each column that divides the rows into a few groups.

    Args:
        run: The run.
        metrics: Its metrics.

    Returns:
        The slices, in the order of the columns.
    """
    columns = dict.fromkeys(name for row in run.rows for name in row.row.metadata)
    return tuple(found for name in columns if (found := _slice(run, name, metrics)) is not None)


def _slice(run: EvaluationRun, column: str, metrics: Sequence[MetricFigures]) -> Slice | None:
    groups: dict[str, list[EvaluatedRow]] = {}
    for row in run.rows:
        value = slice_value(row, column)
        if value is not None:
            groups.setdefault(value, []).append(row)
    if not 1 < len(groups) <= min(_MOST_GROUPS, len(run.rows) // 2):
        return None
    largest_first = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
    return Slice(
        column,
        tuple(
            SliceGroup(name, len(rows), dict(_estimates(rows, metrics)))
            for name, rows in largest_first
        ),
    )


def slice_value(row: EvaluatedRow, column: str) -> str | None:
    """Name the group of a row.

    Args:
        row: A row.
        column: A column of the metadata.

    Returns:
        Its value in words; `None` if it has none, or one that cannot name a group.
    """
    value = row.row.metadata.get(column)
    if not isinstance(value, str | bool | int) or len(str(value)) > _LONGEST_NAME:
        return None
    return printable(str(value))


def _estimates(
    rows: Sequence[EvaluatedRow], metrics: Sequence[MetricFigures]
) -> Iterator[tuple[str, Any]]:
    for metric in metrics:
        found = (score_of(row, metric.key) for row in rows)
        scores = [score.score for score in found if score is not None and score.score is not None]
        if scores:
            yield metric.key, estimate(scores)


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
    label, result = read_label(row.row.label), main_result(row)
    if label is None or result is None or result.original_answer != row.row.answer:
        return None
    claims = tuple(map(ScoredClaim.of, result.claims))
    return CalibrationSample(unit="answer", is_right=label, claims=claims)
