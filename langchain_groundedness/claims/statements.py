"""The statements of an answer: sentences, list items and table rows, without markup."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, repeat
from typing import NamedTuple

from langchain_groundedness.claims.checkable import (
    is_checkable,
    is_statement_as_heading,
    says_no_answer,
    without_interjection,
)
from langchain_groundedness.text.markdown import Block, BlockKind, BlockScanner, table_cells
from langchain_groundedness.text.quotes import locate_quote
from langchain_groundedness.text.sentences import BlockScan, split_block
from langchain_groundedness.types import Claim

__all__ = ["AnswerSentence", "StatementReader", "sentence_claims"]


class Statement(NamedTuple):
    """One statement of an answer: its text, and its span in the answer."""

    text: str
    start: int
    end: int


class AnswerSentence(NamedTuple):
    """A sentence, list item or table row: characters `start` to `end` of the answer."""

    start: int
    end: int
    statements: tuple[Statement, ...]
    """At least one; more if the sentence was split."""


def sentence_claims(
    answer: str, *, split_compound: bool = False, only_checkable: bool = True
) -> list[Claim]:
    """Return the checkable statements of an answer as claims."""
    reader = StatementReader(split_compound=split_compound, only_checkable=only_checkable)
    sentences = [*reader.feed(answer), *reader.close()]
    statements = (statement for sentence in sentences for statement in sentence.statements)
    return [
        Claim(id=f"c{number}", text=text, start=start, end=end)
        for number, (text, start, end) in enumerate(statements, 1)
    ]


class StatementReader:
    """Finds the statements of an answer that may still be growing.

    A sentence is returned once no further text can change it. The output of `feed` and `close` does
    not depend on how the answer is split into pieces.
    """

    def __init__(self, *, split_compound: bool = False, only_checkable: bool = True) -> None:
        """Start with an empty answer."""
        self._split = split_compound
        self._only_checkable = only_checkable
        self._scanner = BlockScanner()
        self._scan: BlockScan | None = None
        self._waiting: tuple[Block, int] | None = None  # and the start of its last sentence
        self._header: list[str] = []
        self._headings: list[Block] = []
        self._answers = False

    @property
    def text(self) -> str:
        """The text read so far."""
        return self._scanner.text

    @property
    def certain(self) -> int:
        """End of the text whose statements are final."""
        scanner, block = self._scanner, self._scanner.open
        ends = [scanner.final_end]
        if block is not None:
            ends = [block.end if block.kind == "code" else block.start]
            ends = [self._scan.start] if self._scan and block.kind in _PROSE else ends
        if self._waiting:
            ends.append(self._waiting[1])
        if self._headings and not self._answers:
            ends.append(self._headings[0].start)
        return min(ends)

    def feed(self, text: str) -> list[AnswerSentence]:
        """Read more text; return the sentences that are final."""
        return self._checkable(self._read(text, final=False))

    def close(self) -> list[AnswerSentence]:
        """End the answer; return the remaining sentences."""
        found = self._checkable(self._read("", final=True))
        if not self._answers:
            self._answers = True
            of_headings = (s for block in self._headings for s in _of_prose(self.text, block))
            return list(map(self._sentence, of_headings))
        return found

    def _checkable(self, statements: Iterable[Statement]) -> list[AnswerSentence]:
        found = []
        for statement in statements:
            self._answers = self._answers or says_no_answer(statement.text)
            kept = statement
            if self._only_checkable:
                kept = statement._replace(text=without_interjection(statement.text))
                if not is_checkable(kept.text):
                    continue
            self._answers = True
            found.append(self._sentence(kept))
        return found

    def _sentence(self, whole: Statement) -> AnswerSentence:
        statements = tuple(_parts(self.text, whole)) if self._split else (whole,)
        return AnswerSentence(whole.start, whole.end, statements)

    def _read(self, text: str, *, final: bool) -> Iterator[Statement]:
        for block in self._scanner.feed(text, final=final):
            yield from self._decide(block.kind)
            yield from self._end(block)
        if (last := self._scanner.open) is not None:
            yield from self._decide(last.kind)
            self._scan = self._scan or BlockScan(last)
            if last.kind in _PROSE:
                for sentence in self._scan.advance(self.text, last, closed=False):
                    yield from _of_sentence(self.text, last, sentence.start, sentence.end)
        if final:
            yield from self._decide(None)

    def _end(self, block: Block) -> Iterator[Statement]:
        """Read the rest of a closed block, unless it depends on the next block."""
        scan, self._scan = self._scan or BlockScan(block), None
        if block.kind == "row":
            self._waiting = block, block.start
            return
        if block.kind not in _PROSE:
            self._header = self._header if block.kind == "delimiter" else []
            if block.kind == "heading":
                yield from self._read_heading(block)
            return
        for sentence in scan.advance(self.text, block):
            yield from _of_sentence(self.text, block, sentence.start, sentence.end)
        if block.kind == "prose":
            self._waiting = block, scan.start
            return
        self._header = []
        if block.kind == "item":
            yield from _of_sentence(self.text, block, scan.start, block.end)
        elif scan.start > block.start:  # a paragraph above a rule, not a title
            yield from _of_sentence(self.text, block, scan.start, self._last_line(block))
        else:
            yield from self._read_heading(block)

    def _read_heading(self, block: Block) -> Iterator[Statement]:
        """Read a heading that makes a statement; keep others in case nothing else does."""
        statements = list(_of_prose(self.text, block))
        if any(is_statement_as_heading(each.text) for each in statements):
            yield from statements
        else:
            self._headings.append(block)

    def _decide(self, following: BlockKind | None) -> Iterator[Statement]:
        """Read the waiting block, which is a table header if a delimiter follows."""
        waiting, self._waiting = self._waiting, None
        if waiting is None:
            return
        block, start = waiting
        if following == "delimiter":
            self._header = _cells(self.text, block)
            if block.kind == "prose":
                yield from _of_sentence(self.text, block, start, self._last_line(block))
        elif block.kind == "row":
            yield from _of_row(self.text, block, self._header)
        else:
            self._header = []
            yield from _of_sentence(self.text, block, start, block.end)

    def _last_line(self, block: Block) -> int:
        """Return the start of the last line of a block."""
        return self.text.rfind("\n", block.start, _stripped(self.text, block.start, block.end)) + 1


_PROSE = ("prose", "item", "title")


def _stripped(text: str, start: int, end: int) -> int:
    return start + len(text[start:end].rstrip())


def _of_sentence(answer: str, block: Block, start: int, end: int) -> Iterator[Statement]:
    """Read characters `start` to `end` as one sentence."""
    start = max(start, block.body)
    end = max(start, _stripped(answer, start, end))
    start = end - len(answer[start:end].lstrip())
    text = plain_text(answer[start:end])
    if any(map(str.isalnum, text)):
        yield Statement(text, start, end)


def _of_prose(answer: str, block: Block) -> Iterator[Statement]:
    for sentence in split_block(answer, block._replace(kind="prose")):
        yield from _of_sentence(answer, block, sentence.start, sentence.end)


def _of_row(answer: str, block: Block, header: Sequence[str]) -> Iterator[Statement]:
    names = chain(header, repeat(""))
    labelled = [
        ("" if place == 0 or name.casefold() in _EMPTY_HEADERS else name, cell)
        for place, (cell, name) in enumerate(zip(_cells(answer, block), names, strict=False))
        if any(map(str.isalnum, cell))
    ]
    if not labelled:
        return
    (_, text), *others = labelled
    for place, (label, cell) in enumerate(others):
        named_cell = f"; {label}: {cell}" if label else f"; {cell}"
        text += named_cell if label or place else f": {cell}"
    end = _stripped(answer, block.start, block.end)
    yield Statement(text, end - len(answer[block.start : end].lstrip()), end)


def _cells(answer: str, block: Block) -> list[str]:
    row = answer[block.body : block.end].strip().rpartition("\n")[2]
    return list(map(plain_text, table_cells(row)))


def _parts(answer: str, statement: Statement) -> Iterator[Statement]:
    source = answer[statement.start : statement.end]
    parts = split_statement(statement.text)
    places = [_place(part.own, source) for part in parts] if len(parts) > 1 else [None]
    if None in places:
        yield statement
        return
    for part, place in zip(parts, places, strict=True):
        if place is not None:
            yield Statement(part.text, statement.start + place[0], statement.start + place[1])


def _place(words: str, source: str) -> tuple[int, int] | None:
    """Find words of a plain text in its markdown source."""
    if found := locate_quote(words, source, min_score=_EXACT):
        return found
    match = re.search(r"[\s>*_`~]++".join(map(re.escape, words.split())), source)
    return match.span() if match else None


_EXACT = 101  # disables alignment

_EMPTY_HEADERS = frozenset(
    {"", "answer", "description", "detail", "details", "info", "information", "value", "values"}
)

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
    (re.compile(r"(?<=[^=\s])\s*+={2,6}$"), ""),
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
    """Remove markdown, citation markers and line breaks from a sentence."""
    text = _CITATIONS.sub("", source)
    for pattern, replacement in _MARKUP:
        text = pattern.sub(replacement, text)
    return " ".join(text.split())


class Part(NamedTuple):
    """One of the statements of a sentence."""

    text: str
    """The statement, with its subject."""
    own: str
    """The words of the sentence that only this part uses."""


_SUBJECT = r"(?P<subject>(?:[A-Z\u00c0-\u00de\d][^\s,;:()]*|The|A|An)(?: [^\s,;:()]+){0,7}?)"

_END = r"(?P<end>[.!]?)$"

_BE = "(?P<be>is|was|are|were)"

_VERB = "(?P<verb>is|was|are|were|has|have|had)"

_WHAT = "(?P<what>[^,;:()]+?)"

_REST = "(?P<rest>[^,;:()]+?)"

_RELATIVE = re.compile(
    rf"{_SUBJECT} {_BE} {_WHAT}(?P<comma>,?) (?P<pronoun>that|which|who) {_VERB} {_REST}{_END}"
)

_COORDINATED = re.compile(
    rf"{_SUBJECT} {_VERB.replace('verb', 'be')} {_WHAT},? and {_VERB} {_REST}{_END}"
)

_COUNT = (
    r"(?:(?:more|less|fewer) than |over |about |around |nearly |almost |approximately |roughly "
    r"|some |at least |up to |under "
    r"|an? (?:estimated |total )?(?:population|area|height|length|budget|revenue) of )*"
    r"[$\u20ac\u00a3]?\d[\d.,]*"
)

_WITH = re.compile(rf"{_SUBJECT} {_BE} {_WHAT},? with (?P<rest>{_COUNT}[^;:()]*?){_END}")

_CLAUSE = (
    "that|which|who|whose|whom|if|when|while|because|although|though|unless|until|whether|but|not"
    "|never|neither|nor|either|both|only|is|was|are|were|has|have|had"
)

_NEGATED = r"n['\u2019]t\b"

_MORE_IN_SUBJECT = re.compile(
    rf"\b(?:{_CLAUSE}|what|since|and|or|no|none|nobody|some|few|many|most|several|half|one|said"
    "|says|say|believed|thought|claims?|claimed|reported|would|could|should|may|might|must|than"
    rf"|as|how|where|there|it|this)\b|{_NEGATED}",
    re.IGNORECASE,
)

_MORE_IN_PREDICATE = re.compile(rf"\b(?:{_CLAUSE})\b|{_NEGATED}", re.IGNORECASE)

_RELATION = re.compile(r"\b(?:of|in|for|from|by|with|to|on|at|about|between|among|under|over)\b")

_UNIQUE = re.compile(
    r"\b(?:only|first|second|third|last|next|same|most|least|best|worst|\w{3,}est)\b", re.IGNORECASE
)

_HAVE = {"is": "has", "was": "had", "are": "have", "were": "had"}

_WORDS_OF_A_STATEMENT = 3

_LONGEST = 300  # characters; these patterns do not cover longer sentences


def split_statement(text: str) -> list[Part]:
    """Split a sentence into two statements if possible."""
    for pattern, second in _SECOND.items() if len(text) <= _LONGEST else ():
        match = pattern.fullmatch(text)
        if (
            match is None
            or _MORE_IN_SUBJECT.search(match["subject"])
            or _MORE_IN_PREDICATE.search(match["what"])
        ):
            continue
        if found := second(match):
            first = f"{match['subject']} {match['be']} {match['what']}"
            predicate, opening = found
            return [
                Part(f"{first}.", first),
                Part(f"{match['subject']} {predicate}.", f"{opening} {match['rest']}"),
            ]
    return [Part(text, text)]


def _relative(match: re.Match[str]) -> tuple[str, str] | None:
    what, verb, pronoun = match["what"], match["verb"], match["pronoun"]
    # Without a comma the clause may single out one of several: then neither half stands alone.
    indefinite = what.startswith(("a ", "an ")) and not _UNIQUE.search(what)
    aside = bool(match["comma"]) and pronoun != "that"
    if not (indefinite or aside) or len(what.split()) < _WORDS_OF_A_STATEMENT:
        return None
    if _RELATION.search(what) or not _agree(match["be"], verb):
        return None
    return f"{verb} {match['rest']}", f"{pronoun} {verb}"


def _with_count(match: re.Match[str]) -> tuple[str, str] | None:
    if _UNIQUE.search(match["what"]):
        return None
    return f"{_HAVE[match['be']]} {match['rest']}", "with"


def _coordinated(match: re.Match[str]) -> tuple[str, str] | None:
    if not _agree(match["be"], match["verb"]):
        return None
    return f"{match['verb']} {match['rest']}", match["verb"]


_SECOND = {_RELATIVE: _relative, _WITH: _with_count, _COORDINATED: _coordinated}
"""Read the second predicate, and the word that opens it in the sentence."""


def _agree(one: str, other: str) -> bool:
    pair = {one, other} - {"had"}
    return pair <= {"is", "was", "has"} or pair <= {"are", "were", "have"}
