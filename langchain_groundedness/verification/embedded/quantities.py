"""Quantities in text: numbers with magnitude and unit, and dates, compared by what they mean."""

import math
import re
from collections.abc import Collection, Iterator
from functools import cache, lru_cache
from typing import Literal, NamedTuple, Self, cast

from langchain_groundedness.text.words import STOP_WORDS, word_stem

__all__ = [
    "Quantity",
    "comparable",
    "compatible",
    "each_quantity",
    "find_quantities",
    "phrase_of",
    "same_quantity",
    "units_fit",
]

Bound = Literal["", "over", "least", "under", "most", "about"]

Kind = Literal["number", "date", "ordinal", "literal"]


_ABOUT_TOLERANCE = 0.05
"""How far, as a share of it, a number may be from what is "about" as much."""
_FAR_FACTOR = 10.0
"""A number this many times off meets a bound, but is hardly about the same thing."""
_LOOKALIKES = str.maketrans("\u017f\u0131\u0130\u212a", "siik")
"""Letters that match others where case is ignored: long s, i with and without its dot, kelvin."""
_STRETCH = 16_384
"""Characters that are searched in one step."""
_LONGEST_WRITTEN = 128
"""Characters that tell any quantity from its beginning, except numbers of as many digits."""
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
"""A counted thing is a plural; these words, or the beginning of the text, come before a year."""
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
ONES = """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
    sixteen seventeen eighteen nineteen
    """.split()  # noqa: SIM905  (a word list reads better as words)
_TENS = """
    twenty thirty forty fifty sixty seventy eighty ninety
    """.split()  # noqa: SIM905  (a word list reads better as words)
