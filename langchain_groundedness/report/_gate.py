"""Whether a run is good enough for CI; pure."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from langchain_groundedness.evals.values import EvaluationRun
from langchain_groundedness.exceptions import ConfigurationError
from langchain_groundedness.report._figures import metrics_of
from langchain_groundedness.report._values import MetricFigures
from langchain_groundedness.report._words import count, number

__all__ = ["Verdict", "judge"]


class Verdict(NamedTuple):
    """What a threshold says about a metric."""

    key: str
    threshold: float
    passed: bool
    text: str
    """Why, in one line."""


def judge(run: EvaluationRun, fail_under: Mapping[str, float]) -> list[Verdict]:
    """Compare means with thresholds.

    What was not checked does not pass: rows that failed, and those that could not be read, count as
    0 here, a run that was interrupted fails, and so does a metric without any score. Skipped rows
    do not count: there is nothing that the metric could be of.

    Args:
        run: The run.
        fail_under: Thresholds by the key of their metric.

    Returns:
        One verdict per threshold.

    Raises:
        ConfigurationError: A metric is not in the run, or a threshold is not finite.
    """
    metrics = {metric.key: metric for metric in metrics_of(run)}
    for key, threshold in fail_under.items():
        _check(key, threshold, list(metrics))
    return [_judged(run, metrics[key], least) for key, least in fail_under.items()]


def _check(key: str, threshold: float, known: Sequence[str]) -> None:
    if key not in known:
        msg = f"the run has no metric {key!r}; it has {', '.join(known) or 'none'}"
        raise ConfigurationError(msg)
    if not math.isfinite(threshold):
        msg = f"the threshold of {key} must be a finite number, got {threshold}"
        raise ConfigurationError(msg)


def _judged(run: EvaluationRun, metric: MetricFigures, least: float) -> Verdict:
    lost = metric.failed + len(run.bad_rows)
    if not metric.scores:
        return Verdict(metric.key, least, passed=False, text=f"{metric.key}: no row has a score")
    mean = math.fsum(metric.scores) / (len(metric.scores) + lost)
    if not run.complete:
        text = f"{metric.key}: the run was interrupted, rows are missing"
        return Verdict(metric.key, least, passed=False, text=text)
    passed = mean >= least
    than = f"not below {least:g}" if passed else f"below {least:g}"
    text = f"{metric.key}: {_exact(mean, least)} is {than} ({count(len(metric.scores))} scored"
    if lost:
        text += f", {count(lost)} without a score counted as 0"
    return Verdict(metric.key, least, passed=passed, text=f"{text})")


def _exact(mean: float, least: float) -> str:
    """Write a mean so that it does not look like the threshold that it misses."""
    short = number(mean)
    return short if mean == least or float(short) != least else repr(mean)
