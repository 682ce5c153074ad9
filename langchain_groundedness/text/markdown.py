"""Block structure of markdown: paragraphs, list items, headings, table rows, code, with offsets.

Not a markdown parser: it only finds block boundaries, line by line, so that an answer can be read
while it is still being written.
"""

import re
from bisect import bisect
from collections.abc import Iterator
from itertools import pairwise
from operator import itemgetter
from typing import Literal, NamedTuple

__all__ = [
    "Block",
    "BlockKind",
    "BlockScanner",
    "Outline",
    "blocks",
    "is_table_row",
    "table_cells",
]

BlockKind = Literal["prose", "item", "heading", "title", "row", "delimiter", "code", "rule"]
"""`title` is prose underlined with `===` or `---`; `row` and `delimiter` belong to tables; `rule`
is a line of dashes, stars or underscores."""

_PREFIX = re.compile(r"[ \t]*(?:>[ \t]?)*[ \t]*")
_FENCE = re.compile(r"(`{3,})[^`]*$|(~{3,})")
_HEADING = re.compile(r"#{1,6}(?:\s|$)")
_BOLD_LINE = re.compile(r"(\*\*|__)(?!\1)[^*_\n]+\1:?\s*$")
_WIKI_HEADING = re.compile(r"={2,6}[^=\n]+={2,6}\s*$")
_ITEM = re.compile(
    r"(?:[-*+\u2022\u2023\u2043\u25aa\u25cf\u25e6\u2013]|\d{1,3}[.)]|[A-Za-z]\)|\((?:\d{1,3}|[A-Za-z])\))(?:\s+|$)"
)
_DELIMITER = re.compile(r"\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$")
_RULE = re.compile(r"(?:(?:-\s*){3,}|(?:\*\s*){3,}|(?:_\s*){3,})$")
_KEY = re.compile(r"[A-Z][\w ()/.-]{0,30}:\s+\S")
_UNDERLINE = re.compile(r"(?:={2,}|-{3,})\s*$")
_PARTIAL_LINE = re.compile(  # incomplete lines whose kind is still open
    r"[\s>]*(?:[-=*_:|+~`#\u2022\u2023\u2043\u25aa\u25cf\u25e6\u2013\s]*(?:\(?\w{0,3}[.)]?\s*)?"
    r"|`{3}.*|={2,6}[^=]*=*\s*|(?:\*\*|__)[^*_]*(?:[*_]{1,2}:?\s*)?)$"
)
_PARTIAL_KEY = re.compile(r"[A-Z][\w ()/.-]{0,30}(?::\s*)?$")
_OWN_LINE = frozenset({"heading", "title", "row", "delimiter", "rule"})


class Block(NamedTuple):
    """Characters `start` to `end` of a text; its marker, if any, ends at `body`."""

    kind: BlockKind
    start: int
    body: int
    end: int


class _Line(NamedTuple):
    kind: BlockKind | Literal["blank"]
    body: int
    starts: bool


