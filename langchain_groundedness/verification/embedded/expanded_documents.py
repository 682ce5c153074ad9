"""Adds context to parts of documents: table headers to rows, headings to items, paths to values.

A table row means little without its header, a list item without its heading and the line that leads
to it ("Do not take it if:"), a JSON value without its key. Citations still quote the text of the
document.

Its own module because the index need not know markdown or JSON.
"""

import json
import re
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise
from typing import Any, NamedTuple

from langchain_groundedness.text.markdown import Block, BlockKind, blocks, table_cells
from langchain_groundedness.text.sentences import split_block

__all__ = ["EvidenceUnit", "expand_document", "is_question", "statement_at"]

_TITLE = re.compile(r"#(?!#)")
_MARKERS = " \t#=*_>"
_ENDS = (".", "!", "?", ":")
_QUOTED = "> \t"
_CLOSING = " \t\r\n*_.\"'\u201d\u2019)"
_INDENTATION = re.compile(r"(?:[ \t]*>)*([ \t]*)")
_OF_TABLE = ("row", "delimiter")
_LED = ("item", "row")
"""What a line that ends with a colon may lead to."""
_FAR_ABOVE = 20_000
"""Characters; reading them takes 20 ms."""
_LONGEST = 200
"""Characters of a heading, of a line that leads to a list, of a table header, of a path: a longer
one would be repeated for each short item under it."""
_DEEPEST = 4
"""Lists in lists whose leading lines are repeated."""
_MOST_ADDED = 20
"""Times the length of a document that may be added to it; beyond, lines are read as they stand."""
_ALWAYS_ADDED = 5_000
_BLANK_QUOTE = "> \t\r\n"
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
    left = _MOST_ADDED * len(text) + _ALWAYS_ADDED
    for piece in _pieces(text):
        left -= len(piece.meant or "")
        if left < 0:
            piece = piece._replace(meant=None)  # noqa: PLW2901  (read as it stands)
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


def statement_at(text: str, start: int, end: int) -> str:
    """Return a cited sentence as it can stand alone: an item with what leads to it, no marker."""
    # What leads to a list is close above it; a whole document would take long to read.
    far = max(0, start - _FAR_ABOVE)
    first = max(far, text.find("\n", far, start) + 1) if far else 0
    above, units = expand_document(text[first:end])
    last = units[-1] if units else None
    if last is None or last.is_verbatim or last.source_start > start - first:
        return text[start:end]
    return above[last.start : last.end]


def is_question(text: str) -> bool:
    """Return whether a sentence asks something, and so states nothing."""
    return text.rstrip(_CLOSING).endswith("?")


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
    above = _Above()
    table: list[Block] = []
    for block, following in pairwise(chain(_not_blank(text), [None])):
        assert block is not None  # noqa: S101  (only the last is)
        after = "" if following is None else following.kind
        if block.kind in _OF_TABLE:
            table.append(block)
            if after not in _OF_TABLE:
                yield from _table(text, table, above)
                table = []
        elif block.kind in ("heading", "title"):
            line = text[block.start : block.end].strip()
            heading = _ended(above.read_heading(line, block.kind))
            yield _whole(text, block, heading)._replace(is_heading=True)
        else:
            led = following if after in _LED else None
            yield from _sentences(text, block, above, led)


def _not_blank(text: str) -> Iterator[Block]:
    """Yield the blocks of a text, but no blank lines of quotes."""
    return (each for each in blocks(text) if text[each.start : each.end].strip(_BLANK_QUOTE))


