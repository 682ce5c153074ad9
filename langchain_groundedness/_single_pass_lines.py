"""The lines of a single pass: `SENTENCE (STATEMENT): SENTENCES LABEL | VALUE | REASON`."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from langchain_groundedness._replies import numbered_line
from langchain_groundedness.prompts import VerdictLines, fold_space
from langchain_groundedness.verifiers._lines import VerdictLine, read_lines

__all__ = ["Judged", "read_judged", "read_reply"]

_STATEMENT = re.compile(
    r"[^\w\[]*(?:sentence\s*|s)?(\d{1,4})\s*"
    r"(?:\((.+)\)|\"(.+)\"|\u201c(.+)\u201d)\s*[:.]\s*(.*)",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?i)^\W*(?:sentence\s*|s)(?=\d)")
_SKIP = re.compile(r"skip\W*", re.IGNORECASE)


class Judged(NamedTuple):
    """What a reply says about one sentence, read but not yet believed."""

    whole: VerdictLine | None = None
    """Its verdict, if it was judged as it stands."""
    parts: tuple[tuple[str, VerdictLine | None], ...] = ()
    """The statements that were made of it, each with its verdict; `None` for one that got two
    different ones, and so was not decided."""
    skipped: bool = False


def read_reply(text: str) -> VerdictLines | None:
    """Read a plain reply.

    Args:
        text: The reply.

    Returns:
        Its lines, or `None` if none of them says anything about a sentence.
    """
    lines = [line for line in text.splitlines() if read_judged([line])]
    return VerdictLines(lines=lines) if lines else None


def read_judged(lines: Iterable[str]) -> dict[int, Judged]:
    """Read the lines of a reply.

    Args:
        lines: The lines; what has another form is passed over.

    Returns:
        What they say, by number of the sentence. A verdict that was given in two ways is left out.
    """
    whole: list[str] = []
    parts: dict[int, dict[str, list[str]]] = {}
    skipped: set[int] = set()
    for line in lines:
        if found := _STATEMENT.fullmatch(line.strip()):
            text = fold_space(found[2] or found[3] or found[4])
            verdict = f"{found[1]}: {found[5]}"
            if read_lines([verdict]):
                parts.setdefault(int(found[1]), {}).setdefault(text, []).append(verdict)
        elif (numbered := numbered_line(_SENTENCE.sub("", line))) and _SKIP.fullmatch(numbered[1]):
            skipped.add(numbered[0])
        else:
            whole.append(line)
    judged = read_lines(whole)
    return {
        number: Judged(
            judged.get(number),
            tuple(
                (text, read_lines(verdicts).get(number))
                for text, verdicts in parts.get(number, {}).items()
            ),
            number in skipped,
        )
        for number in sorted({*judged, *parts, *skipped})
    }
