"""The statements of an answer: its sentences, list items and table rows, freed of markup."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from langchain_groundedness._checkable import is_checkable, refuses, without_interjection
from langchain_groundedness._compound import split_statement
from langchain_groundedness._markdown import Block, blocks
from langchain_groundedness._quotes import locate_quote
from langchain_groundedness.sentences import split_block
from langchain_groundedness.types import Claim

__all__ = ["plain_text", "sentence_claims"]


class _Statement(NamedTuple):
    text: str
    start: int
    end: int


def sentence_claims(
    answer: str, *, split_compound: bool = False, only_checkable: bool = True
) -> list[Claim]:
    """Find the checkable statements of an answer, one claim each.

    Args:
        answer: The answer, plain or markdown.
        split_compound: Whether to split sentences that plainly say two things of one subject.
        only_checkable: Whether to leave out questions, lead-ins, courtesy and refusals.

    Returns:
        Claims with the ids `c1`, `c2`, … in order of position.
    """
    found = blocks(answer)
    statements = list(_of_blocks(answer, found))
    if only_checkable:
        stripped = (each._replace(text=without_interjection(each.text)) for each in statements)
        statements = [each for each in stripped if is_checkable(each.text)]
    if not statements and not any(refuses(each.text) for each in _of_blocks(answer, found)):
        statements = list(_of_headings(answer, found))
    if split_compound:
        statements = [part for each in statements for part in _parts(answer, each)]
    return [
        Claim(id=f"c{number}", text=text, start=start, end=end)
        for number, (text, start, end) in enumerate(statements, 1)
    ]


def _of_blocks(answer: str, found: Sequence[Block]) -> Iterator[_Statement]:
    header: list[str] = []
    for place, block in enumerate(found):
        following = found[place + 1].kind if place + 1 < len(found) else None
        if block.kind == "row" or (block.kind == "prose" and following == "delimiter"):
            if following == "delimiter":
                header = _cells(answer, block)
            else:
                yield from _of_row(answer, block, header)
            continue
        header = header if block.kind == "delimiter" else []
        if block.kind in ("prose", "item") or _is_bold_sentence(answer, block):
            yield from _of_prose(answer, block)


def _of_prose(answer: str, block: Block) -> Iterator[_Statement]:
    for sentence in split_block(answer, block._replace(kind="prose")):
        start = max(sentence.start, block.body)
        text = plain_text(answer[start : sentence.end])
        if any(map(str.isalnum, text)):
            yield _Statement(text, start, sentence.end)


def _of_row(answer: str, block: Block, header: Sequence[str]) -> Iterator[_Statement]:
    cells = _cells(answer, block)
    named = [*header, *[""] * max(0, len(cells) - len(header))]
    labelled = [
        (_label(name, place), cell)
        for place, (name, cell) in enumerate(zip(named, cells, strict=False))
        if any(map(str.isalnum, cell))
    ]
    if not labelled:
        return
    text = labelled[0][1]
    for place, (label, cell) in enumerate(labelled[1:]):
        named_cell = f"{label}: {cell}" if label else cell
        text += f"{'; ' if label or place else ': '}{named_cell}"
    source = answer[block.start : block.end]
    start = block.start + len(source) - len(source.lstrip())
    yield _Statement(text, start, block.start + len(source.rstrip()))


def _label(name: str, place: int) -> str:
    """Give the header of a cell if it says something: not above the subject, not "Value"."""
    return "" if place == 0 or name.casefold() in _EMPTY_HEADERS else name


def _cells(answer: str, block: Block) -> list[str]:
    row = answer[block.body : block.end].strip().rpartition("\n")[2].strip().removeprefix("|")
    row = row[:-1] if row.endswith("|") and not row.endswith("\\|") else row
    return [plain_text(cell).replace("\\|", "|") for cell in _PIPE.split(row)]


def _of_headings(answer: str, found: Sequence[Block]) -> Iterator[_Statement]:
    """Read an answer that is nothing but a heading, such as a single word in bold."""
    for block in found:
        if block.kind in ("heading", "title"):
            yield from _of_prose(answer, block)


def _is_bold_sentence(answer: str, block: Block) -> bool:
    """Tell whether a line in bold is a statement, not a heading: it ends as a sentence does."""
    text = answer[block.body : block.end].strip()
    return block.kind == "heading" and text.startswith(("**", "__")) and text[-3] in ".!"


def _parts(answer: str, statement: _Statement) -> Iterator[_Statement]:
    source = answer[statement.start : statement.end]
    parts = split_statement(statement.text)
    places = [_place(part.own, source) for part in parts]
    if len(parts) < 2 or None in places:  # noqa: PLR2004  (nothing to split)
        yield statement
        return
    for part, place in zip(parts, places, strict=True):
        if place is not None:
            yield _Statement(part.text, statement.start + place[0], statement.start + place[1])


def _place(words: str, source: str) -> tuple[int, int] | None:
    """Find words of a plain text in the source that it was made from."""
    if found := locate_quote(words, source, min_score=_EXACT):
        return found
    match = re.search(r"[\s>*_`~]+".join(map(re.escape, words.split())), source)
    return match.span() if match else None


_EXACT = 101  # no alignment
_EMPTY_HEADERS = frozenset(
    {"", "answer", "description", "detail", "details", "info", "information", "value", "values"}
)
_PIPE = re.compile(r"(?<!\\)\|")
_FILE = r"[\w./-]+\.(?:md|pdf|txt|html?|docx?|csv|json|rst|xml|xlsx?|pptx?)"
_PLACE = r"(?:documents?|docs?|sources?|passages?|refs?|references?|context|chunks?|pages?|p\.)"
_CITATIONS = re.compile(
    r"\s{0,3}(?:"
    r"\[\^?\d{1,3}(?:\s?[,;\u2013-]\s?\^?\d{1,3})*\]"  # [1], [2, 3], [^1]
    rf"|[\[(](?:see\s+)?{_PLACE}[\s:#]*\d{{1,3}}(?:\s?[,;\u2013-]\s?(?:{_PLACE}\s?)?\d{{1,3}})*[\])]"
    rf"|[\[(](?:(?:see|source|sources|from):?\s+)?{_FILE}(?:#[\w/-]+)?(?:,\s?{_FILE}(?:#[\w/-]+)?)*[\])]"
    r"|\(?\[[^\[\]]{0,60}\]\(#[^()\s]{0,60}\)\)?"  # [source](#section)
    r"|\u3010[^\u3010\u3011]{1,60}\u3011"
    r")",
    re.IGNORECASE,
)
_MARKUP = (
    (re.compile(r"(?m)^[ \t]*(?:>[ \t]?)+"), ""),
    (re.compile(r"^\[[ xX]\]\s+"), ""),
    (re.compile(r"^(?:#{1,6}\s+|={2,6}\s*(?=[^=]))"), ""),
    (re.compile(r"(?<=[^=])\s*={2,6}$"), ""),
    (re.compile(r"!\[([^\[\]]{0,200})\]\([^()\s]{0,500}\)"), r"\1"),
    (re.compile(r"\[([^\[\]]{1,300})\]\([^()\s]{0,500}\)"), r"\1"),
    (re.compile(r"`([^`]{1,300})`"), r"\1"),
    (re.compile(r"\*\*|__(?=\w)|(?<=[\w.!?])__|~~"), ""),
    (re.compile(r"(?<![\w*])\*(\S[^*\n]{0,300}?)\*(?!\w)"), r"\1"),
    (re.compile(r"(?<!\w)_(\S[^_\n]{0,300}?)_(?!\w)"), r"\1"),
    (re.compile(r"</?[A-Za-z][A-Za-z0-9]{0,9}(?:\s[^<>]{0,100})?/?>"), " "),
    (re.compile(r"\n[=-]{2,}\s*$"), ""),
)


def plain_text(source: str) -> str:
    """Free a sentence of markdown, citation markers and line breaks.

    Args:
        source: A sentence, as it stands in the answer.

    Returns:
        What a reader would see of it.
    """
    text = _CITATIONS.sub("", source)
    for pattern, replacement in _MARKUP:
        text = pattern.sub(replacement, text)
    return " ".join(text.split())
