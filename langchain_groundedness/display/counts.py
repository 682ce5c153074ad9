"""Counts with their nouns and verbs, and durations."""

__all__ = ["count_of", "format_count", "format_ms", "is_or_are"]

_WHOLE_FROM = 100
"""Milliseconds from which on fractions are not shown."""


def format_count(number: int, what: str = "row") -> str:
    """Write a count with its noun, whose plural takes an s."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def is_or_are(number: int) -> str:
    """Give the verb of a count."""
    return "is" if number == 1 else "are"


def count_of(number: int, total: int, what: str) -> str:
    """Write a count of a total, with noun and verb: "1 of 3 claims is"."""
    verb = "is" if 1 in (number, total) else "are"
    return f"{number:,} of {format_count(total, what)} {verb}"


def format_ms(number: float) -> str:
    """Write milliseconds."""
    return f"{number:.1f}" if number < _WHOLE_FROM else f"{number:,.0f}"
