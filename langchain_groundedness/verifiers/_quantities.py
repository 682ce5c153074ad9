"""Quantities in text: numbers with magnitude and unit, and dates, compared by what they mean."""

import math
from collections.abc import Collection
from typing import Literal, NamedTuple, Self

from langchain_groundedness.verifiers._measures import CURRENCIES

__all__ = [
    "Bound",
    "Quantity",
    "comparable",
    "compatible",
    "same_quantity",
    "units_fit",
]

Bound = Literal["", "over", "least", "under", "most", "about"]
Kind = Literal["number", "date", "ordinal", "literal"]


class Quantity(NamedTuple):
    """A value named in a text: `text[start:end]` as it was written."""

    start: int
    end: int
    kind: Kind
    value: float
    """The number in base units (2.1B is 2.1e9, 5 km is 5,000); 0 for a date or a literal."""
    unit: str = ""
    """`"%"`, a currency sign, a base unit such as `"m"`, or nothing."""
    precision: float = 0.0
    """Half a step of the last digit written; a more exact value within it means the same."""
    date: tuple[int | None, int | None, int | None] = (None, None, None)
    """Year, month, day, as far as they were written; for a decade the year it begins with."""
    text: str = ""
    """The literal, for clock times and version numbers; `"decade"` for decades."""
    bound: Bound = ""
    """What the text says of the number, if not that it is exact: "more than", "at least", …"""
    scale: float = 1.0
    """Base units in the unit that was written (0.001 for mm): 1 for a number without one."""
    written: float = 0.0
    """The number before its unit, if that is no base unit."""
    may_count: bool = False
    """Whether what reads as a year may say how many there are: "it has 1800 seats"."""
    beside: tuple[str, str] = ("", "")
    """The words, by their stems, right before and right behind a number without a unit or a place
    in an order; nothing for a stop word, or where something stands between."""

    @property
    def as_written(self) -> Self:
        """The number as it stands before its unit, to compare with one that names no unit."""
        if self.scale == 1:
            return self
        return self._replace(value=self.written, precision=self.precision / self.scale, scale=1.0)

    @property
    def range(self) -> tuple[float, float]:
        """The least and the greatest number that is meant."""
        if self.bound == "about":
            within = max(abs(self.value) * _ABOUT, self.precision)
            return self.value - within, self.value + within
        above = math.inf if self.bound in ("over", "least") else self.value + self.precision
        below = -math.inf if self.bound in ("under", "most") else self.value - self.precision
        low = math.nextafter(self.value, math.inf) if self.bound == "over" else below
        high = math.nextafter(self.value, -math.inf) if self.bound == "under" else above
        return low, high


_ABOUT = 0.05
"""How far, as a share of it, a number may be from what is "about" as much."""
_FAR = 10.0
"""A number so many times off meets a bound, but hardly speaks of the same thing."""


def comparable(one: Quantity, other: Quantity) -> bool:
    """Tell whether two quantities are of one kind, so that a difference between them means one.

    Args:
        one: A quantity.
        other: Another.

    Returns:
        True for two dates that share a known part, two amounts of money, two numbers of the
        same or no unit, or a number without a unit and a year that may be one.
    """
    if one.kind != other.kind:
        year, number = (one, other) if one.kind == "date" else (other, one)
        return year.may_count and number.kind == "number" and not number.unit
    if one.kind == "date":
        both = [a is not None and b is not None for a, b in zip(one.date, other.date, strict=True)]
        return any(both)
    money = set(CURRENCIES.values())
    return one.unit == other.unit or (one.unit in money and other.unit in money)


def compatible(claimed: Quantity, given: Quantity) -> bool:
    """Tell whether two numbers, one of them a bound, can both be true of one thing.

    Args:
        claimed: The quantity of the claim.
        given: The quantity of the evidence.

    Returns:
        True for "more than 100" and "130", whichever of them is claimed.
    """
    if not (claimed.bound or given.bound) or claimed.unit != given.unit:
        return False
    (low, high), (least, greatest) = claimed.range, given.range
    return low <= greatest and least <= high


def same_quantity(claimed: Quantity, given: Quantity) -> bool:
    """Tell whether a claimed quantity is what the evidence gives.

    A date may be claimed less exactly than it is given (2021 for 3 March 2021), and so may a
    number that was written in rounded form (2.1B for 2,134 million). A number without a unit, as
    in a table, is compared with the number that the other side writes before its unit; with a
    place in an order only if both are of the same: "round 2" and "the second round".

    Args:
        claimed: The quantity of the claim.
        given: The quantity of the evidence.

    Returns:
        True if they mean the same.
    """
    kinds = {claimed.kind, given.kind}
    if kinds == {"date"}:
        return _same_date(claimed, given)
    if kinds == {"date", "ordinal"}:
        return False
    if "date" in kinds:
        return _year_as_number(claimed) == _year_as_number(given)
    if "literal" in kinds:
        return claimed.kind == given.kind and claimed.text == given.text
    if len(kinds) > 1 and not _orders_what_is_counted(claimed, given):
        return False
    return _same_number(claimed, given)


def _same_date(claimed: Quantity, given: Quantity) -> bool:
    if claimed.text == "decade" and given.date[0] is not None:
        return given.date[0] // 10 == (claimed.date[0] or 0) // 10
    if given.text == "decade":
        return False
    return all(
        mine is None or mine == theirs
        for mine, theirs in zip(claimed.date, given.date, strict=True)
    )


def _same_number(claimed: Quantity, given: Quantity) -> bool:
    if claimed.unit != given.unit:
        if claimed.unit and given.unit:
            return False
        claimed, given = claimed.as_written, given.as_written
    if claimed.bound:
        return _meets(claimed, given)
    close = max(claimed.precision, abs(claimed.value) * 1e-9)
    return math.isclose(claimed.value, given.value, rel_tol=0.0, abs_tol=close)


def units_fit(
    claimed: Quantity, given: Quantity, *, in_claim: Collection[str], beside: Collection[str]
) -> bool:
    """Tell whether a number without a unit may stand for one with a unit.

    It may where its side names no such unit, as in a table: "section 3 lasts 5 years" does not
    give three years.

    Args:
        claimed: The quantity of the claim.
        given: The quantity of the evidence.
        in_claim: The units that the claim names.
        beside: The units that the sentence of the evidence names.

    Returns:
        True if it may, or if both have the same unit.
    """
    if claimed.unit == given.unit:
        return True
    return claimed.unit not in beside if claimed.unit else given.unit not in in_claim


def _orders_what_is_counted(one: Quantity, other: Quantity) -> bool:
    """Tell whether an ordinal and a number without a unit stand beside the same word."""
    ordinal, number = (one, other) if one.kind == "ordinal" else (other, one)
    _, ordered = ordinal.beside
    return not number.unit and ordered != "" and ordered in number.beside


def _meets(claimed: Quantity, given: Quantity) -> bool:
    """Tell whether a number, or all that is meant by its bound, is within a claimed bound."""
    if claimed.value == given.value and claimed.bound == given.bound:
        return True
    near = abs(claimed.value) / _FAR <= abs(given.value) <= abs(claimed.value) * _FAR
    (low, high), (least, greatest) = claimed.range, given.range
    return near and claimed.unit == given.unit and low <= least and greatest <= high


def _year_as_number(quantity: Quantity) -> float:
    if quantity.kind != "date":
        return quantity.as_written.value
    year, month, day = quantity.date
    return float(year) if year is not None and month is None and day is None else math.nan
