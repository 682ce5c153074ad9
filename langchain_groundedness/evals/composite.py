"""One score of several: a weighted mean with minimums."""

import math
from collections.abc import Iterable, Mapping
from typing import Annotated, Self

from pydantic import Field, model_validator

from langchain_groundedness._runtime.options import CheckedOptions
from langchain_groundedness.evals.judged import QUALITY_DIMENSIONS
from langchain_groundedness.evals.values import RowScore

__all__ = ["DEFAULT_WEIGHTS", "CompositeScore", "dimensions"]

DEFAULT_WEIGHTS: Mapping[str, float] = {
    "source": 0.3,
    "relevance": 0.2,
    "correctness": 0.3,
    "completeness": 0.2,
}
"""Default weights of the dimensions; they favour correctness over completeness, as training data
requires."""

Share = Annotated[float, Field(ge=0.0, le=1.0)]
_TOLERANCE = 1e-9


class CompositeScore(CheckedOptions):
    """Combines several scores of one answer, each from 0 to 1, into one.

    The score is the weighted mean over the dimensions; if the weights do not sum to 1, the comment
    says so. If a dimension with a weight or a minimum has no score, the combined score is missing
    too, with a reason. A dimension below its minimum does not change the score: `details` names it
    and sets `meets_minimums` to false.

    Example:
        >>> composite = CompositeScore(minimums={"correctness": 0.5})
        >>> row = composite.of(
        ...     {"source": 1.0, "relevance": 1.0, "correctness": 0.4, "completeness": 1.0}
        ... )
        >>> round(row.score, 2), row.details["below_minimum"]
        (0.82, ['correctness'])
        >>> composite.of({"source": 1.0}).reason
        'no score for relevance, correctness, completeness'
    """

    key: str = Field(default="composite", min_length=1)
    """Name of the metric."""
    weights: dict[str, Annotated[float, Field(ge=0.0, allow_inf_nan=False)]] = Field(
        default_factory=lambda: dict(DEFAULT_WEIGHTS)
    )
    """Weight of each dimension; one with weight 0 and no minimum may be missing."""
    minimums: dict[str, Share] = Field(default_factory=dict)
    """Least score of a dimension, whatever the others are."""

    @model_validator(mode="after")
    def _usable(self) -> Self:
        if not math.fsum(self.weights.values()) > 0:
            msg = "weights must name at least one dimension, with a weight above 0"
            raise ValueError(msg)
        if unknown := sorted(set(self.minimums) - set(self.weights)):
            known = ", ".join(self.weights)
            msg = f"minimums names {', '.join(unknown)}, but the dimensions are {known}"
            raise ValueError(msg)
        return self

    @property
    def normalised(self) -> bool:
        """Whether the weights do not sum to 1, so that scores are divided by their sum."""
        return abs(math.fsum(self.weights.values()) - 1.0) > _TOLERANCE

    def of(self, scores: Mapping[str, float | None] | RowScore | Iterable[RowScore]) -> RowScore:
        """Combine scores.

        Args:
            scores: Scores by dimension, `None` for a missing one; dimensions without a weight do
                not count. Scores of evaluators are combined as in `combine`.

        Returns:
            The score, `failed` if a dimension has none. `details` has `dimensions`,
            `below_minimum` (those below their minimum, in order) and `meets_minimums`.
        """
        if not isinstance(scores, Mapping):
            return self.combine([scores] if isinstance(scores, RowScore) else scores)
        known = {name: scores.get(name) for name in self.weights}
        least = self.minimums
        below = [n for n, score in known.items() if score is not None and score < least.get(n, 0.0)]
        details = {"dimensions": known, "below_minimum": below, "meets_minimums": not below}
        counts = {n for n, weight in self.weights.items() if weight or n in least}
        missing = [name for name, score in known.items() if score is None and name in counts]
        wrong = [n for n, score in known.items() if score is not None and not 0.0 <= score <= 1.0]
        reasons = [f"no score for {', '.join(missing)}"] if missing else []
        reasons += [f"not in 0 .. 1: {', '.join(wrong)}"] if wrong else []
        if reasons:
            why = "; ".join(reasons)
            return RowScore(key=self.key, status="failed", reason=why, details=details)
        total = math.fsum(self.weights.values())
        weighted = math.fsum(w * (known[name] or 0.0) for name, w in self.weights.items())
        comments = [f"weights divided by their sum, {total:g}"] if self.normalised else []
        comments += [f"below its minimum: {', '.join(below)}"] if below else []
        return RowScore(
            key=self.key,
            score=min(1.0, weighted / total),
            status="scored",
            comment="; ".join(comments),
            details=details,
        )

    def combine(self, scores: Iterable[RowScore]) -> RowScore:
        """Combine what evaluators found in a row.

        Args:
            scores: Their scores; `dimensions` says which dimension each is.

        Returns:
            As `of`; where a dimension has no score, the reason says why, if the evaluator did.
        """
        listed = list(scores)
        combined = self.of(dimensions(listed))
        why = [f"{s.key} {s.status}: {s.reason}" for s in listed if s.status != "scored"]
        if combined.reason is None or not why:
            return combined
        return combined.model_copy(update={"reason": f"{combined.reason} ({'; '.join(why)})"})


def dimensions(scores: Iterable[RowScore]) -> dict[str, float]:
    """Name the dimensions that evaluators have measured."""
    found: dict[str, float] = {}
    for score in scores:
        if score.score is None:
            continue
        found[score.key] = score.score
        if score.key == "faithfulness":
            found.setdefault("source", score.score)
        found |= {n: score.details[n] for n in QUALITY_DIMENSIONS if n in score.details}
    return found
