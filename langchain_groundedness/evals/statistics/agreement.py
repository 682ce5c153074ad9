"""How a score, cut at a threshold, agrees with what people said about the same answers."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from langchain_groundedness.calibration.labelled_data import read_label
from langchain_groundedness.evals.statistics.intervals import (
    require_metric,
    require_resamples,
    require_share,
    rows_of,
)
from langchain_groundedness.evals.values import EvaluatedRow, EvaluationRun
from langchain_groundedness.exceptions import ConfigurationError

__all__ = ["LabelAgreement", "label_agreement", "run_agreement"]

Floats = NDArray[np.float64]
Share = float | None
Interval = tuple[float, float] | None


class LabelAgreement(BaseModel):
    """A score at or above the threshold says that an answer is right; so may a person.

    A share is `None` where there is nothing to take a share of.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    threshold: float
    rows: int = Field(ge=0)
    """Rows with a score and a label that can be read."""
    true_positives: int
    """The score and the label say right."""
    false_positives: int
    """The score says right, the label wrong."""
    false_negatives: int
    true_negatives: int
    balanced_accuracy: Share
    """Mean of recall and specificity (Brodersen et al. 2010)."""
    balanced_accuracy_interval: Interval = None
    precision: Share
    """Of what the score calls right, the share that is."""
    recall: Share
    """Of what is right, the share that the score calls so."""
    specificity: Share
    """Of what is wrong, the share that the score calls so."""
    f1: Share
    """Harmonic mean of precision and recall (van Rijsbergen 1979)."""
    f1_interval: Interval = None
    kappa: Share
    """Agreement beyond that of chance (Cohen 1960): 1 is all, 0 none; below 0, less than that."""
    kappa_interval: Interval = None
    unlabelled: int = 0
    """Rows that nobody has labelled."""
    not_scored: tuple[str, ...] = ()
    """Labelled rows without a score."""
    not_read: tuple[str, ...] = ()
    """Rows with a label that is none of the accepted words."""