class BlockScanner:
    """Finds blocks in a text that arrives in pieces, however it is split."""

    def __init__(self) -> None:
        """Start with an empty text."""
        self.text = ""
        self.open: Block | None = None
        """The block still being written, up to its known end."""
        self._line = 0
        self._known: _Line | None = None
        self._fence = ""
        self._table = False
        self._quoted = False

    def feed(self, text: str, *, final: bool = False) -> Iterator[Block]:
        """Read more text; yield the blocks that ended."""
        self.text += text
        while self._line < len(self.text):
            newline = self.text.find("\n", self._line)
            end = len(self.text) if newline < 0 else newline + 1
            complete = newline >= 0 or final
            line = self._known or self._classify(self.text[self._line : end], complete=complete)
            if line is None:
                return
            if line.starts and self._known is None:
                yield from self._close()
            self._extend(line, end)
            self._known = None if complete else line
            if not complete:
                return
            if line.kind in _OWN_LINE or (line.kind == "code" and not self._fence):
                yield from self._close()
            self._line = end
        if final:
            yield from self._close()

    @property
    def final_end(self) -> int:
        """Offset of the first character whose block is not final."""
        return self.open.start if self.open else self._line

    def _close(self) -> Iterator[Block]:
        if self.open is not None:
            yield self.open
        self.open = None

    def _extend(self, line: _Line, end: int) -> None:
        if line.kind == "blank":
            return
        if self.open is None:
            self.open = Block(line.kind, self._line, self._line + line.body, end)
        else:
            kind = line.kind if line.kind == "title" else self.open.kind
            self.open = self.open._replace(kind=kind, end=end)

    def _classify(self, line: str, *, complete: bool) -> _Line | None:
        """Classify a line; `None` while more characters could change its kind."""
        if not complete and (self._table or self._fence or _PARTIAL_LINE.match(line)):
            return None
        prefix = _PREFIX.match(line)
        at = prefix.end() if prefix else 0
        rest, quoted = line[at:].rstrip(), ">" in line[:at]
        if self._fence:
            if rest.startswith(self._fence) and not rest.strip(self._fence[0]):
                self._fence = ""
            return _Line("code", at, starts=False)
        if not rest:
            self._table = False
            return _Line("rule" if quoted else "blank", at, starts=True)
        open_kind = self.open.kind if self.open else None
        if not complete and open_kind and _PARTIAL_KEY.match(line[at:]):
            return None
        requoted, self._quoted = quoted != self._quoted, quoted
        if open_kind == "prose" and not requoted and _UNDERLINE.match(rest):
            return _Line("title", at, starts=False)
        kind, body = self._kind(rest)
        self._table = kind in ("row", "delimiter")
        continues = kind == "prose" and open_kind in ("prose", "item") and not requoted
        return _Line(kind, at + body, starts=not continues or bool(_KEY.match(rest)))

    def _kind(self, rest: str) -> tuple[BlockKind, int]:  # noqa: PLR0911  (one per kind)
        if fence := _FENCE.match(rest):
            self._fence = fence[1] or fence[2]
            return "code", 0
        if heading := _HEADING.match(rest):
            return "heading", heading.end()
        if _RULE.match(rest):
            return "rule", 0
        if "|" in rest and _DELIMITER.match(rest):
            return "delimiter", 0
        if rest.startswith("|") or (self._table and "|" in rest):
            return "row", 0
        if _BOLD_LINE.match(rest) or _WIKI_HEADING.match(rest):
            return "heading", 0
        if item := _ITEM.match(rest):
            return "item", item.end()
        return "prose", 0


def blocks(text: str) -> Iterator[Block]:
    """Yield the blocks of a text."""
    return BlockScanner().feed(text, final=True)


_PIPE = re.compile(r"(?<!\\)\|")


def is_table_row(text: str) -> bool:
    """Return whether a text is a table row that begins with a pipe; in prose, one means "or"."""
    return text.lstrip().startswith("|") and len(table_cells(text)) > 1


def table_cells(row: str) -> list[str]:
    """Split a table row at its pipes; an escaped one is text."""
    row = row.strip().removeprefix("|")
    row = row[:-1] if row.endswith("|") and not row.endswith("\\|") else row
    return [cell.strip().replace("\\|", "|") for cell in _PIPE.split(row)]


class Outline:
    """The headings, table headers and rulers of a text, which say what the rest is about."""

    def __init__(self, text: str) -> None:
        """Read a whole text."""
        self._blocks: list[tuple[int, str, bool]] = []  # start, headings, is structure
        above: list[tuple[int, str]] = []
        header = ""
        for block, following in pairwise([*blocks(text), None]):
            assert block is not None  # noqa: S101  (only the last is)
            words = text[block.start : block.end].strip()
            is_header = block.kind == "row" and following and following.kind == "delimiter"
            header = header if block.kind in ("row", "delimiter") and not is_header else ""
            is_heading = block.kind in ("heading", "title")
            if is_heading:
                level = _level(words, block.kind)
                above = [each for each in above if each[0] < level]
            path = " > ".join([*(each[1] for each in above), *filter(None, [header])])
            is_structure = is_heading or is_header or block.kind in ("delimiter", "rule")
            self._blocks.append((block.start, path, is_structure))
            if is_heading:
                above.append((level, words.split("\n")[0].strip("#*_=>: \t")))
            elif is_header:
                header = words.strip("|> \t")

    def heading(self, place: int) -> str:
        """Return the headings above a place, outermost first, and the header of its table."""
        return self._at(place)[1]

    def is_structure(self, place: int) -> bool:
        """Tell whether a place is in a heading, a table header or a ruler."""
        return self._at(place)[2]

    def _at(self, place: int) -> tuple[int, str, bool]:
        at = bisect(self._blocks, place, key=itemgetter(0))
        return self._blocks[at - 1] if at else (0, "", False)


_UNMARKED = 7  # below the six levels of `#`


def _level(words: str, kind: str) -> int:
    if kind == "title":
        return 1 if words.endswith("=") else 2
    marks = len(words) - len(words.lstrip("#" if words.startswith("#") else "="))
    return marks or _UNMARKED
