"""Puts what a benchmark found between two marks of a page."""

import sys
from pathlib import Path

__all__ = ["place_in", "put"]


def put(page: Path, script: str, text: str) -> None:
    """Put a text into the place of a script.

    Args:
        page: The page.
        script: The script that the place is for.
        text: What to put there.
    """
    before, after = place_in(page, script)
    marked = f"{before}{_begin(script)}\n\n{text}\n\n{_END}{after}"
    page.write_text(marked, encoding="utf-8")


def place_in(page: Path, script: str) -> tuple[str, str]:
    """Give what stands before and behind the place of a script; leave if there is none.

    Args:
        page: The page.
        script: The script.
    """
    text = page.read_text(encoding="utf-8") if page.exists() else ""
    before, begun, rest = text.partition(_begin(script))
    _, ended, after = rest.partition(_END)
    if not begun or not ended:
        sys.exit(f"{page} needs the lines {_begin(script)!r} and {_END!r} around what is put there")
    return before, after


def _begin(script: str) -> str:
    return f"<!-- {script} writes from here -->"


_END = "<!-- to here -->"
