"""Texts from outside, made fit to be shown; pure."""

import unicodedata

__all__ = ["printable"]

_BIDI_CONTROLS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def printable(text: str) -> str:
    r"""Replace what a terminal or a browser would obey and not show.

    Args:
        text: Any text.

    Returns:
        A text of the same length, in which control characters other than line feed and tab,
        lone surrogates and direction overrides are U+FFFD.

    Example:
        >>> printable("\x1b[31mred")
        '\ufffd[31mred'
    """
    return "".join(
        char
        if char in "\n\t"
        or not (unicodedata.category(char) in ("Cc", "Cs") or char in _BIDI_CONTROLS)
        else "\ufffd"
        for char in text
    )
