"""What lets a row pass; pure, so that other thresholds can be tried on what is known of it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from langchain_groundedness.evals.composite import CompositeScore
from langchain_groundedness.evals.validation.values import ValidationReason
from langchain_groundedness.evals.values import RowScore
from langchain_groundedness.types import VerdictLabel

__all__ = ["SOURCE", "Criteria"]

SOURCE = "source"
_SLACK = 1e-9
"""0.3 + 0.15 + 0.25 is less than 0.7 to a computer."""


class Criteria(NamedTuple):
    """The thresholds of a row as a whole."""

    pass_score: float
    min_source: float
    on_contradicted: Literal["reject", "count"]
    composite: CompositeScore

    def source_score(self, labels: Sequence[VerdictLabel]) -> float | None:
        """Give the share of claims that is supported.

        Args:
            labels: The verdicts on the claims, all of them checked.

        Returns:
            The share; `None` without claims.
        """
        return labels.count("supported") / len(labels) if labels else None

    def against_source(self, labels: Sequence[VerdictLabel]) -> ValidationReason | None:
        """Tell what in the verdicts rejects a row, if anything does.

        Args:
            labels: The verdicts on the claims.

        Returns:
            The reason.
        """
        contradicted, total = labels.count("contradicted"), len(labels)
        if contradicted and self.on_contradicted == "reject":
            text = f"the documents contradict {contradicted} of {total} claims"
            return ValidationReason(code="contradicted", text=text)
        checked = [label for label in labels if label != "unchecked"]
        share = self.source_score(checked)
        if len(checked) < total or share is None or share >= self.min_source - _SLACK:
            return None
        text = (
            f"{labels.count('supported')} of {total} claims are supported: {share:.2f} is less "
            f"than {self.min_source:.2f}"
        )
        return ValidationReason(code="source", text=text)

    def of_scores(self, scores: Mapping[str, float]) -> RowScore:
        """Combine the scores there are.

        Args:
            scores: By their names, at least one of which has a weight.

        Returns:
            The composite; the weights of scores that are missing go to the others in proportion.
        """
        known = {n: w for n, w in self.composite.weights.items() if n in scores}
        minimums = {n: least for n, least in self.composite.minimums.items() if n in known}
        narrowed = {"weights": known, "minimums": minimums}
        return self.composite.model_copy(update=narrowed).of(scores)

    def against_scores(
        self, scores: Mapping[str, float], composite: float
    ) -> Iterator[ValidationReason]:
        """Tell what in the scores rejects a row.

        Args:
            scores: As for `of_scores`.
            composite: What they combine to.

        Yields:
            The reasons.
        """
        for name, least in self.composite.minimums.items():
            if name in scores and scores[name] < least:
                text = f"{name}: {scores[name]:.2f} is less than its minimum {least:.2f}"
                yield ValidationReason(code="minimum", text=text)
        if composite < self.pass_score - _SLACK:
            text = f"the composite score {composite:.2f} is less than {self.pass_score:.2f}"
            yield ValidationReason(code="composite", text=text)