NUMBER_WORDS = (
    {word: float(n) for n, word in enumerate(ONES)}
    | {word: 20.0 + 10 * n for n, word in enumerate(_TENS)}
    | {"dozen": 12.0}
)
_WORDED = "|".join(sorted((*NUMBER_WORDS, "a hundred", "hundred"), key=len, reverse=True))
_CURRENCY = r"us\$|[$€£¥₹]|(?:usd|eur|gbp)\b"
_MAGNITUDE = r"hundred|thousand|millions?|billions?|trillion|mio|mn|bn|tn|[kmbt]"
CURRENCIES = {
    form: sign
    for sign, forms in {
        "$": "$ us$ usd dollar dollars",
        "€": "€ eur euro euros",
        "£": "£ gbp pound pounds",
        "¥": "¥ yen",
        "₹": "₹ rupees",
    }.items()
    for form in forms.split()
}
UNITS: dict[str, tuple[str, float]] = {
    form: (base, factor)
    for forms, base, factor in (
        ("mm millimeter millimeters millimetre millimetres", "m", 0.001),
        ("cm centimeter centimeters centimetre centimetres", "m", 0.01),
        ("meter meters metre metres", "m", 1.0),
        ("km kilometer kilometers kilometre kilometres", "m", 1000.0),
        ("inch inches", "m", 0.0254),
        ("ft foot feet", "m", 0.3048),
        ("mile miles mi", "m", 1609.344),
        ("mg milligram milligrams", "g", 0.001),
        ("g gram grams", "g", 1.0),
        ("kg kilogram kilograms", "g", 1000.0),
        ("tonne tonnes", "g", 1e6),
        ("ml milliliter milliliters millilitre millilitres", "l", 0.001),
        ("l liter liters litre litres", "l", 1.0),
        ("w watt watts", "w", 1.0),
        ("kw kilowatt kilowatts", "w", 1000.0),
        ("second seconds", "s", 1.0),
        ("minute minutes min mins", "s", 60.0),
        ("hour hours", "s", 3600.0),
        ("day days", "day", 1.0),
        ("week weeks", "day", 7.0),
        ("month months", "month", 1.0),
        ("year years", "month", 12.0),
        ("% percent pct", "%", 1.0),
    )
    for form in forms.split()
}
_AFTER = "|".join(sorted((*UNITS, *CURRENCIES), key=len, reverse=True)).replace("$", r"\$")
ORDINAL_WORDS = {
    word: n
    for n, word in enumerate(
        "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split(),  # noqa: SIM905  (words)
        start=1,
    )
}
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
        (?:(?:[-\ \u00a0]|\n(?=(?-i:[a-z]{{2}})))?(?P<unit>%|per\ cent\b|(?:{_AFTER})(?!\w)))?
      )(?!\w)
    )"""
_SENTENCE = 600
"""Characters: a claim and its best sentences are read many times in a row, whole documents once."""
MAGNITUDES = {
    form: value
    for value, forms in {
        1e2: "hundred",
        1e3: "k thousand",
        1e6: "m mn mio million millions",
        1e9: "b bn billion billions",
        1e12: "t tn trillion",
    }.items()
    for form in forms.split()
}
_MONTH_NAMES = """
    january february march april may june july august september october november december
    """.split()  # noqa: SIM905  (a word list reads better as words)
MONTHS = {name[:3]: n for n, name in enumerate(_MONTH_NAMES, start=1)}


class Quantity(NamedTuple):
    """A value named in a text: `text[start:end]` as it was written."""

    start: int
    end: int
    kind: Kind
    value: float
    """The number in base units (2.1B is 2.1e9, 5 km is 5,000); 0 for a date or a literal."""
    unit: str = ""
    """`"%"`, a currency sign, a base unit such as `"m"`, or nothing."""
    precision: float = 0.0
    """Half a step of the last digit written; a more exact value within it means the same."""
    date: tuple[int | None, int | None, int | None] = (None, None, None)
    """Year, month, day, as far as they were written; for a decade the year it begins with."""
    text: str = ""
    """The literal, for clock times and version numbers; `"decade"` for decades."""
    bound: Bound = ""
    """What the text says of the number, if not that it is exact: "more than", "at least", …"""
    scale: float = 1.0
    """Base units in the unit that was written (0.001 for mm): 1 for a number without one."""
    written: float = 0.0
    """The number before its unit, if that is no base unit."""
    may_count: bool = False
    """Whether what reads as a year may say how many there are: "it has 1800 seats"."""
    beside: tuple[str, str] = ("", "")
    """The words, by their stems, right before and right after a number without a unit or a place in
    an order; nothing for a stop word, or where something stands between."""

    @property
    def as_written(self) -> Self:
        """The number as written before its unit, to compare with one that names no unit."""
        if self.scale == 1:
            return self
        return self._replace(value=self.written, precision=self.precision / self.scale, scale=1.0)

    @property
    def range(self) -> tuple[float, float]:
        """The least and the greatest number that is meant."""
        if self.bound == "about":
            within = max(abs(self.value) * _ABOUT_TOLERANCE, self.precision)
            return self.value - within, self.value + within
        above = math.inf if self.bound in ("over", "least") else self.value + self.precision
        below = -math.inf if self.bound in ("under", "most") else self.value - self.precision
        low = math.nextafter(self.value, math.inf) if self.bound == "over" else below
        high = math.nextafter(self.value, -math.inf) if self.bound == "under" else above
        return low, high


def comparable(one: Quantity, other: Quantity) -> bool:
    """Return whether two quantities are of one kind, so that a difference between them counts."""
    if one.kind != other.kind:
        year, number = (one, other) if one.kind == "date" else (other, one)
        return year.may_count and number.kind == "number" and not number.unit
    if one.kind == "date":
        both = [a is not None and b is not None for a, b in zip(one.date, other.date, strict=True)]
        return any(both)
    money = set(CURRENCIES.values())
    return one.unit == other.unit or (one.unit in money and other.unit in money)


def compatible(claimed: Quantity, given: Quantity) -> bool:
    """Return whether two numbers, one of them a bound, can both be true of one thing."""
    if not (claimed.bound or given.bound) or claimed.unit != given.unit:
        return False
    (low, high), (least, greatest) = claimed.range, given.range
    return low <= greatest and least <= high


def same_quantity(claimed: Quantity, given: Quantity) -> bool:
    """Return whether a claimed quantity is what the evidence gives.

    A date may be claimed less exactly than it is given (2021 for 3 March 2021), and so may a
    number that was written in rounded form (2.1B for 2,134 million). A number without a unit, as
    in a table, is compared with the number that the other side writes before its unit; with a
    place in an order only if both are of the same: "round 2" and "the second round".
    """
    kinds = {claimed.kind, given.kind}
    if kinds == {"date"}:
        return _same_date(claimed, given)
    if kinds == {"date", "ordinal"}:
        return False
    if "date" in kinds:
        return _year_as_number(claimed) == _year_as_number(given)
    if "literal" in kinds:
        return claimed.kind == given.kind and claimed.text == given.text
    if len(kinds) > 1 and not _orders_what_is_counted(claimed, given):
        return False
    return _same_number(claimed, given)


def _same_date(claimed: Quantity, given: Quantity) -> bool:
    if claimed.text == "decade" and given.date[0] is not None:
        return given.date[0] // 10 == (claimed.date[0] or 0) // 10
    if given.text == "decade":
        return False
    return all(
        mine is None or mine == theirs
        for mine, theirs in zip(claimed.date, given.date, strict=True)
    )


def _same_number(claimed: Quantity, given: Quantity) -> bool:
    if claimed.unit != given.unit:
        if claimed.unit and given.unit:
            return False
        claimed, given = claimed.as_written, given.as_written
    if claimed.bound:
        return _meets(claimed, given)
    close = max(claimed.precision, abs(claimed.value) * 1e-9)
    return math.isclose(claimed.value, given.value, rel_tol=0.0, abs_tol=close)


def units_fit(
    claimed: Quantity, given: Quantity, *, in_claim: Collection[str], beside: Collection[str]
) -> bool:
    """Return whether a number without a unit may stand for one with a unit.

    It may where its side names no such unit, as in a table: "section 3 lasts 5 years" does not
    give three years.
    """
    if claimed.unit == given.unit:
        return True
    return claimed.unit not in beside if claimed.unit else given.unit not in in_claim


def _orders_what_is_counted(one: Quantity, other: Quantity) -> bool:
    """Return whether an ordinal and a number without a unit are beside the same word."""
    ordinal, number = (one, other) if one.kind == "ordinal" else (other, one)
    _, ordered = ordinal.beside
    return not number.unit and ordered != "" and ordered in number.beside


def _meets(claimed: Quantity, given: Quantity) -> bool:
    """Return whether a number, or all that is meant by its bound, is within a claimed bound."""
    if claimed.value == given.value and claimed.bound == given.bound:
        return True
    near = abs(claimed.value) / _FAR_FACTOR <= abs(given.value) <= abs(claimed.value) * _FAR_FACTOR
    (low, high), (least, greatest) = claimed.range, given.range
    return near and claimed.unit == given.unit and low <= least and greatest <= high


def _year_as_number(quantity: Quantity) -> float:
    if quantity.kind != "date":
        return quantity.as_written.value
    year, month, day = quantity.date
    return float(year) if year is not None and month is None and day is None else math.nan


def find_quantities(text: str) -> list[Quantity]:
    """Find the numbers and dates of a text."""
    return list(_recent_quantities(text) if len(text) <= _SENTENCE else each_quantity(text))


def each_quantity(text: str) -> Iterator[Quantity]:
    """Find the numbers and dates of a long text one by one."""
    plain = text if text.isascii() else text.translate(_LOOKALIKES)
    for match in _matches(plain):
        if (quantity := _read(match)) is not None:
            yield _in_place(plain, quantity)


def _matches(text: str) -> Iterator[re.Match[str]]:
    """Yield what `finditer` gives, a stretch at a time: each step holds up all threads."""
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


@cache
def _pattern() -> re.Pattern[str]:
    """Compile the pattern when first needed: it takes a fifth of the package's import time."""
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


def phrase_of(text: str, quantity: Quantity) -> tuple[int, int]:
    """Return the place of a quantity and its bound in a text: "fewer than 10", "10 or more"."""
    start, end = quantity.start, quantity.end
    if quantity.kind == "number":
        first = max(0, start - _LONGEST_BOUND)
        before, behind = _BEFORE.search(text[first:start]), _BEHIND.match(text, end)
        start = first + before.start() if before else start
        end = behind.end() if behind else end
    return start, end


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


def _date(group: dict[str, str]) -> tuple[int | None, int | None, int | None]:
    written = {name[0]: text for name, text in group.items() if text and name[-1].isdigit()}
    year = int(written["y"]) if "y" in written else None
    if group["slash"]:
        # Day first or month first cannot be told for 03/04; a day over 12 tells it.
        day, month = int(group["a"]), int(group["b"])
        twelve = 12
        return (year, day, month) if month > twelve else (year, month, day)
    month = MONTHS.get(written["m"][:3].lower()) or int(written["m"])
    digits = re.match(r"\d+", written.get("d", ""))
    return year, month, int(digits.group()) if digits else None


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
