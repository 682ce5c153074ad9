"""Bounds that say who is meant: "children under 9", "orders over 50 pounds"."""

import re

from langchain_groundedness.verifiers._quantities import Quantity, same_quantity
from langchain_groundedness.verifiers._verbs import is_verb

__all__ = ["gives", "other_bound", "restricts"]

_BOUND = re.compile(
    r"(?:\b(?:aged|of|at least|at most|no(?:t)? (?:more|less|fewer) than|(?:more|less|fewer) than"
    r"|up to|over|above|under|below) )+$",
    re.IGNORECASE,
)
_WHO = re.compile(
    r"(?:^|[,;:]\s*|(?P<within>\b(?:for|to|by|from|with|of|on|at|all|no|any|only|if|when)\s+))"
    r"(?P<noun>(?:[\w-]+\s+){0,2}?"
    r"(?:[\w-]{2,}s|children|people|men|women|those|anyone|everyone|nobody))\s+$",
    re.IGNORECASE,
)
"""A noun of the plural with little before it: at the start of a clause, or behind a preposition."""
_LIMIT = "most"
_MEASURE = re.compile(r"^(?: (?:years?|old|of age|in (?:weight|length|height|value)|or more))*")
_NEXT = re.compile(r"\s*([\w'\u2019-]+)")
_LONGEST = 80


def restricts(text: str, quantity: Quantity) -> bool:
    """Tell whether a bound says whom a statement is about, and measures nothing.

    Args:
        text: The statement.
        quantity: One of its quantities.

    Returns:
        True for "orders over 50 pounds ship free", not for "it weighs over 50 pounds".
    """
    if quantity.bound in ("", "about"):
        return False
    before = text[max(0, quantity.start - _LONGEST) : quantity.start]
    found = _WHO.search(_BOUND.sub("", before))
    if found is None:
        return False
    [*leading, noun] = found.group("noun").split()
    if leading and is_verb(noun):
        return False  # "it weighs over 50 pounds"
    if found.group("within"):
        return True
    behind = text[quantity.end : quantity.end + _LONGEST]
    word = _NEXT.match(behind, len(m.group()) if (m := _MEASURE.match(behind)) else 0)
    return word is not None and is_verb(word.group(1))


def gives(claim: str, claimed: Quantity, quote: str, given: Quantity) -> bool:
    """Tell whether a quote gives what a claim says, bounds on who is meant only word for word.

    Args:
        claim: The claim.
        claimed: A quantity of it.
        quote: The quote.
        given: A quantity of it.

    Returns:
        True if they mean the same, or the claim follows from the quote.
    """
    return same_quantity(claimed, given) and not other_bound(claim, claimed, quote, given)


def other_bound(claim: str, claimed: Quantity, quote: str, given: Quantity) -> bool:
    """Tell whether a claim and a quote name different limits, or are about other people.

    Of two limits ("at most", "up to"), one follows from the other, and still both are not true of
    one thing: who reads "at most 1,000" does not expect 200. "Under 9,000" and "more than 100" only
    tell what is known, and may be told less precisely.

    Args:
        claim: The claim.
        claimed: A quantity of it.
        quote: The quote.
        given: A quantity of it.

    Returns:
        True for "children under 9" and "children under 8", and for "at most 9" and "at most 8".
    """
    if claimed.bound != given.bound or claimed.value == given.value:
        return False
    if claimed.bound == _LIMIT and claimed.unit == given.unit:
        return True
    return restricts(claim, claimed) and restricts(quote, given)
