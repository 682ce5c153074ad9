"""Runs as Markdown, for the summary of a CI job or a pull request; pure."""

import re
from collections.abc import Iterable, Iterator, Sequence

from langchain_groundedness.display.hidden_characters import show_hidden
from langchain_groundedness.evals import display
from langchain_groundedness.evals.values import EvaluationRun
from langchain_groundedness.report import figures

__all__ = ["to_markdown"]

_MARKUP = re.compile(
    r"([\\`*\[\]|~$@]|(?<=\])\(|#(?=\d|$)|^[-+=#]|(?<![^\W_])_|_(?![^\W_])|(?<=[wW]{3})\.|:(?=//))"
)
"""What begins markup, a link or a mention."""
_MOST_ROWS = 10
_LONGEST = 200


def to_markdown(run: EvaluationRun, *, baseline: EvaluationRun | None = None) -> str:
    """Write a run as a few Markdown tables, such as for the summary of a CI job.

    Args:
        run: The run.
        baseline: Another run over the same rows, to compare with.

    Returns:
        The text of a Markdown file.
    """
    metrics = figures.metrics_of(run)
    parts = [
        f"# {_text(display.run_title(run))}",
        *_verdicts(run),
        _text(display.run_facts(run)),
        *(f"> **!** {text}" for text in display.run_warnings(run).values()),
        _metrics(metrics),
        *(_comparison(figures.compare(run, baseline)) if baseline is not None else ()),
        *_reasons(metrics),
        *(_slice(*each, metrics) for each in figures.slices_of(run).items()),
        *_first_rows(run, baseline),
        *_bad_rows(run),
    ]
    return "\n\n".join(parts) + "\n"


def _verdicts(run: EvaluationRun) -> Iterator[str]:
    claims, answers = figures.verdicts_of(run)
    counted = {"Claims": claims.items(), "Answers": answers.items()}
    lines = (
        f"{unit}: {', '.join(f'{rows:,} {name}' for name, rows in counts if rows)}"
        for unit, counts in counted.items()
    )
    if any(answers.values()):
        yield " · ".join(lines).replace("_", " ")


def _metrics(metrics: Sequence[figures.MetricFigures]) -> str:
    def cells(m: figures.MetricFigures) -> tuple[object, ...]:
        mean = _number(m.estimate.mean if m.estimate else None)
        interval = display.format_interval(m.estimate)
        return _text(m.key), mean, interval, len(m.scores), m.failed, m.skipped

    heads = ("metric", "mean", "95 % interval", "scored", "failed", "skipped")
    return _table(heads, map(cells, metrics))


def _comparison(found: figures.RunComparison) -> Iterator[str]:
    yield f"## Compared with {_text(found.baseline)}"
    yield found.overlap
    heads = ("metric", "before", "now", "change", "95 % interval", "higher", "lower", "same",
             "lost", "significance")  # fmt: skip
    yield _table(heads, map(_change, found.metrics))


def _change(each: figures.ComparedMetric) -> tuple[object, ...]:
    found = each.found
    return (
        _text(each.key),
        _number(found.before),
        _number(found.after),
        display.format_change(found.difference.mean) if found.difference else display.NONE,
        display.format_interval(found.difference),
        found.better,
        found.worse,
        found.same,
        each.lost,
        each.significance,
    )


def _reasons(metrics: Sequence[figures.MetricFigures]) -> Iterator[str]:
    rows = [
        (_text(metric.key), status, rows, _text(reason))
        for metric in metrics
        for status, reason, rows in metric.reasons[:_MOST_ROWS]
    ]
    if rows:
        yield "## Without a score"
        yield _table(("metric", "status", "rows", "reason"), rows)


def _slice(
    column: str, groups: Sequence[figures.SliceGroup], metrics: Sequence[figures.MetricFigures]
) -> str:
    keys = [metric.key for metric in metrics]
    rows = []
    for group in groups:
        means = map(group.metrics.get, keys)
        cells = (f"{_number(m.mean if m else None)} ({display.format_interval(m)})" for m in means)
        rows.append((_text(group.name), group.rows, *cells))
    heads = (_text(column), "rows", *map(_text, keys))
    return f"## By {_text(column)}\n\n{_table(heads, rows)}"


def _first_rows(run: EvaluationRun, baseline: EvaluationRun | None) -> Iterator[str]:
    """Show the worst rows or, beside a baseline, those whose scores changed most."""
    keys = [metric.key for metric in figures.metrics_of(run)]
    if ranked := figures.ranked_rows(run, baseline):
        yield f"## {'Worst' if baseline is None else 'Most changed'} rows"
        heads = ("row", "question", "answer", "claims not supported", *map(_text, keys))
        yield _table(heads, (_first_row(each, keys) for each in ranked))


def _first_row(each: figures.RankedRow, keys: Sequence[str]) -> tuple[str, ...]:
    row, claims = each.row.row, () if each.result is None else each.result.claims
    failed = [f"{c.verdict}: {_text(c.claim.text)}" for c in claims if c.verdict != "supported"]
    return (
        *(_text(text or "") for text in (row.id, row.question, row.answer)),
        "<br>".join(failed[:_MOST_ROWS]) or display.NONE,
        *(_score(each, key) for key in keys),
    )


def _score(each: figures.RankedRow, key: str) -> str:
    shown, change = _number(each.scores.get(key)), each.changes.get(key)
    return f"{shown} ({display.format_change(change)})" if change else shown


def _bad_rows(run: EvaluationRun) -> Iterator[str]:
    rows = [(_text(str(r.line or "")), _text(r.id or ""), _text(r.reason)) for r in run.bad_rows]
    if rows:
        yield "## Rows that could not be read"
        yield _table(("line", "id", "reason"), rows[:_MOST_ROWS])
    if len(rows) > _MOST_ROWS:
        yield f"and {display.format_count(len(rows) - _MOST_ROWS, 'other')}"


def _number(value: float | None) -> str:
    return display.NONE if value is None else display.format_number(value)


def _table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def _text(text: str) -> str:
    """Escape a text for one line of Markdown: no markup, HTML, links or mentions."""
    line = " ".join(show_hidden(text).split())
    line = line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
    escaped = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _MARKUP.sub(r"\\\1", escaped) or display.NONE
