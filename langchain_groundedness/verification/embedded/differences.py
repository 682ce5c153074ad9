"""What a claim says differently from a quote that speaks about the same thing."""

import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, Protocol, TypeAlias

from langchain_groundedness.text.words import STOP_WORDS, Word, find_words
from langchain_groundedness.verification.embedded.model_files import rarity
from langchain_groundedness.verification.embedded.quantities import (
    Quantity,
    comparable,
    compatible,
    find_quantities,
    same_quantity,
    units_fit,
)
from langchain_groundedness.verification.embedded.statement import blank_references

__all__ = ["Difference", "DifferenceKind", "differing_value"]

DifferenceKind = Literal["quantity", "date", "name"]

_SAME_SUBJECT = 0.5
"""Share of the claim's other words, weighed by rarity, that the quote must say too."""

_NEAR = 4

_LITTLE_ELSE = 2

_SHORTEST_NAME = 3

_NAME = re.compile(
    r"[^\W\d_a-z][\w'\u2019-]*(?:(?:[ -]| (?:van|von|de|der|den|da|di|du|la|le|el|al|bin|of|the) )"
    r"[^\W\d_a-z][\w'\u2019-]*)*"
)


_Around: TypeAlias = tuple[list[str], list[str]]
_Places: TypeAlias = tuple[int, int]
"""Of a quantity in the claim, and of one in the quote."""
_LIMIT = "most"


class Span(Protocol):
    """Where something stands in a text."""

    @property
    def start(self) -> int:
        """Offset of its first character."""
        ...

    @property
    def end(self) -> int:
        """Offset behind its last character."""
        ...


class _Part(NamedTuple):
    """A part of a text."""

    start: int
    end: int


class Difference(NamedTuple):
    """Where a claim and a quote name different things in the same place.

    `claim[claim_start:claim_end] == claim_value` and
    `quote[evidence_start:evidence_end] == evidence_value`.
    """

    kind: DifferenceKind
    claim_value: str
    claim_start: int
    claim_end: int
    evidence_value: str
    evidence_start: int
    evidence_end: int
    agreement: float
    """Share of the claim's other words, weighed by rarity, that the quote says too; 0 .. 1, and 1
    if the claim is nothing but its value."""


class _Pair(NamedTuple):
    """A claim and a quote, with their words."""

    claim: str
    claim_words: list[Word]
    quote: str
    quote_words: list[Word]

    def agreement(self, without: Sequence[Span]) -> float:
        """Share of the claim's words outside some parts that the quote says, weighed by rarity."""
        table = rarity()
        theirs = {word.stem for word in self.quote_words}
        rest = {
            w.stem: table.weight(w.stem)
            for w in self.claim_words
            if w.stem not in STOP_WORDS and not any(s.start <= w.start < s.end for s in without)
        }
        total = sum(rest.values())
        return (
            sum(share for word, share in rest.items() if word in theirs) / total if total else 1.0
        )

    def difference(
        self, kind: DifferenceKind, mine: Span, theirs: Span, agreement: float
    ) -> Difference:
        """Make a difference of a part of each."""
        return Difference(
            kind,
            *(self.claim[mine.start : mine.end], mine.start, mine.end),
            *(self.quote[theirs.start : theirs.end], theirs.start, theirs.end),
            agreement,
        )


def differing_value(claim_text: str, quote: str) -> Difference | None:
    """Find the value, date or name in which a claim differs from a quote about the same thing."""
    claim = blank_references(claim_text)
    pair = _Pair(claim, find_words(claim), quote, find_words(quote))
    options = [*_quantities(pair), *_names(pair)]
    return max(options, key=lambda option: option[0])[1] if options else None


def _quantities(pair: _Pair) -> Iterator[tuple[float, Difference]]:
    mine, theirs = find_quantities(pair.claim), find_quantities(pair.quote)
    agreement = pair.agreement(mine)
    if agreement < _SAME_SUBJECT:
        return
    giving = _giving(mine, theirs)
    given_mine, giving_theirs = {m for m, _ in giving}, {t for _, t in giving}
    unmatched = [claimed for m, claimed in enumerate(mine) if m not in given_mine]
    if not unmatched:
        return
    rest = [w for w in pair.claim_words if w.stem not in STOP_WORDS and not _inside(w, mine)]
    # A value and little else, all of which the quote says too: there is no other place for it.
    alone = not rest or (len(rest) <= _LITTLE_ELSE and agreement == 1 and len(mine) == 1)
    around_theirs = [_around(pair.quote_words, given) for given in theirs]
    spare = _spare(pair, mine, theirs, giving)
    for claimed in unmatched:
        around = _around(pair.claim_words, claimed)
        for t, (given, around_given) in enumerate(zip(theirs, around_theirs, strict=True)):
            repeats = t in spare and around[1][:1] == around_given[1][:1]
            if t in giving_theirs and not repeats:
                continue
            context = _context(around, around_given)
            if _agree(claimed, given) or not comparable(claimed, given):
                continue
            if not _alike(claimed, given, context, alone=alone):
                continue
            kind: DifferenceKind = "date" if claimed.kind == "date" else "quantity"
            yield context + agreement, pair.difference(kind, claimed, given, agreement)


def _giving(mine: list[Quantity], theirs: list[Quantity]) -> set[_Places]:
    """Tell which quantity of the claim is given by which of the quote."""
    units_mine, units_theirs = {q.unit for q in mine}, {q.unit for q in theirs}
    return {
        (m, t)
        for m, claimed in enumerate(mine)
        for t, given in enumerate(theirs)
        if _gives(claimed, given)
        and units_fit(claimed, given, in_claim=units_mine, beside=units_theirs)
    }


