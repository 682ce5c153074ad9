"""Intervals, significance tests and agreement of scores; pure, needs only numpy.

Bootstrap and permutation test are our own: those of `scipy.stats` save ten lines, but take 3 to 30
times as long from 2,000 rows on, and its import alone takes longer than most reports.
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import PathLike
from statistics import NormalDist, fmean
from typing import Any, Literal, NamedTuple, TypedDict, Unpack, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from langchain_groundedness._runtime.options import expand_options, require_one_of, require_positive
from langchain_groundedness.calibration.labelled_data import read_label
from langchain_groundedness.calibration.threshold_choice import group_numbers, wilson_interval
from langchain_groundedness.evals.values import EvaluatedRow, EvaluationRun, RowScore
from langchain_groundedness.exceptions import ConfigurationError
from langchain_groundedness.types import FrozenModel

__all__ = [
    "Estimate",
    "LabelAgreement",
    "PairedComparison",
    "ScoreChange",
    "Slice",
    "compare_runs",
    "compare_scores",
    "estimate_mean",
    "label_agreement",
    "run_agreement",
    "slice_scores",
]

Floats = NDArray[np.float64]
Share = float | None
Interval = tuple[float, float] | None
Method = Literal["bca", "percentile"]

_NORMAL = NormalDist()
_MOST_RESAMPLED = 50_000
"""Number of groups from which the normal interval is used."""
_MOST_PERMUTED_GROUPS = 14
"""Number of groups up to which all permutations are counted."""
_DRAWS_PER_BATCH = 2_000_000
_FEWEST_RESAMPLES = 100
_SLACK = 1e-12
_EQUAL_WITHIN = 1e-9
"""Differences up to this count as zero."""


class Estimate(FrozenModel):
    """A mean with its interval."""

    n: int = Field(ge=1)
    """Number of scores."""
    groups: int = Field(ge=1)
    """Number of independent groups."""
    mean: float = Field(allow_inf_nan=False)
    low: float | None = Field(default=None, allow_inf_nan=False)
    """Lower end of the interval; `None` with a single group."""
    high: float | None = Field(default=None, allow_inf_nan=False)
    confidence: float = Field(default=0.95, gt=0, lt=1)
    """Confidence level of the interval."""


def estimate_mean(  # noqa: PLR0913  (options by keyword)
    values: Sequence[float],
    *,
    groups: Sequence[str] | None = None,
    confidence: float = 0.95,
    method: Method = "bca",
    resamples: int = 2000,
    seed: int = 0,
) -> Estimate | None:
    """Estimate a mean and its confidence interval with the bootstrap.

    Rows that share their documents are not independent evidence. Give their `groups`, and whole
    groups are resampled (Davison and Hinkley 1997, section 3.8); the mean is still that of the
    rows. The interval is `bca`, corrected for bias and acceleration (Efron 1987, with the jackknife
    over groups), or `percentile` (Efron and Tibshirani 1993, chapter 13). If all scores are 0 or 1,
    it contains Wilson's interval (1927), because a bootstrap of equal rows shows no uncertainty.
    With 50,000 groups or more it is the normal interval with the standard error of a ratio (Cochran
    1977, section 2.11), which is then the same and needs no resampling.

    Args:
        values: Finite scores, in any order.
        groups: The group of each score; an empty name is a group of its own, as is every score by
            default.
        confidence: Confidence level, between 0 and 1.
        method: Kind of interval.
        resamples: Number of bootstrap samples, at least 100.
        seed: Random seed; the same scores give the same interval.

    Returns:
        The estimate; `None` without scores.

    Raises:
        ConfigurationError: An option is invalid, or a score is not finite.

    Example:
        >>> found = estimate_mean([0.0, 0.5, 1.0, 1.0])
        >>> found.mean, found.low < 0.625 < found.high
        (0.625, True)
    """
    _require_sampling(confidence, resamples)
    require_one_of("method", method, get_args(Method))
    return _estimate(_GroupedScores.of(values, groups), confidence, resamples, seed, method)


class Slice(FrozenModel):
    """The rows with one value of a column."""

    value: str | None
    """The value as text; `None` for rows without a value, and for the rest."""
    is_rest: bool = False
    """Whether it combines all values with too few rows for a slice of their own."""
    values: int = Field(default=1, ge=1)
    """Number of values of the column in it."""
    rows: int
    not_scored: int
    """Number of rows that failed or were skipped."""
    score: Estimate | None
    """Estimate over the other rows; `None` if there are none."""


class Sampling(TypedDict, total=False):
    """How intervals are drawn: options of `estimate_mean`."""

    confidence: float
    resamples: int
    seed: int


def slice_scores(
    rows: EvaluationRun | Iterable[EvaluatedRow],
    key: str,
    column: str,
    *,
    most: int = 10,
    group_by: str | None = None,
    **sampling: Unpack[Sampling],
) -> tuple[Slice, ...]:
    """Split the rows of a run by the values of a column.

    With many slices, some intervals differ by chance alone: one in twenty at 95 %.

    Args:
        rows: An `EvaluationRun`, or its rows.
        key: Name of the metric.
        column: Name of the column in the metadata of the rows.
        most: Largest number of slices, at least 1; the other values share one more.
        group_by: Column whose equal values mark rows that are not independent evidence.
        **sampling: `confidence`, `resamples` and `seed`, as for `estimate_mean`.

    Returns:
        The slices: the largest first, those of equal size sorted by value, the rest last. Every
        row is in one of them.

    Raises:
        ConfigurationError: An option is invalid, or no row has the metric or the column; the
            message lists the accepted ones.

    Example:
        >>> from langchain_groundedness.evals import EvaluatedRow, EvaluationRow, RowScore
        >>> def row(name, score, topic):
        ...     scored = RowScore(key="m", score=score, status="scored")
        ...     asked = EvaluationRow(id=name, metadata={"topic": topic})
        ...     return EvaluatedRow(row=asked, scores=(scored,))
        >>> rows = [row("1", 1.0, "law"), row("2", 0.5, "law"), row("3", 0.0, "art")]
        >>> [(each.value, each.rows, each.score.mean) for each in slice_scores(rows, "m", "topic")]
        [('law', 2, 0.75), ('art', 1, 0.0)]
    """
    require_positive(most=most)
    given = _rows_of(rows)
    _require_metric(given, key)
    for name in filter(None, (column, group_by)):
        _require_column(given, name)
    slices = []
    for value, rows_of_value, values in split_rows(given, column, most):
        scored = [(row, score) for row in rows_of_value if (score := _score(row, key)) is not None]
        names = None if group_by is None else [_cell_text(row, group_by) or "" for row, _ in scored]
        found = estimate_mean([score for _, score in scored], groups=names, **sampling)
        slices.append(
            Slice(
                value=value,
                is_rest=values > 1,
                values=values,
                rows=len(rows_of_value),
                not_scored=len(rows_of_value) - len(scored),
                score=found,
            )
        )
    return tuple(slices)


class RowsOfValue(NamedTuple):
    """The rows with one value of a column, or with all of its rare values."""

    value: str | None
    rows: list[EvaluatedRow]
    values: int = 1
    """Number of values."""


def split_rows(rows: Iterable[EvaluatedRow], column: str, most: int = 10) -> list[RowsOfValue]:
    """Split rows by the values of a column, as `slice_scores` does."""
    by_value: dict[str | None, list[EvaluatedRow]] = {}
    for row in rows:
        by_value.setdefault(_cell_text(row, column), []).append(row)
    ordered = sorted(by_value.items(), key=lambda each: (-len(each[1]), each[0] or ""))
    shown = ordered if len(ordered) <= most + 1 else ordered[:most]
    parts = [RowsOfValue(*each) for each in shown]
    if rest := ordered[len(shown) :]:
        parts.append(RowsOfValue(None, [row for _, rows in rest for row in rows], len(rest)))
    return parts


class ScoreChange(FrozenModel):
    """A row whose score differs in the second run."""

    id: str
    before: float
    after: float

    @property
    def difference(self) -> float:
        """After minus before: positive if the row has improved."""
        return self.after - self.before


class PairedComparison(FrozenModel):
    """How the scores of the same rows differ between two runs."""

    key: str = ""
    """Name of the metric."""
    rows: int = Field(ge=0)
    """Number of rows with a score in both runs."""
    before: float | None
    """Mean of these rows in the first run; `None` without rows."""
    after: float | None
    difference: Estimate | None
    """Mean difference, after minus before, with its interval."""
    p_value: float | None = Field(ge=0, le=1)
    """Probability of a difference at least this large if the two runs were equally good, by a
    permutation test of the mean. `None` without rows."""
    sign_p_value: float | None = Field(ge=0, le=1)
    """The same for the numbers of improved and worsened rows, by the sign test."""
    better: int
    worse: int
    same: int
    changes: tuple[ScoreChange, ...] = ()
    """The rows that changed, the largest change first."""
    only_before: tuple[str, ...] = ()
    """Rows that are only in the first run."""
    only_after: tuple[str, ...] = ()
    not_scored: tuple[str, ...] = ()
    """Rows of both runs without a score in at least one of them."""
    other_question: tuple[str, ...] = ()
    """Rows with the same id but another question; they are not compared."""

    def is_significant(self, level: float = 0.05) -> bool:
        """Tell whether the difference is statistically significant.

        Args:
            level: Significance level; `p_value` must be below it.

        Returns:
            True if it is; false also if no row could be compared.
        """
        return self.p_value is not None and self.p_value < level


def compare_runs(
    before: EvaluationRun,
    after: EvaluationRun,
    key: str,
    *,
    group_by: str | None = None,
    **sampling: Unpack[Sampling],
) -> PairedComparison:
    """Compare a metric of two runs, row by row.

    Args:
        before: The first run.
        after: The second run. Its answers and documents may differ; rows with another question are
            listed but not compared.
        key: Name of the metric.
        group_by: Column whose equal values mark rows that are not independent evidence.
        **sampling: `confidence`, `resamples` and `seed`, as for `estimate_mean`.

    Returns:
        The comparison.

    Raises:
        ConfigurationError: One of the runs does not have the metric; the message lists those that
            it has.
    """
    require_run(before, "before")
    require_run(after, "after")
    first, second = ({row.row.id: row for row in run.rows} for run in (before, after))
    for rows, which in ((first, "the first run"), (second, "the second run")):
        _require_metric(list(rows.values()), key, which)
    shared = first.keys() & second.keys()
    other = sorted(i for i in shared if first[i].row.question != second[i].row.question)
    groups = None
    if group_by is not None:
        _require_column(before.rows, group_by)
        groups = {i: _cell_text(row, group_by) or "" for i, row in first.items()}
    found = compare_scores(
        {i: _score(row, key) for i, row in first.items() if i not in other},
        {i: _score(row, key) for i, row in second.items() if i not in other},
        groups=groups,
        **sampling,
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

    `p_value` is that of the paired permutation test (Fisher 1935; Good 2005, section 3.2): if the
    runs were equally good, each difference could have either sign. If at most 14 groups differ, the
    test is exact. Otherwise signs are drawn at random, and the observed signs count as one draw, so
    that the p-value is never 0 (Phipson and Smyth 2010). `sign_p_value` is that of the two-sided
    exact sign test (Conover 1999, section 3.4), without unchanged rows. The interval is that of
    `estimate_mean`, but without Wilson's, which is for shares; if all differences are equal, it is
    that difference alone. Without groups, exchanging the runs only turns its signs.

    Args:
        before: Scores of the first run by the id of the row; `None` for a row without one.
        after: Scores of the second run.
        groups: Group of each row, by id; a row without one is a group of its own. The differences
            of a group change their signs together.
        confidence: As for `estimate_mean`.
        resamples: As for `estimate_mean`; the permutation test draws five times as many.
        seed: As for `estimate_mean`.

    Returns:
        The comparison.

    Raises:
        ConfigurationError: An option is invalid, or a score is not finite.

    Example:
        >>> found = compare_scores({"a": 0.2, "b": 0.5, "c": 1.0}, {"a": 0.9, "b": 0.5, "d": 0.1})
        >>> found.rows, found.better, found.only_before, found.only_after
        (2, 1, ('c',), ('d',))
    """
    _require_sampling(confidence, resamples)
    shared = [i for i in before if i in after]
    pairs = [
        ScoreChange(id=i, before=first, after=second)
        for i in shared
        if (first := before[i]) is not None and (second := after[i]) is not None
    ]
    moved = [pair for pair in pairs if abs(pair.difference) > _EQUAL_WITHIN]
    better = sum(pair.difference > 0 for pair in moved)
    differences = [
        pair.difference if abs(pair.difference) > _EQUAL_WITHIN else 0.0 for pair in pairs
    ]
    names = None if groups is None else [groups.get(pair.id, "") for pair in pairs]
    compared = {pair.id for pair in pairs}
    return PairedComparison(
        rows=len(pairs),
        before=fmean(pair.before for pair in pairs) if pairs else None,
        after=fmean(pair.after for pair in pairs) if pairs else None,
        difference=estimate_change(
            differences, names, confidence=confidence, resamples=resamples, seed=seed
        ),
        p_value=_permutation_test(_GroupedScores.of(differences, names), 5 * resamples, seed),
        sign_p_value=_sign_test(better, len(moved)) if pairs else None,
        better=better,
        worse=len(moved) - better,
        same=len(pairs) - len(moved),
        changes=tuple(sorted(moved, key=lambda pair: -abs(pair.difference))),
        only_before=tuple(i for i in before if i not in after),
        only_after=tuple(i for i in after if i not in before),
        not_scored=tuple(i for i in shared if i not in compared),
    )


