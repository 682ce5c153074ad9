"""Counts of a run while it goes on: what each metric gave, what was bad, what was paid."""

from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

from langchain_groundedness.evals.values import EvaluatedRow
from langchain_groundedness.types import Usage

__all__ = ["MetricCounts", "Price", "Tally", "add_usage"]

_MILLION = 1_000_000
_MOST_REASONS = 1_000


class Price(NamedTuple):
    """What a model costs, in any currency."""

    input: float
    """Per million tokens of prompts."""
    output: float
    """Per million tokens of replies."""

    def of(self, usage: Usage) -> float | None:
        """Tell what was paid.

        Args:
            usage: Tokens as the provider counted them.

        Returns:
            The sum; `None` if the provider did not count.
        """
        if usage.model_calls and (usage.input_tokens is None or usage.output_tokens is None):
            return None
        paid = (usage.input_tokens or 0) * self.input + (usage.output_tokens or 0) * self.output
        return paid / _MILLION


class MetricCounts(NamedTuple):
    """What one metric gave so far."""

    scored: int = 0
    failed: int = 0
    skipped: int = 0
    total: float = 0.0
    """Sum of the scores."""

    @property
    def mean(self) -> float | None:
        """Mean over the rows that have a score; `None` if none has."""
        return self.total / self.scored if self.scored else None

    @property
    def rows(self) -> int:
        """How many rows were looked at."""
        return self.scored + self.failed + self.skipped


class Tally:
    """Adds up the rows of a run; memory does not grow with them."""

    def __init__(self, keys: Iterable[str]) -> None:
        """Start at nothing.

        Args:
            keys: Names of the metrics.
        """
        self.metrics = {key: MetricCounts() for key in keys}
        self.rows = 0
        self.usage = Usage()
        self.reasons: Counter[tuple[str, str, str]] = Counter()
        """Rows without a score by metric, status and reason; kinds beyond the first thousand are
        not counted."""

    def as_plain(self) -> dict[str, dict[str, Any]]:
        """Give what each metric gave.

        Returns:
            By metric the `mean` (`None` if no row has a score), and how many rows were `scored`,
            `failed` and `skipped`, of how many `rows`.
        """
        return {
            key: {
                "mean": counts.mean,
                "scored": counts.scored,
                "failed": counts.failed,
                "skipped": counts.skipped,
                "rows": counts.rows,
            }
            for key, counts in self.metrics.items()
        }

    def add(self, row: EvaluatedRow, *, instead_of: EvaluatedRow | None = None) -> None:
        """Count a row.

        Args:
            row: The row.
            instead_of: What was counted for it before.
        """
        self.rows += instead_of is None
        self.usage = add_usage(self.usage, *(score.usage for score in row.scores))
        self._count(row, 1)
        if instead_of is not None:
            self._count(instead_of, -1)

    def _count(self, row: EvaluatedRow, sign: int) -> None:
        for score in row.scores:
            counts = self.metrics[score.key]
            status = {score.status: getattr(counts, score.status) + sign}
            total = counts.total + sign * (score.score or 0.0)
            if score.reason is not None:
                kind = (score.key, score.status, score.reason)
                if kind in self.reasons or len(self.reasons) < _MOST_REASONS:
                    self.reasons[kind] += sign
            self.metrics[score.key] = counts._replace(**status, total=total)


def add_usage(*usages: Usage) -> Usage:
    """Add up what calls cost.

    Args:
        *usages: What each cost.

    Returns:
        The sum; tokens that nobody counted are left out.
    """
    inputs = [usage.input_tokens for usage in usages if usage.input_tokens is not None]
    outputs = [usage.output_tokens for usage in usages if usage.output_tokens is not None]
    return Usage(
        model_calls=sum(usage.model_calls for usage in usages),
        input_tokens=sum(inputs) if inputs else None,
        output_tokens=sum(outputs) if outputs else None,
        cached_verdicts=sum(usage.cached_verdicts for usage in usages),
    )
