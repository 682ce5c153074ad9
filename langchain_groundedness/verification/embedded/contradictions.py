"""What a claim says differently from a quote about the same thing."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Literal, NamedTuple, TypeAlias

from langchain_groundedness.text.words import STOP_WORDS, Word, find_words, stem
from langchain_groundedness.verification.embedded.model_files import inverse_frequencies
from langchain_groundedness.verification.embedded.polarity import (
    Part,
    Span,
    denial_differs,
    denials,
    is_parallel,
    is_verb,
)
from langchain_groundedness.verification.embedded.quantities import (
    Quantity,
    comparable,
    compatible,
    find_quantities,
    phrase_of,
    same_quantity,
    units_fit,
)
from langchain_groundedness.verification.embedded.statement import blank_references

__all__ = ["Difference", "DifferenceKind", "differing_value", "exchanged_values", "restricts"]

DifferenceKind = Literal["quantity", "date", "name", "polarity", "exchange"]

_SAME_SUBJECT = 0.5
"""Share of the claim's other words, weighted by rarity, that the quote must say too."""

_SAME_STATEMENT = 0.85
"""The same for polarity: only a quote that says nearly everything can be the opposite."""

_LONGEST_QUOTE = 4

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
_MOST_VALUES = 16
_JOINS = frozenset(
    "and or nor with plus versus vs as be is are was were s".split()  # noqa: SIM905  (a word list reads better as words)
)
_BOTH_WAYS = frozenset(
    map(
        stem,
        """
        marry married meet border adjoin merge equal resemble equivalent same similar identical
        parallel adjacent near next close beside between brother sister sibling cousin twin friend
        partner colleague neighbor neighbour rival spouse fight draw tie collaborate cooperate share
        agree differ different talk compete overlap resemble
        """.split(),  # noqa: SIM905  (a word list reads better as words)
    )
)
"""Words between two names that may be exchanged without a change of meaning."""
_ALIKE = dict.fromkeys(map(stem, ("his", "her", "its", "their")), "their")
"""Pronouns that may differ when two people are exchanged."""
_LEGAL_FORMS = frozenset(map(stem, ("corp", "corporation", "inc", "ltd", "llc", "plc", "gmbh")))
"""Ignored: "Acme" is "Acme Corp"."""
_NOUN = re.compile(
    r"\b(?:the|an?|his|her|its|their|our|my) (?=(?P<one>[\w'\u2019-]+)(?P<two> [\w'\u2019-]+)?)",
    re.IGNORECASE,
)
"""An article and the one or two words after it."""
_BOUND = re.compile(
    r"(?:\b(?:aged|of|at least|at most|no(?:t)? (?:more|less|fewer) than|(?:more|less|fewer) than"
    r"|up to|over|above|under|below) )+$",
    re.IGNORECASE,
)
_WHO = re.compile(
    r"(?:^|[,;:]\s*|(?P<within>\b(?:for|to|by|from|with|of|on|at|all|no|any|only|if|when)\s+))"
    r"(?P<noun>(?:[\w-]+\s+){0,2}?"
    r"(?:[\w-]{2,}s|children|people|men|women|those|anyone|everyone|nobody))\s+$",
    re.IGNORECASE,
)
"""A plural noun with little before it: at the start of a clause, or after a preposition."""
_LIMIT = "most"
_MEASURE = re.compile(r"^(?: (?:years?|old|of age|in (?:weight|length|height|value)|or more))*")
_NEXT = re.compile(r"\s*([\w'\u2019-]+)")
_LONGEST = 80
_LONGEST_GAP = 80
"""Characters of white space before a word that are looked at for the end of a sentence."""


class Difference(NamedTuple):
    """Where a claim and a quote name different things in the same place.

    `claim[claim_start:claim_end] == claim_value` and
    `quote[evidence_start:evidence_end] == evidence_value`. For polarity these are the whole texts.
    """

    kind: DifferenceKind
    claim_value: str
    claim_start: int
    claim_end: int
    evidence_value: str
    evidence_start: int
    evidence_end: int
    agreement: float
    """Share of the claim's other words, weighted by rarity, that the quote says too; 0 .. 1, and 1
    if the claim is nothing but its value."""
    parallel: bool
    """Whether the quote, or a clause of it, makes the same statement apart from this difference,
    and no other."""


