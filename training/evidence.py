"""What the encoder reads for a claim: evidence chosen as the verifier chooses it.

Tables, JSON and lists are first written out as sentences that say what they mean.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from langchain_core.documents import Document

from langchain_groundedness.verification.embedded.index import EvidenceIndex
from langchain_groundedness.verification.embedded.statement import read_statement
from langchain_groundedness.verification.embedded.windows import (
    WORDS,
    chosen_units,
    joined,
    match_statement,
)

__all__ = ["WORDS", "Evidence", "written_out"]

_ROW = re.compile(r"^\s*\|(.+)\|\s*$")
_RULE = re.compile(r"^[\s|:-]+$")
_HEADING = re.compile(r"^(#{1,6}) +(.+?)[ #]*$")
_ITEM = re.compile(r"^\s*(?:[-*\u2022]|\d+[.)])\s+(.+)$")
_ENDS = (".", "!", "?", ":")


class Evidence:
    """The documents of a claim."""

    def __init__(self, documents: Sequence[str]) -> None:
        """Index them.

        Args:
            documents: Their texts.
        """
        self._index = EvidenceIndex([Document(page_content=written_out(d)) for d in documents])

    def read(self, claim: str, question: str | None = None, *, words: int = WORDS) -> str:
        """Choose what to read.

        Args:
            claim: The claim.
            question: What it answers.
            words: About how many words to read.

        Returns:
            The evidence; empty where the documents say nothing of it.
        """
        statement = read_statement(claim, question)
        match = match_statement(statement, self._index) if statement.items else None
        if match is None:
            return ""
        return joined(chosen_units(match, self._index, words=words), match, self._index)


def written_out(text: str) -> str:
    """Write tables, JSON and lists as sentences, each with what stands above it.

    Args:
        text: A document.

    Returns:
        Rows as "header: value; header: value", values of JSON with their path, items and rows with
        their heading; other lines as they are.
    """
    if text.lstrip()[:1] in {"{", "["}:
        try:
            return "\n".join(f"{line}." for line in _values(json.loads(text), ""))
        except ValueError:
            pass
    return "\n".join(_lines(text.splitlines()))


def _lines(lines: Sequence[str]) -> Iterator[str]:
    headings: list[str] = []
    header: list[str] | None = None
    for place, line in enumerate(lines):
        row, heading, item = _ROW.match(line), _HEADING.match(line), _ITEM.match(line)
        if row:
            cells = [cell.strip() for cell in row[1].split("|")]
            if header is None:
                header = cells
            elif not _RULE.match(line):
                yield _under(headings, _row(header, cells))
            continue
        header = None
        if heading:
            del headings[len(heading[1]) - 1 :]
            headings.append(heading[2])
            if len(headings) == 1 or not _ITEM.match("".join(lines[place + 1 : place + 2])):
                yield _ended(heading[2])
        elif item:
            yield _under(headings, _ended(item[1]))
        else:
            yield line


def _row(header: Sequence[str], cells: Sequence[str]) -> str:
    named = [f"{h}: {c}" if h else c for h, c in zip(header, cells, strict=False) if c]
    return _ended("; ".join(named))


def _under(headings: Sequence[str], line: str) -> str:
    return f"{headings[-1]}: {line}" if len(headings) > 1 else line


def _ended(line: str) -> str:
    return line if line.endswith(_ENDS) else f"{line}."


def _values(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _values(inner, f"{path} {key}".strip())
    elif isinstance(value, list):
        if all(not isinstance(inner, (dict, list)) for inner in value):
            yield f"{path}: {', '.join(map(_said, value))}"
        else:
            for inner in value:
                yield _record(inner, path)
    else:
        yield f"{path.replace('_', ' ')}: {_said(value)}"


def _record(value: Any, path: str) -> str:
    return "; ".join(_values(value, path if not isinstance(value, dict) else ""))


def _said(value: object) -> str:
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)
