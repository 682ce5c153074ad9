"""Adds context to parts of documents: table headers to rows, headings to items, paths to values.

A table row means little without its header, a list item without its heading, a JSON value without
its key. Citations still quote the text of the document.

Its own module because the index need not know markdown or JSON.
"""

import json
import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from langchain_groundedness.text.markdown import Block, blocks, table_cells
from langchain_groundedness.text.sentences import split_block

__all__ = ["EvidenceUnit", "expand_document"]

_LEVEL = re.compile(r"[#=]+")
_MARKERS = " \t#=*_>"
_BOLD_LEVEL = 2
"""Level of a line in bold, which has no heading signs: below the title."""
_ENDS = (".", "!", "?", ":")
_OF_TABLE = ("row", "delimiter")
_BLANK = re.compile(r"\s*")
_DECODER = json.JSONDecoder()


class EvidenceUnit(NamedTuple):
    """A sentence, row, record or value."""

    start: int
    end: int
    """Its place in the text that is written out."""
    source_start: int
    source_end: int
    """Its place in the document."""
    is_verbatim: bool
    """Whether both are the same text."""
    is_heading: bool


def expand_document(text: str) -> tuple[str, list[EvidenceUnit]]:
    """Write a document out, each row, value and item with its header, path or heading."""
    sentences: list[EvidenceUnit] = []
    written: list[str] = []
    size = before = 0
    for piece in _pieces(text):
        if piece.meant is not None and not written:  # as it stands so far
            written.append(text[:before])
            size = before
        start = piece.start
        if written:
            words = text[piece.start : piece.end] if piece.meant is None else piece.meant
            written += ["\n" if "\n" in text[before : piece.start] else " ", words]
            start, size = size + 1, size + 1 + len(words)
        end = size if written else piece.end
        is_verbatim = piece.meant is None
        sentences.append(
            EvidenceUnit(start, end, piece.start, piece.end, is_verbatim, piece.is_heading)
        )
        before = piece.end
    return "".join(written) if written else text, sentences


class _Piece(NamedTuple):
    """Characters `start` to `end` of a document."""

    start: int
    end: int
    meant: str | None = None
    """What they say with their header, heading or path; `None` for the text as it stands."""
    is_heading: bool = False


def _pieces(text: str) -> Iterator[_Piece]:
    """Yield the sentences, rows and values of a document, in order."""
    if text.lstrip()[:1] in {"{", "["}:
        try:
            json.loads(text)
            found = list[_Piece]()
            _Values(text, found).read(_BLANK.match(text).end(), "")  # type: ignore[union-attr]
        except (ValueError, RecursionError):
            pass
        else:
            yield from found
            return
    yield from _of_markdown(text)


def _of_markdown(text: str) -> Iterator[_Piece]:
    headings: list[str] = []
    for in_table, neighbours in groupby(blocks(text), lambda each: each.kind in _OF_TABLE):
        if in_table:
            yield from _table(text, list(neighbours), headings)
            continue
        for block in neighbours:
            if block.kind in ("heading", "title"):
                yield _heading(text, block, headings)
            elif block.kind == "item":
                yield from _item(text, block, headings)
            else:
                yield from _sentences(text, block)


def _table(text: str, lines: Sequence[Block], headings: Sequence[str]) -> Iterator[_Piece]:
    first, *others = lines
    has_header = first.kind == "row"
    if has_header and not others:  # a row alone
        yield from _sentences(text, first)
    columns = table_cells(text[first.body : first.end]) if has_header else []
    for line in others:
        if line.kind == "row":
            yield _whole(text, line, _under(headings, _row(columns, text, line)))


def _sentences(text: str, block: Block) -> Iterator[_Piece]:
    return (_Piece(each.start, each.end) for each in split_block(text, block))


def _heading(text: str, block: Block, headings: list[str]) -> _Piece:
    """Return a heading, and note it for the text under it."""
    line = text[block.start : block.end].strip()
    level = _LEVEL.match(line)
    del headings[(len(level[0]) if level else _BOLD_LEVEL) - 1 :]
    first = line.splitlines()[0]
    headings.append(first.strip(_MARKERS).rstrip(":"))
    return _whole(text, block, _ended(headings[-1]))._replace(is_heading=True)


def _item(text: str, block: Block, headings: Sequence[str]) -> Iterator[_Piece]:
    first, *others = _sentences(text, block)
    yield first._replace(meant=_under(headings, _ended(text[block.body : first.end].strip())))
    yield from others


def _whole(text: str, block: Block, meant: str) -> _Piece:
    return _Piece(block.start, block.start + len(text[block.start : block.end].rstrip()), meant)


def _row(columns: Sequence[str], text: str, block: Block) -> str:
    cells = table_cells(text[block.body : block.end])
    named = [f"{h}: {c}" if h else c for h, c in zip(columns, cells, strict=False) if c]
    return _ended("; ".join([*named, *filter(None, cells[len(columns) :])]))


def _under(headings: Sequence[str], line: str) -> str:
    """Put the heading before a line; the first one is the title of the whole document."""
    return f"{headings[-1]}: {line}" if len(headings) > 1 else line


def _ended(line: str) -> str:
    return line if line.endswith(_ENDS) else f"{line}."


class _Values:
    """Reads valid JSON with the places of its values; those of a record in a list are one piece."""

    def __init__(self, text: str, found: list[_Piece]) -> None:
        self._text = text
        self._found = found

    def read(self, at: int, path: str) -> int:
        """Read a value; give the place after it."""
        if self._text[at] == "{":
            return self._read_object(at, path)
        value, end = _DECODER.raw_decode(self._text, at)
        if not isinstance(value, list):
            self._add(at, end, _written_out(value, path))
        elif any(isinstance(inner, dict | list) for inner in value):
            self._read_records(at, path)
        elif value:
            self._add(at, end, _written_out(value, path))
        return end

    def _read_object(self, at: int, path: str) -> int:
        at = self._blank(at + 1)
        while self._text[at] != "}":
            key, end = _DECODER.raw_decode(self._text, at)
            before = len(self._found)
            end = self.read(self._blank(self._blank(end) + 1), f"{path} {key}".strip())
            if len(self._found) == before + 1:  # the key of a single value is cited with it
                self._found[-1] = self._found[-1]._replace(start=at)
            at = self._next(end)
        return at + 1

    def _read_records(self, at: int, path: str) -> None:
        at = self._blank(at + 1)
        while self._text[at] != "]":
            value, end = _DECODER.raw_decode(self._text, at)
            words = "; ".join(_values(value, "" if isinstance(value, dict) else path))
            if words:
                self._add(at, end, words)
            at = self._next(end)

    def _add(self, start: int, end: int, words: str) -> None:
        self._found.append(_Piece(start, end, f"{words}."))

    def _blank(self, at: int) -> int:
        return _BLANK.match(self._text, at).end()  # type: ignore[union-attr]  # matches anywhere

    def _next(self, at: int) -> int:
        """Go to the next element, or to the bracket that ends them."""
        at = self._blank(at)
        return self._blank(at + 1) if self._text[at] == "," else at


def _values(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _values(inner, f"{path} {key}".strip())
    elif isinstance(value, list) and any(isinstance(inner, dict | list) for inner in value):
        for inner in value:
            yield from _values(inner, path)
    else:
        yield _written_out(value, path)


def _written_out(value: object, path: str) -> str:
    values = value if isinstance(value, list) else [value]
    words = ", ".join(
        str(v).lower() if v is None or isinstance(v, bool) else str(v) for v in values
    )
    return f"{path.replace('_', ' ')}: {words}" if path else words
