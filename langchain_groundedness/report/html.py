"""A run as one self-contained HTML page with its style, script and rows.

Its content security policy allows only its own script and fetches nothing. The rows are in three
blocks of JSON: what the table shows of all rows, one line per row with the rest, and one line per
document, each once. The script reads a line when a row is opened. Hidden
characters are named in it. Positions are in UTF-16, as JavaScript counts.
"""

import json
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from langchain_core.documents import Document

from langchain_groundedness.audit.record import plain_mapping
from langchain_groundedness.calibration.thresholds import reliability_plot
from langchain_groundedness.display.counts import format_count
from langchain_groundedness.display.hidden_characters import offset_with_names, show_hidden
from langchain_groundedness.display.marked_text import SIGNS, is_located
from langchain_groundedness.display.svg import Plot
from langchain_groundedness.display.words import correction_words, evidence_words
from langchain_groundedness.evals import display
from langchain_groundedness.evals.statistics import find_score
from langchain_groundedness.evals.values import EvaluatedRow, EvaluationRun, RowScore
from langchain_groundedness.report import figures
from langchain_groundedness.report.pages import FEWEST_POINTS, page
from langchain_groundedness.types import Citation, ClaimVerdict, GroundednessResult

__all__ = ["to_html"]

_BINS = 20
_WIDE, _INSET = 120, 6
_Places = dict[str, int]
"""Places of documents by their line of JSON, so that the page holds each once."""
_UNSAFE = re.compile("[<>&]")
_BEYOND = re.compile("[\U00010000-\U0010ffff]")


def to_html(run: EvaluationRun, *, baseline: EvaluationRun | None = None) -> str:
    """Write a run as a page that stands alone: it loads nothing and opens offline.

    Args:
        run: The run.
        baseline: Another run over the same rows, to compare with.

    Returns:
        The text of an HTML file.

    Raises:
        MissingDependencyError: jinja2 is not installed; the extra `report` brings it.
    """
    script = (files(__package__) / "static" / "report.js").read_text("utf-8")
    metrics, slices = figures.metrics_of(run), figures.slices_of(run, baseline)
    reliability = figures.reliability_of(run)
    comparison = None if baseline is None else figures.compare(run, baseline)
    changes = {each.key: each for each in comparison.metrics} if comparison else {}
    verdicts = figures.verdicts_of(run)
    earlier = figures.verdicts_of(baseline) if baseline else ({}, {})
    values = {
        "title": run.header.name,
        "kind": "Groundedness report",
        "run": run,
        "display": display,
        "script": script,
        "fewest": FEWEST_POINTS,
        "drawn": {
            each.key: _distribution(each)
            for each in metrics
            if len(each.scores) >= FEWEST_POINTS and not each.is_constant
        },
        "verdicts": list(zip(("claims", "answers"), verdicts, earlier, strict=True))
        if any(verdicts[1].values())
        else [],
        "ranked": figures.ranked_rows(run, baseline),
        "metrics": metrics,
        "sliced": [each for each in metrics if _differs(each, changes.get(each.key))],
        "slices": slices,
        "comparison": comparison,
        "changes": changes,
        "has_labels": reliability is not None or any(each.agreement for each in metrics),
        "reliability": reliability,
        "reliability_plot": reliability_plot,
        "slice_scale": _slice_scale,
        "place": _place,
        "indented_json": _indented_json,
        **_data_blocks(run, metrics, slices, baseline),
    }
    return page("report.html", values)


def _differs(metric: figures.MetricFigures, change: figures.ComparedMetric | None) -> bool:
    """Tell whether slices can differ: rows have different scores, or changes."""
    return not metric.is_constant or bool(change and (change.found.better or change.found.worse))


def _distribution(metric: figures.MetricFigures) -> str:
    """Draw how many rows have which score."""
    low, high = metric.bounds
    counts = [0] * _BINS
    for score in metric.scores:
        counts[min(int((score - low) / (high - low) * _BINS), _BINS - 1)] += 1
    most = max(counts)
    plot = Plot(
        title=show_hidden(f"Distribution of {metric.key}"),
        highest=float(most),
        y_label="rows",
        width=340,
        height=150,
    )
    ticks = [(place, f"{low + (high - low) * place:g}") for place in (0, 0.5, 1)]
    plot.ticks(ticks, [(float(most), str(most))])
    for place, count in enumerate(counts):
        start, end = (low + (high - low) * edge / _BINS for edge in (place, place + 1))
        tooltip = f"{format_count(count)} with {start:.3g} to {end:.3g}"
        plot.bar((place + 0.08) / _BINS, 0.84 / _BINS, 0, count, "e", tooltip)
    if metric.estimate is not None:
        plot.mark((metric.estimate.mean - low) / (high - low), "d")
    return plot.drawn()


def _slice_scale(
    groups: Sequence[figures.SliceGroup], metric: figures.MetricFigures
) -> tuple[float, float]:
    """Return the range of the groups' values; with one group, the range of the metric."""
    known = [group.metrics[metric.key] for group in groups if metric.key in group.metrics]
    ends = [end for each in known for end in (each.low, each.mean, each.high) if end is not None]
    return (min(ends), max(ends)) if ends and min(ends) < max(ends) else metric.bounds


def _place(value: float, bounds: tuple[float, float]) -> str:
    low, high = bounds
    return f"{_INSET + (value - low) / (high - low) * (_WIDE - 2 * _INSET):.1f}"


def _indented_json(options: Mapping[str, Any]) -> str:
    return json.dumps(plain_mapping(options), indent=2, ensure_ascii=False)


