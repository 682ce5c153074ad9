"""The English words and signs of quantities: numbers, magnitudes, money, units, months."""

__all__ = [
    "CURRENCIES",
    "MAGNITUDES",
    "MONTHS",
    "NUMBER_WORDS",
    "ONES",
    "ORDINAL_WORDS",
    "UNITS",
]

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
ORDINAL_WORDS = {
    word: n
    for n, word in enumerate(
        "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split(),  # noqa: SIM905  (words)
        start=1,
    )
}
MAGNITUDES = {
    "hundred": 1e2,
    "k": 1e3,
    "thousand": 1e3,
    "m": 1e6,
    "mn": 1e6,
    "mio": 1e6,
    "million": 1e6,
    "millions": 1e6,
    "b": 1e9,
    "bn": 1e9,
    "billion": 1e9,
    "billions": 1e9,
    "t": 1e12,
    "tn": 1e12,
    "trillion": 1e12,
}
CURRENCIES = {
    "$": "$",
    "us$": "$",
    "usd": "$",
    "dollar": "$",
    "dollars": "$",
    "€": "€",
    "eur": "€",
    "euro": "€",
    "euros": "€",
    "£": "£",
    "gbp": "£",
    "pound": "£",
    "pounds": "£",
    "¥": "¥",
    "yen": "¥",
    "₹": "₹",
    "rupees": "₹",
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
MONTHS = {
    form: n
    for n, name in enumerate(
        [
            "january",
            "february",
            "march",
            "april",
            "may",
            "june",
            "july",
            "august",
            "september",
            "october",
            "november",
            "december",
        ],
        start=1,
    )
    for form in (name, name[:3])
} | {"sept": 9}
