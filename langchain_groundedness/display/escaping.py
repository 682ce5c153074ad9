"""HTML elements as strings, with all other text escaped."""

import unicodedata
from collections.abc import Iterable
from html import escape

__all__ = ["Html", "printable", "tag"]


class Html(str):
    """A string that is already HTML, and is not escaped again."""

    __slots__ = ()


def tag(name: str, *children: str, **attributes: object) -> Html:
    """Build an element."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_text(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Html(f"<{name}{written}>{_joined(children)}</{name}>")


def _joined(parts: Iterable[str]) -> Html:
    """Put parts behind each other."""
    return Html("".join(part if isinstance(part, Html) else _text(part) for part in parts))


def _text(text: str) -> str:
    return escape(printable(text.replace("\r\n", "\n")))


_BIDI_CONTROLS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def printable(text: str) -> str:
    r"""Replace control characters that a terminal or browser would interpret."""
    return "".join(
        char
        if char in "\n\t"
        or not (unicodedata.category(char) in ("Cc", "Cs") or char in _BIDI_CONTROLS)
        else "\ufffd"
        for char in text
    )