def _data_blocks(
    run: EvaluationRun,
    metrics: Sequence[figures.MetricFigures],
    slices: Mapping[str, Sequence[figures.SliceGroup]],
    baseline: EvaluationRun | None,
) -> dict[str, str]:
    """Write the rows as JSON that is safe inside a `script` element."""
    documents: _Places = {}
    before = figures.paired_rows(run, baseline) if baseline else {}
    keys = [metric.key for metric in metrics]
    groups = {name: [g.name for g in found if g.is_value] for name, found in slices.items()}
    table = {
        "metrics": [{"key": each.key, "bounds": each.bounds} for each in metrics],
        "slices": [{"column": name, "values": values} for name, values in groups.items()],
        "compared": baseline is not None,
        "rows": [_table_row(row, keys, groups, before.get(row.row.id)) for row in run.rows],
    }
    rows = [_details(row, documents, before.get(row.row.id)) for row in run.rows]
    return {
        "table": _json(table),
        "rows": "\n".join(map(_json, rows)),
        "documents": "\n".join(documents),
    }


def _table_row(
    row: EvaluatedRow, keys: Sequence[str], columns: Mapping[str, Any], before: EvaluatedRow | None
) -> dict[str, Any]:
    result = figures.main_result(row)
    verdicts = [found.verdict for found in result.claims] if result else []
    return _without_empty(
        id=row.row.id,
        question=row.row.question,
        answer=row.row.answer,
        verdict=result and result.verdict,
        claims=[verdicts.count(name) for name in SIGNS] if result else None,
        scores=[_shown(find_score(row, key)) for key in keys],
        before=before and [_shown(find_score(before, key)) for key in keys],
        groups=[figures.slice_value(row, column) or "" for column in columns],
    )


def _shown(score: RowScore | None) -> float | str | None:
    """Give the score, or why there is none."""
    if score is None:
        return None
    return score.status if score.score is None else score.score


def _details(row: EvaluatedRow, documents: _Places, before: EvaluatedRow | None) -> dict[str, Any]:
    given = row.row.documents
    main = figures.main_result(row)
    ordered = sorted(row.scores, key=lambda score: score.result is not main)
    earlier = figures.main_result(before) if before else None
    return _without_empty(
        line=row.line,
        seconds=row.seconds,
        reference=row.row.reference,
        label=None if row.row.label is None else str(row.row.label),
        metadata=_texts(row.row.metadata),
        documents=None if given is None else [_place_of(each, documents) for each in given],
        scores=[_score(score) for score in row.scores],
        results=[_result(s.key, s.result, documents) for s in ordered if s.result is not None],
        before=before
        and _without_empty(
            answer=before.row.answer,
            scores=[_score(score) for score in before.scores],
            result=earlier and _result("", earlier, documents),
        ),
    )


def _score(score: RowScore) -> dict[str, Any]:
    usage = score.usage.model_dump(exclude_none=True) if score.usage.model_calls else None
    plain = score.model_dump(include={"key", "reason", "comment"})
    details = plain_mapping(score.details)
    return _without_empty(**plain, score=_shown(score), details=details, usage=usage)


def _result(key: str, result: GroundednessResult, documents: _Places) -> dict[str, Any]:
    return _without_empty(
        key=key,
        answer=result.original_answer,
        changed=None if result.answer == result.original_answer else result.answer,
        verdict=result.verdict,
        trust=result.trust_score,
        documents=[_place_of(each, documents) for each in result.documents],
        claims=[_claim(found, result) for found in result.claims],
    )


def _claim(found: ClaimVerdict, result: GroundednessResult) -> dict[str, Any]:
    answer = result.original_answer
    span = (found.claim.start or 0, found.claim.end or 0)
    return _without_empty(
        **found.model_dump(include={"verdict", "reason", "explanation", "correction"}),
        text=found.claim.text,
        span=_in_utf16(answer, span) if is_located(found, answer) else None,
        probability=found.support_probability,
        conflicting=found.conflicting or None,
        correction_words=correction_words(found) if found.correction else None,
        evidence_words=evidence_words(found) if found.citations else None,
        citations=[_citation(citation, result.documents) for citation in found.citations],
    )


def _citation(citation: Citation, documents: Sequence[Document]) -> dict[str, Any]:
    if citation.field is not None or not citation.holds_in(documents):
        return {"document": citation.document, "quote": citation.quote}
    text = documents[citation.document].page_content
    span = _in_utf16(text, (citation.start, citation.end))
    return {"document": citation.document, "span": span}


def _in_utf16(text: str, span: tuple[int, int]) -> tuple[int, int]:
    shown = show_hidden(text)
    start, end = (offset_with_names(text, place) for place in span)
    return (
        start + len(_BEYOND.findall(shown, 0, start)),
        end + len(_BEYOND.findall(shown, 0, end)),
    )


def _place_of(document: Document, places: _Places) -> int:
    metadata = _texts(document.metadata)
    line = _json(_without_empty(id=document.id, text=document.page_content, metadata=metadata))
    return places.setdefault(line, len(places))


def _texts(metadata: Mapping[str, Any]) -> list[tuple[str, str]]:
    plain = plain_mapping(metadata).items()
    return [(k, v if isinstance(v, str) else json.dumps(v, ensure_ascii=False)) for k, v in plain]


def _without_empty(**fields: Any) -> dict[str, Any]:
    """Leave out empty fields."""
    return {name: value for name, value in fields.items() if value is not None and value != ""}


def _json(value: Any) -> str:
    shown = _named_texts(value)
    text = json.dumps(shown, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _named_texts(value: Any) -> Any:
    """Name the hidden characters in all texts of a value."""
    if isinstance(value, str):
        return show_hidden(value)
    if isinstance(value, Mapping):
        return {show_hidden(str(key)): _named_texts(each) for key, each in value.items()}
    if isinstance(value, Sequence):
        return [_named_texts(each) for each in value]
    return value
