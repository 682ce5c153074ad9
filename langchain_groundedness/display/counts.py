"""Counts with their nouns and verbs."""

__all__ = ["format_count", "is_or_are"]


def format_count(number: int, what: str = "row") -> str:
    """Write a count with its noun, whose plural takes an s."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def is_or_are(number: int) -> str:
    """Give the verb of a count."""
    return "is" if number == 1 else "are"
