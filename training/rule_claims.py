"""Claims made by rule from encyclopedia articles: true ones in other words, and false ones.

Every claim starts as a sentence of an article and is first rewritten by edits that keep it true
(so that being a copy tells nothing); half of them are then made false as language models err: by
another value, name, date, role, quantifier, polarity or order, by a detail from elsewhere, by
joining two true facts, or by taking its sentence out of the evidence. Each edit names its label.
"""

import gzip
import json
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from word_pairs import OPPOSITES, SAME

from langchain_groundedness.sentences import split_sentences

__all__ = ["Made", "made_claims"]

_SHORTEST, _LONGEST = 6, 45
_MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
_MONTH = "|".join(_MONTHS)
_DAY_FIRST = re.compile(rf"\b(\d{{1,2}}) ({_MONTH}) (\d{{4}})\b")
_MONTH_FIRST = re.compile(rf"\b({_MONTH}) (\d{{1,2}}), (\d{{4}})\b")
_YEAR = re.compile(r"\b(1[5-9]\d\d|20[0-2]\d)\b")
_NUMBER = re.compile(r"(?<![\w.,])\d{1,3}(?:,\d{3})*(?:\.\d+)?(?![\w])")
_NAME = re.compile(
    r"(?<=[a-z,] )[A-Z][\w'\u2019-]+(?: (?:(?:of|the|de|von|and) )?[A-Z][\w'\u2019-]+)*"
)
_PASSIVE = re.compile(
    r"^(?P<thing>.{3,70}?) (?:was|were) "
    r"(?P<verb>\w+ed|written|won|built|led|founded|sung|shot|made) "
    r"by (?P<who>[A-Z][\w.'\u2019-]*(?: [A-Z][\w.'\u2019-]*)*)(?P<rest>[^A-Za-z].*|)$"
)
_SUBJECT = re.compile(
    r"^(?P<subject>(?:The |A |An )?[A-Z][^,;:()]{1,60}?) "
    r"(?P<predicate>(?:was|is|were|are|has|had|won|became|began|served|received|made|played|plays"
    r"|moved|joined|released|died|worked|studied|wrote|founded)\b.+)$"
)
_PRONOUN = re.compile(r"^(?:He|She|It|They)\b(?! (?:is|was) (?:also )?(?:said|believed|possible))")
_ASIDE = re.compile(
    r" \([^()]{2,80}\)|, (?:which|who|where|including|such as)\b[^,;]{4,120}(?=,|\.$)"
)
_TAIL = re.compile(r"(?:,| (?:while|after|before|when|because|and)) [^,;.]{8,120}\.$")
_OPENING = re.compile(r"^(?:In|On|After|During|By|At|From|Since)\b[^,]{2,50}, (?=[A-Z])")
_DETAIL = re.compile(
    r"(?: (?:in|at|from|with|for|by|during) (?:the )?[A-Z0-9][^,;.]{2,40}"
    r"|, (?:which|who|where) [^,;.]{6,80})(?=[,.])"
)
_COPULA = re.compile(r"\b(is|was|were|are|has|had|did|does|can|could|will|would)\b")
_LIST = re.compile(r"\b([A-Z]?[\w'-]{3,20}), ([\w' -]{3,25}),? and ([\w'-]{3,25})(?=[.,])")
_WORDS_FOR = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
]
_SMALL = re.compile(r"\b(" + "|".join(_WORDS_FOR[2:]) + r")\b", re.IGNORECASE)


class Made(NamedTuple):
    """A claim made by rule."""

    claim: str
    documents: tuple[str, ...]
    label: str
    rule: str


class _Article(NamedTuple):
    title: str
    paragraphs: tuple[str, ...]
    sentences: tuple[str, ...]


Edit = Callable[[str, "_Article", random.Random], str | None]


