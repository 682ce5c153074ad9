"""Figures of a run, shared by all report formats; pure."""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple, get_args

from langchain_groundedness.calibration import CalibrationSample, Reliability, ScoredClaim
from langchain_groundedness.calibration.labelled_data import read_label
from langchain_groundedness.calibration.thresholds import reliability
from langchain_groundedness.calibration.values import main_verifier
from langchain_groundedness.evals import statistics
from langchain_groundedness.evals.display import format_count, format_number, run_title
from langchain_groundedness.evals.values import EvaluatedRow, EvaluationRun
from langchain_groundedness.exceptions import ConfigurationError, require
from langchain_groundedness.types import AnswerVerdict, GroundednessResult, VerdictLabel

__all__ = ["GateResult", "check_thresholds"]

_FORMATS = (".html", ".md", ".xml")
_MOST_VALUES = 50
_MOST_RANKED = 5
_LONGEST_VALUE = 80
_TINY = 0.001
_BY_SINGLE_DOCUMENTS = {"citations", "judged_by"}
"""Details of the metrics that judge claims by some documents only: citations, context precision."""


class MetricFigures(NamedTuple):
    """The figures of one metric in a run."""

    key: str
    scores: tuple[float, ...]
    estimate: statistics.Estimate | None
    """`None` if no row has a score."""
    failed: int
    skipped: int
    reasons: tuple[tuple[str, str, int], ...]
    """Status, reason and number of the rows without a score, the most frequent first."""
    agreement: statistics.LabelAgreement | None
    """Agreement with human labels; `None` unless some labels say right and some wrong, and for
    scores outside 0 to 1."""

    @property
    def is_constant(self) -> bool:
        """Whether several rows have a score, and all the same."""
        return len(self.scores) > 1 and len(self.counts) == 1

    @property
    def counts(self) -> list[tuple[float, int]]:
        """How many rows have each score."""
        return sorted(Counter(self.scores).items())

    @property
    def bounds(self) -> tuple[float, float]:
        """The range of the plot: 0 to 1, unless a score lies outside."""
        return min((0.0, *self.scores)), max((1.0, *self.scores))


def format_of(path: Path) -> str:
    """Tell the format of a report by its suffix; refuse what cannot be written."""
    suffix = path.suffix.lower()
    if suffix not in _FORMATS:
        msg = f"{path}: unknown report format; name the file .html, .md or .xml"
        raise ConfigurationError(msg)
    if suffix == ".html":
        require("jinja2", extra="report")
    return suffix


def metrics_of(run: EvaluationRun) -> tuple[MetricFigures, ...]:
    """Sum up each metric."""
    keys = dict.fromkeys((*run.header.evaluators, *_keys(run)))
    return tuple(_metric_figures(run, key) for key in keys)


def _metric_figures(run: EvaluationRun, key: str) -> MetricFigures:
    found = [score for row in run.rows if (score := statistics.find_score(row, key)) is not None]
    scores = tuple(each.score for each in found if each.score is not None)
    statuses = Counter(each.status for each in found)
    reasons = Counter((str(e.status), e.reason) for e in found if e.reason is not None)
    is_share = scores and min(scores) >= 0 and max(scores) <= 1
    agreement = statistics.run_agreement(run, key) if is_share else None
    return MetricFigures(
        key=key,
        scores=scores,
        estimate=statistics.estimate_mean(scores),
        failed=statuses["failed"],
        skipped=statuses["skipped"],
        reasons=tuple((*why, rows) for why, rows in reasons.most_common()),
        agreement=None if agreement and agreement.balanced_accuracy is None else agreement,
    )


def main_result(row: EvaluatedRow) -> GroundednessResult | None:
    """Find the verdicts on the answer of a row by all its documents, whatever the order of metrics.

    Other metrics give verdicts on the reference, by the reference, or by single documents.
    """
    ordered = sorted(row.scores, key=lambda score: score.key)
    results = (score.result for score in ordered if not _BY_SINGLE_DOCUMENTS & score.details.keys())
    return next(
        (each for each in results if each and _checked(each) == _answer_and_documents(row)), None
    )


