"""Finds the quantities of a text: numbers in digits and words with their units, and dates."""

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import cast

from langchain_groundedness.verifiers._measures import (
    CURRENCIES,
    MAGNITUDES,
    MONTHS,
    NUMBER_WORDS,
    ONES,
    ORDINAL_WORDS,
    UNITS,
)
from langchain_groundedness.verifiers._quantities import Bound, Quantity
from langchain_groundedness.words import STOP_WORDS, word_stem

__all__ = ["each_quantity", "find_quantities"]

_LOOKALIKES = str.maketrans("\u017f\u0131\u0130\u212a", "siik")
"""Letters that match others where case is ignored: long s, i with and without its dot, kelvin."""
_STRETCH = 16_384
"""Characters that are searched in one step."""
_LONGEST_WRITTEN = 128
"""Characters; nothing longer is told from what it begins with, but numbers of as many digits."""
_LONGEST_BOUND = 24
_LONGEST_BESIDE = 24
_WORD_BESIDE = (
    re.compile(r"(?<!\w)([^\W\d_]{1,20})[ -]$"),
    re.compile(r"[ -]([^\W\d_]{1,20})(?!\w)"),
)
_BEFORE = re.compile(
    r"""\b(?:(?P<most>at\ most|no(?:t)?\ more\ than|up\ to|(?:a\ )?maximum\ of)
    | (?P<least>at\ least|no(?:t)?\ (?:less|fewer)\ than|(?:a\ )?minimum\ of)
    | (?P<over>(?:more|greater|longer|higher)\ than|over|above|exceed(?:s|ed|ing)?)
    | (?P<under>(?:less|fewer|shorter|lower)\ than|under|below)
    | (?P<about>about|around|approximately|roughly|nearly|almost|circa|an\ estimated|close\ to)
    )\ $""",
    re.IGNORECASE | re.VERBOSE,
)
_BEHIND = re.compile(r"\+(?!\w)|\ (?:or|and)\ (?:more|over|above)\b", re.IGNORECASE)
_WORD_BEFORE = re.compile(r"\b([a-z]+) $")
_BEFORE_YEARS = frozenset(
    """
    in since by from until till during the a an his her its their our my this that last next each
    every to and or than for on at year years circa after before between early late mid as per
    """.split()  # noqa: SIM905  (a word list reads better as words)
)
_COUNTED = re.compile(
    r" (?!(?:was|is|has|as|its|his|this|does|us|across|always|perhaps|thus|plus|less|versus)\b)"
    r"(?:[a-z]{2,}s|people|men|women|children|feet)\b"
)
"""What is counted is a plural; these words, and the beginning, stand before a year."""
_LARGEST = 1e250
"""Beyond it, products with a magnitude would no longer be finite."""
_DIGITS = 300
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_DAY = r"(?:3[01]|[12]\d|0?[1-9])(?:st|nd|rd|th)?"
_YEAR = r"(?:1\d|20)\d\d"
_NUMBER = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:[.,]\d+)?"
_WORDED = "|".join(sorted((*NUMBER_WORDS, "a hundred", "hundred"), key=len, reverse=True))
_CURRENCY = r"us\$|[$€£¥₹]|(?:usd|eur|gbp)\b"
_MAGNITUDE = r"hundred|thousand|millions?|billions?|trillion|mio|mn|bn|tn|[kmbt]"
_AFTER = "|".join(sorted((*UNITS, *CURRENCIES), key=len, reverse=True)).replace("$", r"\$")

