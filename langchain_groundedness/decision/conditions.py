"""Conditions of policy rules, and whether they hold; pure."""

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Final, NamedTuple, Self, get_args

from langchain_core.load.serializable import Serializable
from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)
from typing_extensions import override

from langchain_groundedness._runtime.options import CheckedOptions
from langchain_groundedness.display.counts import count_of
from langchain_groundedness.types import AnswerVerdict, ClaimVerdict
from langchain_groundedness.verification.scoring import answer_verdict

__all__ = [
    "Amount",
    "Conditions",
    "DecisionContext",
    "Flag",
    "PolicyPart",
    "Range",
    "TruthValue",
    "as_tuple",
    "holds_for_score",
]

_COUNTED: Final = ("supported", "contradicted", "unverifiable", "unchecked", "conflicting")

_WORSE: Final[tuple[AnswerVerdict, ...]] = ("has_contradictions", "unchecked", "partially_grounded")

_LATER: Final[dict[AnswerVerdict, frozenset[AnswerVerdict]]] = {
    **{verdict: frozenset(_WORSE[:number]) for number, verdict in enumerate(_WORSE, 1)},
    "grounded": frozenset({"grounded", *_WORSE}),
    "ungrounded": frozenset({"ungrounded", *_WORSE}),
    "no_claims": frozenset(get_args(AnswerVerdict)),
}
"""Verdicts that an unfinished answer may still get."""


class TruthValue(Enum):
    """Whether a condition holds, even for an unfinished answer."""

    YES = "yes"
    """It holds, and always will."""
    NO = "no"
    """It does not hold, and never will."""
    NOT_YET = "not yet"
    """It does not hold yet; once a claim makes it hold, it always will."""
    OPEN = "open"
    """Unknown until the answer is complete."""

    @staticmethod
    def both(parts: Iterable["TruthValue"]) -> "TruthValue":
        """Combine with `and`; an empty list always holds."""
        given = set(parts)
        return next(
            (h for h in (TruthValue.NO, TruthValue.OPEN, TruthValue.NOT_YET) if h in given),
            TruthValue.YES,
        )

    def either(self, other: "TruthValue") -> "TruthValue":
        """Combine with `or`."""
        given = (self, other)
        return next(
            (h for h in (TruthValue.YES, TruthValue.OPEN, TruthValue.NOT_YET) if h in given),
            TruthValue.NO,
        )

    def unless(self, other: "TruthValue") -> "TruthValue":
        """Combine with `and not`."""
        opposite = {TruthValue.YES: TruthValue.NO, TruthValue.NO: TruthValue.YES}
        return TruthValue.both((self, opposite.get(other, TruthValue.OPEN)))


class ConditionResult(NamedTuple):
    """Whether a condition holds, and the fact in words."""

    holds: TruthValue
    words: str


Label = Annotated[str, Field(strict=True, pattern=r"\S")]


def as_tuple(value: object) -> object:
    """Accept one value where a list is expected."""
    one = isinstance(value, str | int | float) and not isinstance(value, bool)
    return (value,) if one else value


Labels = Annotated[tuple[Label | None, ...], Field(min_length=1), BeforeValidator(as_tuple)]

Flag = Annotated[bool, Field(strict=True)]

Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]