class LabelAgreement(FrozenModel):
    """Agreement of a metric with human labels: a score of at least the threshold means "right".

    A share is `None` if it has no denominator.
    """

    threshold: float
    rows: int = Field(ge=0)
    """Number of rows with a score and a readable label."""
    true_positives: int
    """Score and label are "right"."""
    false_positives: int
    """The score is "right", the label "wrong"."""
    false_negatives: int
    true_negatives: int
    balanced_accuracy: Share
    """Mean of recall and specificity (Brodersen et al. 2010)."""
    balanced_accuracy_interval: Interval = None
    precision: Share
    """Share of right rows among those that the score calls right."""
    recall: Share
    """Share of the right rows that the score calls right."""
    specificity: Share
    """Share of the wrong rows that the score calls wrong."""
    f1: Share
    """Harmonic mean of precision and recall (van Rijsbergen 1979)."""
    f1_interval: Interval = None
    kappa: Share
    """Agreement beyond chance (Cohen 1960): 1 is perfect, 0 is chance."""
    kappa_interval: Interval = None
    unlabelled: int = 0
    """Number of rows without a label."""
    not_scored: tuple[str, ...] = ()
    """Labelled rows without a score."""
    not_read: tuple[str, ...] = ()
    """Rows whose label is not an accepted word."""


