"""Counts with their nouns and verbs."""

__all__ = ["count_of", "format_count", "is_or_are"]


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
