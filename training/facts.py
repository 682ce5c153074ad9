"""Minimal pairs by rule: facts, the same in other words, and near-misses with the same words.

A fact is a few lines of `facts.txt`. `=` begins wordings that say the same, any of which may stand
in a document; `>` what follows from them; `!` what they contradict; `?` what they do not say. Slots
are filled alike in all lines: `{A}`, `{B}` people, `{C}`, `{D}` companies, `{P}`, `{Q}` places,
`{x}`, `{y}` things, `{n}` < `{m}` < `{k}` numbers, `{t}` < `{u}` < `{v}` years, `{h}` < `{i}`
hours, `{w}`, `{z}` weekdays, `{g}`, `{f}` jobs.
"""

import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

__all__ = ["FACTS", "Fact", "Said", "say"]

_PEOPLE = (
    "Anna Berger", "Tom Reilly", "Mr Okafor", "Ms Lindqvist", "Dr Patel", "Maria", "Kevin",
    "Sophie Laurent", "Hiroshi Tanaka", "Elena Petrova", "the mayor", "the director", "the nurse",
    "the captain", "Ahmed", "Grace Mbeki", "Luis Ortega", "Mrs Novak", "Chen Wei", "the landlady",
    "Judge Harlow", "Fatima", "the architect", "Paul", "Ingrid", "Coach Daniels", "the plumber",
    "Professor Klein", "Nadia", "Omar", "Bella", "Sir Edmund", "the bishop", "Viktor",
    "the elder brother", "Yuki", "Rosa Diaz", "Farmer Brown",
)  # fmt: skip
_COMPANIES = (
    "Acorn Ltd", "Borealis", "Nordwind AG", "Sunfield Foods", "Kestrel Systems", "Orbit Bank",
    "Tallgrass Energy", "Meridian Air", "Bluewater", "Copperline", "Dunmore & Sons", "Helix Pharma",
    "Ironbridge Steel", "Lumen Labs", "Pinewood Press", "Quantra", "Redfern Motors",
    "Silverlake Hotels", "Tamarind", "Vantage Rail",
)  # fmt: skip
_PLACES = (
    "Oslo", "Lyon", "Graz", "Porto", "Leeds", "Osaka", "Lima", "Accra", "Denver", "Perth", "Turin",
    "Kazan", "Halifax", "Nairobi", "Ghent", "Quito", "Busan", "Tampere", "Izmir", "Cork", "Mumbai",
    "Austin", "Bergen",
)  # fmt: skip
_THINGS = (
    "car", "boat", "piano", "gate", "pump", "printer", "bicycle", "tractor", "camera", "table",
    "lamp", "clock", "kettle", "drill", "door", "window", "heater", "ladder", "phone", "robot",
    "statue", "battery", "filter", "motor", "chair", "carpet", "scanner", "sensor", "valve",
    "plugin", "painting", "engine", "bag", "box",
)  # fmt: skip
_JOBS = (
    "baker", "pilot", "lawyer", "teacher", "gardener", "nurse", "driver", "singer", "carpenter",
    "chemist", "painter", "farmer", "judge", "cook", "librarian", "manager", "treasurer",
    "goalkeeper", "chairman",
)  # fmt: skip
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_SLOT = re.compile(r"\{(\w)(?::(\w+))?\}")
_FILE = Path(__file__).with_name("facts.txt")
_HELD_EVERY = 5
_EXCHANGED = 0.25
_COPIED = 0.3


class Said(NamedTuple):
    """A statement about a fact."""

    text: str
    label: str


class Fact(NamedTuple):
    """A fact with its wordings, slots not filled."""

    same: tuple[str, ...]
    others: tuple[tuple[str, str], ...]
    """Label and wording of what follows, contradicts or is not said."""
    held: bool
    """Kept for measuring."""


def say(fact: Fact, chosen: random.Random) -> tuple[str, list[Said]]:
    """Fill the slots of a fact, and choose how it stands in a document.

    Args:
        fact: The fact.
        chosen: Makes the choices.

    Returns:
        Its sentence, and statements about it: as many that are so as are not.
    """
    slots = _filled(chosen)
    same = list(fact.same)
    others = list(fact.others)
    against = [text for label, text in others if label == "contradicted"]
    if (
        against and chosen.random() < _EXCHANGED
    ):  # then what is false else is what the document says
        wording = chosen.choice(against)
        said = [(wording, "supported"), (chosen.choice(same), "contradicted")]
        return _put(wording, slots), [Said(_put(text, slots), label) for text, label in said]
    wording = same.pop(chosen.randrange(len(same)))
    if chosen.random() < _COPIED:
        same = [wording]
    true = [("supported", text) for text in same]
    true += [each for each in others if each[0] == "supported"]
    false = [each for each in others if each[0] != "supported"]
    chosen.shuffle(true)
    chosen.shuffle(false)
    size = min(len(true), len(false), 2)
    said = [Said(_put(text, slots), label) for label, text in true[:size] + false[:size]]
    return _put(wording, slots), said


def _put(text: str, slots: dict[str, str]) -> str:
    def fill(found: re.Match[str]) -> str:
        name, form = found[1], found[2]
        word = slots[name]
        if name in "xy":
            return {"many": f"{word}s", "bare": word}.get(form, f"the {word}")
        if form == "a":
            return f"an {word}" if word[0] in "aeiou" else f"a {word}"
        return word

    text = _SLOT.sub(fill, text)
    return f"{text[0].upper()}{text[1:]}."


def _filled(chosen: random.Random) -> dict[str, str]:
    slots = {}
    for names, words in (
        ("AB", _PEOPLE),
        ("CD", _COMPANIES),
        ("PQ", _PLACES),
        ("xy", _THINGS),
        ("gf", _JOBS),
        ("wz", _WEEKDAYS),
    ):
        slots.update(zip(names, chosen.sample(words, k=2), strict=True))
    first = chosen.choice(
        [chosen.randint(2, 12), chosen.randint(10, 95), chosen.randint(2, 40) * 10]
    )
    second = first + chosen.choice([1, 2, 3, 5, 10, 20, first])
    third = second + chosen.choice([1, 2, 5, 10, 25, second])
    slots.update(zip("nmk", map(str, (first, second, third)), strict=True))
    years = sorted(chosen.sample(range(1950, 2025), k=3))
    slots.update(zip("tuv", map(str, years), strict=True))
    early, late = sorted(chosen.sample(range(1, 12), k=2))
    style = chosen.randrange(3)
    shapes = (
        (f"{early} am", f"{late} pm"),
        (f"{early:02}:00", f"{late + 12}:00"),
        (f"{early}:30", f"{late + 12}:15"),
    )
    slots.update(zip("hi", shapes[style], strict=True))
    return slots


def _facts() -> Iterator[Fact]:
    labels = {">": "supported", "!": "contradicted", "?": "unverifiable"}
    for number, block in enumerate(_FILE.read_text(encoding="utf-8").strip().split("\n\n")):
        lines = [(line[0], line[2:].split(" | ")) for line in block.splitlines()]
        yield Fact(
            tuple(text for sign, texts in lines if sign == "=" for text in texts),
            tuple((labels[sign], text) for sign, texts in lines if sign != "=" for text in texts),
            held=number % _HELD_EVERY == _HELD_EVERY - 1,
        )


FACTS = tuple(_facts())
"""All facts; one in five is kept for measuring."""
