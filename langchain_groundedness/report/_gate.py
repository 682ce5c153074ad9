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


def judge(
    run: EvaluationRun, fail_under: Mapping[str, float], *, max_failed: int = 0
) -> list[Verdict]:
    """Compare means with thresholds, as `langchain-groundedness evaluate --fail-under` does.

    What was not checked does not pass: a run that was interrupted fails, and so does a metric
    without any score. Skipped rows do not count: there is nothing that the metric could be of.

    Args:
        run: The run.
        fail_under: Thresholds by the key of their metric.
        max_failed: How many rows may have failed, or not been readable.

    Returns:
        One verdict per threshold.

    Raises:
        ConfigurationError: A metric is not in the run, or a threshold is not finite.
    """
    metrics = {metric.key: metric for metric in metrics_of(run)}
    for key, threshold in fail_under.items():
        _check(key, threshold, list(metrics))
    return [_judged(run, metrics[key], least, max_failed) for key, least in fail_under.items()]


def _check(key: str, threshold: float, known: Sequence[str]) -> None:
    if key not in known:
        msg = f"the run has no metric {key!r}; it has {', '.join(known) or 'none'}"
        raise ConfigurationError(msg)
    if not math.isfinite(threshold):
        msg = f"the threshold of {key} must be a finite number, got {threshold}"
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