def made_claims(path: Path, *, most: int, seed: int = 0) -> Iterator[Made]:
    """Make claims from articles.

    Args:
        path: Gzip JSON lines with `title` and `text`.
        most: How many to make at most.
        seed: Of the random choices.

    Yields:
        The claims, articles in order, a few rounds over all of them.
    """
    articles = [article for article in _articles(path) if len(article.sentences) >= 4]
    chosen = random.Random(seed)
    made = 0
    while made < most:
        before = made
        for place, article in enumerate(articles):
            other = articles[(place + chosen.randrange(1, len(articles))) % len(articles)]
            one = _make(article, other, chosen)
            if one is not None:
                yield one
                made += 1
                if made == most:
                    return
        if made == before:
            return


def _articles(path: Path) -> Iterator[_Article]:
    with gzip.open(path, "rt", encoding="utf-8") as rows:
        for row in map(json.loads, rows):
            text = re.split(r"\n== ?(?:References|See also|External links|Notes)", row["text"])[0]
            paragraphs = tuple(p for p in text.split("\n") if len(p) > 40 and not p.startswith("="))
            sentences = tuple(
                s.text
                for p in paragraphs
                for s in split_sentences(p)
                if _SHORTEST <= len(s.text.split()) <= _LONGEST and s.text.endswith(".")
            )
            yield _Article(re.sub(r" \(.*", "", row["title"]), paragraphs, sentences)


def _make(article: _Article, other: _Article, chosen: random.Random) -> Made | None:
    source = chosen.choice(article.sentences)
    claim = source
    rules = []
    for name, edit in chosen.sample(list(_TRUE.items()), k=len(_TRUE)):
        if len(rules) < 3 and chosen.random() < 0.6:
            edited = edit(claim, article, chosen)
            if edited and edited != claim and len(edited.split()) >= 5:
                claim = edited
                rules.append(name)
    documents = _evidence(article, other, chosen)
    kind = chosen.random()
    if kind < 0.46:
        return Made(claim, documents, "supported", "+".join(rules) or "copy")
    if kind < 0.66:
        return Made(claim, _without(documents, source), "unverifiable", "left out")
    for name in chosen.sample(list(_FALSE), k=len(_FALSE)):
        edit, label = _FALSE[name]
        edited = edit(claim, article, chosen)
        if edited and edited != claim and edited.rstrip(".") not in " ".join(article.paragraphs):
            return Made(edited, documents, label, name)
    return None


def _evidence(article: _Article, other: _Article, chosen: random.Random) -> tuple[str, ...]:
    """The article whole or in pieces, now and then with another one before or behind it."""
    paragraphs = list(article.paragraphs)
    if chosen.random() < 0.3:
        return ("\n".join(paragraphs),)
    groups = []
    while paragraphs:
        size = chosen.randint(1, 4)
        groups.append("\n".join(paragraphs[:size]))
        paragraphs = paragraphs[size:]
    if chosen.random() < 0.3:
        groups.insert(chosen.randint(0, len(groups)), "\n".join(other.paragraphs[:3]))
    return tuple(groups)


def _without(documents: tuple[str, ...], sentence: str) -> tuple[str, ...]:
    """Take a sentence out, and those that say nearly the same."""
    mine = set(sentence.lower().split())
    kept = []
    for text in documents:
        sentences = [
            s.text
            for s in split_sentences(text)
            if len(mine & set(s.text.lower().split())) < 0.6 * len(mine)
        ]
        if sentences:
            kept.append(" ".join(sentences))
    return tuple(kept) or ("",)


def _resolve(text: str, article: _Article, chosen: random.Random) -> str | None:
    return _PRONOUN.sub(article.title, text) if _PRONOUN.match(text) else None


def _drop_aside(text: str, article: _Article, chosen: random.Random) -> str | None:
    return _ASIDE.sub("", text, count=1)


def _drop_tail(text: str, article: _Article, chosen: random.Random) -> str | None:
    shorter = _TAIL.sub(".", text)
    if re.search(r"\b(?:if|unless|not|never|no|only|without|either|neither)\b", text):
        return None
    return shorter if len(shorter.split()) >= _SHORTEST else None


def _move_opening(text: str, article: _Article, chosen: random.Random) -> str | None:
    found = _OPENING.match(text)
    if not found or not text.endswith("."):
        return None
    opening = found.group()[:-2]
    rest = text[found.end() :]
    if chosen.random() < 0.4:
        return rest
    return f"{rest[:-1]} {opening[0].lower()}{opening[1:]}."