class PolicyPart(CheckedOptions, Serializable):
    """A part of a policy: frozen, serialized without defaults."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    _can_be_saved = True

    @override
    @classmethod
    def get_lc_namespace(cls) -> list[str]:
        return ["langchain_groundedness", "decision"]

    @model_serializer(mode="wrap")
    def _only_given(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        given: dict[str, Any] = write(self)
        return {name: value for name, value in given.items() if not _is_default(value)}


@dataclass(frozen=True, kw_only=True)
class DecisionContext:
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
    """Whether all claims and their verdicts are known."""
    labelled: bool = True
    """Whether labels of the question that are unknown now stay unknown."""

    def stays_true(self, *, so: bool) -> TruthValue:
        """Judge a condition that stays true once true, such as that a claim is contradicted."""
        return TruthValue.YES if so else TruthValue.NO if self.complete else TruthValue.NOT_YET

    def stays_false(self, *, so: bool) -> TruthValue:
        """Judge a condition that stays false once false, such as that no claim is contradicted."""
        return TruthValue.NO if not so else TruthValue.YES if self.complete else TruthValue.OPEN

    def final(self, *, so: bool) -> TruthValue:
        """Judge a condition that any claim may change, such as a share."""
        return TruthValue.OPEN if not self.complete else TruthValue.YES if so else TruthValue.NO

    def about_question(self, *, so: bool, known: bool) -> TruthValue:
        """Judge a condition on the question."""
        if not known and not self.labelled:
            return TruthValue.OPEN
        return TruthValue.YES if so else TruthValue.NO

    def count(self, name: str) -> int:
        """Count the claims with a verdict, or the `conflicting` ones."""
        if name == "conflicting":
            return sum(verdict.conflicting for verdict in self.verdicts)
        return sum(verdict.verdict == name for verdict in self.verdicts)

    def probabilities(self, *labels: str) -> list[float | None]:
        """Return the probabilities of support of the claims with one of the given verdicts."""
        return [v.support_probability for v in self.verdicts if v.verdict in labels]


class Range(PolicyPart):
    """Bounds of a number. An unknown number is outside them, unless `unknown` is set.

    Example:
        >>> Range(below=0.5).has(0.4), Range(below=0.5).has(None)
        (True, False)
    """

    at_least: Number | None = None
    below: Number | None = None
    unknown: Flag = False
    """Whether the condition also holds if the number is not known."""

    @model_validator(mode="after")
    def _is_satisfiable(self) -> Self:
        low, high = self.at_least, self.below
        if low is None and high is None and not self.unknown:
            msg = "give at_least, below, or both; or unknown: true"
            raise ValueError(msg)
        if low is not None and high is not None and low >= high:
            msg = f"at_least must be less than below, got {low} and {high}"
            raise ValueError(msg)
        return self

    def has(self, number: float | None) -> bool:
        """Return whether a number lies within the bounds.

        Args:
            number: The number; `None` if it is not known.
        """
        if number is None:
            return self.unknown
        above = self.at_least is None or number >= self.at_least
        bounded = self.at_least is not None or self.below is not None
        return bounded and above and (self.below is None or number < self.below)


def holds_for_score(bounds: Range, given: DecisionContext) -> TruthValue:
    """Return whether the trust score lies within bounds."""
    if given.complete:
        return given.final(so=bounds.has(given.trust_score))
    # A score that is known now may change, but stays known; and none is below 0.
    unknown = bounds.unknown and given.trust_score is None
    low, high = bounds.at_least, bounds.below
    if not unknown and ((low is None and high is None) or (high is not None and high <= 0)):
        return TruthValue.NO
    failed = given.count("contradicted") + given.count("unverifiable") > 0
    if high == 1.0 and low is None:
        # One failed claim is enough, and no other claim can make up for it.
        return TruthValue.YES if failed else TruthValue.OPEN if unknown else TruthValue.NOT_YET
    return TruthValue.NO if failed and low == 1.0 else TruthValue.OPEN


def require_bounds(value: object) -> object:
    """Refuse a bare number where bounds are expected, and show how to write them."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        msg = f"Input should be a mapping, such as {{at_least: {value}}}, not a number alone"
        raise ValueError(msg)  # noqa: TRY004  (pydantic reports a ValueError)
    return value


def limited_to(low: float, high: float) -> "Callable[[Range], Range]":
    """Make a validator that refuses unreachable bounds."""

    def check(given: "Range") -> "Range":
        for name, bound in (("at_least", given.at_least), ("below", given.below)):
            if bound is not None and not low <= bound <= high:
                msg = f"{name} must be from {low:g} to {high:g}, got {bound:g}"
                raise ValueError(msg)
        return given

    return check


Portion = Annotated[Range, BeforeValidator(require_bounds), AfterValidator(limited_to(0.0, 1.0))]

Cosine = Annotated[Range, BeforeValidator(require_bounds), AfterValidator(limited_to(-1.0, 1.0))]

Share = Annotated[float, Field(strict=True, ge=0.0, le=1.0)]

Whole = Annotated[int, Field(strict=True, ge=0)]


class Amount(PolicyPart):
    """How many claims there must be.

    Example:
        >>> Amount(at_least=1).share_below is None
        True
    """

    at_least: Whole | None = None
    at_most: Whole | None = None
    share_at_least: Share | None = None
    """Of all claims of the answer, 0 to 1. An answer without claims has no share."""
    share_below: Share | None = None

    @model_validator(mode="after")
    def _is_satisfiable(self) -> Self:
        bounds = (self.at_least, self.at_most, self.share_at_least, self.share_below)
        if all(bound is None for bound in bounds):
            msg = "give at_least, at_most, share_at_least or share_below"
            raise ValueError(msg)
        if self.at_most is not None and (self.at_least or 0) > self.at_most:
            msg = f"at_least must not exceed at_most, got {self.at_least} and {self.at_most}"
            raise ValueError(msg)
        return self


Count = Annotated[Amount, BeforeValidator(require_bounds)]

Verdicts = Annotated[tuple[AnswerVerdict, ...], Field(min_length=1), BeforeValidator(as_tuple)]


