"""Parts of a claim that speak about the evidence, not about the world: to be left out of checks."""

import re

__all__ = ["blank_references"]

_THING = (
    r"(?:passages?|contexts?|documents?|information|sources?|texts?|articles?|excerpts?|snippets?)"
)
_NUMBERS = r"\d+(?:\s*(?:,|&|and|-|to)\s*\d+)*"
_PATTERN = re.compile(
    rf"""
      ^\s*(?:\#{{1,6}}\s+|>\s+|(?:\d{{1,3}}[.)]|[-*+\u2022])\s+)+                     # list markers
    | \[\^?\d+(?:\s*[,;-]\s*\d+)*\]                                                  # [1], [2, 3]
    | [(\[]\s*(?:(?:see|from|in)\s+)?{_THING}\s*\#?{_NUMBERS}\s*[)\]]                # (Passage 1)
    | [(\[]\s*(?:sources?:\s*)?[\w./-]+\.(?:md|txt|pdf|html?|docx?|csv|json)(?:\#[\w./-]+)?\s*[)\]]
    | \b(?:(?:based\ on|according\ to|as\ \w+\ (?:in|by)|from|in|per)\s+
        (?:(?:the|these|those|this|your)\s+)?
        (?:(?:given|provided|above|retrieved|following|available)\s+)*
        {_THING}(?:\s+(?:provided|given|above))?(?:\s+{_NUMBERS})?)\b\s*[,:]?
    """,
    re.IGNORECASE | re.VERBOSE,
)


def blank_references(claim: str) -> str:
    """Blank out list markers, citations such as `[1]` and "based on the given passages".

    Args:
        claim: A claim, as it stands in the answer.

    Returns:
        A text of the same length, so that offsets hold; the claim itself if nothing else is in it.

    Example:
        >>> blank_references("2. Rome is old [1].")
        '   Rome is old    .'
    """
    blanked = _PATTERN.sub(lambda match: " " * len(match.group()), claim)
    return blanked if any(character.isalnum() for character in blanked) else claim
