"""The lines of a single pass: `SENTENCE (STATEMENT): SENTENCES LABEL | VALUE | REASON`."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from langchain_groundedness._replies import numbered_line
from langchain_groundedness.prompts import VerdictLines, fold_space
from langchain_groundedness.verifiers._lines import (
    VerdictLine,
    labels_in,
    read_lines,
    read_verdicts,
)

__all__ = ["Judged", "read_judged", "read_reply"]

_OPENED = re.compile(
    r"[^\w\[]*(?:sentence\s*|s)?(\d{1,4})\s*([(\"\u201c])(.*)", re.IGNORECASE | re.DOTALL
)
_CLOSED = {
    opening: re.compile(rf"(?<=.){closing}\s*[:.]", re.DOTALL)
    for opening, closing in (("(", r"\)"), ('"', '"'), ("\u201c", "\u201d"))
}
_SENTENCE = re.compile(r"(?i)^\W*(?:sentence\s*|s)(?=\d)")
_SKIP = re.compile(r"skip\W*", re.IGNORECASE)


class Judged(NamedTuple):
    """What a reply says about one sentence, read but not yet believed."""

    whole: VerdictLine | None = None
    """Its verdict, if it was judged as it stands."""
    parts: tuple[tuple[str, VerdictLine | None], ...] = ()
    """The statements that were made of it, each with its verdict; `None` for one that was not
    decided: it got two different ones, or one that cannot be read."""
    undecided: bool = False
    """Whether the sentence, as it stands, got two different verdicts."""

    def about(self, sentence: str) -> "Judged":
        """Take a statement that is the sentence itself for the sentence.

        Args:
            sentence: Its text.

        Returns:
            The same, with statements that are others only.
        """
        parts = dict(self.parts)
        if sentence not in parts:
            return self
        again = parts.pop(sentence)
        if self.whole is None and not self.undecided:
            return Judged(again, tuple(parts.items()), again is None)
        agreed = self.whole if self.whole and again and self.whole.label == again.label else None
        return Judged(agreed, tuple(parts.items()), agreed is None)


def read_reply(text: str) -> VerdictLines | None:
    """Read a plain reply.

    Args:
        text: The reply.

    Returns:
        Its lines, or `None` if none of them says anything about a sentence.
    """
    lines = text.splitlines()
    return VerdictLines(lines=lines) if read_judged(lines) else None


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
        if part := _read_part(line.strip()):
            number, text, verdicts = part
            parts.setdefault(number, {}).setdefault(fold_space(text), []).extend(verdicts)
        elif (numbered := numbered_line(_SENTENCE.sub("", line))) and _SKIP.fullmatch(numbered[1]):
            skipped.add(numbered[0])
        else:
            whole.append(line)
    judged, undecided = read_verdicts(whole)
    in_parts = {number for number, texts in parts.items() if any(texts.values())}
    return {
        number: Judged(
            judged.get(number),
            tuple(
                (text, read_lines(verdicts).get(number))
                for text, verdicts in parts.get(number, {}).items()
            ),
            number in undecided,
        )
        for number in sorted({*judged, *undecided, *in_parts, *skipped})
    }


def _read_part(line: str) -> tuple[int, str, list[str]] | None:
    """Read a line about a statement: the sentence, the statement, and what may be its verdict.

    A statement and a reason may have brackets themselves. Where that leaves open which of two
    verdicts is meant, both are given, or none.
    """
    opened = _OPENED.fullmatch(line)
    ends = list(_CLOSED[opened[2]].finditer(opened[3])) if opened else []
    if opened is None or not ends:
        return None
    verdicts = {end: f"{opened[1]}: {opened[3][end.end() :].lstrip()}" for end in ends}
    read = {end: verdict for end, verdict in verdicts.items() if read_lines([verdict])}
    first = next(iter(read), ends[0])
    if labels_in(opened[3][ends[0].end() : first.start()]):
        return int(opened[1]), opened[3][: ends[0].start()], []
    return int(opened[1]), opened[3][: first.start()], list(read.values())