class Conditions(PolicyPart):
    """The conditions of a rule, all of which must hold. A rule without conditions always applies.

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
    """The highest one of a contradicted or unverifiable claim; not known in the same cases."""
    query_class: Labels | None = None
    """The query class is one of these, in upper or lower case; `None` in the list means an unknown
    one."""
    risk_tier: Labels | None = None
    """The same for the risk tier."""
    retrieval_score: Cosine | None = None
    """How close the best document is to the question, where that is known."""

    def truth(self, given: DecisionContext) -> ConditionResult:
        """Return whether all conditions hold.

        Args:
            given: What is known about the answer.
        """
        parts = list(self._parts(given))
        words = " and ".join(part.words for part in parts) or "it applies to every answer"
        return ConditionResult(TruthValue.both(part.holds for part in parts), words)

    def _parts(self, given: DecisionContext) -> Iterator[ConditionResult]:
        if self.verdict is not None:
            verdict = answer_verdict(given.verdicts)
            yield ConditionResult(
                _of_verdict(self.verdict, verdict, given), f"the verdict is {verdict}"
            )
        if self.trust_score is not None:
            holds = holds_for_score(self.trust_score, given)
            yield ConditionResult(holds, _in_words("the trust score", given.trust_score))
        for name in _COUNTED:
            amount: Amount | None = getattr(self, name)
            if amount is not None:
                count = given.count(name)
                holds = _holds_for_count(amount, count, given)
                yield ConditionResult(
                    holds, f"{count_of(count, len(given.verdicts), 'claim')} {name}"
                )
        yield from self._of_probabilities(given)
        for name in ("query_class", "risk_tier"):
            accepted: tuple[str | None, ...] | None = getattr(self, name)
            if accepted is not None:
                yield _of_label(name.replace("_", " "), accepted, getattr(given, name), given)
        if self.retrieval_score is not None:
            score = given.retrieval_score
            fits = self.retrieval_score.has(score)
            holds = given.about_question(so=fits, known=score is not None)
            yield ConditionResult(holds, _in_words("the retrieval score", score))

    def _of_probabilities(self, given: DecisionContext) -> Iterator[ConditionResult]:
        low, high = self.lowest_supported_probability, self.highest_unsupported_probability
        supported = given.probabilities("supported")
        others = given.probabilities("contradicted", "unverifiable")
        if low is not None:
            lowest = min((p for p in supported if p is not None), default=None)
            words = _in_words("the lowest probability of a supported claim", lowest)
            yield ConditionResult(_holds_for_extreme(low, supported, given, lowest=True), words)
        if high is not None:
            highest = max((p for p in others if p is not None), default=None)
            words = _in_words("the highest probability of an unsupported claim", highest)
            yield ConditionResult(_holds_for_extreme(high, others, given, lowest=False), words)


def _holds_for_count(bounds: Amount, count: int, given: DecisionContext) -> TruthValue:
    total = len(given.verdicts)
    share = count / total if total else math.nan  # which is neither above nor below anything
    bound_by = (
        (bounds.at_least, given.stays_true, operator.ge, count),
        (bounds.at_most, given.stays_false, operator.le, count),
        (bounds.share_at_least, given.final, operator.ge, share),
        (bounds.share_below, given.final, operator.lt, share),
    )
    return TruthValue.both(
        judge(so=passes(number, bound))
        for bound, judge, passes, number in bound_by
        if bound is not None
    )


def _holds_for_extreme(
    bounds: Range, found: Sequence[float | None], given: DecisionContext, *, lowest: bool
) -> TruthValue:
    """Return whether the lowest or highest of some probabilities lies within bounds."""
    # One claim is enough to pass the first bound; all claims have to pass the second.
    some, every = (bounds.below, bounds.at_least) if lowest else (bounds.at_least, bounds.below)
    known = [p for p in found if p is not None]
    has_unknown = len(known) < len(found)
    one_passes = some is not None and any((p < some) is lowest for p in known)
    all_pass = every is None or all((p >= every) is lowest for p in known)
    if (some is None and every is not None) or one_passes or (bounds.unknown and has_unknown):
        one = TruthValue.YES
    elif bounds.unknown and not found:
        one = given.final(so=True)
    else:
        one = given.stays_true(so=False)
    if every is None:
        return one
    if not all_pass or (has_unknown and not bounds.unknown):
        return TruthValue.NO
    return TruthValue.both((one, given.final(so=bool(found) or bounds.unknown)))


def _of_verdict(
    accepted: Sequence[AnswerVerdict], verdict: AnswerVerdict, given: DecisionContext
) -> TruthValue:
    possible, wanted = _LATER[verdict], frozenset(accepted)
    if given.complete:
        return given.final(so=verdict in wanted)
    if possible <= wanted:
        return TruthValue.YES
    if possible.isdisjoint(wanted):
        return TruthValue.NO
    stays = all(_LATER[each] <= wanted for each in possible & wanted)
    return TruthValue.NOT_YET if stays else TruthValue.OPEN


def _of_label(
    name: str, accepted: Sequence[str | None], label: str | None, given: DecisionContext
) -> ConditionResult:
    fits = _folded(label) in map(_folded, accepted)
    shown = "is not known" if label is None else f"is {label!r}"
    return ConditionResult(
        given.about_question(so=fits, known=label is not None), f"the {name} {shown}"
    )


def _folded(label: str | None) -> str | None:
    return None if label is None else label.strip().casefold()


def _in_words(name: str, number: float | None) -> str:
    return f"{name} is not known" if number is None else f"{name} is {number:.2f}"


def _is_default(value: object) -> bool:
    return value is None or value is False or value in ((), [])