class _Pair(NamedTuple):
    """A claim and a quote, with their words."""

    claim: str
    claim_words: list[Word]
    quote: str
    quote_words: list[Word]

    def agreement(self, without: Sequence[Span]) -> float:
        """Share of the claim's words outside some parts that the quote says, weighted by rarity."""
        table = inverse_frequencies()
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
        """Build the difference between a part of each."""
        return Difference(
            kind,
            *(self.claim[mine.start : mine.end], mine.start, mine.end),
            *(self.quote[theirs.start : theirs.end], theirs.start, theirs.end),
            agreement,
            is_parallel(self.claim_words, mine, self.quote, self.quote_words, theirs),
        )


def differing_value(claim_text: str, quote: str) -> Difference | None:
    """Find the value, date, name or polarity in which a claim differs from a quote."""
    claim = blank_references(claim_text)
    pair = _Pair(claim, find_words(claim), quote, find_words(quote))
    options = [*_quantities(pair), *_names(pair)]
    if options:
        return max(options, key=lambda option: option[0])[1]
    return _polarity(pair)


def _quantities(pair: _Pair) -> Iterator[tuple[float, Difference]]:
    mine, theirs = find_quantities(pair.claim), find_quantities(pair.quote)
    agreement = pair.agreement([Part(*phrase_of(pair.claim, claimed)) for claimed in mine])
    if agreement < _SAME_SUBJECT:
        return
    giving = _giving(pair, mine, theirs)
    given_mine, giving_theirs = {m for m, _ in giving}, {t for _, t in giving}
    unmatched = [claimed for m, claimed in enumerate(mine) if m not in given_mine]
    if not unmatched:
        return
    rest = [w for w in pair.claim_words if w.stem not in STOP_WORDS and not _inside(w, mine)]
    # A value and little else, all of which the quote says too: there is no other place for it.
    alone = not rest or (len(rest) <= _LITTLE_ELSE and agreement == 1 and len(mine) == 1)
    around_theirs = [_around(pair.quote_words, given) for given in theirs]
    spare = _unmatched_numbers(pair, mine, theirs, giving)
    for claimed in unmatched:
        around = _around(pair.claim_words, claimed)
        for t, (given, around_given) in enumerate(zip(theirs, around_theirs, strict=True)):
            repeats = t in spare and around[1][:1] == around_given[1][:1]
            if t in giving_theirs and not repeats:
                continue
            context = _context(around, around_given)
            if _agree(pair, claimed, given) or not comparable(claimed, given):
                continue
            if not _alike(claimed, given, context, alone=alone):
                continue
            kind: DifferenceKind = "date" if claimed.kind == "date" else "quantity"
            yield context + agreement, pair.difference(kind, claimed, given, agreement)


def _giving(pair: _Pair, mine: list[Quantity], theirs: list[Quantity]) -> set[_Places]:
    """Return which quantity of the claim is given by which one of the quote."""
    units_mine, units_theirs = {q.unit for q in mine}, {q.unit for q in theirs}
    return {
        (m, t)
        for m, claimed in enumerate(mine)
        for t, given in enumerate(theirs)
        if states_value(pair.claim, claimed, pair.quote, given)
        and units_fit(claimed, given, in_claim=units_mine, beside=units_theirs)
    }


def _unmatched_numbers(
    pair: _Pair, mine: list[Quantity], theirs: list[Quantity], giving: set[_Places]
) -> set[int]:
    """Return the numbers of the quote whose counterpart in the claim is already taken."""
    # In "room 12 has 12 seats", a claim about room 12 takes the room number; the seats are left.
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


def _agree(pair: _Pair, claimed: Quantity, given: Quantity) -> bool:
    """Return whether two numbers can both be true of one thing, or of one group."""
    return compatible(claimed, given) and not bounds_differ(pair.claim, claimed, pair.quote, given)


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
    """Count the content words near both values; the nearest count most."""
    score = 0.0
    for mine, theirs in zip(claimed, given, strict=True):
        score += sum(1.0 for word in mine if word in theirs)
        score += 0.5 if mine and theirs and mine[0] == theirs[0] else 0.0
    return score


def _around(words: list[Word], span: Span) -> _Around:
    telling = [w for w in words if w.stem not in STOP_WORDS]
    before = [w.stem for w in telling if w.end <= span.start]
    after = [w.stem for w in telling if w.start >= span.end]
    return before[::-1][:_NEAR], after[:_NEAR]


