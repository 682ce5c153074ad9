"""Two runs beside each other, row by row; pure."""

from langchain_groundedness.evals.statistics import compare_runs
from langchain_groundedness.evals.values import EvaluatedRow, EvaluationRun
from langchain_groundedness.report._figures import score_of
from langchain_groundedness.report._values import ComparedMetric, RunComparison
from langchain_groundedness.report._words import title

__all__ = ["compared", "paired"]

Rows = dict[str, EvaluatedRow]


def compared(run: EvaluationRun, baseline: EvaluationRun) -> RunComparison:
    """Compare a run with an earlier one, by the ids of their rows.

    Args:
        run: The run.
        baseline: The other.

    Returns:
        The comparison, over the metrics that both have.
    """
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
    """Find the rows of a run in another one.

    Args:
        run: The run.
        baseline: The other.

    Returns:
        The rows of the other, by their ids; those in which something else is asked are left out.
    """
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
