"""What a rule of a policy asks about an answer, and whether it holds; pure."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Final, NamedTuple

from pydantic import AfterValidator, BeforeValidator, Field

from langchain_groundedness.policy._bounds import Amount, Part, Range, bounded, listed, within
from langchain_groundedness.policy._holds import Holds, Situation
from langchain_groundedness.scoring import answer_verdict
from langchain_groundedness.types import AnswerVerdict

__all__ = ["Conditions", "Truth"]

_COUNTED: Final = ("supported", "contradicted", "unverifiable", "unchecked", "conflicting")
_LATER: Final[dict[AnswerVerdict, frozenset[AnswerVerdict]]] = {
    "has_contradictions": frozenset({"has_contradictions"}),
    "unchecked": frozenset({"unchecked", "has_contradictions"}),
    "partially_grounded": frozenset({"partially_grounded", "unchecked", "has_contradictions"}),
    "grounded": frozenset({"grounded", "partially_grounded", "unchecked", "has_contradictions"}),
    "ungrounded": frozenset(
        {"ungrounded", "partially_grounded", "unchecked", "has_contradictions"}
    ),
    "no_claims": frozenset(
        {
            *("no_claims", "grounded", "ungrounded"),
            *("partially_grounded", "unchecked", "has_contradictions"),
        }
    ),
}
"""What the verdict of an answer may still become when more of its claims are checked."""


class Truth(NamedTuple):
    """Whether something holds, and in words what is so."""

    holds: Holds
    words: str


Label = Annotated[str, Field(strict=True, pattern=r"\S")]
Labels = Annotated[tuple[Label | None, ...], Field(min_length=1), BeforeValidator(listed)]
Portion = Annotated[Range, BeforeValidator(bounded), AfterValidator(within(0.0, 1.0))]
Cosine = Annotated[Range, BeforeValidator(bounded), AfterValidator(within(-1.0, 1.0))]
Count = Annotated[Amount, BeforeValidator(bounded)]
Verdicts = Annotated[tuple[AnswerVerdict, ...], Field(min_length=1), BeforeValidator(listed)]


class Conditions(Part):
    """What must hold for a rule to hold: all of it. Without a condition, the rule always holds.

    Example:
        >>> Conditions(query_class="sensitive", contradicted={"at_least": 1}).query_class
        ('sensitive',)
    """

    verdict: Verdicts | None = None
    """The verdict of the answer is one of these."""
    trust_score: Portion | None = None
    """Share of the checked claims that are supported; not known if nothing was checked."""
    supported: Count | None = None
    """How many claims have this verdict; the same for the next three."""
    contradicted: Count | None = None
    unverifiable: Count | None = None
    unchecked: Count | None = None
    conflicting: Count | None = None
    """On how many claims the documents disagree with each other."""
    lowest_supported_probability: Portion | None = None
    """The lowest `support_probability` of a supported claim. Not known if there is no such claim,
    or if one without a probability may be lower."""
    highest_unsupported_probability: Portion | None = None
    """The highest one of a contradicted or unverifiable claim; the same holds for it."""
    query_class: Labels | None = None
    """The query class is one of these, in upper or lower case; `None` in the list stands for one
    that is not known."""
    risk_tier: Labels | None = None
    """The same for the risk tier."""
    retrieval_score: Cosine | None = None
    """How close the best document is to the question, where that is known."""

    def truth(self, given: Situation) -> Truth:
        """Tell whether all of it holds.

        Args:
            given: What is known about the answer.
        """
        parts = list(self._parts(given))
        words = " and ".join(part.words for part in parts) or "it applies to every answer"
        return Truth(Holds.both(part.holds for part in parts), words)

    def _parts(self, given: Situation) -> Iterator[Truth]:
        if self.verdict is not None:
            verdict = answer_verdict(given.verdicts)
            yield Truth(_of_verdict(self.verdict, verdict, given), f"the verdict is {verdict}")
        if self.trust_score is not None:
            holds = self.trust_score.of_trust_score(given)
            yield Truth(holds, _said("the trust score", given.trust_score))
        for name in _COUNTED:
            amount: Amount | None = getattr(self, name)
            if amount is not None:
                count, total = given.count(name), len(given.verdicts)
                yield Truth(amount.holds(count, given), f"{count} of {total} claims are {name}")
        yield from self._of_probabilities(given)
        for name in ("query_class", "risk_tier"):
            accepted: tuple[str | None, ...] | None = getattr(self, name)
            if accepted is not None:
                yield _of_label(name.replace("_", " "), accepted, getattr(given, name), given)
        if self.retrieval_score is not None:
            score = given.retrieval_score
            fits = self.retrieval_score.has(score)
            holds = given.about_question(so=fits, known=score is not None)
            yield Truth(holds, _said("the retrieval score", score))

    def _of_probabilities(self, given: Situation) -> Iterator[Truth]:
        low, high = self.lowest_supported_probability, self.highest_unsupported_probability
        if low is not None:
            found = given.probabilities("supported")
            lowest = min((p for p in found if p is not None), default=None)
            words = _said("the lowest probability of a supported claim", lowest)
            yield Truth(low.of_lowest(found, given), words)
        if high is not None:
            found = given.probabilities("contradicted", "unverifiable")
            highest = max((p for p in found if p is not None), default=None)
            words = _said("the highest probability of an unsupported claim", highest)
            yield Truth(high.of_highest(found, given), words)


def _of_verdict(
    accepted: Sequence[AnswerVerdict], verdict: AnswerVerdict, given: Situation
) -> Holds:
    possible, wanted = _LATER[verdict], frozenset(accepted)
    if given.complete:
        return given.final(so=verdict in wanted)
    if possible <= wanted:
        return Holds.YES
    if possible.isdisjoint(wanted):
        return Holds.NO
    stays = all(_LATER[each] <= wanted for each in possible & wanted)
    return Holds.RISING if stays else Holds.OPEN


def _of_label(
    name: str, accepted: Sequence[str | None], label: str | None, given: Situation
) -> Truth:
    fits = _folded(label) in map(_folded, accepted)
    shown = "is not known" if label is None else f"is {label!r}"
    return Truth(given.about_question(so=fits, known=label is not None), f"the {name} {shown}")


def _folded(label: str | None) -> str | None:
    return None if label is None else label.strip().casefold()


def _said(name: str, number: float | None) -> str:
    return f"{name} is not known" if number is None else f"{name} is {number:.2f}"
