"""Scores by the values of a column: where a metric is better, and where worse."""

import json
from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from langchain_groundedness.evals.statistics.intervals import (
    Estimate,
    estimate_mean,
    require_column,
    require_metric,
    rows_of,
)
from langchain_groundedness.evals.values import EvaluatedRow, EvaluationRun, RowScore
from langchain_groundedness.exceptions import ConfigurationError

__all__ = ["Slice", "slice_scores"]


class Slice(BaseModel):
    """The rows with one value of a column."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    value: str | None
    """The value, as text; `None` for rows that have none, and for the rest."""
    is_rest: bool = False
    """Whether it holds all rows whose values are too rare to be shown alone."""
    values: int = Field(default=1, ge=1)
    """How many values of the column it holds."""
    rows: int
    not_scored: int
    """How many of the rows failed, or were skipped."""
    score: Estimate | None
    """Of the others; `None` if there are none."""


def slice_scores(  # noqa: PLR0913  (options by keyword)
    rows: EvaluationRun | Iterable[EvaluatedRow],
    key: str,
    column: str,
    *,
    most: int = 10,
    group_by: str | None = None,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> tuple[Slice, ...]:
    """Part the rows of a run by a column.

    With many slices, some intervals lie apart by chance alone: one in twenty at 95 %.

    Args:
        rows: An `EvaluationRun`, or its rows.
        key: Name of the metric.
        column: Name of the column in the metadata of the rows.
        most: How many slices to show, 1 at least; the others are put together.
        group_by: Column of which equal values mean that rows are no independent evidence.
        confidence: As for `estimate_mean`.
        resamples: As for `estimate_mean`.
        seed: As for `estimate_mean`.

    Returns:
        The slices, the largest first, those of equal size by their value, the rest last. Every row
        is in one of them.

    Raises:
        ConfigurationError: An option has a value that cannot work, or no row has the metric or
            the column; the message names those that there are.

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
    if isinstance(most, bool) or most < 1:
        msg = f"most must be 1 at least, got {most!r}"
        raise ConfigurationError(msg)
    listed = rows_of(rows)
    require_metric(listed, key)
    for name in filter(None, (column, group_by)):
        require_column(listed, name)
    parts: dict[str | None, list[EvaluatedRow]] = {}
    for row in listed:
        parts.setdefault(_text(row.row.metadata.get(column)), []).append(row)
    ordered = sorted(parts.items(), key=lambda each: (-len(each[1]), each[0] or ""))
    shown = ordered if len(ordered) <= most + 1 else ordered[:most]
    rest = ordered[len(shown) :]

    def figures(inside: list[EvaluatedRow]) -> tuple[int, Estimate | None]:
        scored = [row for row in inside if _score(row, key) is not None]
        names = None
        if group_by is not None:
            names = [_text(row.row.metadata.get(group_by)) or "" for row in scored]
        found = estimate_mean(
            [score for row in scored if (score := _score(row, key)) is not None],
            groups=names,
            confidence=confidence,
            resamples=resamples,
            seed=seed,
        )
        return len(inside) - len(scored), found

    slices = []
    for value, inside in shown:
        missing, score = figures(inside)
        slices.append(Slice(value=value, rows=len(inside), not_scored=missing, score=score))
    if rest:
        together = [row for _, inside in rest for row in inside]
        missing, score = figures(together)
        slices.append(
            Slice(
                value=None,
                is_rest=True,
                values=len(rest),
                rows=len(together),
                not_scored=missing,
                score=score,
            )
        )
    return tuple(slices)


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, sort_keys=True)
    except (TypeError, ValueError):
        return str(value)


def _score(row: EvaluatedRow, key: str) -> float | None:
    found: RowScore | None = next((score for score in row.scores if score.key == key), None)
    return None if found is None else found.score