class _Above:
    """What stands above a line and says what it is about: headings, and the lines before lists."""

    def __init__(self) -> None:
        self._heading: str | None = None
        self._leads: list[tuple[int, str]] = []
        """With their indentation, the outermost first."""

    def read_heading(self, line: str, kind: BlockKind) -> str:
        """Note a heading for the text under it; return its words."""
        words = line.splitlines()[0].strip(_MARKERS).rstrip(":")[:_LONGEST]
        highest = line.endswith("=") if kind == "title" else _TITLE.match(line) is not None
        # If the first heading is of the highest level, it is the title of the whole document.
        self._heading = "" if self._heading is None and highest else words
        self._leads = []
        return words

    def leave_lists(self, indentation: int) -> None:
        """Forget the lines that lead to lists which end above a line of this indentation."""
        self._leads = [each for each in self._leads if each[0] < indentation]

    def read_lead(self, indentation: int, line: str) -> None:
        """Note a line that leads to a list or a table."""
        if len(self._leads) < _DEEPEST:
            self._leads.append((indentation, line))

    def put_before(self, line: str) -> str:
        """Add the innermost heading and the lines that lead to a line."""
        heading = [f"{self._heading}:"] if self._heading else []
        return " ".join([*heading, *(lead for _, lead in self._leads), line])


def _table(text: str, lines: Sequence[Block], above: _Above) -> Iterator[_Piece]:
    first, *others = lines
    has_header = first.kind == "row"
    if has_header and not others:  # a row alone
        yield from (_Piece(each.start, each.end) for each in split_block(text, first))
    header = table_cells(text[first.body : first.end]) if has_header else []
    columns = [cell[:_LONGEST] for cell in header]
    for line in others:
        if line.kind == "row":
            yield _whole(text, line, above.put_before(_row(columns, text, line)))


def _sentences(text: str, block: Block, above: _Above, led: Block | None) -> Iterator[_Piece]:
    """Yield the sentences of a paragraph or item; the last may lead to the list or table `led`."""
    is_item = block.kind == "item"
    column = _indentation(text, block) - (not is_item)  # its list need not be indented further
    *_, last_line = text[block.start : block.end].strip().splitlines()
    # An unindented line right after a list belongs to its last item in markdown, seldom in meaning.
    if is_item and text[block.start : block.end].strip() != last_line and last_line[:1].strip():
        column = -1
    above.leave_lists(column)
    pieces = [_Piece(each.start, each.end) for each in split_block(text, block)]
    words = [text[each.start : each.end].strip() for each in pieces]
    if is_item and pieces:
        words[0] = text[block.body : pieces[0].end].strip()
        pieces[0] = pieces[0]._replace(meant=above.put_before(_ended(words[0])))
    lead = (words[-1] if column >= 0 or not is_item else last_line) if words and led else ""
    lead = lead.lstrip(_QUOTED)
    if lead.rstrip("*_ ").endswith(":") and len(lead) <= _LONGEST:
        pieces[-1] = pieces[-1]._replace(is_heading=True)
        of_list = _indentation(text, led) - 1 if led and not is_item else column
        above.read_lead(min(column, of_list), lead)
    elif led and led.kind == "row":
        above.leave_lists(-1)
    yield from pieces


def _indentation(text: str, block: Block) -> int:
    return len(_INDENTATION.match(text, block.start)[1])  # type: ignore[index]  # matches anywhere


def _whole(text: str, block: Block, meant: str) -> _Piece:
    return _Piece(block.start, block.start + len(text[block.start : block.end].rstrip()), meant)


def _row(columns: Sequence[str], text: str, block: Block) -> str:
    cells = table_cells(text[block.body : block.end])
    named = [f"{h}: {c}" if h else c for h, c in zip(columns, cells, strict=False) if c]
    return _ended("; ".join([*named, *filter(None, cells[len(columns) :])]))


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
            end = self.read(self._blank(self._blank(end) + 1), f"{path} {key}"[-_LONGEST:].strip())
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
        self._found.append(_Piece(start, end, _ended(words)))

    def _blank(self, at: int) -> int:
        return _BLANK.match(self._text, at).end()  # type: ignore[union-attr]  # matches anywhere

    def _next(self, at: int) -> int:
        """Go to the next element, or to the bracket that ends them."""
        at = self._blank(at)
        return self._blank(at + 1) if self._text[at] == "," else at


def _values(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _values(inner, f"{path} {key}"[-_LONGEST:].strip())
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
