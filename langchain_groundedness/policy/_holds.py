"""Whether something is so about an answer that may still be growing; pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from langchain_groundedness.types import Claim, ClaimVerdict

__all__ = ["Holds", "Situation"]


class Holds(Enum):
    """Whether something is so.

    Example:
        >>> Holds.both([Holds.YES, Holds.RISING])
        <Holds.RISING: 'rising'>
    """

    YES = "yes"
    """And it stays so, whatever comes."""
    NO = "no"
    """Nor will it ever be."""
    RISING = "rising"
    """Not yet; the claim that makes it so does that for good."""
    OPEN = "open"
    """That is only known when the answer is whole."""

    @staticmethod
    def both(parts: Iterable["Holds"]) -> "Holds":
        """Tell whether all of them are so; nothing is always so."""
        given = set(parts)
        return next((h for h in (Holds.NO, Holds.OPEN, Holds.RISING) if h in given), Holds.YES)

    def either(self, other: "Holds") -> "Holds":
        """Tell whether one of the two is so."""
        given = (self, other)
        return next((h for h in (Holds.YES, Holds.OPEN, Holds.RISING) if h in given), Holds.NO)

    def unless(self, other: "Holds") -> "Holds":
        """Tell whether this is so, and the other is not."""
        opposite = {Holds.YES: Holds.NO, Holds.NO: Holds.YES}
        return Holds.both((self, opposite.get(other, Holds.OPEN)))


@dataclass(frozen=True, kw_only=True)
class Situation:
    """What is known about an answer when it is decided on."""

    verdicts: Sequence[ClaimVerdict]
    answer: str
    trust_score: float | None
    trust_threshold: float = 1.0
    query_class: str | None = None
    risk_tier: str | None = None
    retrieval_score: float | None = None
    failure: str | None = None
    """Why nothing was checked, if the check itself failed."""
    complete: bool = True
    """Whether all claims are there, with their verdicts."""
    labelled: bool = True
    """Whether what is not known about the question stays unknown."""

    @classmethod
    def after_failure(
        cls, reason: str, verdicts: Sequence[ClaimVerdict], answer: str, **question: Any
    ) -> "Situation":
        """Describe an answer whose check did not take place.

        Args:
            reason: Why not.
            verdicts: Its claims, unchecked; none if the answer could not even be read.
            answer: The answer.
            **question: What is known about the question.
        """
        unread = ClaimVerdict.unchecked(Claim(id="c1", text=answer), reason)
        return cls(
            verdicts=verdicts or (unread,),
            answer=answer,
            trust_score=None,
            failure=reason,
            **question,
        )

    def rising(self, *, so: bool) -> Holds:
        """Judge what stays so once it is so, such as that a claim is contradicted."""
        return Holds.YES if so else Holds.NO if self.complete else Holds.RISING

    def falling(self, *, so: bool) -> Holds:
        """Judge what is so until a claim ends it for good, such as that none is contradicted."""
        return Holds.NO if not so else Holds.YES if self.complete else Holds.OPEN

    def final(self, *, so: bool) -> Holds:
        """Judge what any claim may change either way, such as a share."""
        return Holds.OPEN if not self.complete else Holds.YES if so else Holds.NO

    def about_question(self, *, so: bool, known: bool) -> Holds:
        """Judge what does not depend on the answer."""
        if not known and not self.labelled:
            return Holds.OPEN
        return Holds.YES if so else Holds.NO

    def count(self, name: str) -> int:
        """Count the claims with a verdict, or the `conflicting` ones."""
        if name == "conflicting":
            return sum(verdict.conflicting for verdict in self.verdicts)
        return sum(verdict.verdict == name for verdict in self.verdicts)

    def probabilities(self, *labels: str) -> list[float | None]:
        """Give the probabilities of support of the claims with one of some verdicts."""
        return [v.support_probability for v in self.verdicts if v.verdict in labels]
