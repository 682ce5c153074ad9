"""Edits that make a claim false, as language models err; each names the label it gives."""

import random
import re

from articles import MONTH, MONTHS, PASSIVE, SMALL, WORDS_FOR, Article, Edit
from true_edits import lower_first
from word_pairs import OPPOSITES

__all__ = ["FALSE_EDITS"]

_YEAR = re.compile(r"\b(1[5-9]\d\d|20[0-2]\d)\b")
_NUMBER = re.compile(r"(?<![\w.,])\d{1,3}(?:,\d{3})*(?:\.\d+)?(?![\w])")
_NAME = re.compile(
    r"(?<=[a-z,] )[A-Z][\w'\u2019-]+(?: (?:(?:of|the|de|von|and) )?[A-Z][\w'\u2019-]+)*"
)
_SUBJECT = re.compile(
    r"^(?P<subject>(?:The |A |An )?[A-Z][^,;:()]{1,60}?) "
    r"(?P<predicate>(?:was|is|were|are|has|had|won|became|began|served|received|made|played|plays"
    r"|moved|joined|released|died|worked|studied|wrote|founded)\b.+)$"
)
_DETAIL = re.compile(
    r"(?: (?:in|at|from|with|for|by|during) (?:the )?[A-Z0-9][^,;.]{2,40}"
    r"|, (?:which|who|where) [^,;.]{6,80})(?=[,.])"
)
_COPULA = re.compile(r"\b(is|was|were|are|has|had|did|does|can|could|will|would)\b")


def _swap_year(text: str, article: Article, chosen: random.Random) -> str | None:
    found = list(_YEAR.finditer(text))
    if not found:
        return None
    place = chosen.choice(found)
    others = {y for s in article.sentences for y in _YEAR.findall(s)} - {place.group()}
    near = str(int(place.group()) + chosen.choice([-10, -4, -3, -2, -1, 1, 2, 3, 5, 10]))
    year = chosen.choice(sorted(others)) if others and chosen.random() < 0.6 else near
    return text[: place.start()] + year + text[place.end() :]


def _swap_day(text: str, article: Article, chosen: random.Random) -> str | None:
    found = re.search(rf"\b(?:{MONTH})\b", text)
    if not found:
        return None
    month = chosen.choice([m for m in MONTHS if m != found.group()])
    return text[: found.start()] + month + text[found.end() :]


def _swap_number(text: str, article: Article, chosen: random.Random) -> str | None:
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
    small = SMALL.search(text)
    if not small:
        return None
    word = chosen.choice([w for w in WORDS_FOR[2:] if w != small.group().lower()])
    return text[: small.start()] + word + text[small.end() :]


def _swap_name(text: str, article: Article, chosen: random.Random) -> str | None:
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


def _exchange_names(text: str, article: Article, chosen: random.Random) -> str | None:
    found = list(_NAME.finditer(text))
    if len(found) < 2:
        return None
    one, two = sorted(chosen.sample(found, k=2), key=lambda m: m.start())
    if re.fullmatch(r",? (?:and|or|,) ?", text[one.end() : two.start()]):
        return None
    middle = text[one.end() : two.start()]
    return text[: one.start()] + two.group() + middle + one.group() + text[two.end() :]


def _exchange_roles(text: str, article: Article, chosen: random.Random) -> str | None:
    found = PASSIVE.match(text)
    if not found or found["thing"][0].islower():
        return None
    return f"{found['who']} was {found['verb']} by {lower_first(found['thing'])}{found['rest']}"


def _deny(text: str, article: Article, chosen: random.Random) -> str | None:
    if re.search(r"\b(?:not|never)\b", text):
        return re.sub(r" (?:not|never)\b", "", text, count=1)
    found = list(_COPULA.finditer(text))
    if not found:
        return None
    word = chosen.choice(["not", "not", "never"])
    return text[: found[0].end()] + f" {word}" + text[found[0].end() :]


def _oppose(text: str, article: Article, chosen: random.Random) -> str | None:
    for before, after in chosen.sample(OPPOSITES, k=len(OPPOSITES)):
        one, two = (before, after) if chosen.random() < 0.5 else (after, before)
        changed = re.sub(rf"\b{one}\b", two, text, count=1)
        if changed != text:
            return changed
    return None


def _add_detail(text: str, article: Article, chosen: random.Random) -> str | None:
    details = [
        m.group() for s in article.sentences for m in _DETAIL.finditer(s) if m.group() not in text
    ]
    if not details or not text.endswith("."):
        return None
    return text[:-1] + chosen.choice(details) + "."


def _join_facts(text: str, article: Article, chosen: random.Random) -> str | None:
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


FALSE_EDITS: dict[str, tuple[Edit, str]] = {
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