def verdicts_of(run: EvaluationRun) -> tuple[dict[VerdictLabel, int], dict[AnswerVerdict, int]]:
    """Count the claims and the answers of a run by verdict."""
    results = [found for row in run.rows if (found := main_result(row)) is not None]
    claims = Counter(each.verdict for found in results for each in found.claims)
    answers = Counter(found.verdict for found in results)
    return (
        {verdict: claims[verdict] for verdict in get_args(VerdictLabel)},
        {verdict: answers[verdict] for verdict in get_args(AnswerVerdict)},
    )


class RankedRow(NamedTuple):
    """A row to read first."""

    place: int
    """In the run, from 1."""
    row: EvaluatedRow
    changes: Mapping[str, float]
    """By key; empty without a baseline."""

    @property
    def result(self) -> GroundednessResult | None:
        """The verdicts on its answer."""
        return main_result(self.row)

    @property
    def scores(self) -> Mapping[str, float]:
        """By key; only metrics that have a score."""
        return _scores(self.row)


def ranked_rows(run: EvaluationRun, baseline: EvaluationRun | None = None) -> list[RankedRow]:
    """Find the worst rows or, beside a baseline, those whose scores changed most."""
    changes = {} if baseline is None else _changes(run, baseline)
    rows = [RankedRow(n, row, changes.get(row.row.id, {})) for n, row in enumerate(run.rows, 1)]
    if baseline is None:
        ranks = [(_worst_first(each.row), each) for each in rows if each.scores]
        least = max((rank for rank, _ in ranks), default=None)
    else:
        ranks, least = (
            [(_most_changed_first(each.changes), each) for each in rows if each.changes],
            (0, 0),
        )
    ranks.sort(key=itemgetter(0))
    return [each for rank, each in ranks if rank != least][:_MOST_RANKED]


def _worst_first(row: EvaluatedRow) -> tuple[float, float]:
    """Order rows by contradicted claims, then by the mean of their scores, the worst first."""
    result = main_result(row)
    claims = result.claims if result else ()
    scores = _scores(row).values()
    mean = sum(scores) / len(scores)
    return -sum(found.verdict == "contradicted" for found in claims), mean


def _most_changed_first(changes: Mapping[str, float]) -> tuple[float, float]:
    """Order rows by their largest change, those that have become worse first."""
    by = max(changes.values(), key=abs)
    return -abs(by), by


def _scores(row: EvaluatedRow) -> dict[str, float]:
    return {each.key: each.score for each in row.scores if each.score is not None}


def _changes(run: EvaluationRun, baseline: EvaluationRun) -> dict[str, dict[str, float]]:
    """Give the changes of the scores by row and key."""
    now = {row.row.id: _scores(row) for row in run.rows}
    before = {name: _scores(row) for name, row in paired_rows(run, baseline).items()}
    return {
        name: {key: now[name][key] - score for key, score in was.items() if key in now[name]}
        for name, was in before.items()
    }


class SliceGroup(NamedTuple):
    """The rows with the same value of a column."""

    name: str
    is_value: bool
    """False for the rows without a value, and for the remaining rows."""
    rows: int
    metrics: Mapping[str, statistics.Estimate]
    """By key; only metrics that have scores."""
    changes: Mapping[str, statistics.Estimate]
    """By key: the mean change since the baseline, over the rows in both."""


def slices_of(
    run: EvaluationRun, baseline: EvaluationRun | None = None
) -> dict[str, list[SliceGroup]]:
    """Sum up each metric per value of each column that divides the rows into a few groups.

    The largest group of a column comes first.
    """
    columns = dict.fromkeys(name for row in run.rows for name in row.row.metadata)
    changes = {} if baseline is None else _changes(run, baseline)
    return {
        name: [_group(rows, changes) for rows in statistics.split_rows(run.rows, name)]
        for name in columns
        if _has_few_groups(run, name)
    }


def slice_value(row: EvaluatedRow, column: str) -> str | None:
    """Name the group of a row."""
    value = row.row.metadata.get(column)
    if isinstance(value, str):
        return _shortened(value)
    return json.dumps(value) if isinstance(value, bool | int) else None


