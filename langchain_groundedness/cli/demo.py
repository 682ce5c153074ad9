"""The command `langchain-groundedness demo`."""

from langchain_groundedness.cli.errors import errors_in_one_line
from langchain_groundedness.cli.options import AsJson

__all__ = ["demo"]


def demo(*, as_json: AsJson = False) -> None:
    """Watch a scripted answer being checked, claim by claim.

    \b
    Examples:
      langchain-groundedness demo
      langchain-groundedness demo > verdicts.txt

    Needs no key and no network. A sentence turns green, red or yellow as soon as its verdict is
    known; a file or a pipe gets lines.
    """  # noqa: D301  (click reads the backspace)
    from langchain_groundedness.demo.watching import watch

    with errors_in_one_line("cannot show the demonstration"):
        watch(as_json=as_json)
