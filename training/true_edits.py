"""Edits that keep a claim true: in other words, shorter, in another order."""

import random
import re

from articles import (
    LONGEST,
    MONTH,
    PASSIVE,
    PRONOUN,
    SHORTEST,
    SMALL,
    WORDS_FOR,
    Article,
    Edit,
)
from word_pairs import SAME

__all__ = ["TRUE_EDITS", "lower_first"]

_DAY_FIRST = re.compile(rf"\b(\d{{1,2}}) ({MONTH}) (\d{{4}})\b")
_MONTH_FIRST = re.compile(rf"\b({MONTH}) (\d{{1,2}}), (\d{{4}})\b")
_ASIDE = re.compile(
    r" \([^()]{2,80}\)|, (?:which|who|where|including|such as)\b[^,;]{4,120}(?=,|\.$)"
)
_TAIL = re.compile(r"(?:,| (?:while|after|before|when|because|and)) [^,;.]{8,120}\.$")
_ADJUNCT = re.compile(r" (?:in|on|at|during|since|near|alongside) [^,;.]{4,50}\.$")
_JOINED = re.compile(
    r"^(?P<subject>(?:The |A |An )?[A-Z][^,;:()]{1,60}?)"
    r"(?P<first> (?:was|is|were|are|has|had)\b[^;:]+?),? and"
    r"(?P<second> (?:was|is|were|are|has|had|won|became|began|served|received|made|played|moved"
    r"|joined|released|died|worked|studied|wrote|founded)\b.+\.)$"
)
_HEDGED = re.compile(
    r"\b(?:if|unless|not|never|no|only|without|either|neither|all|every|most|few|first|last)\b"
)
_OPENING = re.compile(r"^(?:In|On|After|During|By|At|From|Since)\b[^,]{2,50}, (?=[A-Z])")
_LIST = re.compile(r"\b([A-Z]?[\w'-]{3,20}), ([\w' -]{3,25}),? and ([\w'-]{3,25})(?=[.,])")


def _resolve(text: str, article: Article, chosen: random.Random) -> str | None:
    return PRONOUN.sub(article.title, text) if PRONOUN.match(text) else None


def _drop_aside(text: str, article: Article, chosen: random.Random) -> str | None:
    return _ASIDE.sub("", text, count=1)


def _drop_tail(text: str, article: Article, chosen: random.Random) -> str | None:
    shorter = _TAIL.sub(".", text)
    if _HEDGED.search(text):
        return None
    return shorter if len(shorter.split()) >= SHORTEST else None


def _drop_adjunct(text: str, article: Article, chosen: random.Random) -> str | None:
    shorter = _ADJUNCT.sub(".", text)
    return None if _HEDGED.search(text) or len(shorter.split()) < SHORTEST else shorter


def _one_of_two(text: str, article: Article, chosen: random.Random) -> str | None:
    found = _JOINED.match(text)
    if not found or _HEDGED.search(text):
        return None
    first = f"{found['subject']}{found['first']}."
    return first if chosen.random() < 0.5 else f"{found['subject']}{found['second']}"


def _move_opening(text: str, article: Article, chosen: random.Random) -> str | None:
    found = _OPENING.match(text)
    if not found or not text.endswith("."):
        return None
    opening = found.group()[:-2]
    rest = text[found.end() :]
    if chosen.random() < 0.4:
        return rest
    return f"{rest[:-1]} {opening[0].lower()}{opening[1:]}."


def _other_date(text: str, article: Article, chosen: random.Random) -> str | None:
    style = chosen.randrange(3)
    if _DAY_FIRST.search(text):
        shapes = (r"\2 \1, \3", r"\2 \3", r"\3")
        return _of_year(_DAY_FIRST.sub(shapes[style], text, count=1), style)
    shapes = (r"\2 \1 \3", r"\1 \3", r"\3")
    return _of_year(_MONTH_FIRST.sub(shapes[style], text, count=1), style)


def _of_year(text: str, style: int) -> str:
    return re.sub(rf"\b[Oo]n (?=(?:{MONTH})? ?\d{{4}})", "in ", text) if style else text


def _other_number(text: str, article: Article, chosen: random.Random) -> str | None:
    changed = re.sub(r"(\d),(\d{3})\b", r"\1\2", text)
    changed = re.sub(r"(\d)%", r"\1 percent", changed)
    if changed != text:
        return changed
    return SMALL.sub(lambda m: str(WORDS_FOR.index(m.group().lower())), text, count=1)


def _reorder(text: str, article: Article, chosen: random.Random) -> str | None:
    return _LIST.sub(r"\3, \1 and \2" if chosen.random() < 0.5 else r"\2 and \1", text, count=1)


def _same_words(text: str, article: Article, chosen: random.Random) -> str | None:
    for before, after in chosen.sample(SAME, k=len(SAME)):
        changed = re.sub(rf"\b{before}\b", after, text, count=1)
        if changed != text:
            return (
                changed
                if chosen.random() < 0.5
                else _same_words(changed, article, chosen) or changed
            )
    return None


def _active(text: str, article: Article, chosen: random.Random) -> str | None:
    found = PASSIVE.match(text)
    if not found:
        return None
    past = {"written": "wrote", "sung": "sang"}.get(found["verb"], found["verb"])
    return f"{found['who']} {past} {lower_first(found['thing'])}{found['rest']}"


def _merged(text: str, article: Article, chosen: random.Random) -> str | None:
    other = chosen.choice(article.sentences)
    if len(other.split()) + len(text.split()) > LONGEST or other == text:
        return None
    return f"{text[:-1]}, and {lower_first(PRONOUN.sub(article.title, other))}"


def lower_first(text: str) -> str:
    """Begin with a small letter, unless the first word may be a name."""
    return (
        text[0].lower() + text[1:]
        if re.match(r"(?:The|A|An|It|He|She|They|This|In)\b", text)
        else text
    )


TRUE_EDITS: dict[str, Edit] = {
    "pronoun": _resolve,
    "aside": _drop_aside,
    "tail": _drop_tail,
    "adjunct": _drop_adjunct,
    "conjunct": _one_of_two,
    "opening": _move_opening,
    "date": _other_date,
    "number format": _other_number,
    "list": _reorder,
    "words": _same_words,
    "active": _active,
    "merged": _merged,
}