def run_agreement(
    rows: EvaluationRun | Iterable[EvaluatedRow],
    key: str,
    *,
    threshold: float = 0.5,
    **sampling: Unpack[Sampling],
) -> LabelAgreement | None:
    """Compare a metric with the labels of the rows.

    Args:
        rows: An `EvaluationRun`, or its rows.
        key: Name of the metric.
        threshold: Least score of a right answer.
        **sampling: `confidence`, `resamples` and `seed`, as for `label_agreement`.

    Returns:
        The agreement; `None` if no row has a label.

    Raises:
        ConfigurationError: An option is invalid, or no row has the metric.
    """
    given = _rows_of(rows)
    _require_metric(given, key)
    if all(row.row.label is None for row in given):
        return None
    return label_agreement(
        [_score(row, key) for row in given],
        [row.row.label for row in given],
        ids=[row.row.id for row in given],
        threshold=threshold,
        **sampling,
    )


def label_agreement(  # noqa: PLR0913  (options by keyword)
    scores: Sequence[float | None],
    labels: Sequence[Any],
    *,
    ids: Sequence[str] | None = None,
    threshold: float = 0.5,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> LabelAgreement:
    """Compare scores with labels.

    The intervals are bootstrap percentiles (Efron and Tibshirani 1993, chapter 13); samples in
    which a share has no denominator do not count.

    Args:
        scores: One per row; `None` for a row without one.
        labels: One per row, in the words of `langchain-groundedness calibrate`: `true`,
            `supported`, `right`, `approve` and 1 mean right; `false`, `unsupported`, `wrong`,
            `contradicted`, `unverifiable`, `edit`, `reject` and 0 mean wrong. `None` for a row
            without a label.
        ids: Ids of the rows, to list those that could not be compared; by default their positions.
        threshold: Least score of a right answer.
        confidence: Confidence level of the intervals.
        resamples: Number of bootstrap samples, at least 100.
        seed: Random seed.

    Returns:
        The agreement.

    Raises:
        ConfigurationError: An option is invalid.

    Example:
        >>> found = label_agreement([0.9, 0.8, 0.3, 0.1], [True, False, True, False])
        >>> found.balanced_accuracy, found.kappa
        (0.5, 0.0)
    """
    _require_sampling(confidence, resamples)
    known_scores = [score for score in scores if score is not None]
    lowest, highest = min([0.0, *known_scores]), max([1.0, *known_scores])
    if not lowest <= threshold <= highest:
        msg = f"threshold: scores are from {lowest:g} to {highest:g}, got {threshold:g}"
        raise ConfigurationError(msg)
    names = list(map(str, range(len(scores)))) if ids is None else list(ids)
    if not len(scores) == len(labels) == len(names):
        msg = f"{len(scores)} scores, {len(labels)} labels and {len(names)} ids: give one each"
        raise ConfigurationError(msg)
    cells = np.zeros(4, dtype=np.int64)
    unlabelled, not_scored, not_read = 0, [], []
    for name, score, label in zip(names, scores, labels, strict=True):
        try:
            is_right = None if label is None else read_label(label)
        except ValueError:
            not_read.append(name)
            continue
        if is_right is None:
            unlabelled += 1
        elif score is None:
            not_scored.append(name)
        else:
            cells[2 * (score < threshold) + (is_right != (score >= threshold))] += 1
    total = int(cells.sum())
    draws = resamples if total else 0
    drawn = np.random.default_rng(seed).multinomial(total, cells / max(total, 1), size=draws)
    known, spread = _shares(cells), _shares(drawn)
    tail = (1 - confidence) / 2
    tp, fp, tn, fn = cells.tolist()
    return LabelAgreement(
        threshold=threshold,
        rows=total,
        true_positives=tp,
        false_positives=fp,
        false_negatives=fn,
        true_negatives=tn,
        unlabelled=unlabelled,
        not_scored=tuple(not_scored),
        not_read=tuple(not_read),
        **{name: None if np.isnan(value) else float(value) for name, value in known.items()},
        **{
            f"{name}_interval": _percentiles(spread[name], tail)
            for name in ("balanced_accuracy", "f1", "kappa")
        },
    )


for _function in (slice_scores, compare_runs, run_agreement):
    expand_options(_function, estimate_mean)


def find_score(row: EvaluatedRow, key: str) -> RowScore | None:
    """Find the score of a metric."""
    return next((score for score in row.scores if score.key == key), None)


def require_run(given: object, name: str) -> None:
    """Refuse what is not a run; of a file name, the message says how to read it."""
    if not isinstance(given, EvaluationRun):
        is_path = isinstance(given, str | PathLike)
        advice = "; load_run reads one from its file" if is_path else ""
        msg = f"{name}: expected an EvaluationRun, got {type(given).__name__}{advice}"
        raise ConfigurationError(msg)


def _score(row: EvaluatedRow, key: str) -> float | None:
    found = find_score(row, key)
    return None if found is None else found.score


def _rows_of(given: EvaluationRun | Iterable[EvaluatedRow]) -> list[EvaluatedRow]:
    rows = list(given.rows if isinstance(given, EvaluationRun) else given)
    if not all(isinstance(each, EvaluatedRow) for each in rows):
        require_run(given, "rows")
    return rows


def _cell_text(row: EvaluatedRow, column: str) -> str | None:
    value = row.row.metadata.get(column)
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)