def _has_few_groups(run: EvaluationRun, column: str) -> bool:
    given = [row for row in run.rows if row.row.metadata.get(column) is not None]
    values = {slice_value(row, column) for row in given}
    return None not in values and 1 < len(values) <= min(_MOST_VALUES, len(run.rows) // 2)


def _group(rows: statistics.RowsOfValue, changes: Mapping[str, Mapping[str, float]]) -> SliceGroup:
    name = "without a value" if rows.value is None else _shortened(rows.value)
    return SliceGroup(
        name if rows.values == 1 else f"{rows.values} other values",
        rows.value is not None,
        len(rows.rows),
        _estimates(map(_scores, rows.rows), statistics.estimate_mean),
        _estimates((changes.get(row.row.id, {}) for row in rows.rows), statistics.estimate_change),
    )


def _estimates(
    scores: Iterable[Mapping[str, float]], estimate: Callable[..., statistics.Estimate | None]
) -> dict[str, statistics.Estimate]:
    by_key: dict[str, list[float]] = {}
    for each in scores:
        for key, score in each.items():
            by_key.setdefault(key, []).append(score)
    found = {key: estimate(values) for key, values in by_key.items()}
    return {key: mean for key, mean in found.items() if mean is not None}


def _shortened(value: str) -> str:
    """Shorten a long value so that it still differs from values with the same beginning."""
    if len(value) <= _LONGEST_VALUE:
        return value
    number = sha256(value.encode("utf-8", "surrogatepass")).hexdigest()[:6]
    return f"{value[: _LONGEST_VALUE - 10]}… ({number})"


def reliability_of(run: EvaluationRun) -> Reliability | None:
    """Compare the probabilities of the verdicts with human labels."""
    samples = [sample for row in run.rows if (sample := _sample(row)) is not None]
    return reliability(samples, main_verifier(samples))


def _sample(row: EvaluatedRow) -> CalibrationSample | None:
    result = main_result(row)
    if row.row.label is None or result is None:
        return None
    try:
        is_right = read_label(row.row.label)
    except ValueError:
        return None
    claims = tuple(map(ScoredClaim.of, result.claims))
    return CalibrationSample(unit="answer", is_right=is_right, claims=claims)


class ComparedMetric(NamedTuple):
    """A metric in both runs."""

    key: str
    found: statistics.PairedComparison
    lost: int
    """Rows that had a score and no longer have one."""

    @property
    def significance(self) -> str:
        """In words, whether the change is significant."""
        found = self.found
        if found.p_value is None:
            return "no row has a score in both runs"
        if not found.better and not found.worse:
            return f"no difference: no score has changed in {format_count(found.rows)}"
        p_value = "p < 0.001" if found.p_value < _TINY else f"p = {found.p_value:.3f}"
        return f"{'more than chance' if found.is_significant() else 'could be chance'}, {p_value}"


class RunComparison(NamedTuple):
    """A run beside its baseline."""

    baseline: str
    """Its name."""
    metrics: tuple[ComparedMetric, ...]
    """The metrics that both runs have."""
    overlap: str
    """In words, which rows the two share."""


def compare(run: EvaluationRun, baseline: EvaluationRun) -> RunComparison:
    """Compare a run with an earlier one, by the ids of their rows."""
    before = paired_rows(run, baseline)
    now = {row.row.id: row for row in run.rows}
    there = {row.row.id for row in baseline.rows}
    other_question = len(now.keys() & there) - len(before)
    other_answer = sum(
        _answer_and_documents(row) != _answer_and_documents(now[name])
        for name, row in before.items()
    )
    parts = (
        (len(before), f"{format_count(len(before))} in both"),
        (other_answer, f"{other_answer:,} of them with another answer or other documents"),
        (len(now.keys() - there), f"{len(now.keys() - there):,} only in this run"),
        (len(there - now.keys()), f"{len(there - now.keys()):,} only in the other"),
        (other_question, f"{other_question:,} with another question"),
    )
    shown = [text for place, (number, text) in enumerate(parts) if number or not place]
    lost = Counter(
        key for name, row in before.items() for key in _scores(row).keys() - _scores(now[name])
    )
    metrics = tuple(
        ComparedMetric(key, statistics.compare_runs(baseline, run, key), lost[key])
        for key in _keys(run)
        if key in _keys(baseline)
    )
    return RunComparison(run_title(baseline), metrics, f"{', '.join(shown)}.")


def paired_rows(run: EvaluationRun, baseline: EvaluationRun) -> dict[str, EvaluatedRow]:
    """Find the rows of a run in another one, by id and question."""
    asked = {row.row.id: row.row.question for row in run.rows}
    return {
        row.row.id: row
        for row in baseline.rows
        if row.row.id in asked and asked[row.row.id] == row.row.question
    }


def _keys(run: EvaluationRun) -> dict[str, None]:
    return dict.fromkeys(score.key for row in run.rows for score in row.scores)


def _answer_and_documents(row: EvaluatedRow) -> tuple[str | None, list[str]]:
    """Return the answer of a pipeline and the documents it read."""
    return row.row.answer, [document.page_content for document in row.row.documents or ()]


def _checked(result: GroundednessResult) -> tuple[str, list[str]]:
    """Return the text that was checked and the documents that it was checked against."""
    return result.original_answer, [document.page_content for document in result.documents]


class GateResult(NamedTuple):
    """Whether a metric reaches its threshold."""

    key: str
    passed: bool
    text: str
    """Why, in one line."""


def check_thresholds(
    run: EvaluationRun, fail_under: Mapping[str, float], *, max_failed: int = 0
) -> list[GateResult]:
    """Compare means with thresholds, as `langchain-groundedness evaluate --fail-under` does.

    An interrupted run fails, and so does a metric without any score. Skipped rows do not count:
    the metric does not apply to them.

    Args:
        run: The run.
        fail_under: Thresholds by the key of their metric; a mean below its threshold fails.
        max_failed: How many rows may fail, or be unreadable, for a metric to pass.

    Returns:
        For each threshold whether it is reached, and why.

    Raises:
        ConfigurationError: A metric is not in the run, or no score can have the threshold.
    """
    metrics = {metric.key: metric for metric in metrics_of(run)}
    for key, threshold in fail_under.items():
        if key not in metrics:
            msg = f"the run has no metric {key!r}; it has {', '.join(metrics) or 'none'}"
            raise ConfigurationError(msg)
        if not math.isfinite(threshold):
            msg = f"the threshold of {key} must be a finite number, got {threshold}"
            raise ConfigurationError(msg)
        made_by = str(run.header.evaluators.get(key, {}).get("class", ""))
        lowest = -1 if made_by.endswith("SemanticSimilarityEvaluator") else 0
        if made_by.startswith("langchain_groundedness.") and not lowest <= threshold <= 1:
            msg = f"the threshold of {key}: scores are from {lowest} to 1, got {threshold:g}"
            raise ConfigurationError(msg)
    return [_gate(run, metrics[key], least, max_failed) for key, least in fail_under.items()]


def _gate(run: EvaluationRun, metric: MetricFigures, least: float, max_failed: int) -> GateResult:
    lost = metric.failed + len(run.bad_rows)
    if metric.estimate is None:
        return GateResult(metric.key, passed=False, text=f"{metric.key}: no row has a score")
    mean = metric.estimate.mean
    short = format_number(mean)
    # Rounding must not make a failing mean look equal to its threshold.
    shown = short if mean == least or float(short) != least else repr(mean)
    faults = [
        f"{shown} is below {least:g}" if mean < least else "",
        f"{format_count(lost)} failed or could not be read; at most {max_failed:,} allowed"
        if lost > max_failed
        else "",
        "" if run.complete else "the run was interrupted: rows are missing",
    ]
    text = "; ".join(filter(None, faults)) or f"{shown} is not below {least:g}"
    return GateResult(metric.key, passed=not any(faults), text=f"{metric.key}: {text}")
