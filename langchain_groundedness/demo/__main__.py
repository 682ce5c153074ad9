"""Runs the demonstration: `python -m langchain_groundedness.demo`."""

import sys
from time import perf_counter

from langchain_groundedness.demo import QUESTION, build_chain
from langchain_groundedness.exceptions import MissingDependencyError, require
from langchain_groundedness.runnable import GroundednessRunnable

_INTRODUCTION = """\
A retrieval chain answers from the documents in `langchain_groundedness/demo/documents`. Its chat \
model is scripted: it always gives the same answer, with two errors and one invention planted in \
it. The check behind it is real: the embedded verifier, offline, without a key.
"""


def main() -> None:
    """Ask, check, and show the result in colour."""
    try:
        console = require("rich.console", extra="cli").Console()
        render = require("langchain_groundedness.display.terminal", extra="cli").render
    except MissingDependencyError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(2)
    checker = GroundednessRunnable(on_contradicted="correct")
    checker.warm_up()
    checked = build_chain().pipe(checker)
    start = perf_counter()
    result = checked.invoke(QUESTION)
    seconds = perf_counter() - start
    console.print(_INTRODUCTION, markup=False, highlight=False)
    console.print(render(result))
    console.print(
        f"\nretrieved, answered and checked in {1000 * seconds:.0f} ms: "
        "build_chain().pipe(GroundednessRunnable(on_contradicted='correct'))",
        style="dim",
        highlight=False,
        markup=False,
    )


if __name__ == "__main__":
    main()