def _names(pair: _Pair) -> Iterator[tuple[float, Difference]]:
    mine = {word.stem for word in pair.claim_words}
    theirs = {word.stem for word in pair.quote_words}
    others = list(_name_spans(pair.quote, pair.quote_words, mine))
    for claimed in _name_spans(pair.claim, pair.claim_words, theirs) if others else ():
        agreement = pair.agreement([claimed])
        if agreement < _SAME_SUBJECT:
            continue
        name = pair.claim[claimed.start : claimed.end]
        around, follows = _around(pair.claim_words, claimed), _last(pair.claim_words, claimed)
        for given in others:
            around_given = _around(pair.quote_words, given)
            # Both follow the same words: "created by X", "created by Y".
            same_place = around[0][:1] == around_given[0][:1] != []
            if not same_place or follows != _last(pair.quote_words, given):
                continue
            if not _is_short_for(name, pair.quote[given.start : given.end]):
                context = _context(around, around_given)
                yield context + agreement, pair.difference("name", claimed, given, agreement)


def _last(words: list[Word], before: Span) -> str:
    return next((w.stem for w in reversed(words) if w.end <= before.start), "")


def _is_short_for(name: str, other: str) -> bool:
    """Return whether one name may be short for the other: "Fri" for "Friday", "NYC"."""
    short, long = sorted((name.casefold(), other.casefold()), key=len)
    initials = "".join(word[0] for word in long.split())
    return (len(short) >= _SHORTEST_NAME and long.startswith(short)) or short == initials


def _name_spans(text: str, words: list[Word], other: set[str]) -> Iterator[Part]:
    """Yield the names of a text that share no word with the other text."""
    common = inverse_frequencies()
    quantities = find_quantities(text)
    starts, ends = [word.start for word in words], [q.end for q in quantities]
    for part in name_spans(text):
        following = quantities[bisect_right(ends, part.start) :][:1]
        if following and following[0].start < part.end:
            continue  # "GB" of "5 GB"
        first, last = bisect_left(starts, part.start), bisect_left(starts, part.end)
        inside = [word.stem for word in words[first:last]]
        telling = set(inside) - STOP_WORDS
        before = text[max(0, part.start - _LONGEST_GAP) : part.start]
        opens = before.rstrip()[-1:] in ".!?:"
        lone = len(inside) == 1 and inside[0] in common.idf and inside[0] not in common.names
        if telling and not telling & other and not (opens and lone):
            yield part


def name_spans(text: str) -> Iterator[Part]:
    """Yield what may be the names of a text: words with a capital, and what joins them."""
    for match in _NAME.finditer(text):
        yield Part(match.start(), match.start() + len(match.group().rstrip("_")))


def _polarity(pair: _Pair) -> Difference | None:
    if len(pair.quote_words) > _LONGEST_QUOTE * len(pair.claim_words):
        return None  # too much else to be sure that both speak of one thing
    if not denial_differs(pair.claim, pair.quote):
        return None
    agreement = pair.agreement(denials(pair.claim))
    if agreement < _SAME_STATEMENT:
        return None
    claim, quote = pair.claim, pair.quote
    return Difference(
        "polarity", claim, 0, len(claim), quote, 0, len(quote), agreement, parallel=False
    )


class _Value(NamedTuple):
    quantity: Quantity | None
    """`None` for a name."""
    start: int
    end: int

    def may_stand_for(self, other: "_Value") -> bool:
        if self.quantity is None or other.quantity is None:
            return self.quantity is other.quantity
        return comparable(self.quantity, other.quantity)


def exchanged_values(claim: str, quotes: Sequence[str]) -> tuple[int, Difference] | None:
    """Find two values of a claim that a quote gives in exchanged places, otherwise word for word.

    Nothing is found if any quote states the claim as it is, or where the order means nothing: "Anna
    and Peter", "Anna married Peter".
    """
    said = [_stems(quote) for quote in quotes]
    mine = _stems(claim)
    if any(mine in each for each in said):
        return None
    if not any(set(mine.split()) <= set(each.split()) for each in said):
        return None
    for one, other in _pairs(claim):
        stems = _stems(_exchanged(claim, one, other))
        for place, each in enumerate(said):
            if (at := each.find(stems)) >= 0:
                return place, _difference(claim, one, other, quotes[place], each.count(" ", 0, at))
    return None


