"""Sentences that leave out what an earlier clause has said, written as full clauses.

Its own module because it is about the grammar of a sentence, not about claims.

"A filter costs 6 pounds, a lid 12" says what a lid costs, though no consecutive words do; "the
filter can be washed, the kettle cannot" denies something only of the kettle.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from langchain_groundedness.text.words import AUXILIARIES, informative_words
from langchain_groundedness.verification.embedded.polarity import Part, is_verb, says_no
from langchain_groundedness.verification.embedded.quantities import Quantity, find_quantities

__all__ = ["Clause", "clause_about", "full_clauses"]

_LONGEST = 500
"""Characters. What is longer is a table or a list, if its sentences were found at all."""
_PIECE_END = re.compile(
    r"\s*[;,]\s*(?:(?:but|and|while|whereas|though|although|yet)\s+)?"
    r"|\s+(?:but|while|whereas)\s+",
    re.IGNORECASE,
)
_AND = re.compile(r"\s+and\s+", re.IGNORECASE)
_WORD = re.compile(r"[\w'\u2019-]+")
_NOT = re.compile(r"(?:\s*not|n['\u2019]t)\b", re.IGNORECASE)
_BARE = re.compile(r"n['\u2019]t$", re.IGNORECASE)
_VERB_ONLY = re.compile(
    rf"(?P<subject>[^,;]{{1,60}}?)(?:\s+(?:itself|themselves|himself|herself|alone))?"
    rf"\s+(?P<verb>{'|'.join(AUXILIARIES)})(?P<no>\s*not|n['\u2019]t)?(?:\s+(?:either|too))?",
    re.IGNORECASE,
)
_UNLIKE = re.compile(r"unlike\s+(?P<subject>[^,;]{1,60})$", re.IGNORECASE)
_ONLY_NOT = re.compile(r"not\s+(?P<rest>[^,;]{1,60})$", re.IGNORECASE)
_PREPOSITION = re.compile(
    r"\b(?:of|in|at|on|for|to|from|by|with|until|after|before|since|per)\s+", re.IGNORECASE
)
_STANDS_FOR = re.compile(r"\b(?:one|ones|that|those)$", re.IGNORECASE)
_PARTICIPLE = re.compile(r"[a-z]+(?:ed|ing)|born|built|known|made|held|written|given|led|set")
_ARTICLE = re.compile(r"an?\s", re.IGNORECASE)
_LONGEST_SUBJECT = 8
_LONGEST_PIECE = 15
_LONGEST_PART = 5
_FEWEST_PARTS = 2
_MOST_PIECES = 8
_HALF = 0.5


class Clause(NamedTuple):
    """A clause as it would be if nothing were left out."""

    text: str
    topic: str
    """What distinguishes it from the other clauses of its sentence: "a lid"."""


class _FullClause(NamedTuple):
    """A clause with a verb."""

    text: str
    verb: int
    """Where the verb begins."""
    end: int
    """Where the verb ends, its "not" included."""
    family: str
    """The verb that it is a form of, if it is an auxiliary."""

    @property
    def subject(self) -> str:
        """The text before the verb."""
        return self.text[: self.verb].strip()


class _Phrase(NamedTuple):
    """A part of a clause: a preposition, and what follows it."""

    preposition: str
    start: int
    end: int
    quantity: Quantity | None


def clause_about(claim: str, sentence: str) -> str | None:
    """Return the clause of a sentence that is about the same thing as a claim."""
    clauses = full_clauses(sentence) if len(sentence) <= _LONGEST else ()
    if not clauses:
        return None
    topics = [_content(clause.topic) for clause in clauses]
    common = set.intersection(*topics)
    mine = _content(claim)
    about = {
        clause.text
        for clause, topic in zip(clauses, topics, strict=True)
        if (own := topic - common) and len(own & mine) >= _HALF * len(own)
    }
    return about.pop() if len(about) == 1 else None


def _content(text: str) -> set[str]:
    return {word.stem for word in informative_words(text)}


@lru_cache(maxsize=2048)
def full_clauses(sentence: str) -> tuple[Clause, ...]:
    """Fill in what the clauses of a sentence leave out."""
    found: list[Clause] = []
    before: _FullClause | None = None
    unlike = ""
    for piece in _pieces(sentence):
        if before is not None and (more := _filled(piece, before)):
            found += more
            continue
        if like := _UNLIKE.match(piece):
            unlike = like["subject"]
            continue
        full = _read(piece)
        if full is not None:
            head, tail = _last_and(piece)
            joined = full._replace(text=head)
            if full.end <= len(head) and (more := _gapped(tail, joined)):
                found += more
                before = joined
                continue
            before = full
        if unlike and before is not None:
            found += _opposed(unlike, before)
            unlike = ""
    return tuple(dict.fromkeys(found))


def _pieces(sentence: str) -> list[str]:
    bare = sentence.strip().rstrip(".!")
    return [piece for piece in _PIECE_END.split(bare, _MOST_PIECES) if piece.strip()]


def _last_and(piece: str) -> tuple[str, str]:
    joins = list(_AND.finditer(piece))
    return (piece[: joins[-1].start()], piece[joins[-1].end() :]) if joins else ("", "")


def _read(piece: str) -> _FullClause | None:
    for number, word in enumerate(_WORD.finditer(piece)):
        if number > _LONGEST_SUBJECT:
            return None
        if not number:
            continue
        bare = _BARE.sub("", word.group())
        if is_verb(bare):
            end = word.start() + len(bare)
            no = _NOT.match(piece, end)
            family = AUXILIARIES.get(bare.casefold(), "")
            return _FullClause(piece, word.start(), no.end() if no else end, family)
    return None


def _filled(piece: str, before: _FullClause) -> list[Clause]:
    return _verb_only(piece, before) or _not_only(piece, before) or _gapped(piece, before)


def _verb_only(piece: str, before: _FullClause) -> list[Clause]:
    """Fill in "the kettle cannot", "but the grinder does"."""
    found = _VERB_ONLY.fullmatch(piece.strip())
    if found is None or any(map(is_verb, _WORD.findall(found["subject"])[1:])):
        return []
    verb = found["verb"].casefold()
    no = bool(found["no"]) or verb == "cannot"
    rest = _behind_auxiliary(before.text, AUXILIARIES[verb])
    if rest is None:
        rest = before.text[before.verb :]
        rest = _NOT.sub("", rest, count=1) if before.family else rest
    subject = _named(found["subject"], before.subject)
    text = f"{subject} {verb.removesuffix('not')}{' not' if no else ''} {rest.strip()}"
    return [Clause(before.text, before.subject), Clause(text, subject)]


def _behind_auxiliary(text: str, family: str) -> str | None:
    """Return the text after the last form of an auxiliary, and after its "not"."""
    forms = [
        word.end()
        for word in _WORD.finditer(text)
        if AUXILIARIES.get(_BARE.sub("", word.group()).casefold()) == family
    ]
    if not forms:
        return None
    no = _NOT.match(text, forms[-1])
    return text[no.end() if no else forms[-1] :]


def _not_only(piece: str, before: _FullClause) -> list[Clause]:
    """Fill in "but not flooding"."""
    found = _ONLY_NOT.match(piece.strip())
    if found is None or says_no(before.text):
        return []
    text = f"{before.text} not {found['rest']}"
    return [Clause(before.text, before.text[before.end :]), Clause(text, found["rest"])]


def _opposed(subject: str, full: _FullClause) -> list[Clause]:
    """Turn "unlike A, B has a lid" into what it says of A."""
    if says_no(full.text):
        return []
    text = f"{subject} not {full.text[full.verb :]}"
    return [Clause(full.text, full.subject), Clause(text, subject)]


def _gapped(piece: str, before: _FullClause) -> list[Clause]:
    """Fill in "a lid 12 pounds", "grinders of two", "in Prague in 1814"."""
    words = _WORD.findall(piece)
    if not _FEWEST_PARTS <= len(words) <= _LONGEST_PIECE or any(map(is_verb, words[1:])):
        return []
    if _PARTICIPLE.fullmatch(words[0]):
        return []  # ", located in the south": more about the same
    parts = list(_parts(piece, 0, len(piece)))
    if len(parts) < _FEWEST_PARTS or len(words) > _LONGEST_PART * len(parts):
        return []
    parts_before = [
        *_parts(before.text, 0, before.verb),
        *_parts(before.text, before.end, len(before.text)),
    ]
    places = _places(parts, parts_before, piece, before)
    if not places:
        return []
    measured = any(part.quantity for part in parts)
    values = {n for n, part in enumerate(parts) if part.quantity} or {len(parts) - 1}
    topics = [n for n in range(len(parts)) if n not in values]
    if not topics or (not measured and _ARTICLE.match(piece)):
        return []
    theirs = " ".join(before.text[places[n].start : places[n].end] for n in topics)
    fills = [_fill(piece, part, before, place) for part, place in zip(parts, places, strict=True)]
    text = before.text
    for place, fill in sorted(zip(places, fills, strict=True), reverse=True):
        text = text[: place.start] + fill + text[place.end :]
    return [Clause(before.text, theirs), Clause(text, " ".join(fills[n] for n in topics))]


def _parts(text: str, start: int, stop: int) -> Iterator[_Phrase]:
    """Split a text at its prepositions and quantities."""
    heads = [("", start), *((m.group(), m.end()) for m in _PREPOSITION.finditer(text, start, stop))]
    ends = [m.start() for m in _PREPOSITION.finditer(text, start, stop)] + [stop]
    quantities = [q for q in find_quantities(text) if start <= q.start and q.end <= stop]
    for (preposition, begin), end in zip(heads, ends, strict=True):
        inside = next((q for q in quantities if begin <= q.start < end), None)
        name = preposition.strip().casefold()
        limit = inside.start if inside else end
        if _content(text[begin:limit]) or _STANDS_FOR.search(text[begin:limit].strip()):
            yield _stripped(text, name, begin, limit)
        if inside:
            yield _Phrase(name, inside.start, inside.end, inside)


def _stripped(text: str, name: str, start: int, end: int) -> _Phrase:
    bare = text[start:end]
    first = start + len(bare) - len(bare.lstrip())
    return _Phrase(name, first, first + len(bare.strip()), None)


def _places(
    parts: Sequence[_Phrase], parts_before: Sequence[_Phrase], piece: str, before: _FullClause
) -> list[Part]:
    """Find what each part replaces; nothing if any part replaces nothing."""
    free = list(parts_before)
    places = []
    for number, part in enumerate(parts):
        options = [
            other
            for other in free
            if _same_kind(part, other, subject_ends=before.verb, first=not number)
        ]
        if not options:
            return []
        best = max(options, key=lambda other: other.preposition == part.preposition)
        free.remove(best)
        places.append(Part(best.start, best.end))
        if part.quantity and not _says_no_more(piece, part, parts, before.text):
            return []
    return places


def _same_kind(part: _Phrase, other: _Phrase, *, subject_ends: int, first: bool) -> bool:
    if part.quantity is None or other.quantity is None:
        both_subjects = first and other.start < subject_ends
        same = part.quantity is other.quantity and part.preposition == other.preposition
        return same and (both_subjects or bool(part.preposition))
    mine, theirs = part.quantity, other.quantity
    return mine.kind == theirs.kind and mine.unit in ("", theirs.unit)


def _says_no_more(piece: str, part: _Phrase, parts: Sequence[_Phrase], before: str) -> bool:
    """Return whether the text from a quantity to the next part is in the clause before, too."""
    ends = [p.start for p in parts if p.start > part.end]
    behind = _PREPOSITION.split(piece[part.end : min(ends, default=len(piece))])[0]
    return _content(behind) <= _content(before)


def _fill(piece: str, part: _Phrase, before: _FullClause, place: Part) -> str:
    mine = piece[part.start : part.end]
    theirs = before.text[place.start : place.end]
    if part.quantity is None:
        return _named(mine, theirs)
    given = find_quantities(theirs)
    if part.quantity.unit or not given or not given[-1].unit:
        return mine
    unit = re.search(r"[^\W\d]+$|%$", theirs)
    sign = re.match(r"[^\w\s-]+", theirs)
    return f"{mine} {unit.group()}" if unit else f"{sign.group() if sign else ''}{mine}"


def _named(mine: str, theirs: str) -> str:
    """Return what "one" is: "the blue one", after "the red train", is "the blue train"."""
    head = _WORD.findall(theirs)
    return _STANDS_FOR.sub(lambda _: head[-1], mine.strip()) if head else mine.strip()