_QUANTITY = rf"""(?<![\w.,])(?:
      (?P<iso>(?P<y1>{_YEAR})[-/](?P<m1>0?[1-9]|1[0-2])[-/](?P<d1>3[01]|[12]\d|0?[1-9]))(?!\w)
    | (?P<slash>(?P<a>\d\d?)[/.](?P<b>\d\d?)[/.](?P<y2>{_YEAR}))(?!\w)
    | (?P<dmy>(?P<d3>{_DAY})\ (?:of\ )?(?P<m3>{_MONTH})(?:,?\ (?P<y3>{_YEAR})\b)?)
    | (?P<mdy>(?P<m4>{_MONTH})\ (?P<d4>{_DAY})(?![\w:]|,\d|\.\d)(?:\ ?,?\ ?(?P<y4>{_YEAR})\b)?)
    | (?P<my>(?P<m5>{_MONTH}),?\ (?:of\ )?(?P<y5>{_YEAR}))\b
    | (?P<decade>(?P<y6>{_YEAR[:-2]})0['\u2019]?s)\b
    | (?P<literal>\d{{1,2}}:\d\d(?::\d\d)?|\d+(?:\.\d+){{2,}})(?!\w)
    | (?P<ordinal>(?P<on>\d+)(?:st|nd|rd|th)|(?P<ow>{"|".join(ORDINAL_WORDS)}))\b
    | (?P<number>
        (?:(?P<cur>{_CURRENCY})\s?)?(?P<sign>[-\u2212](?=\d))?
        (?:(?P<digits>{_NUMBER})|(?P<worded>(?:{_WORDED})(?:[-\ ](?:{"|".join(ONES[1:10])}))?)\b)
        (?:[-\ \u00a0]?(?P<mag>{_MAGNITUDE})(?!\w))?
        (?:[-\ \u00a0]?(?P<unit>%|per\ cent\b|(?:{_AFTER})(?!\w)))?
      )(?!\w)
    )"""


def find_quantities(text: str) -> list[Quantity]:
    """Find the numbers and dates of a text.

    Args:
        text: Any text. Words of number and month are read in English.

    Returns:
        The quantities in order, without overlap.

    Example:
        >>> [(q.value, q.unit) for q in find_quantities("from $2.1B to 12 percent")]
        [(2100000000.0, '$'), (12.0, '%')]
        >>> find_quantities("March 3rd, 2021")[0].date
        (2021, 3, 3)
    """
    return list(_recent_quantities(text) if len(text) <= _SENTENCE else each_quantity(text))


def each_quantity(text: str) -> Iterator[Quantity]:
    """Find the numbers and dates of a long text one by one.

    Args:
        text: As for `find_quantities`.

    Yields:
        The same quantities.
    """
    plain = text if text.isascii() else text.translate(_LOOKALIKES)
    for match in _matches(plain):
        if (quantity := _read(match)) is not None:
            yield _in_place(plain, quantity)


def _matches(text: str) -> Iterator[re.Match[str]]:
    """Give what `finditer` gives, a stretch at a time: each step holds up all threads."""
    pattern, start = _pattern(), 0
    while start < len(text):
        end = start + _STRETCH
        match = pattern.search(text, start, end)
        sure = end - _LONGEST_WRITTEN if end < len(text) else end
        if match is None or match.start() > sure:
            start = sure  # what the end of the stretch may have cut is looked for again
            continue
        start = match.start() + 1
        if match.end() > sure:
            match = pattern.match(text, match.start())
        if match is not None:
            start = match.end()
            yield match


_SENTENCE = 600
"""Characters: a claim and its best sentences are read many times in a row, whole documents once."""


@cache
def _pattern() -> re.Pattern[str]:
    """Compile the pattern when it is first needed: that is a fifth of the package's import."""
    return re.compile(_QUANTITY, re.IGNORECASE | re.VERBOSE)


@lru_cache(maxsize=256)
def _recent_quantities(text: str) -> tuple[Quantity, ...]:
    return tuple(each_quantity(text))


def _in_place(text: str, quantity: Quantity) -> Quantity:
    """Add what the text around a number or an ordinal says of it."""
    if quantity.kind not in ("number", "ordinal"):
        return quantity
    bound: Bound = _bound(text, quantity) if quantity.kind == "number" else ""
    if quantity.unit:
        return quantity._replace(bound=bound)
    before, behind = _WORD_BESIDE
    beside = (
        _content(before.search(text[max(0, quantity.start - _LONGEST_BESIDE) : quantity.start])),
        _content(behind.match(text, quantity.end, quantity.end + _LONGEST_BESIDE)),
    )
    return quantity._replace(bound=bound, beside=beside)


def _content(beside: re.Match[str] | None) -> str:
    word = word_stem(beside[1]) if beside else ""
    return "" if word in STOP_WORDS else word


