"""HTML elements as strings, with all other text escaped and hidden characters named."""

from collections.abc import Iterable
from html import escape

from langchain_groundedness.display.hidden_characters import named

__all__ = ["Html", "tag"]


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
    return escape(named(text))
