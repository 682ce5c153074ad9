"""What other thresholds would have made of a row, from what is known of it; pure."""

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias

from langchain_groundedness.evals.answer_quality import QUALITY_DIMENSIONS
from langchain_groundedness.evals.validation._calibrated import Bands
from langchain_groundedness.evals.validation._criteria import SOURCE, Criteria
from langchain_groundedness.evals.validation.values import Outcome, RowValidation, SourceClaim
from langchain_groundedness.types import VerdictLabel

__all__ = ["Replayed", "Setting"]

Replayed: TypeAlias = Outcome | Literal["unknown"]
"""`unknown`: a judge would have to be asked that was not."""

_Label: TypeAlias = VerdictLabel | Literal["unknown"]


class Setting(NamedTuple):
    """Thresholds of the whole pipeline."""

    bands: Bands
    criteria: Criteria
    has_judge: bool
    has_quality: bool

    def replay(self, found: RowValidation, then: "Setting") -> Replayed:
        """Tell what would have become of a row.

        A claim that loses its support counts as unverifiable, though it may be contradicted.

        Args:
            found: What was found in the row.
            then: The thresholds that were in force.

        Returns:
            The outcome with the thresholds of this setting.
        """
        if self == then:
            return found.outcome
        if found.stage == "source" and found.outcome == "unchecked" and not found.claims:
            return "unchecked"
        labels = [self._label(claim, then) for claim in found.claims]
        outcomes = {self._outcome(found, guess) for guess in _guesses(labels)}
        return outcomes.pop() if len(outcomes) == 1 else "unknown"

    def _label(self, claim: SourceClaim, then: "Setting") -> _Label:
        """Tell what the verdict on a claim would have been."""
        said = claim.verdict.verdict
        near = claim.similarity
        if self.bands == then.bands or near is None:
            return said
        if not self.has_judge:
            if near >= self.bands.middle:
                # A refusal that is contradicted has the probability that it is right, too.
                return "supported" if said != "contradicted" or near < then.bands.middle else said
            return "unverifiable" if said == "supported" else said
        settled = self._settled(claim, near, then.bands)
        if settled is None:
            return said if claim.band == "judge" else "unknown"
        return settled

    def _settled(
        self, claim: SourceClaim, near: float, then: Bands
    ) -> Literal["supported", "unverifiable"] | None:
        """Tell what similarity would have said; cosines are rounded, so that words count first."""
        accept, reject = self.bands.accept, self.bands.reject
        if claim.band == "accept" and accept <= then.accept:
            return "supported"
        if claim.band == "reject" and reject >= then.reject:
            return "unverifiable"
        if claim.differs:
            return None
        if near >= accept and not (claim.band == "judge" and accept >= then.accept):
            return "supported"
        if near < reject and not (claim.band == "judge" and reject <= then.reject):
            return "unverifiable"
        return None

    def _outcome(self, found: RowValidation, labels: Sequence[VerdictLabel]) -> Replayed:
        if self.criteria.against_source(labels) is not None:
            return "rejected"
        if "unchecked" in labels:
            return "unchecked"
        scores = {n: found.scores[n] for n in QUALITY_DIMENSIONS if n in found.scores}
        if self.has_quality and len(scores) < len(QUALITY_DIMENSIONS):
            return "unchecked" if found.outcome == "unchecked" else "unknown"
        source = self.criteria.source_score(labels)
        if source is None and not scores:
            return "unchecked"
        scores |= {} if source is None else {SOURCE: source}
        composite = self.criteria.of_scores(scores).score
        if composite is None:
            return "unchecked"
        against = any(True for _ in self.criteria.against_scores(scores, composite))
        return "rejected" if against else "passed"


def _guesses(labels: Sequence[_Label]) -> Iterator[list[VerdictLabel]]:
    """Give the best and the worst that claims nobody has judged may turn out to be."""
    guesses: tuple[VerdictLabel, ...] = ("supported", "contradicted", "unverifiable")
    for guess in guesses if "unknown" in labels else guesses[:1]:
        yield [guess if label == "unknown" else label for label in labels]
