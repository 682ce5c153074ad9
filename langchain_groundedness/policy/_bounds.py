"""Bounds of numbers in the conditions of a policy; pure."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Self

from langchain_core.load.serializable import Serializable
from pydantic import (
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)
from typing_extensions import override

from langchain_groundedness._options import CheckedOptions
from langchain_groundedness.exceptions import ConfigurationError, Fault
from langchain_groundedness.policy._holds import Holds, Situation

__all__ = ["Amount", "Flag", "Part", "Range", "bounded", "listed", "within"]

Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Share = Annotated[float, Field(strict=True, ge=0.0, le=1.0)]
Whole = Annotated[int, Field(strict=True, ge=0)]
Flag = Annotated[bool, Field(strict=True)]


class Part(CheckedOptions, Serializable):
    """A part of a policy: frozen, and written without what was not given."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @override
    @classmethod
    def is_lc_serializable(cls) -> bool:
        return True

    @override
    @classmethod
    def get_lc_namespace(cls) -> list[str]:
        return ["langchain_groundedness", "policy"]

    @model_serializer(mode="wrap")
    def _only_given(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        given: dict[str, Any] = write(self)
        return {name: value for name, value in given.items() if not _is_default(value)}


def listed(value: object) -> object:
    """Read one value where a list is accepted.

    Args:
        value: A value, or a list.

    Returns:
        The value in a list, or the list.
    """
    one = isinstance(value, str | int | float) and not isinstance(value, bool)
    return (value,) if one else value


def bounded(value: object) -> object:
    """Refuse a number where its bounds are wanted, and say how they are written.

    Args:
        value: What came.

    Returns:
        The same.

    Raises:
        ValueError: It is a number.
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        msg = f"Input should be a mapping, such as {{at_least: {value}}}, not a number alone"
        raise ValueError(msg)  # noqa: TRY004  (pydantic reports a ValueError)
    return value


def within(low: float, high: float) -> "Callable[[Range], Range]":
    """Make what refuses bounds that no number of a kind can reach.

    Args:
        low: The least number of that kind.
        high: The greatest.

    Returns:
        What gives a range back, or raises `ConfigurationError`.
    """

    def check(given: "Range") -> "Range":
        named = {"at_least": given.at_least, "below": given.below}
        outside = {n: v for n, v in named.items() if v is not None and not low <= v <= high}
        if outside:
            faults = [
                Fault((name,), f"must lie from {low:g} to {high:g}, got {value:g}")
                for name, value in outside.items()
            ]
            msg = "; ".join(f"{fault.path[0]} {fault.problem}" for fault in faults)
            raise ConfigurationError(msg, faults=faults)
        return given

    return check


def _is_default(value: object) -> bool:
    return value is None or value is False or value in ((), [])


class Range(Part):
    """Where a number has to lie. One that is not known lies nowhere, unless `unknown` is set.

    Example:
        >>> Range(below=0.5).has(0.4), Range(below=0.5).has(None)
        (True, False)
    """

    at_least: Number | None = None
    below: Number | None = None
    unknown: Flag = False
    """Whether the condition also holds where the number is not known."""

    @model_validator(mode="after")
    def _leaves_room(self) -> Self:
        low, high = self.at_least, self.below
        if low is None and high is None and not self.unknown:
            msg = "give at_least, below, or both; or unknown: true"
            raise ValueError(msg)
        if low is not None and high is not None and low >= high:
            msg = f"at_least must be less than below, got {low} and {high}"
            raise ValueError(msg)
        return self

    def has(self, number: float | None) -> bool:
        """Tell whether a number lies within.

        Args:
            number: The number; `None` if it is not known.
        """
        if number is None:
            return self.unknown
        above = self.at_least is None or number >= self.at_least
        bounded = self.at_least is not None or self.below is not None
        return bounded and above and (self.below is None or number < self.below)

    def of_trust_score(self, given: Situation) -> Holds:
        """Tell whether the trust score lies within.

        Args:
            given: What is known about the answer.
        """
        if given.complete:
            return given.final(so=self.has(given.trust_score))
        # A score that is known now may change, but stays known; and none is below 0.
        unknown = self.unknown and given.trust_score is None
        low, high = self.at_least, self.below
        if not unknown and ((low is None and high is None) or (high is not None and high <= 0)):
            return Holds.NO
        failed = given.count("contradicted") + given.count("unverifiable") > 0
        if high == 1.0 and low is None:
            # One failed claim is enough, and no other claim can make up for it.
            return Holds.YES if failed else Holds.OPEN if unknown else Holds.RISING
        return Holds.NO if failed and low == 1.0 else Holds.OPEN

    def of_lowest(self, found: Sequence[float | None], given: Situation) -> Holds:
        """Tell whether the lowest of the probabilities of some claims lies within.

        Args:
            found: One per claim, `None` where it is not known.
            given: What is known about the answer.
        """
        some, every = self.below, self.at_least
        return Holds.both(
            (
                self._some(found, lambda p: some is not None and p < some, given, asked=some),
                self._every(found, lambda p: every is None or p >= every, given, asked=every),
            )
        )

    def of_highest(self, found: Sequence[float | None], given: Situation) -> Holds:
        """Tell whether the highest of the probabilities of some claims lies within.

        Args:
            found: One per claim, `None` where it is not known.
            given: What is known about the answer.
        """
        some, every = self.at_least, self.below
        return Holds.both(
            (
                self._some(found, lambda p: some is not None and p >= some, given, asked=some),
                self._every(found, lambda p: every is None or p < every, given, asked=every),
            )
        )

    def _some(
        self,
        found: Sequence[float | None],
        passes: Callable[[float], bool],
        given: Situation,
        *,
        asked: float | None,
    ) -> Holds:
        """Judge the bound that one claim is enough to pass."""
        if asked is None and (self.at_least, self.below) != (None, None):
            return Holds.YES
        if any(p is not None and passes(p) for p in found) or (self.unknown and None in found):
            return Holds.YES
        return given.final(so=True) if self.unknown and not found else given.rising(so=False)

    def _every(
        self,
        found: Sequence[float | None],
        passes: Callable[[float], bool],
        given: Situation,
        *,
        asked: float | None,
    ) -> Holds:
        """Judge the bound that all claims have to pass."""
        if asked is None:
            return Holds.YES
        known = self.unknown or None not in found
        if not known or not all(p is None or passes(p) for p in found):
            return Holds.NO
        return given.final(so=bool(found) or self.unknown)


class Amount(Part):
    """How many claims there have to be.

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
    def _leaves_room(self) -> Self:
        bounds = (self.at_least, self.at_most, self.share_at_least, self.share_below)
        if all(bound is None for bound in bounds):
            msg = "give at_least, at_most, share_at_least or share_below"
            raise ValueError(msg)
        if self.at_most is not None and (self.at_least or 0) > self.at_most:
            msg = f"at_least must not exceed at_most, got {self.at_least} and {self.at_most}"
            raise ValueError(msg)
        return self

    def holds(self, count: int, given: Situation) -> Holds:
        """Tell whether a number of claims is within the bounds.

        Args:
            count: The number.
            given: What is known about the answer.
        """
        total = len(given.verdicts)
        share = count / total if total else None
        parts = []
        if self.at_least is not None:
            parts.append(given.rising(so=count >= self.at_least))
        if self.at_most is not None:
            parts.append(given.falling(so=count <= self.at_most))
        if self.share_at_least is not None:
            parts.append(given.final(so=share is not None and share >= self.share_at_least))
        if self.share_below is not None:
            parts.append(given.final(so=share is not None and share < self.share_below))
        return Holds.both(parts)
