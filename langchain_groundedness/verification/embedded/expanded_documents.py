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
_BOLD = "*_"
_EMPHASIS = "*_ \t\r\n"
_QUOTED = "> \t"
_LINE_END = re.compile(r"\s*\n[\s>]*")
_CLOSING = " \t\r\n*_.\"'\u201d\u2019)"
_INDENTATION = re.compile(r"(?:[ \t]*>)*([ \t]*)")
_OF_TABLE = ("row", "delimiter")
_LED = ("item", "row")
"""What a line that ends with a colon may lead to."""
_FAR_ABOVE = 5_000
"""Characters; reading them takes 5 to 30 ms."""
_LONGEST = 200
"""Characters of a heading, of a line that leads to a list, of a table header, of a path: a longer
one would be repeated for each short item under it."""
_DEEPEST = 4
"""Lists in lists whose leading lines are repeated."""
_MOST_ADDED = 20
"""Times the length of a document that may be added to it; beyond, lines are read as they stand."""
_ALWAYS_ADDED = 5_000
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
    """Return a cited sentence as it can stand alone: an item with what leads to it, no marker.

    Nothing is returned for an item if what leads to it is too far above to be found.
    """
    far = max(0, start - _FAR_ABOVE)  # a whole document would take long to read
    first = max(far, text.find("\n", far, start) + 1) if far else 0
    above, units = expand_document(text[first:end])
    last = units[-1] if units else None
    if last is None or last.is_verbatim or last.source_start > start - first:
        return text[start:end]
    said = above[last.start : last.end]
    has_context = len(said) > last.source_end - last.source_start
    return said if has_context or not first else ""


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
    for block, following in pairwise(chain(_blocks(text), [None])):
        assert block is not None  # noqa: S101  (only the last is)
        after = "" if following is None else following.kind
        led = following if after in _LED else None
        if block.kind in _OF_TABLE:
            table.append(block)
            if after not in _OF_TABLE:
                yield from _table(text, table, above)
                table = []
        elif block.kind in ("heading", "title"):
            line = text[block.start : block.end].strip()
            heading = _ended(above.read_heading(line, block.kind, leads=led is not None))
            yield _whole(text, block, heading)._replace(is_heading=True)
        else:
            yield from _sentences(text, block, above, led)


def _blocks(text: str) -> Iterator[Block]:
    """Yield the blocks of a text, but no blank lines of quotes.

    A line right after an item that ends with a colon leads to what follows: it is a paragraph here,
    though markdown counts it as part of the item.
    """
    for block in blocks(text):
        line = text.rfind("\n", block.start, block.start + len(_shown(text, block))) + 1
        is_glued = block.kind == "item" and line > block.start and not text[line].isspace()
        if is_glued and _is_lead(text[line : block.end]):
            yield block._replace(end=line)
            yield Block("prose", line, line, block.end)
        elif _shown(text, block).strip(_QUOTED):
            yield block


def _shown(text: str, block: Block) -> str:
    return text[block.start : block.end].rstrip()


def _is_lead(line: str) -> bool:
    return line.rstrip(_EMPHASIS).endswith(":")


class _Above:
    """What stands above a line and says what it is about: a heading, or lines before lists."""

    def __init__(self) -> None:
        self._heading: str | None = None
        self._leads: list[tuple[int, str]] = []
        """With their indentation, the outermost first."""

    def read_heading(self, line: str, kind: BlockKind, *, leads: bool) -> str:
        """Note a heading for the text under it; return its words."""
        words = line.splitlines()[0].strip(f"{_MARKERS}:")[:_LONGEST]
        self._leads = []
        if leads and kind == "heading" and line[0] in _BOLD:
            self.read_lead(-1, f"{words}:")  # of this list alone
            return words
        highest = line.endswith("=") if kind == "title" else _TITLE.match(line) is not None
        # If the first heading is of the highest level, it is the title of the whole document.
        self._heading = "" if self._heading is None and highest else words
        return words

    def leave_lists(self, indentation: int) -> None:
        """Forget the lines that lead to lists which end above a line of this indentation."""
        self._leads = [each for each in self._leads if each[0] < indentation]

    def read_lead(self, indentation: int, line: str) -> None:
        """Note a line that leads to a list or a table."""
        self._leads.append((indentation, line))

    def put_before(self, line: str) -> str:
        """Add what is nearest above a line: the lines that lead to it, or else its heading."""
        heading = [f"{self._heading}:"] if self._heading else []
        leads = [lead for _, lead in self._leads[-_DEEPEST:]]
        return " ".join([*(leads or heading), line])


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
    wrapped = _shown(text, block).rpartition("\n")
    # What an unindented line adds to an item may be about something else, and so may what follows.
    above.leave_lists(-1 if is_item and wrapped[0] and not wrapped[2][0].isspace() else column)
    pieces = [_Piece(each.start, each.end) for each in split_block(text, block)]
    words = [text[each.start : each.end].strip() for each in pieces]
    if is_item and pieces:
        words[0] = text[block.body : pieces[0].end].strip()
        pieces[0] = pieces[0]._replace(meant=above.put_before(_ended(words[0])))
    if led and words and _is_lead(words[-1]) and len(words[-1]) <= _LONGEST:
        pieces[-1] = pieces[-1]._replace(is_heading=True)
        of_list = column if is_item else _indentation(text, led) - 1
        above.read_lead(min(column, of_list), _plain(words[-1]))
    elif led and led.kind == "row":
        above.leave_lists(-1)
    yield from pieces


def _plain(line: str) -> str:
    """Return a line that leads to a list without marks of quotes and emphasis."""
    joined = _LINE_END.sub(" ", line.lstrip(_QUOTED))
    return joined.replace("**", "").replace("__", "").strip(_EMPHASIS)


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
