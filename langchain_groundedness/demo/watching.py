"""Shows the claims of the demonstration as they are checked, in a terminal or a pipe.

Its own module because the help of the command would load all that a chain needs.
"""

import json
import sys
from collections.abc import Iterator
from io import TextIOWrapper
from typing import Any

from langchain_core.runnables import Runnable

from langchain_groundedness.demo import QUESTION, build_chain
from langchain_groundedness.display.marked_text import SIGNS
from langchain_groundedness.runnable import GroundednessRunnable
from langchain_groundedness.types import ClaimVerdict, GroundednessResultChunk

__all__ = ["watch"]

_INTRODUCTION = """\
A retrieval chain answers from the documents in `langchain_groundedness/demo/documents`. Its chat \
model is scripted: it always gives the same answer, with two errors and one invention planted in \
it. The check behind it is real: the embedded verifier, offline, without a key.
"""
_CODE = "build_chain().pipe(GroundednessRunnable(on_contradicted='correct')).stream(QUESTION)"
_NEXT = (
    "Next: langchain-groundedness serve answers questions about your own documents, in the browser."
)
_DELAY = 0.008
"""Seconds between two characters of the answer, for people to read along."""


def watch(*, as_json: bool = False) -> None:
    """Ask, and show each sentence with its verdict as soon as it is known, or the result."""
    if as_json:
        _print(json.dumps(_chain().invoke(QUESTION).model_dump(mode="json"), indent=2))
        return
    # Not at the top: the root of the package loads without these.
    from rich.console import Console  # noqa: PLC0415
    from rich.live import Live  # noqa: PLC0415

    from langchain_groundedness.display.terminal import render  # noqa: PLC0415

    console = Console()
    if not console.is_terminal:
        _print_lines()
        return
    console.print(_INTRODUCTION, markup=False, highlight=False)
    with Live(console=console, refresh_per_second=20) as live:
        for result in _partial_results(delay=_DELAY):
            live.update(render(result))
    console.print(f"\n{_CODE}\n{_NEXT}", style="dim", highlight=False, markup=False)


def _print_lines() -> None:
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    _print(f"{_INTRODUCTION}\nQuestion: {QUESTION}\n")
    shown: set[str] = set()
    result = GroundednessResultChunk()
    for result in _partial_results():
        new = [found for found in result.claims if found.claim.id not in shown]
        shown |= {found.claim.id for found in new}
        for found in new:
            _print(_line(found))
    _print(f"\nCorrected: {result.answer}\n\n{_CODE}\n{_NEXT}")


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _line(found: ClaimVerdict) -> str:
    quotes = (f"“{' '.join(c.quote.split())}” {c.metadata['source']}" for c in found.citations)
    head = f"{SIGNS[found.verdict]} {found.verdict:12}  {found.claim.text}"
    return "\n    ".join((head, *quotes))


def _partial_results(*, delay: float | None = None) -> Iterator[GroundednessResultChunk]:
    total = GroundednessResultChunk()
    for chunk in _chain(delay).stream(QUESTION):
        total += chunk
        yield total


def _chain(delay: float | None = None) -> Runnable[Any, Any]:
    checker = GroundednessRunnable(on_contradicted="correct")
    checker.warm_up()
    return build_chain(delay=delay).pipe(checker)
