"""HTML in so many words: whatever is not HTML already is escaped; pure."""

import unicodedata
from collections.abc import Iterable
from html import escape

__all__ = ["Html", "joined", "printable", "tag"]


class Html(str):
    """Text that is HTML already, and is not escaped again."""

    __slots__ = ()


def tag(name: str, *children: str, **attributes: object) -> Html:
    """Write an element.

    Args:
        name: Its name; never from outside.
        *children: What stands in it; texts are escaped.
        **attributes: Its attributes, escaped; an underscore at the end of a name is dropped, others
            become hyphens, and what is `None` is left out.

    Returns:
        The element.

    Example:
        >>> tag("p", "1 < 2", tag("b", "!"), class_="note", id=None)
        '<p class="note">1 &lt; 2<b>!</b></p>'
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_text(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Html(f"<{name}{written}>{joined(children)}</{name}>")


def joined(parts: Iterable[str]) -> Html:
    """Put parts behind each other.

    Args:
        parts: HTML, and texts, which are escaped.

    Returns:
        All of it.
    """
    return Html("".join(part if isinstance(part, Html) else _text(part) for part in parts))


def _text(text: str) -> str:
    return escape(printable(text.replace("\r\n", "\n")))


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
