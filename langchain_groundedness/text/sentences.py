"""Sentence boundaries with exact offsets, for complete and for growing texts.

`sentencex` decides whether a punctuation mark ends a sentence. This module adds what libraries
lack: it keeps markdown blocks apart, keeps citation markers and emoji with the preceding sentence,
tolerates a missing space after a full stop, and decides from the words next to the mark only, so
that a text can be split while it arrives. `benchmarks/sentences.py` compares the libraries.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import sentencex  # type: ignore[import-untyped]  # it carries no types

from langchain_groundedness.text.markdown import Block, blocks

__all__ = ["Sentence", "is_loaded", "iter_sentences", "load", "split_sentences"]


class Sentence(NamedTuple):
    """A sentence of a text: `text == whole[start:end]`, without surrounding white space."""

    text: str
    start: int
    end: int


def split_sentences(text: str) -> list[Sentence]:
    """Split a text into sentences.

    Headings, first lines of list items, table rows and code blocks are never joined with their
    neighbours. A sentence without an end mark is never split, however long.
    """
    return list(iter_sentences(text))


def iter_sentences(text: str) -> Iterator[Sentence]:
    """Yield the sentences of a long text."""
    for block in blocks(text):
        yield from split_block(text, block)


def split_block(text: str, block: Block) -> Iterator[Sentence]:
    """Yield the sentences of one block."""
    scan = BlockScan(block)
    yield from scan.advance(text, block)
    yield from scan.finish(text, block)


_LOOK_BACK = 80


class BlockScan:
    """The reading position in one block."""

    def __init__(self, block: Block) -> None:
        self.start = block.start
        self._at = block.body

    def advance(self, text: str, block: Block, *, closed: bool = True) -> Iterator[Sentence]:
        """Yield sentences that certainly end before the end of the block."""
        if block.kind not in ("prose", "item", "title"):
            return
        try:
            while match := next_candidate(text, self._at, block.end):
                end = BoundaryContext(text, self.start, block.end, closed=closed).boundary(match)
                self._at = max(match.end(), end or 0)
                if end is not None:
                    yield from _trimmed(text, self.start, end)
                    self.start = end
        except NeedsMoreTextError:
            return
        if not closed:  # an incomplete word may become part of a longer match
            self._at = max(self._at, text.rfind(" ", self._at, block.end))

    def finish(self, text: str, block: Block) -> list[Sentence]:
        """Return the remaining sentence of a closed block."""
        return _trimmed(text, self.start, block.end)


def _trimmed(text: str, start: int, end: int) -> list[Sentence]:
    piece = text[start:end]
    body = piece.strip()
    if not body:
        return []
    start += len(piece) - len(piece.lstrip())
    return [Sentence(body, start, start + len(body))]


_LOOK_AHEAD = 24

_TAIL_AHEAD = 128

_CODE_LENGTH = 201

_YEAR = 4

_HARD = (  # always ends a sentence: full stops with no other use in their script
    "\u3002\uff01\uff1f\uff61\u061f\u06d4\u0964\u0965\u0589\u1362\u1367\u1368\u104b\u17d4\u17d5"
)

_CLOSERS = "\"'\u201d\u2019\u201c\u00bb\u203a)\\]}\u300d\u300f\uff09\u3011\u300b\u3009*_"

_EMOJI = "\u203c\u2049\u2190-\u21ff\u2300-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff\ufe0f\u200d"

_CANDIDATE = re.compile(
    r"(?P<code>`[^`\n]{1,200}`)|(?P<tick>`)"
    r"|(?P<url>(?:https?://|www\.)[!-~]*[A-Za-z0-9/#&=_~%+$@-])"
    rf"|(?P<mark>[.!?\u2026{_HARD}]+)(?P<closers>[{_CLOSERS}]*)"
)

_BEGINNING = re.compile(rf"[`.!?\u2026{_HARD}]|http|www")
"""The beginning of a candidate."""

_LONGEST_BEGINNING = 4

_STRETCH = 65_536
"""Characters per search step, which holds the GIL."""

_TAIL = re.compile(
    r"\[\d{1,4}(?:\s?[,\u2013-]\s?\d{1,4}){0,15}\](?=\s|\[|$)"
    r"|\([^\s()]{0,60}[.#][^\s()]{0,60}\)(?=\s|$)"
    rf"|[{_EMOJI}]+"
)

_GLUED = re.compile(r"([^\W\d_]+)([\s,;:'\u2019.!?]|$)")

_OPENERS = "\"'\u201c\u2018\u00ab\u2039([{\u300c\u300e\u00bf\u00a1*_`"

_STARTERS = frozenset(
    """a an and as at both but each for he her his however if in it its on she since so that the
    their then there these they this those though to i we when while with you
    """.split()  # noqa: SIM905  (a word list reads better as words)
)

_ABBREVIATIONS = frozenset(
    """approx ca cf e.g i.e eq eqs est vol pp resp incl excl abb abs anm bzw bspw
    d.h evtl fa geb ggf inkl
    mio mrd nr o.ä s.o s.u sog str u.a usw vgl z.b z.t z zzgl art av bd chap éd env ex p.ex m mm
    mme mlle sr sra srta dña ud uds ee pág núm sig.ra sig dott
    \u0433 \u0433\u0433 \u0443\u043b \u0440\u0438\u0441 \u0441\u043c \u0442.\u0435
    \u0442.\u043a \u0442\u044b\u0441 \u043c\u043b\u043d \u043c\u043b\u0440\u0434
    """.split()  # noqa: SIM905  (a word list reads better as words)
)

_AFTER_ORDINAL = frozenset(
    """januar februar märz april mai juni juli august september oktober november dezember
    jahrhundert jahrhunderts januára ledna
    """.split()  # noqa: SIM905  (a word list reads better as words)
)

_UNITS_AND_MONTHS = frozenset(
    """p.a c.a p.m a.m g kg mg m km cm mm l ml cl ft in yd mi oz lb lbs t h hr hrs min sec s ms yr
    yrs wk wks mo mos pt pts mph rpm kb mb gb tb w kw kwh hz bn mn
    Jan Feb Mar Apr Jun Jul Aug Sep Sept Oct Nov Dec
    """.split()  # noqa: SIM905  (a word list reads better as words)
)

_WORDS = frozenset("May art rep gen sen gov pres est".split())  # noqa: SIM905
"""Words that are abbreviations only in another case, or before a number."""

_LETTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ")

_LABELLED = frozenset(
    """plan vitamin hepatitis influenza grade type option class group category tier level section
    part point team appendix annex schedule exhibit phase step zone block gate room building
    terminal version model variant series form side item column row
    """.split()  # noqa: SIM905  (a word list reads better as words)
)
"""What a single letter may name, as in "plan A"."""

_BEFORE_I = frozenset(["is", "was", "and", "or", "than", "as", "war"])

_AFTER_TIME = re.compile(
    r"(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?|[A-Z]{2,4}|Eastern|Central|Mountain|Pacific"
)
"""What goes on after "5 p.m."."""

_GLUED_TO = re.compile(r"[@/\\_=.]")

_SPACE_OR_CJK = re.compile(r"[^!-~]")

_NEXT = re.compile(r"[^\s>]")

_FILLER = re.compile(r"[\"\u201c\u201d\u00ab\u00bb()\[\]{}*`\u3000-\u303f]+")

_UNDERLINE = re.compile(r"[=-]{2,}$")


def next_candidate(text: str, start: int, end: int) -> re.Match[str] | None:
    """Find the next possible sentence end, or a token that must not be split."""
    while end - start > _STRETCH:
        beginning = _BEGINNING.search(text, start, start + _STRETCH)
        if beginning is None:
            start += _STRETCH - _LONGEST_BEGINNING
        elif found := _CANDIDATE.match(text, beginning.start(), end):
            return found
        else:
            start = beginning.start() + 1
    return _CANDIDATE.search(text, start, end)


class NeedsMoreTextError(Exception):
    """The text read so far is not enough to decide."""


class BoundaryContext(NamedTuple):
    """The context of a decision: the open sentence and the known text after it."""

    text: str
    start: int
    limit: int
    closed: bool

    def boundary(self, match: re.Match[str]) -> int | None:  # noqa: PLR0911  (one per case)
        """Return the end of the sentence that the match ends, or `None` if it ends none."""
        if match["code"]:
            return None
        if match["tick"]:
            return self._need_more_if(
                self.limit - match.start() <= _CODE_LENGTH
                and "\n" not in self.text[match.start() : self.limit]
            )
        if match["url"]:
            return self._need_more_if(not _SPACE_OR_CJK.search(self.text, match.end(), self.limit))
        self._need_more_if(match.end() == self.limit)
        if match.end() == self.limit:
            return None
        follows = self.text[match.end()]
        if any(mark in _HARD for mark in match["mark"]) or (
            "\u3040" <= follows <= "\u9fff" and match["mark"][-1] in "!?"
        ):
            goes_on = "\u3040" <= follows <= "\u309f" or follows in "\u3001\uff0c,:\uff1a"
            return None if match["closers"] and goes_on else self._tail(match.end())
        if not follows.isspace():
            return match.end() if self._glued(match) else None
        end = self._tail(match.end())
        return end if self._ends(match, end) else None

    def _need_more_if(self, undecided: bool) -> None:  # noqa: FBT001  (reads as a sentence)
        if undecided and not self.closed:
            raise NeedsMoreTextError

    def _tail(self, at: int) -> int:
        """Move the end past citation markers and emoji that belong to the sentence."""
        end = at
        while True:
            while at < self.limit and self.text[at] in " \t":
                at += 1
            self._need_more_if(at == self.limit)
            if at == self.limit:
                return end
            self._need_more_if(self.text[at] in "[(" and self.limit - at < _TAIL_AHEAD)
            match = _TAIL.match(self.text, at, self.limit)
            if match is None:
                return end
            self._need_more_if(match.end() == self.limit)
            at = end = match.end()

    def _glued(self, match: re.Match[str]) -> bool:
        """Return whether a sentence ends although no space follows its mark."""
        after = self.text[match.end() : min(self.limit, match.end() + _LOOK_AHEAD)]
        self._need_more_if(len(after) < _LOOK_AHEAD and not any(map(str.isspace, after)))
        word = _GLUED.match(after)
        before = self.text[max(self.start, match.start() - _LOOK_AHEAD) : match.start()]
        token = before.split()[-1] if before and not before[-1:].isspace() else ""
        if not word or not word[1][0].isupper() or not token or _GLUED_TO.search(token):
            return False
        last = re.split(r"\W", token.rstrip(")]\"'"))[-1]
        if match["mark"][-1] in "!?":
            return True
        opens = before.lstrip() == token and match.start() - self.start < _LOOK_AHEAD
        plain = last.isdigit() or (len(last) > 1 and (last.islower() or opens))
        return plain or (len(last) > 1 and word[1].lower() in _STARTERS)

    def _ends(self, match: re.Match[str], end: int) -> bool:
        """Return whether a mark with white space after it ends a sentence."""
        found = _NEXT.search(self.text, end, self.limit)
        self._need_more_if(found is None)
        if found is None:
            return False
        after = self.text[found.start() : min(self.limit, found.start() + _LOOK_AHEAD)]
        self._need_more_if(len(after) < _LOOK_AHEAD and not any(map(str.isspace, after)))
        after = after.split()[0]
        if _UNDERLINE.match(after):
            return False
        before = self.text[max(self.start, match.start() - _LOOK_BACK) : match.start()]
        first = after.lstrip(_OPENERS)[:1]
        if match["closers"].strip("*_") and first.islower():
            return False
        mark = match["mark"]
        if "\u2026" in mark or ".." in mark:
            return not first.islower()
        whole = mark == "." and first.isupper() and _is_whole_word(before, after)
        if mark == "." and not whole and _abbreviates(before, after, first):
            return False
        return whole or _ends_sentence(" ".join(before.split()[-3:]), mark[-1], after)


def is_loaded() -> bool:
    """Return whether `sentencex` has loaded its data, which takes about ten milliseconds."""
    return _ends_sentence.cache_info().currsize > 0


def load() -> None:
    """Load the data of `sentencex`."""
    _ends_sentence("It ends here", ".", "Here")


def _is_whole_word(before: str, after: str) -> bool:
    """Return whether a full stop follows a word, a unit or a label, not an abbreviation of it."""
    start, _, word = before.rpartition(" ")
    if word in _WORDS:
        return True
    if word not in _UNITS_AND_MONTHS and word not in _LETTERS:
        return False
    previous = start.rpartition(" ")[2].strip(_OPENERS).lower()
    if any(map(str.isdigit, previous)):
        return not (word.endswith(".m") and _AFTER_TIME.match(after))
    if word in _LETTERS:
        return previous in _LABELLED or (word == "I" and previous in _BEFORE_I)
    return False


def _abbreviates(before: str, after: str, first: str) -> bool:
    word = before.rsplit(maxsplit=1)[-1].lstrip(_OPENERS) if before.split() else ""
    if word.lower() in _ABBREVIATIONS:
        return True
    ordinal = after.rstrip(",.;:").lower() in _AFTER_ORDINAL
    if word.isdigit() and len(word) < _YEAR and ordinal:
        return True
    if first.islower() and word.isupper() and len(word) < _YEAR:
        return True
    in_bracket = before.rfind("(") > before.rfind(")")
    return in_bracket and (first.islower() or first.isdigit())


@lru_cache(maxsize=8192)
def _ends_sentence(before: str, mark: str, after: str) -> bool:
    """Return whether `sentencex` sees a boundary, given words without quotes and brackets."""
    probe = _FILLER.sub(" ", before).strip() + mark
    text = f"{probe} {_FILLER.sub('', after) or 'X'}"
    try:
        found = sentencex.get_sentence_boundaries("en", text)
    except UnicodeEncodeError:  # a lone surrogate
        return True
    return any(len(probe) <= each["end_index"] <= len(probe) + 1 for each in found)
