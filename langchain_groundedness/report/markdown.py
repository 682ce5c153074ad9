"""Runs as Markdown, for the summary of a CI job or a pull request; pure."""

import re
from collections.abc import Iterable, Iterator, Sequence

from langchain_groundedness.display.escaping import printable
from langchain_groundedness.evals.statistics import Estimate
from langchain_groundedness.evals.values import EvaluatedRow, EvaluationRun
from langchain_groundedness.report import words
from langchain_groundedness.report.figures import compared, metrics_of, score_of, slices_of
from langchain_groundedness.report.values import (
    ComparedMetric,
    MetricFigures,
    RunComparison,
    SlicedColumn,
)

__all__ = ["markdown"]

_MARKUP = re.compile(
    r"([\\`*{}\[\]()#!|~$@]|(?<![^\W_])_|_(?![^\W_])|^[-+=]|(?<=\w)\.(?=\w)|:(?=//))"
)
_MOST_ROWS = 10
_MOST_REASONS = 10
_LONGEST = 200


def markdown(run: EvaluationRun, baseline: EvaluationRun | None = None) -> str:
    """Write what a run says in a few tables."""
    metrics = metrics_of(run)
    parts = [
        _head(run),
        *(f"> **!** {text}" for text in words.warnings(run).values()),
        _metrics(metrics),
    ]
    if baseline is not None:
        parts += _comparison(compared(run, baseline))
    parts += _reasons(metrics)
    parts += [_slice(each, metrics) for each in slices_of(run, metrics)]
    parts += _lowest(run, metrics)
    parts += _bad_rows(run)
    return "\n\n".join(part for part in parts if part) + "\n"


def _head(run: EvaluationRun) -> str:
    return f"# {_text(words.title(run))}\n\n{_text(words.facts(run))}"


def _metrics(metrics: Sequence[MetricFigures]) -> str:
    rows = (
        (_text(m.key), _mean(m.estimate), _interval(m.estimate), len(m.scores), m.failed, m.skipped)
        for m in metrics
    )
    return _table(("metric", "mean", "95 % interval", "scored", "failed", "skipped"), rows)


def _comparison(found: RunComparison) -> Iterator[str]:
    yield f"## Compared with {_text(found.baseline)}"
    yield words.overlap(found)
    heads = ("metric", "before", "now", "change", "95 % interval", "higher", "lower", "same",
             "lost", "is it chance?")  # fmt: skip
    yield _table(heads, map(_change, found.metrics))


def _change(each: ComparedMetric) -> tuple[object, ...]:
    found = each.found
    by = found.difference
    return (
        _text(each.key),
        words.NONE if found.before is None else words.number(found.before),
        words.NONE if found.after is None else words.number(found.after),
        words.change(by.mean) if by else words.NONE,
        _interval(by),
        found.better,
        found.worse,
        found.same,
        each.lost,
        words.significance(found),
    )


def _reasons(metrics: Sequence[MetricFigures]) -> Iterator[str]:
    rows = [
        (_text(metric.key), each.status, each.rows, _text(each.text))
        for metric in metrics
        for each in metric.reasons[:_MOST_REASONS]
    ]
    if rows:
        yield "## Without a score"
        yield _table(("metric", "status", "rows", "reason"), rows)


def _slice(found: SlicedColumn, metrics: Sequence[MetricFigures]) -> str:
    rows = (
        (
            _text(group.name),
            group.rows,
            *(
                f"{_mean(group.metrics.get(m.key))} ({_interval(group.metrics.get(m.key))})"
                for m in metrics
            ),
        )
        for group in found.groups
    )
    heads = (_text(found.column), "rows", *(_text(metric.key) for metric in metrics))
    return f"## By {_text(found.column)}\n\n{_table(heads, rows)}"


def _lowest(run: EvaluationRun, metrics: Sequence[MetricFigures]) -> Iterator[str]:
    for metric in metrics:
        mean = metric.estimate.mean if metric.estimate else None
        scored = [
            (found, row) for row in run.rows if (found := _score(row, metric.key)) is not None
        ]
        lowest = sorted(scored, key=lambda each: each[0])[:_MOST_ROWS]
        rows = [
            (
                _text(row.row.id),
                words.number(score),
                _text(row.row.question or row.row.answer or ""),
            )
            for score, row in lowest
            if mean is not None and score < mean
        ]
        if rows:
            yield f"<details><summary>Lowest {_text(metric.key)}</summary>"
            yield _table(("row", "score", "question"), rows)
            yield "</details>"


def _score(row: EvaluatedRow, key: str) -> float | None:
    found = score_of(row, key)
    return None if found is None else found.score


def _bad_rows(run: EvaluationRun) -> Iterator[str]:
    if not run.bad_rows:
        return
    shown = run.bad_rows[:_MOST_ROWS]
    yield "## Rows that could not be read"
    yield _table(
        ("line", "id", "reason"),
        ((_known(each.line), _text(each.id or words.NONE), _text(each.reason)) for each in shown),
    )
    left = len(run.bad_rows) - len(shown)
    if left:
        yield f"and {words.count(left, 'other')}"


def _known(value: int | None) -> str:
    return words.NONE if value is None else str(value)


def _mean(found: Estimate | None) -> str:
    return words.NONE if found is None else words.number(found.mean)


def _interval(found: Estimate | None) -> str:
    return words.NONE if found is None else words.interval(found)


def _table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def _text(text: str) -> str:
    """Write a text so that it stays one, in one line: no markup, no HTML, no links, no mentions."""
    line = " ".join(printable(text).split())
    line = line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
    escaped = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _MARKUP.sub(r"\\\1", escaped) or words.NONE