def _spare(
    pair: _Pair, mine: list[Quantity], theirs: list[Quantity], giving: set[_Places]
) -> set[int]:
    """Give the numbers of the quote that repeat what another one of it gives already.

    In "room 12 has 12 seats", the room of a claim about room 12 leaves the seats over.
    """
    if len(theirs) == 1:
        return set()
    around_mine = [_around(pair.claim_words, q) for q in mine]
    around_theirs = [_around(pair.quote_words, q) for q in theirs]
    likeness = {
        (m, t): (
            mine[m].unit == theirs[t].unit,
            _context(around_mine[m], around_theirs[t]),
            -abs(m - t),
        )
        for m, t in giving
        if theirs[t].kind == "number"
    }
    placed, taken = set[int](), set[int]()
    for m, t in sorted(likeness, key=lambda both: (likeness[both], both), reverse=True):
        if m not in placed and t not in taken:
            placed.add(m)
            taken.add(t)
    return {t for _, t in likeness} - taken


def _gives(claimed: Quantity, given: Quantity) -> bool:
    return same_quantity(claimed, given) and not _other_limit(claimed, given)


def _agree(claimed: Quantity, given: Quantity) -> bool:
    """Tell whether two numbers can both be true of one thing."""
    return compatible(claimed, given) and not _other_limit(claimed, given)


def _other_limit(claimed: Quantity, given: Quantity) -> bool:
    """Tell whether a claim and a quote name different limits.

    Of two limits ("at most", "up to"), one follows from the other, and still both are not true of
    one thing: who reads "at most 1,000" does not expect 200.
    """
    both = claimed.bound == given.bound == _LIMIT and claimed.unit == given.unit
    return both and claimed.value != given.value


def _inside(word: Word, quantities: list[Quantity]) -> bool:
    return any(q.start <= word.start < q.end for q in quantities)


def _alike(claimed: Quantity, given: Quantity, context: float, *, alone: bool) -> bool:
    """Two amounts of money differ; two bare numbers may count different things."""
    if claimed.kind == "number" and claimed.unit in ("$", "€", "£", "¥", "₹"):
        return True
    if given.text == "decade" or claimed.text == "decade":
        return False
    return alone or context >= 1


def _context(claimed: _Around, given: _Around) -> float:
    """Count the content words near both values, the nearest for most."""
    score = 0.0
    for mine, theirs in zip(claimed, given, strict=True):
        score += sum(1.0 for word in mine if word in theirs)
        score += 0.5 if mine and theirs and mine[0] == theirs[0] else 0.0
    return score


def _around(words: list[Word], span: Span) -> _Around:
    before = [w.stem for w in words if w.end <= span.start and w.stem not in STOP_WORDS]
    after = [w.stem for w in words if w.start >= span.end and w.stem not in STOP_WORDS]
    return before[::-1][:_NEAR], after[:_NEAR]


def _names(pair: _Pair) -> Iterator[tuple[float, Difference]]:
    mine = {word.stem for word in pair.claim_words}
    theirs = {word.stem for word in pair.quote_words}
    others = list(_new_names(pair.quote, pair.quote_words, mine))
    for claimed in _new_names(pair.claim, pair.claim_words, theirs) if others else ():
        agreement = pair.agreement([claimed])
        if agreement < _SAME_SUBJECT:
            continue
        for given in others:
            if _is_short_for(
                pair.claim[claimed.start : claimed.end], pair.quote[given.start : given.end]
            ):
                continue
            if _same_place(pair.claim_words, claimed, pair.quote_words, given):
                context = _context(
                    _around(pair.claim_words, claimed), _around(pair.quote_words, given)
                )
                yield context + agreement, pair.difference("name", claimed, given, agreement)


def _is_short_for(name: str, other: str) -> bool:
    """Tell whether one name may be short for the other: "Fri" for "Friday", "NYC"."""
    short, long = sorted((name.casefold(), other.casefold()), key=len)
    initials = "".join(word[0] for word in long.split())
    return (len(short) >= _SHORTEST_NAME and long.startswith(short)) or short == initials


def _new_names(text: str, words: list[Word], other: set[str]) -> Iterator[_Part]:
    """Give the names of a text that share no word with the other text."""
    common = rarity()
    for part in _names_of(text):
        inside = [w for w in words if part.start <= w.start < part.end]
        if not inside or any(w.stem in other for w in inside if w.stem not in STOP_WORDS):
            continue
        opens = not text[: part.start].rstrip() or text[: part.start].rstrip()[-1] in ".!?:"
        lone = len(inside) == 1 and inside[0].stem in common.idf
        if all(w.stem in STOP_WORDS for w in inside):
            continue
        if opens and lone and inside[0].stem not in common.names:
            continue
        yield part


def _names_of(text: str) -> Iterator[_Part]:
    """Give what may be the names of a text: words with a capital, and what joins them."""
    for match in _NAME.finditer(text):
        yield _Part(match.start(), match.start() + len(match.group().rstrip("_")))


def _same_place(
    claim_words: list[Word], claimed: Span, quote_words: list[Word], given: Span
) -> bool:
    """Tell whether both stand behind the same words: "created by X", "created by Y"."""
    mine = [w.stem for w in claim_words if w.end <= claimed.start][::-1]
    theirs = [w.stem for w in quote_words if w.end <= given.start][::-1]
    if not mine or not theirs or mine[0] != theirs[0]:
        return False
    content_mine = next((w for w in mine if w not in STOP_WORDS), None)
    content_theirs = next((w for w in theirs if w not in STOP_WORDS), None)
    return content_mine is not None and content_mine == content_theirs