def _stems(text: str) -> str:
    return f" {' '.join(_ALIKE.get(word.stem, word.stem) for word in _words(text))} "


def _words(text: str) -> list[Word]:
    return [word for word in find_words(text) if word.stem not in _LEGAL_FORMS]


def _pairs(claim: str) -> Iterator[tuple[_Value, _Value]]:
    values = [_Value(q, q.start, q.end) for q in find_quantities(claim)]
    for part in (_exchange_names(claim), _noun_spans(claim)):
        values += [
            _Value(None, span.start, span.end)
            for span in part
            if not any(v.start < span.end and span.start < v.end for v in values if v.quantity)
        ]
    if len(values) > _MOST_VALUES:
        return
    for one, other in combinations(sorted(values, key=lambda value: value.start), 2):
        if one.end > other.start:
            continue
        between = [word.stem for word in find_words(claim[one.end : other.start])]
        score = one.quantity is not None and not between  # 1-7 is not 7-1
        both_ways = _BOTH_WAYS.intersection(between) or between.count("as") > 1
        if one.may_stand_for(other) and (set(between) - _JOINS or score) and not both_ways:
            yield one, other


def _exchange_names(claim: str) -> Iterator[Part]:
    """Yield names; of "Anna's", only the name."""
    for start, end in name_spans(claim):
        yield Part(start, end - 2 if claim[start:end].endswith(("'s", "\u2019s")) else end)


def _noun_spans(claim: str) -> Iterator[Part]:
    """Yield the words after articles, with the article and without: "the dog", "dog"."""
    for found in _NOUN.finditer(claim):
        for words in ("one", "two"):
            if found[words]:
                yield Part(found.start(), found.end(words))
                yield Part(found.start("one"), found.end(words))


def _exchanged(claim: str, one: _Value, other: _Value) -> str:
    return (
        claim[: one.start]
        + claim[other.start : other.end]
        + claim[one.end : other.start]
        + claim[one.start : one.end]
        + claim[other.end :]
    )


def _difference(
    claim: str, one: _Value, other: _Value, quote: str, words_before: int
) -> Difference:
    skipped = len(_words(claim[: one.start]))
    inside = len(_words(claim[one.start : other.end]))
    words = _words(quote)[words_before + skipped :][:inside]
    start, end = words[0].start, words[-1].end
    for quantity in find_quantities(quote):  # with its currency, with its unit
        if quantity.start < start < quantity.end:
            start = quantity.start
        if quantity.start < end < quantity.end:
            end = quantity.end
    return Difference(
        "exchange",
        claim[one.start : other.end],
        one.start,
        other.end,
        quote[start:end],
        start,
        end,
        1.0,
        parallel=True,
    )


def restricts(text: str, quantity: Quantity) -> bool:
    """Return whether a bound says whom a statement is about, and measures nothing."""
    if quantity.bound in ("", "about"):
        return False
    before = text[max(0, quantity.start - _LONGEST) : quantity.start]
    found = _WHO.search(_BOUND.sub("", before))
    if found is None:
        return False
    [*leading, noun] = found.group("noun").split()
    if leading and is_verb(noun):
        return False  # "it weighs over 50 pounds"
    if found.group("within"):
        return True
    behind = text[quantity.end : quantity.end + _LONGEST]
    word = _NEXT.match(behind, len(m.group()) if (m := _MEASURE.match(behind)) else 0)
    return word is not None and is_verb(word.group(1))


def states_value(claim: str, claimed: Quantity, quote: str, given: Quantity) -> bool:
    """Return whether a quote gives what a claim says; bounds on who is meant must match exactly."""
    return same_quantity(claimed, given) and not bounds_differ(claim, claimed, quote, given)


def bounds_differ(claim: str, claimed: Quantity, quote: str, given: Quantity) -> bool:
    """Return whether a claim and a quote name different limits, or are about other people.

    Of two limits ("at most", "up to"), one follows from the other, yet both are not true of one
    thing: a reader of "at most 1,000" does not expect 200. "Under 9,000" and "more than 100" only
    say what is known, and may be stated less precisely.
    """
    if claimed.bound != given.bound or claimed.value == given.value:
        return False
    if claimed.bound == _LIMIT and claimed.unit == given.unit:
        return True
    return restricts(claim, claimed) and restricts(quote, given)