def _bound(text: str, quantity: Quantity) -> Bound:
    if _BEHIND.match(text, quantity.end):
        return "least"
    before = _BEFORE.search(text[max(0, quantity.start - _LONGEST_BOUND) : quantity.start])
    return cast("Bound", before.lastgroup) if before else ""


def _read(match: re.Match[str]) -> Quantity | None:
    group = match.groupdict()
    start, end = match.span()
    if group["number"]:
        return _read_number(match)
    if group["ordinal"]:
        place = group["on"]
        n = min(float(place), _LARGEST) if place else float(ORDINAL_WORDS[group["ow"].lower()])
        return Quantity(start, end, "ordinal", n)
    if group["literal"]:
        return Quantity(start, end, "literal", 0.0, text=group["literal"])
    if group["decade"]:
        year = int(group["y6"] + "0")
        return Quantity(start, end, "date", 0.0, date=(year, None, None), text="decade")
    return Quantity(start, end, "date", 0.0, date=_date(group))


def _date(group: dict[str, str | None]) -> tuple[int | None, int | None, int | None]:
    if group["slash"]:
        a, b = int(group["a"] or 0), int(group["b"] or 0)
        twelve = 12
        # Day first or month first cannot be told for 03/04; a day over 12 tells it.
        day, month = (b, a) if b > twelve else (a, b)
        return int(group["y2"] or 0), month, day
    year = next((group[k] for k in ("y1", "y3", "y4", "y5") if group[k]), None)
    month_text = next((group[k] for k in ("m1", "m3", "m4", "m5") if group[k]), "")
    day_text = next((group[k] for k in ("d1", "d3", "d4") if group[k]), None)
    named = (month_text or "").lower().rstrip(".")
    month = MONTHS.get(named) or MONTHS.get(named[:3]) or int(named)
    digits = re.match(r"\d+", day_text or "")
    return (int(year) if year else None, month, int(digits.group()) if digits else None)


def _read_number(match: re.Match[str]) -> Quantity | None:
    group = match.groupdict()
    start, end = match.span()
    value, step = _value(group["digits"], group["worded"])
    after = (group["unit"] or "").lower()
    if group["worded"] and group["worded"].lower() == "one" and not (group["mag"] or after):
        return None  # far more often a pronoun than a number
    factor = MAGNITUDES[group["mag"].lower()] if group["mag"] else 1.0
    if after == "per cent":
        after = "%"
    currency = CURRENCIES.get((group["cur"] or "").lower()) or CURRENCIES.get(after, "")
    bare = not (currency or after or group["mag"] or group["sign"] or group["worded"])
    if bare and re.fullmatch(_YEAR, group["digits"] or ""):
        year = (int(value), None, None)
        return Quantity(start, end, "date", 0.0, date=year, may_count=_may_count(match))
    unit, scale = UNITS.get(after, ("", 1.0))
    if group["sign"]:
        value = -value
    return Quantity(
        start,
        end,
        "number",
        value * factor * scale,
        currency or unit,
        step * factor * scale / 2 if factor != 1 or step < 1 else 0.0,
        scale=scale,
        written=value * factor,
    )


def _may_count(match: re.Match[str]) -> bool:
    before = _WORD_BEFORE.search(
        match.string[max(0, match.start() - _LONGEST_BOUND) : match.start()]
    )
    return (
        before is not None
        and before.group(1) not in _BEFORE_YEARS
        and _COUNTED.match(match.string, match.end()) is not None
    )


def _value(digits: str | None, worded: str | None) -> tuple[float, float]:
    if digits:
        if re.fullmatch(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?", digits):
            digits = digits.replace(",", "")
        digits = digits.replace(",", ".")
        _, _, decimals = digits.partition(".")
        return min(float(digits), _LARGEST), 10.0 ** -min(len(decimals), _DIGITS)
    parts = re.split(r"[-\s]+", (worded or "").lower())
    total = sum(NUMBER_WORDS.get(part, 0.0) for part in parts)
    return (total * 100 or 100.0) if "hundred" in parts else total, 1.0
