"""What an evaluator found over columns."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Self

from pydantic import BaseModel, ConfigDict

from langchain_groundedness.evals.values import RowScore
from langchain_groundedness.types import Usage

__all__ = ["EvaluationResult", "total_usage"]


class EvaluationResult(BaseModel):
    """The scores of one evaluator over rows; `result["score"]` works as `result.score` does."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: str
    """Name of the metric."""
    score: float | None
    """Mean of the rows that have a score; `None` if none has."""
    individual_scores: list[float | None]
    """One per row, `None` where there is no score."""
    results: list[dict[str, Any]]
    """One per row: the evaluator's details, `score`, `status` and `reason`."""
    scored: int
    """How many rows the mean is of."""
    failed: int
    """How many rows could not be scored because something went wrong."""
    skipped: int
    """How many rows the metric does not apply to."""
    note: str
    """In words, which rows are not part of the mean and why; empty if all are."""
    rows: tuple[RowScore, ...]
    """The same in full."""
    usage: Usage = Usage()

    @classmethod
    def of(cls, key: str, rows: Sequence[RowScore]) -> Self:
        """Sum rows up.

        Args:
            key: Name of the metric.
            rows: Their scores.

        Returns:
            The sum.
        """
        scores = [row.score for row in rows]
        known = [score for score in scores if score is not None]
        return cls(
            key=key,
            score=sum(known) / len(known) if known else None,
            individual_scores=scores,
            results=[
                {**row.details, "score": row.score, "status": row.status, "reason": row.reason}
                for row in rows
            ],
            scored=len(known),
            failed=sum(row.status == "failed" for row in rows),
            skipped=sum(row.status == "skipped" for row in rows),
            note=_note(rows),
            rows=tuple(rows),
            usage=total_usage(row.usage for row in rows),
        )

    def __getitem__(self, name: str) -> Any:
        """Give a field by its name, as of a dict."""
        if name not in type(self).model_fields:
            raise KeyError(name)
        return getattr(self, name)

    def keys(self) -> tuple[str, ...]:
        """Name the fields, as of a dict."""
        return tuple(type(self).model_fields)


def total_usage(usages: Iterable[Usage]) -> Usage:
    """Add usages up.

    Args:
        usages: The usages.

    Returns:
        Their sum; tokens that nobody counted stay `None`.
    """
    listed = list(usages)
    inputs = [u.input_tokens for u in listed if u.input_tokens is not None]
    outputs = [u.output_tokens for u in listed if u.output_tokens is not None]
    return Usage(
        model_calls=sum(u.model_calls for u in listed),
        input_tokens=sum(inputs) if inputs else None,
        output_tokens=sum(outputs) if outputs else None,
        cached_verdicts=sum(u.cached_verdicts for u in listed),
    )


def _note(rows: Sequence[RowScore]) -> str:
    parts = []
    for status in ("failed", "skipped"):
        reasons = Counter(row.reason or "" for row in rows if row.status == status)
        if reasons:
            [(common, _)] = reasons.most_common(1)
            most = "" if len(reasons) == 1 else ", most often"
            parts.append(f"{reasons.total()} {status}{most}: {common}")
    if not parts:
        return ""
    return f"of {len(rows)} rows, these are not part of the score: {'; '.join(parts)}"
