"""Two runs over the same rows: what changed, and whether it may be chance."""

import math
from collections.abc import Iterator, Mapping
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from langchain_groundedness.evals.statistics.intervals import (
    Estimate,
    Grouped,
    estimate_mean,
    require_column,
    require_metric,
    require_resamples,
    require_run,
)
from langchain_groundedness.evals.values import EvaluatedRow, EvaluationRun, RowScore

__all__ = ["PairedComparison", "ScoreChange", "compare_runs", "compare_scores"]

_SAME = 1e-9
"""Difference of two scores that is none."""
_FEW = 14
"""Groups up to which all ways of exchanging the runs are counted."""
_MANY = 50_000
_DRAWN_AT_ONCE = 2_000_000


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ScoreChange(_Value):
    """A row whose score is another one in the second run."""

    id: str
    before: float
    after: float

    @property
    def difference(self) -> float:
        """After less before: above 0, if the row has become better."""
        return self.after - self.before


class PairedComparison(_Value):
    """What became of the scores of the same rows from one run to another."""

    key: str = ""
    """Name of the metric."""
    rows: int = Field(ge=0)
    """Rows with a score in both runs."""
    before: float | None
    """Mean of these rows in the first run; `None` without rows."""
    after: float | None
    difference: Estimate | None
    """Mean difference, after less before, with its interval."""
    p_value: float | None = Field(ge=0, le=1)
    """How often chance alone gives a difference as large as this one, if the two runs were the
    same: a permutation test of the mean. `None` without rows."""
    sign_p_value: float | None = Field(ge=0, le=1)
    """The same for how many rows became better, and how many worse: the sign test."""
    better: int
    worse: int
    same: int
    changes: tuple[ScoreChange, ...] = ()
    """The rows that changed, by the size of the change."""
    only_before: tuple[str, ...] = ()
    """Rows of the first run that are not in the second."""
    only_after: tuple[str, ...] = ()
    not_scored: tuple[str, ...] = ()
    """Rows of both that have no score in one of them, or in both."""
    other_question: tuple[str, ...] = ()
    """Rows with the same id in which something else is asked: they are not compared."""

    def is_significant(self, level: float = 0.05) -> bool:
        """Tell whether chance is an unlikely explanation of the difference.

        Args:
            level: Below which `p_value` it is.

        Returns:
            True if it is; false also if nothing could be compared.
        """
        return self.p_value is not None and self.p_value < level


