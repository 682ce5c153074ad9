"""The rows of a run as the page's script reads them; pure.

Three blocks of JSON: what the table shows of all rows, one line per row with the rest, and one line
per document, each once. The script reads a line when a row is opened. Positions are in UTF-16, as
JavaScript counts.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from langchain_core.documents import Document

from langchain_groundedness.audit.record import plain_mapping
from langchain_groundedness.display.escaping import printable
from langchain_groundedness.display.marked_text import SIGNS, is_located
from langchain_groundedness.evals.values import EvaluatedRow, EvaluationRun, RowScore
from langchain_groundedness.report.figures import main_result, paired, score_of, slice_value
from langchain_groundedness.report.values import MetricFigures, SlicedColumn
from langchain_groundedness.types import Citation, ClaimVerdict, GroundednessResult

__all__ = ["PageData", "page_data"]

_UNSAFE = re.compile("[<>&\u2028\u2029\ud800-\udfff]")
_BEYOND = re.compile("[\U00010000-\U0010ffff]")


class PageData(NamedTuple):
    """The blocks, safe inside a `script` element."""

    table: str
    rows: str
    documents: str


def page_data(
    run: EvaluationRun,
    metrics: Sequence[MetricFigures],
    slices: Sequence[SlicedColumn],
    baseline: EvaluationRun | None,
) -> PageData:
    """Put a run into blocks."""
    documents = _Documents()
    before = paired(run, baseline) if baseline else {}
    keys = [metric.key for metric in metrics]
    table = {
        "metrics": [{"key": each.key, "bounds": each.bounds} for each in metrics],
        "slices": [_column(each) for each in slices],
        "compared": baseline is not None,
        "rows": [_summary(row, keys, slices, before.get(row.row.id)) for row in run.rows],
    }
    rows = [_details(row, documents, before.get(row.row.id)) for row in run.rows]
    return PageData(_json(table), "\n".join(map(_json, rows)), "\n".join(documents.lines))


def _column(found: SlicedColumn) -> dict[str, Any]:
    return {"column": found.column, "values": [g.name for g in found.groups if g.is_value]}


def _summary(
    row: EvaluatedRow,
    keys: Sequence[str],
    slices: Sequence[SlicedColumn],
    before: EvaluatedRow | None,
) -> dict[str, Any]:
    result = main_result(row)
    verdicts = [found.verdict for found in result.claims] if result else []
    return _filled(
        id=row.row.id,
        question=row.row.question,
        answer=row.row.answer,
        verdict=result and result.verdict,
        claims=[verdicts.count(name) for name in SIGNS] if result else None,
        scores=[_shown(score_of(row, key)) for key in keys],
        before=before and [_shown(score_of(before, key)) for key in keys],
        groups=[printable(slice_value(row, each.column) or "") for each in slices],
    )


def _shown(score: RowScore | None) -> float | str | None:
    """Give the score, or why there is none."""
    if score is None:
        return None
    return score.status if score.score is None else score.score


def _details(
    row: EvaluatedRow, documents: "_Documents", before: EvaluatedRow | None
) -> dict[str, Any]:
    given = row.row.documents
    main = main_result(row)
    ordered = sorted(row.scores, key=lambda score: score.result is not main)
    return _filled(
        line=row.line,
        seconds=row.seconds,
        reference=row.row.reference,
        label=None if row.row.label is None else str(row.row.label),
        metadata=_words(row.row.metadata),
        documents=None if given is None else [documents.place(each) for each in given],
        scores=[_score(score) for score in row.scores],
        results=[_result(s.key, s.result, documents) for s in ordered if s.result is not None],
        before=before and _earlier(before, documents),
    )


def _earlier(before: EvaluatedRow, documents: "_Documents") -> dict[str, Any]:
    result = main_result(before)
    return _filled(
        answer=before.row.answer,
        scores=[_score(score) for score in before.scores],
        result=result and _result("", result, documents),
    )


def _score(score: RowScore) -> dict[str, Any]:
    usage = score.usage.model_dump(exclude_none=True) if score.usage.model_calls else None
    return _filled(
        key=score.key,
        score=_shown(score),
        reason=score.reason,
        comment=score.comment,
        details=plain_mapping(score.details),
        usage=usage,
    )


def _result(key: str, result: GroundednessResult, documents: "_Documents") -> dict[str, Any]:
    return _filled(
        key=key,
        answer=result.original_answer,
        changed=None if result.answer == result.original_answer else result.answer,
        verdict=result.verdict,
        trust=result.trust_score,
        documents=[documents.place(each) for each in result.documents],
        claims=[_claim(found, result) for found in result.claims],
    )


def _claim(found: ClaimVerdict, result: GroundednessResult) -> dict[str, Any]:
    answer = result.original_answer
    span = (found.claim.start or 0, found.claim.end or 0)
    return _filled(
        text=found.claim.text,
        verdict=found.verdict,
        span=_in_utf16(answer, span) if is_located(found, answer) else None,
        probability=found.support_probability,
        conflicting=found.conflicting or None,
        reason=found.reason,
        explanation=found.explanation,
        correction=found.correction,
        citations=[_citation(citation, result.documents) for citation in found.citations],
    )


def _citation(citation: Citation, documents: Sequence[Document]) -> dict[str, Any]:
    if not citation.holds_in(documents):
        return {"document": citation.document, "quote": citation.quote}
    text = documents[citation.document].page_content
    span = _in_utf16(text, (citation.start, citation.end))
    return {"document": citation.document, "span": span}


def _in_utf16(text: str, span: tuple[int, int]) -> tuple[int, int]:
    before, inside = (len(_BEYOND.findall(text, *part)) for part in ((0, span[0]), span))
    return span[0] + before, span[1] + before + inside


class _Documents:
    """Documents by their content, so that each is in the page once."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._places: dict[str, int] = {}

    def place(self, document: Document) -> int:
        line = _json(
            _filled(id=document.id, text=document.page_content, metadata=_words(document.metadata))
        )
        place = self._places.setdefault(line, len(self._places))
        if place == len(self.lines):
            self.lines.append(line)
        return place


def _words(metadata: Mapping[str, Any]) -> list[tuple[str, str]]:
    plain = plain_mapping(metadata).items()
    return [(k, v if isinstance(v, str) else json.dumps(v, ensure_ascii=False)) for k, v in plain]


def _filled(**fields: Any) -> dict[str, Any]:
    """Leave out what says nothing."""
    return {name: value for name, value in fields.items() if value is not None and value != ""}


def _json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