def _other_date(text: str, article: _Article, chosen: random.Random) -> str | None:
    style = chosen.randrange(3)
    if _DAY_FIRST.search(text):
        shapes = (r"\2 \1, \3", r"\2 \3", r"\3")
        return _of_year(_DAY_FIRST.sub(shapes[style], text, count=1), style)
    shapes = (r"\2 \1 \3", r"\1 \3", r"\3")
    return _of_year(_MONTH_FIRST.sub(shapes[style], text, count=1), style)


def _of_year(text: str, style: int) -> str:
    return re.sub(rf"\b[Oo]n (?=(?:{_MONTH})? ?\d{{4}})", "in ", text) if style else text


def _other_number(text: str, article: _Article, chosen: random.Random) -> str | None:
    changed = re.sub(r"(\d),(\d{3})\b", r"\1\2", text)
    changed = re.sub(r"(\d)%", r"\1 percent", changed)
    if changed != text:
        return changed
    return _SMALL.sub(lambda m: str(_WORDS_FOR.index(m.group().lower())), text, count=1)


def _reorder(text: str, article: _Article, chosen: random.Random) -> str | None:
    return _LIST.sub(r"\3, \1 and \2" if chosen.random() < 0.5 else r"\2 and \1", text, count=1)


def _same_words(text: str, article: _Article, chosen: random.Random) -> str | None:
    for before, after in chosen.sample(SAME, k=len(SAME)):
        changed = re.sub(rf"\b{before}\b", after, text, count=1)
        if changed != text:
            return (
                changed
                if chosen.random() < 0.5
                else _same_words(changed, article, chosen) or changed
            )
    return None


def _active(text: str, article: _Article, chosen: random.Random) -> str | None:
    found = _PASSIVE.match(text)
    if not found:
        return None
    past = {"written": "wrote", "sung": "sang"}.get(found["verb"], found["verb"])
    return f"{found['who']} {past} {_lower(found['thing'])}{found['rest']}"


def _merged(text: str, article: _Article, chosen: random.Random) -> str | None:
    other = chosen.choice(article.sentences)
    if len(other.split()) + len(text.split()) > _LONGEST or other == text:
        return None
    return f"{text[:-1]}, and {_lower(_PRONOUN.sub(article.title, other))}"


def _lower(text: str) -> str:
    return (
        text[0].lower() + text[1:]
        if re.match(r"(?:The|A|An|It|He|She|They|This|In)\b", text)
        else text
    )


_TRUE: dict[str, Edit] = {
    "pronoun": _resolve,
    "aside": _drop_aside,
    "tail": _drop_tail,
    "opening": _move_opening,
    "date": _other_date,
    "number format": _other_number,
    "list": _reorder,
    "words": _same_words,
    "active": _active,
    "merged": _merged,
}


def _swap_year(text: str, article: _Article, chosen: random.Random) -> str | None:
    found = list(_YEAR.finditer(text))
    if not found:
        return None
    place = chosen.choice(found)
    others = {y for s in article.sentences for y in _YEAR.findall(s)} - {place.group()}
    near = str(int(place.group()) + chosen.choice([-10, -4, -3, -2, -1, 1, 2, 3, 5, 10]))
    year = chosen.choice(sorted(others)) if others and chosen.random() < 0.6 else near
    return text[: place.start()] + year + text[place.end() :]


def _swap_day(text: str, article: _Article, chosen: random.Random) -> str | None:
    found = re.search(rf"\b(?:{_MONTH})\b", text)
    if not found:
        return None
    month = chosen.choice([m for m in _MONTHS if m != found.group()])
    return text[: found.start()] + month + text[found.end() :]


