"""The command `langchain-groundedness demo`."""

import json
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.live import Live

from langchain_groundedness.cli import options
from langchain_groundedness.cli.errors import errors_in_one_line
from langchain_groundedness.display.marked_text import SIGNS
from langchain_groundedness.display.terminal import render

if TYPE_CHECKING:
    from langchain_core.runnables import Runnable

    from langchain_groundedness.types import ClaimVerdict

__all__ = ["demo"]

_INTRODUCTION = """\
A retrieval chain answers from the documents in `langchain_groundedness/demo/documents`. Its chat \
model is scripted: it always gives the same answer, with two errors and one invention planted in \
it. The check behind it is real: the embedded verifier, offline, without a key.
"""
_END = """
build_chain().pipe(GroundednessRunnable(on_contradicted='correct')).stream(QUESTION)
Next: `langchain-groundedness serve FOLDER --model PROVIDER:NAME` answers questions about your \
documents in a browser."""
_DELAY = 0.008
"""Seconds between two characters of the answer, for people to read along."""


def demo(*, as_json: options.AsJson = False) -> None:
    """Watch a scripted answer being checked, claim by claim.

    \b
    Examples:
      langchain-groundedness demo
      langchain-groundedness demo > verdicts.txt

    Needs no key and no network. A sentence turns green, red or yellow as soon as its verdict is
    known; a file or a pipe gets lines.
    """  # noqa: D301  (click reads the backspace)
    from langchain_groundedness.demo import QUESTION

    console = Console()
    with errors_in_one_line("cannot show the demonstration"):
        if as_json:
            result = _chain().invoke(QUESTION)
            typer.echo(json.dumps(result.model_dump(mode="json"), indent=2))
        elif console.is_terminal:
            console.print(_INTRODUCTION, markup=False, highlight=False)
            with Live(console=console, refresh_per_second=20) as live:
                for result in accumulate(_chain(_DELAY).stream(QUESTION)):
                    live.update(render(result))
            console.print(_END, style="dim", highlight=False, markup=False)
        else:
            typer.echo(f"{_INTRODUCTION}\nQuestion: {QUESTION}\n")
            shown: set[str] = set()
            for result in accumulate(_chain().stream(QUESTION)):
                for found in result.claims:
                    if found.claim.id not in shown:
                        shown.add(found.claim.id)
                        typer.echo(_line(found))
            typer.echo(f"\nCorrected: {result.answer}\n{_END}")


def _line(found: "ClaimVerdict") -> str:
    quotes = (f"“{' '.join(c.quote.split())}” {c.metadata['source']}" for c in found.citations)
    head = f"{SIGNS[found.verdict]} {found.verdict:12}  {found.claim.text}"
    return "\n    ".join((head, *quotes))


def _chain(delay: float | None = None) -> "Runnable[Any, Any]":
    from langchain_groundedness.demo import build_chain
    from langchain_groundedness.runnable import GroundednessRunnable

    checker = GroundednessRunnable(on_contradicted="correct")
    checker.warm_up()
    return build_chain(delay=delay).pipe(checker)