def _require_metric(rows: Sequence[EvaluatedRow], key: str, run: str = "the run") -> None:
    known = {score.key for row in rows for score in row.scores}
    if rows and key not in known:
        msg = f"{run} has no metric {key!r}; it has: {', '.join(sorted(known)) or 'none'}"
        raise ConfigurationError(msg)


def _require_column(rows: Sequence[EvaluatedRow], column: str) -> None:
    known = {name for row in rows for name in row.row.metadata}
    if rows and column not in known:
        names = ", ".join(map(repr, sorted(known))) or "none"
        msg = f"the rows have no column {column!r}; they have {names}"
        raise ConfigurationError(msg)


def _require_sampling(confidence: float, resamples: int) -> None:
    if isinstance(confidence, bool) or not 0 < confidence < 1:
        msg = f"confidence must be between 0 and 1, got {confidence!r}"
        raise ConfigurationError(msg)
    whole = isinstance(resamples, int) and not isinstance(resamples, bool)
    if not whole or resamples < _FEWEST_RESAMPLES:
        msg = f"resamples must be at least {_FEWEST_RESAMPLES}, got {resamples!r}"
        raise ConfigurationError(msg)


def estimate_change(
    differences: Sequence[float],
    groups: Sequence[str] | None = None,
    *,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Estimate | None:
    """Estimate a mean difference; with the runs exchanged, it has the opposite sign."""
    found = _GroupedScores.of(differences, groups, is_change=True)
    return _estimate(found, confidence, resamples, seed)


def _estimate(
    found: "_GroupedScores | None",
    confidence: float,
    resamples: int,
    seed: int,
    method: Method = "bca",
) -> Estimate | None:
    if found is None:
        return None
    low, high = _mean_interval(found, confidence, resamples, seed, method)
    return Estimate(
        n=int(found.counts.sum()),
        groups=len(found.sums),
        mean=found.mean,
        low=low,
        high=high,
        confidence=confidence,
    )


class _GroupedScores(NamedTuple):
    """Scores summed up by group, in an order that does not depend on that of the rows."""

    sums: Floats
    counts: Floats
    is_share: bool
    """Whether all scores are 0 or 1."""
    is_change: bool
    """Whether they are differences, whose interval must not depend on which run is the first."""

    @classmethod
    def of(
        cls, values: Sequence[float], groups: Sequence[str] | None, *, is_change: bool = False
    ) -> "_GroupedScores | None":
        scores = np.array(values, dtype=np.float64)
        if scores.ndim != 1 or not np.isfinite(scores).all():
            msg = "values must be a list of finite numbers: leave out what has no score"
            raise ConfigurationError(msg)
        if groups is not None and len(groups) != len(scores):
            msg = f"groups must be one per value: {len(groups)} of them for {len(scores)} values"
            raise ConfigurationError(msg)
        if not len(scores):
            return None
        is_share = not is_change and bool(np.isin(scores, (0.0, 1.0)).all())
        numbers = group_numbers([""] * len(scores) if groups is None else groups)
        # Sorted before they are added, so that rounding does not depend on the order either.
        order = np.argsort(scores, kind="stable")
        sums: Floats = np.bincount(numbers[order], weights=scores[order]).astype(np.float64)
        counts = np.bincount(numbers).astype(np.float64)
        order = np.lexsort((counts, sums))
        return cls(sums[order], counts[order], is_share, is_change)

    @property
    def mean(self) -> float:
        return float(math.fsum(self.sums) / self.counts.sum())


def _mean_interval(
    found: _GroupedScores, confidence: float, resamples: int, seed: int, method: Method
) -> tuple[float | None, float | None]:
    number, mean = len(found.sums), found.mean
    if number == 1:
        return None, None
    tail = (1 - confidence) / 2
    quantile = -_NORMAL.inv_cdf(tail)
    if number >= _MOST_RESAMPLED:
        residuals = found.sums - mean * found.counts
        variance = number / (number - 1) * float(residuals @ residuals)
        reach = quantile * math.sqrt(variance) / float(found.counts.sum())
        low, high = mean - reach, mean + reach
    else:
        random = np.random.default_rng(seed)
        places = (random.integers(number, size=size) for size in _batches(resamples, number))
        if found.is_change:  # of a change with the opposite sign, these are the same draws
            places = (each for draw in places for each in (draw, number - 1 - draw))
        drawn = np.concatenate(
            [found.sums[each].sum(axis=1) / found.counts[each].sum(axis=1) for each in places]
        )
        ends = _bca_quantiles(found, drawn, tail) if method == "bca" else (tail, 1 - tail)
        low, high = np.quantile(drawn, ends).tolist()
    if found.is_share:
        least, most = wilson_interval(round(mean * number), number, z=quantile)
        low, high = min(low, least), max(high, most)
    return min(low, mean), max(high, mean)


def _batches(draws: int, width: int) -> Iterator[tuple[int, int]]:
    """Give the shapes of batches of draws that take bounded memory."""
    at_once = max(_DRAWS_PER_BATCH // width, 1)
    for first in range(0, draws, at_once):
        yield min(at_once, draws - first), width


def _bca_quantiles(found: _GroupedScores, drawn: Floats, tail: float) -> tuple[float, float]:
    """Give which quantiles of the draws are the ends: equations 6.8 and 7.3 of Efron (1987)."""
    mean = found.mean
    slack = _SLACK * max(abs(mean), 1.0)
    below = float(np.mean((drawn < mean - slack) + 0.5 * (np.abs(drawn - mean) <= slack)))
    if not 0 < below < 1:
        return tail, 1 - tail
    bias = _NORMAL.inv_cdf(below)
    without = (found.sums.sum() - found.sums) / (found.counts.sum() - found.counts)
    away = without.mean() - without
    spread = float((away**2).sum())
    acceleration = float((away**3).sum()) / (6 * spread**1.5) if spread > _SLACK**2 else 0.0
    ends = []
    for share in (tail, 1 - tail):
        shifted = bias + _NORMAL.inv_cdf(share)
        stretch = 1 - acceleration * shifted
        if stretch <= 0:
            return tail, 1 - tail
        ends.append(_NORMAL.cdf(bias + shifted / stretch))
    return ends[0], ends[1]


def _permutation_test(found: _GroupedScores | None, draws: int, seed: int) -> float | None:
    if found is None:
        return None
    moved = found.sums[np.abs(found.sums) > _EQUAL_WITHIN]
    number, total = len(moved), abs(float(moved.sum()))
    if not number:
        return 1.0
    if number > _MOST_RESAMPLED:
        spread = math.sqrt(float(moved @ moved))
        return min(2 * (1 - _NORMAL.cdf(total / spread)), 1.0)
    if number <= _MOST_PERMUTED_GROUPS:
        bits = np.arange(2**number)[:, None] >> np.arange(number)
        return float(np.mean(np.abs((1 - 2.0 * (bits & 1)) @ moved) >= total - _EQUAL_WITHIN))
    random, as_large = np.random.default_rng(seed), 0
    for size in _batches(draws, number):
        sums = (1 - 2.0 * random.integers(2, size=size)) @ moved
        as_large += int((np.abs(sums) >= total - _EQUAL_WITHIN).sum())
    return (1 + as_large) / (1 + draws)


def _sign_test(better: int, moved: int) -> float:
    """Give twice the binomial probability of a split at least as uneven, at most 1."""
    ways = math.lgamma(moved + 1) - moved * math.log(2)
    logs = (
        ways - math.lgamma(fewer + 1) - math.lgamma(moved - fewer + 1)
        for fewer in range(min(better, moved - better) + 1)
    )
    return min(2 * math.fsum(map(math.exp, logs)), 1.0)


def _shares(cells: NDArray[np.int64]) -> dict[str, Floats]:
    """Compute each rate from the confusion matrix; NaN where undefined."""
    tp, fp, tn, fn = np.moveaxis(cells.astype(np.float64), -1, 0)
    total = tp + fp + tn + fn
    by_chance = (tp + fp) * (tp + fn) + (tn + fn) * (tn + fp)
    with np.errstate(divide="ignore", invalid="ignore"):
        recall, specificity = tp / (tp + fn), tn / (tn + fp)
        return {
            "balanced_accuracy": (recall + specificity) / 2,
            "precision": tp / (tp + fp),
            "recall": recall,
            "specificity": specificity,
            "f1": 2 * tp / (2 * tp + fp + fn),
            "kappa": ((tp + tn) * total - by_chance) / (total**2 - by_chance),
        }


def _percentiles(found: Floats, tail: float) -> Interval:
    known = found[~np.isnan(found)]
    if not len(known):
        return None
    low, high = np.quantile(known, (tail, 1 - tail)).tolist()
    return low, high
