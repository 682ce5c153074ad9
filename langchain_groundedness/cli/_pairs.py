"""Options that are pairs, such as `--fail-under faithfulness=0.8`, and the numbers in them."""

import math
from collections.abc import Iterable

from langchain_groundedness.cli._errors import CannotCheckError

__all__ = ["number", "numbers", "pairs"]


def pairs(given: Iterable[str] | None, option: str, example: str) -> dict[str, str]:
    """Read pairs.

    Args:
        given: What was given, each `NAME=VALUE`.
        option: The option, for messages.
        example: A pair that is right, for messages.

    Returns:
        The values by name.

    Raises:
        CannotCheckError: One is no pair, or a name comes twice.
    """
    found: dict[str, str] = {}
    for each in given or ():
        name, _, value = (part.strip() for part in each.rpartition("="))
        if not (name and value):
            msg = f"{option} takes a pair, as in {example}"
            raise CannotCheckError(msg)
        if name in found:
            msg = f"{option} {name} is given twice; which one counts?"
            raise CannotCheckError(msg)
        found[name] = value
    return found


def numbers(given: Iterable[str] | None, option: str, example: str) -> dict[str, float]:
    """Read pairs of a name and a number.

    Args:
        given: As for `pairs`.
        option: As for `pairs`.
        example: As for `pairs`.

    Returns:
        The numbers by name, all of them finite.

    Raises:
        CannotCheckError: As `pairs`, or a value is no finite number.
    """
    found = pairs(given, option, example)
    return {name: number(value, f"{option} {name}") for name, value in found.items()}


def number(text: str, option: str) -> float:
    """Read a number.

    Args:
        text: What was given.
        option: The option, for messages.

    Returns:
        The number, finite.

    Raises:
        CannotCheckError: It is none.
    """
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        msg = f"{option}: a finite number is needed there"
        raise CannotCheckError(msg)
    return found
