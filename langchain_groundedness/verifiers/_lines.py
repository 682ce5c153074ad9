"""The line protocol of batched verification: `CLAIM: SENTENCES LABEL | VALUE | REASON`."""

import re
from collections.abc import Iterable
from typing import Literal, NamedTuple, TypeAlias

from langchain_groundedness.prompts import VerdictLines

__all__ = [
    "Label",
    "ReadVerdicts",
    "VerdictLine",
    "labels_in",
    "read_lines",
    "read_text",
    "read_verdicts",
    "why_no_verdict",
]

Label: TypeAlias = Literal["supported", "contradicted", "unverifiable"]

_LABELS: dict[str, Label] = {
    "not supported": "unverifiable",
    "not contradicted": "unverifiable",
    "supported": "supported",
    "contradicted": "contradicted",
    "refuted": "contradicted",
    "unverifiable": "unverifiable",
    "unsupported": "unverifiable",
    "unknown": "unverifiable",
}
_LINE = re.compile(
    r"[^\w\[]*(?:claim\s*|sentence\s*|c|s)?(\d{1,4})\b\W*?[\s:.)]\s*(.*)", re.IGNORECASE | re.DOTALL
)
_LABEL = rf"(?<![^\W_])({'|'.join(_LABELS)})(?![^\W_])"
_MARKS = r"[\s*_`'\".,;:()&\[\]{}=>\u2013\u2014\u2192\u2705\u2713\u2714-]"
_NAMED = rf"(?:{_MARKS}|\b(?:verdict|sentences?|evidence|by|in|and)\b|(?<!\d)\d{{1,9}}(?!\d))*"
_HEAD = re.compile(rf"({_NAMED}){_LABEL}({_NAMED})", re.IGNORECASE)
_ANY_LABEL = re.compile(_LABEL, re.IGNORECASE)
_NUMBERS = re.compile(r"(\d+)\s*[-\u2013]\s*(\d+)|(\d+)")
_NOTHING = frozenset({"", "-", "\u2013", "none", "n/a", "unknown"})
_LONGEST_RANGE = 20
_LONGEST_VALUE = 6


class VerdictLine(NamedTuple):
    """One line of a reply, read but not yet believed."""

    claim: int
    """Number of the claim, as it was shown."""
    label: Label
    sentences: tuple[int, ...] = ()
    """Numbers of evidence sentences, as the model named them."""
    correction: str | None = None
    reason: str = ""


class ReadVerdicts(NamedTuple):
    """What the lines of a reply say."""

    decided: dict[int, VerdictLine]
    """By number of the claim."""
    undecided: set[int]
    """Numbers of claims that got two different labels."""


def read_text(text: str) -> VerdictLines | None:
    """Read a plain reply.

    Args:
        text: The reply.

    Returns:
        Its lines, or `None` if none of them is a verdict.
    """
    lines = [line for line in text.splitlines() if _read(line) is not None]
    return VerdictLines(lines=lines) if lines else None


def read_lines(lines: Iterable[str]) -> dict[int, VerdictLine]:
    """Read the lines of a reply.

    Args:
        lines: The lines; what is no verdict is passed over.

    Returns:
        The verdict lines by number of the claim. A claim that got two different labels is left
        out: it was not decided.
    """
    return read_verdicts(lines).decided


def read_verdicts(lines: Iterable[str]) -> ReadVerdicts:
    """Read the lines of a reply, and find what they leave undecided.

    Args:
        lines: The lines; what is no verdict is passed over.

    Returns:
        The verdict lines, and the claims that got two different labels.
    """
    found: dict[int, VerdictLine] = {}
    undecided: set[int] = set()
    for line in lines:
        verdict = _read(line)
        if verdict is None:
            continue
        if found.setdefault(verdict.claim, verdict).label != verdict.label:
            undecided.add(verdict.claim)
    decided = {number: line for number, line in found.items() if number not in undecided}
    return ReadVerdicts(decided, undecided)


def why_no_verdict(lines: Iterable[str]) -> str | None:
    """Say why there is no verdict in a reply.

    Args:
        lines: The lines of the reply.

    Returns:
        A clause about the reply; `None` if there is a verdict.
    """
    decided, undecided = read_verdicts(lines)
    if decided:
        return None
    return f"it has {'two different verdicts for a claim' if undecided else 'no verdict'}"


def labels_in(text: str) -> set[Label]:
    """Find the labels that a text names.

    Args:
        text: Part of a reply.

    Returns:
        The labels.
    """
    return {_LABELS[each.lower()] for each in _ANY_LABEL.findall(text)}


def _read(line: str) -> VerdictLine | None:
    numbered = _LINE.fullmatch(line.strip())
    if numbered is None:
        return None
    head, *notes = (part.strip() for part in numbered[2].split("|"))
    found = _HEAD.match(head)
    if found is None or len(labels_in(head)) != 1:
        return None
    label = _LABELS[found[2].lower()]
    if rest := head[found.end() :]:
        # What goes on behind it may take support or contradiction back.
        if label != "unverifiable":
            return None
        notes = [head[found.end(2) :].lstrip(" -:;,.\u2013\u2014"), *notes]
    sentences = _numbers(found[1]) or (() if rest else _numbers(found[3]))
    correction, reason = _notes(label, notes)
    return VerdictLine(int(numbered[1]), label, sentences, correction, reason)


def _numbers(text: str) -> tuple[int, ...]:
    numbers: list[int] = []
    for first, last, single in _NUMBERS.findall(text):
        if single:
            numbers.append(int(single))
        elif 0 <= int(last) - int(first) <= _LONGEST_RANGE:
            numbers.extend(range(int(first), int(last) + 1))
        else:
            numbers.extend((int(first), int(last)))
    return tuple(dict.fromkeys(numbers))


def _notes(label: Label, notes: list[str]) -> tuple[str | None, str]:
    said = [note for note in notes if note.lower() not in _NOTHING]
    if label == "contradicted" and said:
        value = said[0]
        if len(notes) > 1 and notes[0] == value:
            return value, " ".join(said[1:])
        if len(notes) == 1 and len(value.split()) <= _LONGEST_VALUE:
            return value, ""
    return None, " ".join(said)