def compare_runs(  # noqa: PLR0913  (options by keyword)
    before: EvaluationRun,
    after: EvaluationRun,
    key: str,
    *,
    group_by: str | None = None,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> PairedComparison:
    """Compare a metric of two runs, row by row.

    Args:
        before: The first run.
        after: The second run. Answers and documents may be others, that is what a change of a
            pipeline does; rows in which another question is asked are named, and left out.
        key: Name of the metric.
        group_by: Column of which equal values mean that rows are no independent evidence.
        confidence: As for `estimate_mean`.
        resamples: As for `estimate_mean`.
        seed: As for `estimate_mean`.

    Returns:
        The comparison.

    Raises:
        ConfigurationError: One of the runs does not have the metric; the message names those that
            it has.
    """
    require_run(before, "before")
    require_run(after, "after")
    first, second = _by_id(before), _by_id(after)
    for rows, which in ((first, "first"), (second, "second")):
        require_metric(list(rows.values()), key, which)
    shared = first.keys() & second.keys()
    other = sorted(i for i in shared if first[i].row.question != second[i].row.question)
    groups = None
    if group_by is not None:
        require_column(before.rows, group_by)
        groups = {i: _group(row, group_by) for i, row in first.items()}
    found = compare_scores(
        {i: _score(row, key) for i, row in first.items() if i not in other},
        {i: _score(row, key) for i, row in second.items() if i not in other},
        groups=groups,
        confidence=confidence,
        resamples=resamples,
        seed=seed,
    )
    return found.model_copy(update={"key": key, "other_question": tuple(other)})


def compare_scores(  # noqa: PLR0913  (options by keyword)
    before: Mapping[str, float | None],
    after: Mapping[str, float | None],
    *,
    groups: Mapping[str, str] | None = None,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> PairedComparison:
    """Compare scores of the same rows.

    The p-value is that of the paired permutation test (Fisher 1935; Good 2005, section 3.2): if the
    runs were the same, each difference could as well have the other sign. Up to 14 groups that
    differ, all combinations of signs are counted; above that they are drawn, and the observed one
    is counted among them, so that the p-value is never 0 (Phipson and Smyth 2010). Beside it stands
    the sign test (Conover 1999, section 3.4), two-sided and exact, rows without a change left out.

    Args:
        before: Scores of the first run by the id of the row; `None` for a row without one.
        after: Scores of the second run.
        groups: Group of each row, by id; rows without one stand alone. The signs of a group change
            together.
        confidence: As for `estimate_mean`.
        resamples: As for `estimate_mean`; five times as many signs are drawn.
        seed: As for `estimate_mean`.

    Returns:
        The comparison.

    Raises:
        ConfigurationError: An option has a value that cannot work, or a score is not finite.

    Example:
        >>> found = compare_scores({"a": 0.2, "b": 0.5, "c": 1.0}, {"a": 0.9, "b": 0.5, "d": 0.1})
        >>> found.rows, found.better, found.only_before, found.only_after
        (2, 1, ('c',), ('d',))
    """
    require_resamples(resamples)
    shared = [i for i in before if i in after]
    pairs = {
        i: (first, second)
        for i in shared
        if (first := before[i]) is not None and (second := after[i]) is not None
    }
    differences = [_difference(*pair) for pair in pairs.values()]
    names = None if groups is None else [groups.get(i, "") for i in pairs]
    moved = [difference for difference in differences if difference]
    return PairedComparison(
        rows=len(pairs),
        before=_mean([first for first, _ in pairs.values()]),
        after=_mean([second for _, second in pairs.values()]),
        difference=estimate_mean(
            differences, groups=names, confidence=confidence, resamples=resamples, seed=seed
        ),
        p_value=_permutation(Grouped.of(differences, names), 5 * resamples, seed),
        sign_p_value=_sign_test(sum(d > 0 for d in moved), len(moved)) if pairs else None,
        better=sum(d > 0 for d in moved),
        worse=sum(d < 0 for d in moved),
        same=len(pairs) - len(moved),
        changes=tuple(_changes(pairs)),
        only_before=tuple(i for i in before if i not in after),
        only_after=tuple(i for i in after if i not in before),
        not_scored=tuple(i for i in shared if i not in pairs),
    )


def _by_id(run: EvaluationRun) -> dict[str, EvaluatedRow]:
    return {row.row.id: row for row in run.rows}


def _score(row: EvaluatedRow, key: str) -> float | None:
    found: RowScore | None = next((score for score in row.scores if score.key == key), None)
    return None if found is None else found.score


def _group(row: EvaluatedRow, column: str) -> str:
    value = row.row.metadata.get(column)
    return "" if value is None else f"group {value}"


def _difference(before: float, after: float) -> float:
    difference = after - before
    return 0.0 if abs(difference) <= _SAME else difference


def _mean(values: list[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _changes(pairs: Mapping[str, tuple[float, float]]) -> Iterator[ScoreChange]:
    changed = [(i, *pair) for i, pair in pairs.items() if _difference(*pair)]
    for i, first, second in sorted(changed, key=lambda each: -abs(each[2] - each[1])):
        yield ScoreChange(id=i, before=first, after=second)


def _permutation(found: Grouped | None, draws: int, seed: int) -> float | None:
    if found is None:
        return None
    moved = found.sums[np.abs(found.sums) > _SAME]
    if not len(moved):
        return 1.0
    observed = abs(float(moved.sum())) - _SAME
    if len(moved) > _MANY:
        spread = math.sqrt(float(moved @ moved))
        return min(2 * (1 - NormalDist().cdf(abs(float(moved.sum())) / spread)), 1.0)
    if len(moved) <= _FEW:
        bits = np.arange(2 ** len(moved))[:, None] >> np.arange(len(moved))
        sums = (1 - 2.0 * (bits & 1)) @ moved
        return float(np.mean(np.abs(sums) >= observed))
    as_large = sum(int((np.abs(sums) >= observed).sum()) for sums in _drawn(moved, draws, seed))
    return (1 + as_large) / (1 + draws)


def _drawn(moved: NDArray[np.float64], draws: int, seed: int) -> Iterator[NDArray[np.float64]]:
    chance = np.random.default_rng(seed)
    at_once = max(_DRAWN_AT_ONCE // len(moved), 1)
    for first in range(0, draws, at_once):
        shape = (min(at_once, draws - first), len(moved))
        yield (1 - 2.0 * chance.integers(2, size=shape)) @ moved


def _sign_test(better: int, moved: int) -> float:
    """Give twice the binomial probability of a split at least as uneven, at most 1."""
    if not moved:
        return 1.0
    factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, moved + 1)))])
    fewer = np.arange(min(better, moved - better) + 1)
    logs = factorials[moved] - factorials[fewer] - factorials[moved - fewer]
    return min(2 * float(np.exp(logs - moved * math.log(2)).sum()), 1.0)
