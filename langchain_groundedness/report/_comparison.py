"""Two runs beside each other, row by row; pure."""

from collections.abc import Mapping

from langchain_groundedness.evals.values import EvaluatedRow, EvaluationRun
from langchain_groundedness.report._figures import metrics_of, score_of
from langchain_groundedness.report._statistics import difference
from langchain_groundedness.report._values import ComparedMetric, Estimate, RunComparison

__all__ = ["compared"]

Rows = Mapping[str, EvaluatedRow]


def compared(run: EvaluationRun, baseline: EvaluationRun) -> RunComparison:
    """Compare a run with an earlier one, by the ids of their rows.

    Args:
        run: The run.
        baseline: The other.

    Returns:
        The comparison, over the metrics that the run has.
    """
    now, before = _by_id(run), _by_id(baseline)
    means = {metric.key: metric.estimate for metric in metrics_of(baseline)}
    digests = run.header.digest, baseline.header.digest
    return RunComparison(
        baseline=baseline.header.name,
        metrics=tuple(
            _metric(metric.key, means.get(metric.key), metric.estimate, before, now)
            for metric in metrics_of(run)
        ),
        both=len(now.keys() & before.keys()),
        only_now=len(now.keys() - before.keys()),
        only_before=len(before.keys() - now.keys()),
        same_data=digests[0] == digests[1] if all(digests) else None,
    )


def _by_id(run: EvaluationRun) -> Rows:
    return {row.row.id: row for row in run.rows}


def _metric(
    key: str, mean_before: Estimate | None, mean_now: Estimate | None, before: Rows, now: Rows
) -> ComparedMetric:
    pairs: list[tuple[float, float]] = []
    lost = gained = 0
    for name in [name for name in now if name in before]:
        was, score = _score(before[name], key), _score(now[name], key)
        if was is not None and score is not None:
            pairs.append((was, score))
        lost += was is not None and score is None
        gained += was is None and score is not None
    return ComparedMetric(
        key=key,
        before=mean_before,
        now=mean_now,
        difference=difference(pairs),
        higher=sum(score > was for was, score in pairs),
        lower=sum(score < was for was, score in pairs),
        same=sum(score == was for was, score in pairs),
        lost=lost,
        gained=gained,
    )


def _score(row: EvaluatedRow, key: str) -> float | None:
    found = score_of(row, key)
    return None if found is None else found.score