def run_agreement(  # noqa: PLR0913  (options by keyword)
    rows: EvaluationRun | Iterable[EvaluatedRow],
    key: str,
    *,
    threshold: float = 0.5,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> LabelAgreement | None:
    """Compare a metric with the labels of the rows.

    Args:
        rows: An `EvaluationRun`, or its rows.
        key: Name of the metric.
        threshold: From which score on it says that an answer is right.
        confidence: As for `label_agreement`.
        resamples: As for `label_agreement`.
        seed: As for `label_agreement`.

    Returns:
        The agreement; `None` if no row has a label.

    Raises:
        ConfigurationError: An option has a value that cannot work, or no row has the metric.
    """
    listed = rows_of(rows)
    require_metric(listed, key)
    if all(row.row.label is None for row in listed):
        return None
    return label_agreement(
        [next((s.score for s in row.scores if s.key == key), None) for row in listed],
        [row.row.label for row in listed],
        ids=[row.row.id for row in listed],
        threshold=threshold,
        confidence=confidence,
        resamples=resamples,
        seed=seed,
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

    The intervals are percentiles over rows drawn with replacement (Efron and Tibshirani 1993,
    chapter 13); draws in which a share is of nothing do not count.

    Args:
        scores: One per row; `None` for a row without one.
        labels: One per row, in the words that `langchain-groundedness calibrate` reads: `true`,
            `supported`, `right`, `approve`, 1 for what is right; `false`, `unsupported`, `wrong`,
            `contradicted`, `unverifiable`, `edit`, `reject`, 0 for what is not. `None` for a row
            that nobody has labelled.
        ids: Names of the rows, for those that could not be compared; by default their places.
        threshold: From which score on an answer counts as right.
        confidence: Of the intervals.
        resamples: How often to draw, 100 at least.
        seed: Of the draws.

    Returns:
        The agreement.

    Raises:
        ConfigurationError: An option has a value that cannot work.

    Example:
        >>> found = label_agreement([0.9, 0.8, 0.3, 0.1], [True, False, True, False])
        >>> found.balanced_accuracy, found.kappa
        (0.5, 0.0)
    """
    require_share("confidence", confidence)
    require_resamples(resamples)
    if not math.isfinite(threshold):
        msg = f"threshold must be a finite number, got {threshold}"
        raise ConfigurationError(msg)
    _require_reachable(threshold, [score for score in scores if score is not None])
    names = [str(place) for place in range(len(scores))] if ids is None else list(ids)
    if not len(scores) == len(labels) == len(names):
        msg = (
            f"one label and one id per score is needed: {len(labels)} labels, {len(scores)} scores"
        )
        raise ConfigurationError(msg)
    cells = np.zeros(4, dtype=np.int64)
    unlabelled, not_scored, not_read = 0, [], []
    for name, score, label in zip(names, scores, labels, strict=True):
        if label is None:
            unlabelled += 1
            continue
        try:
            is_right = read_label(label)
        except ValueError:
            not_read.append(name)
            continue
        if score is None:
            not_scored.append(name)
            continue
        cells[2 * (score < threshold) + (is_right != (score >= threshold))] += 1
    drawn = _drawn(cells, resamples, seed)
    tail = (1 - confidence) / 2
    tp, fp, tn, fn = cells.tolist()
    return LabelAgreement(
        threshold=threshold,
        rows=int(cells.sum()),
        true_positives=tp,
        false_positives=fp,
        false_negatives=fn,
        true_negatives=tn,
        balanced_accuracy=_value(_balanced_accuracy(cells)),
        balanced_accuracy_interval=_interval(_balanced_accuracy(drawn), tail),
        precision=_share(tp, tp + fp),
        recall=_share(tp, tp + fn),
        specificity=_share(tn, tn + fp),
        f1=_value(_f1(cells)),
        f1_interval=_interval(_f1(drawn), tail),
        kappa=_value(_kappa(cells)),
        kappa_interval=_interval(_kappa(drawn), tail),
        unlabelled=unlabelled,
        not_scored=tuple(not_scored),
        not_read=tuple(not_read),
    )


def _require_reachable(threshold: float, scores: Sequence[float]) -> None:
    low, high = min([0.0, *scores]), max([1.0, *scores])
    if not low <= threshold <= high:
        msg = f"threshold: scores are from {low:g} to {high:g}, got {threshold:g}"
        raise ConfigurationError(msg)


def _drawn(cells: NDArray[np.int64], resamples: int, seed: int) -> NDArray[np.int64]:
    total = int(cells.sum())
    if not total:
        return np.zeros((0, 4), dtype=np.int64)
    chance = np.random.default_rng(seed)
    found: NDArray[np.int64] = chance.multinomial(total, cells / total, size=resamples)
    return found


def _balanced_accuracy(cells: NDArray[np.int64]) -> Floats:
    tp, fp, tn, fn = np.moveaxis(cells.astype(np.float64), -1, 0)
    return (_over(tp, tp + fn) + _over(tn, tn + fp)) / 2


def _f1(cells: NDArray[np.int64]) -> Floats:
    tp, fp, _, fn = np.moveaxis(cells.astype(np.float64), -1, 0)
    return _over(2 * tp, 2 * tp + fp + fn)


def _kappa(cells: NDArray[np.int64]) -> Floats:
    tp, fp, tn, fn = np.moveaxis(cells.astype(np.float64), -1, 0)
    total = tp + fp + tn + fn
    agreed = (tp + tn) * total
    by_chance = (tp + fp) * (tp + fn) + (tn + fn) * (tn + fp)
    return _over(agreed - by_chance, total**2 - by_chance)


def _over(part: Floats, whole: Floats) -> Floats:
    """Divide; not a number where there is nothing to divide by."""
    nothing = np.full(np.shape(part), np.nan)
    found: Floats = np.divide(part, whole, out=nothing, where=np.asarray(whole) != 0)
    return found


def _value(found: Floats) -> float | None:
    value = float(found)
    return None if np.isnan(value) else value


def _interval(found: Floats, tail: float) -> Interval:
    known = found[~np.isnan(found)]
    if not len(known):
        return None
    low, high = np.quantile(known, (tail, 1 - tail)).tolist()
    return low, high


def _share(part: int, whole: int) -> Share:
    return part / whole if whole else None