def _swap_number(text: str, article: _Article, chosen: random.Random) -> str | None:
    found = [m for m in _NUMBER.finditer(text) if not _YEAR.fullmatch(m.group())]
    if found:
        place = chosen.choice(found)
        others = {
            n for s in article.sentences for n in _NUMBER.findall(s) if not _YEAR.fullmatch(n)
        } - {place.group()}
        value = float(place.group().replace(",", ""))
        near = f"{value * chosen.choice([0.1, 0.5, 0.8, 1.2, 1.5, 2, 10]) + 1:,.0f}"
        number = chosen.choice(sorted(others)) if others and chosen.random() < 0.5 else near
        return text[: place.start()] + number + text[place.end() :]
    small = _SMALL.search(text)
    if not small:
        return None
    word = chosen.choice([w for w in _WORDS_FOR[2:] if w != small.group().lower()])
    return text[: small.start()] + word + text[small.end() :]


def _swap_name(text: str, article: _Article, chosen: random.Random) -> str | None:
    found = list(_NAME.finditer(text))
    names = {n for s in article.sentences for n in _NAME.findall(s)}
    if not found:
        return None
    place = chosen.choice(found)
    size = len(place.group().split())
    others = sorted(n for n in names if n not in text and len(n.split()) == size)
    if not others:
        return None
    return text[: place.start()] + chosen.choice(others) + text[place.end() :]


def _exchange_names(text: str, article: _Article, chosen: random.Random) -> str | None:
    found = list(_NAME.finditer(text))
    if len(found) < 2:
        return None
    one, two = sorted(chosen.sample(found, k=2), key=lambda m: m.start())
    if re.fullmatch(r",? (?:and|or|,) ?", text[one.end() : two.start()]):
        return None
    middle = text[one.end() : two.start()]
    return text[: one.start()] + two.group() + middle + one.group() + text[two.end() :]


def _exchange_roles(text: str, article: _Article, chosen: random.Random) -> str | None:
    found = _PASSIVE.match(text)
    if not found or found["thing"][0].islower():
        return None
    return f"{found['who']} was {found['verb']} by {_lower(found['thing'])}{found['rest']}"


def _deny(text: str, article: _Article, chosen: random.Random) -> str | None:
    if re.search(r"\b(?:not|never)\b", text):
        return re.sub(r" (?:not|never)\b", "", text, count=1)
    found = list(_COPULA.finditer(text))
    if not found:
        return None
    word = chosen.choice(["not", "not", "never"])
    return text[: found[0].end()] + f" {word}" + text[found[0].end() :]


def _oppose(text: str, article: _Article, chosen: random.Random) -> str | None:
    for before, after in chosen.sample(OPPOSITES, k=len(OPPOSITES)):
        one, two = (before, after) if chosen.random() < 0.5 else (after, before)
        changed = re.sub(rf"\b{one}\b", two, text, count=1)
        if changed != text:
            return changed
    return None


def _add_detail(text: str, article: _Article, chosen: random.Random) -> str | None:
    details = [
        m.group() for s in article.sentences for m in _DETAIL.finditer(s) if m.group() not in text
    ]
    if not details or not text.endswith("."):
        return None
    return text[:-1] + chosen.choice(details) + "."


def _join_facts(text: str, article: _Article, chosen: random.Random) -> str | None:
    mine = _SUBJECT.match(text)
    if not mine:
        return None
    for sentence in chosen.sample(article.sentences, k=min(8, len(article.sentences))):
        other = _SUBJECT.match(sentence)
        if (
            other
            and other["subject"] not in mine["subject"]
            and mine["subject"] not in other["subject"]
            and mine["subject"] not in {"He", "She", "It", "They", "This"}
            and other["subject"] not in {"He", "She", "It", "They", "This"}
        ):
            return f"{mine['subject']} {other['predicate']}"
    return None


_FALSE: dict[str, tuple[Edit, str]] = {
    "year": (_swap_year, "contradicted"),
    "month": (_swap_day, "contradicted"),
    "number": (_swap_number, "contradicted"),
    "name": (_swap_name, "unsupported"),
    "names exchanged": (_exchange_names, "unsupported"),
    "roles exchanged": (_exchange_roles, "contradicted"),
    "denied": (_deny, "contradicted"),
    "opposite": (_oppose, "contradicted"),
    "detail added": (_add_detail, "unverifiable"),
    "facts joined": (_join_facts, "unsupported"),
}
