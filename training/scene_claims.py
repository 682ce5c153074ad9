"""Claims about small invented scenes: who did what to whom, which is larger, which came first.

Sentences of articles seldom allow such a claim to be made by rule, and they are what a small
encoder gets wrong: the words of claim and evidence are the same, and only their places differ.
Every scene is one or two sentences, claims that follow from them and claims that do not; it is put
among sentences of an article, so that it has to be found.
"""

import random
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from scene_words import (
    ACTS,
    ADJECTIVES,
    BODIES,
    CITIES,
    CONVERSES,
    DECIDED,
    FIRST_NAMES,
    FIRST_THINGS,
    GROUPS,
    JOBS,
    KINDS,
    LAST_NAMES,
    MADE,
    MEASURES,
    PEOPLE,
    PLANS,
    SUBSTANCES,
)

__all__ = ["Scene", "among", "scenes"]

_PRESENT = re.compile(r"\b(?:is|employs|works|owes|leads|reports)\b")
_TRUE, _FALSE, _OPEN, _UNSAID = "supported", "contradicted", "unverifiable", "unsupported"


class Scene(NamedTuple):
    """What is told, and claims about it with their labels."""

    told: str
    claims: tuple[tuple[str, str], ...]
    rule: str


def scenes(*, seed: int = 0) -> Iterator[Scene]:
    """Invent scenes without end.

    Args:
        seed: Of the random choices.

    Yields:
        Scenes, each kind as often as the others.
    """
    chosen = random.Random(seed)
    while True:
        for rule, invent in _KINDS.items():
            told, claims = invent(chosen)
            yield Scene(_sentence(told), tuple((_sentence(c), label) for c, label in claims), rule)


Invented = tuple[str, list[tuple[str, str]]]


def _acts(chosen: random.Random) -> Invented:
    one, two = _two_doers(chosen)
    did, done = chosen.choice(ACTS)
    other = chosen.choice([a for a, _ in ACTS if a != did])
    told = chosen.choice([f"{one} {did} {two}", f"{two} was {done} by {one}"])
    return _dated(chosen, told), [
        (f"{one} {did} {two}", _TRUE),
        (f"{two} was {done} by {one}", _TRUE),
        (f"{two} {did} {one}", _FALSE),
        (f"{one} was {done} by {two}", _FALSE),
        (f"{one} did not {_base(did)} {two}" if _base(did) else f"{two} {did} {one}", _FALSE),
        (f"{one} {other} {two}", _OPEN),
    ]


def _comparisons(chosen: random.Random) -> Invented:
    one, two = _two_doers(chosen)
    more, less = _either(chosen, chosen.choice(ADJECTIVES))
    told = chosen.choice([f"{one} is {more} than {two}", f"{two} is {less} than {one}"])
    other = chosen.choice([a for pair in ADJECTIVES for a in pair if a not in (more, less)])
    return told, [
        (f"{one} is {more} than {two}", _TRUE),
        (f"{two} is {less} than {one}", _TRUE),
        (f"{two} is {more} than {one}", _FALSE),
        (f"{one} is {less} than {two}", _FALSE),
        (f"{one} is {other} than {two}", _OPEN),
    ]


def _measured(chosen: random.Random) -> Invented:
    one, two = chosen.sample(MADE, k=2)
    has, unit, more, less = chosen.choice(MEASURES)
    low, high = sorted(chosen.sample(range(3, 900), k=2))
    pieces = [f"the {one} {has} {high} {unit}", f"the {two} {has} {low} {unit}"]
    chosen.shuffle(pieces)
    return chosen.choice([" and ", "; ", ", while "]).join(pieces), [
        (f"the {one} is {more} than the {two}", _TRUE),
        (f"the {two} is {less} than the {one}", _TRUE),
        (f"the {two} is {more} than the {one}", _FALSE),
        (f"the {one} is {less} than the {two}", _FALSE),
        (f"the {two} {has} {high} {unit}", _FALSE),
        (f"the {one} {has} {high} {unit}", _TRUE),
        (f"the {one} {has} less than {low} {unit}", _FALSE),
        (f"the {one} {has} more than {low} {unit}", _TRUE),
    ]


def _orders(chosen: random.Random) -> Invented:
    one, two = chosen.sample(MADE, k=2)
    done = chosen.choice(["was finished", "was opened", "was built", "was repaired", "was sold"])
    told = chosen.choice(
        [
            f"the {one} {done} before the {two}",
            f"the {two} {done} after the {one}",
            f"first the {one} {done}, then the {two}",
        ]
    )
    return told, _in_order(f"the {one} {done}", f"the {two} {done}", f"the {one}", f"the {two}")


def _years(chosen: random.Random) -> Invented:
    one, two = chosen.sample(MADE, k=2)
    done = chosen.choice(["was finished", "was opened", "was built", "was sold", "burned down"])
    first, then = sorted(chosen.sample(range(1820, 2024), k=2))
    told = chosen.choice(
        [
            f"the {one} {done} in {first} and the {two} in {then}",
            f"the {two} {done} in {then}; the {one}, in {first}",
            f"in {first} the {one} {done}. The {two} {done} {_gap(then - first)} later, in {then}",
        ]
    )
    return told, [
        *_in_order(f"the {one} {done}", f"the {two} {done}", f"the {one}", f"the {two}"),
        (f"the {one} {done} in {first}", _TRUE),
        (f"the {two} {done} in {then}", _TRUE),
        (f"the {two} {done} in {first}", _FALSE),
        (f"the {one} {done} in {then}", _FALSE),
    ]


def _in_order(one_did: str, two_did: str, one: str, two: str) -> list[tuple[str, str]]:
    return [
        (f"{one_did} before {two}", _TRUE),
        (f"{two_did} after {one}", _TRUE),
        (f"{two_did} before {one}", _FALSE),
        (f"{one_did} after {two}", _FALSE),
    ]


def _converses(chosen: random.Random) -> Invented:
    one, two = _two_doers(chosen)
    thing = f"the {chosen.choice(MADE)}"
    there, back = _either(chosen, chosen.choice(CONVERSES))

    def say(shape: str, a: str, b: str) -> str:
        known = {"A": a, "B": b, "T": thing}
        return re.sub(r"\b[ABT]\b", lambda found: known[found.group()], shape)

    told = say(there, one, two)
    return told if _PRESENT.search(there) else _dated(chosen, told), [
        (say(back, one, two), _TRUE),
        (say(there, one, two), _TRUE),
        (say(there, two, one), _FALSE),
        (say(back, two, one), _FALSE),
    ]


def _decisions(chosen: random.Random) -> Invented:
    body, plan = f"the {chosen.choice(BODIES)}", f"the {chosen.choice(PLANS)}"
    yes, base, no = chosen.choice(DECIDED)
    year = chosen.randint(1950, 2023)
    kind = chosen.randrange(4)
    if kind == 0:
        return f"{body} did not {base} {plan} until {year}", [
            (f"{body} {yes} {plan} in {year}", _TRUE),
            (f"{body} never {yes} {plan}", _FALSE),
            (f"{body} {no} {plan} in {year}", _FALSE),
            (f"{body} {yes} {plan} in {year - chosen.randint(1, 9)}", _FALSE),
            (f"{body} {yes} {plan} before {year}", _FALSE),
        ]
    if kind == 1:
        return f"{body} {no} {plan} in {year}", [
            (f"{body} {yes} {plan} in {year}", _FALSE),
            (f"{plan} was {yes} by {body}", _FALSE),
            (f"{body} did not {base} {plan} in {year}", _TRUE),
            (f"{plan} was {no} by {body}", _TRUE),
        ]
    if kind == 2:
        other = f"the {chosen.choice([p for p in PLANS if p not in plan])}"
        return f"{body} {yes} {plan} but {no} {other}", [
            (f"{body} {yes} {plan}", _TRUE),
            (f"{body} {no} {other}", _TRUE),
            (f"{body} {yes} {other}", _FALSE),
            (f"{body} {no} {plan}", _FALSE),
        ]
    return f"{body} {yes} {plan} in {year}", [
        (f"{plan} was {yes} by {body} in {year}", _TRUE),
        (f"{body} {no} {plan}", _FALSE),
        (f"{body} {no} {plan} in {year}", _FALSE),
        (f"{body} did not {base} {plan}", _FALSE),
    ]


def _shares(chosen: random.Random) -> Invented:
    group = chosen.choice(GROUPS)
    done = chosen.choice(
        ["passed the test", "left the hall", "agreed", "received a letter", "were injured"]
    )
    part = chosen.choice(["some", "a few", "about half", "most"])
    if chosen.random() < 0.5:
        return f"{part} of the {group} {done}", [
            (f"{part} of the {group} {done}", _TRUE),
            (f"all of the {group} {done}", _UNSAID),
            (f"none of the {group} {done}", _FALSE),
            (f"every one of the {group} {done}", _UNSAID),
            (f"at least one of the {group} {done}", _TRUE),
        ]
    name = _name(chosen)
    return f"all of the {group} {done} except {name}", [
        (f"{name} {done}", _FALSE),
        (f"all of the {group} {done}", _FALSE),
        (f"only {name} {done}", _FALSE),
        (f"most of the {group} {done}", _TRUE),
    ]


def _modality(chosen: random.Random) -> Invented:
    who = f"the {chosen.choice(GROUPS)}"
    act = chosen.choice(
        [
            "wear a helmet",
            "pay a fee",
            "sign the form",
            "bring a dog",
            "use the lift",
            "work at night",
        ]
    )
    weak, strong = "may", chosen.choice(["must", "are required to", "have to"])
    if chosen.random() < 0.5:
        return f"{who} {weak} {act}", [
            (f"{who} are allowed to {act}", _TRUE),
            (f"{who} {strong} {act}", _FALSE),
            (f"{who} are not allowed to {act}", _FALSE),
        ]
    return f"{who} {strong} {act}", [
        (f"{who} are obliged to {act}", _TRUE),
        (f"{who} need not {act}", _FALSE),
        (f"{who} are not allowed to {act}", _FALSE),
    ]


def _causes(chosen: random.Random) -> Invented:
    one, two = chosen.sample(SUBSTANCES, k=2)
    effect = chosen.choice(
        ["headaches", "rust", "allergies", "weight loss", "sleeplessness", "decay"]
    )
    if chosen.random() < 0.5:
        tested = chosen.choice(["mice", "rats", "monkeys", "cell cultures"])
        return f"in {tested}, {one} reduced {effect}, whereas {two} had no effect", [
            (f"{one} reduced {effect} in {tested}", _TRUE),
            (f"{one} reduced {effect} in humans", _UNSAID),
            (f"{two} reduced {effect} in {tested}", _FALSE),
            (f"{one} increased {effect} in {tested}", _FALSE),
            (f"{one} had no effect on {effect} in {tested}", _FALSE),
        ]
    sure = chosen.choice(["may cause", "might cause", "is suspected of causing"])
    return f"{one} {sure} {effect}; {two} prevents it", [
        (f"{one} could cause {effect}", _TRUE),
        (f"{one} has been proven to cause {effect}", _UNSAID),
        (f"{one} prevents {effect}", _FALSE),
        (f"{two} may cause {effect}", _FALSE),
    ]


def _cells(chosen: random.Random) -> Invented:
    names = chosen.sample(CITIES, k=4)
    first, second = chosen.sample(
        [
            ("opened", (1800, 2020)),
            ("staff", (10, 900)),
            ("rooms", (5, 400)),
            ("visitors", (900, 9999)),
        ],
        k=2,
    )
    rows = [(n, chosen.randint(*first[1]), chosen.randint(*second[1])) for n in names]
    if chosen.random() < 0.5:
        head = f"| branch | {first[0]} | {second[0]} |\n|---|---|---|\n"
        told = head + "\n".join(f"| {n} | {a} | {b} |" for n, a, b in rows)
    else:
        told = "; ".join(f"{n}: {first[0]} {a}, {second[0]} {b}" for n, a, b in rows)
    (name, a, b), (_, other_a, other_b) = chosen.sample(rows, k=2)
    claims = []
    for column, mine, others in ((first[0], a, other_a), (second[0], b, other_b)):
        claims += [(_cell(name, column, mine), _TRUE), (_cell(name, column, others), _FALSE)]
    return told, [c for c in claims if a != other_a and b != other_b]


def _cell(name: str, column: str, value: int) -> str:
    if column == "opened":
        return f"the branch in {name} opened in {value}"
    return f"the branch in {name} has {value} {column}"


def _kinds(chosen: random.Random) -> Invented:
    narrow, wide, beside = chosen.choice(KINDS)
    who = _name(chosen)
    did = chosen.choice(["bought", "found", "drew", "sold", "took a picture of", "wrote about"])
    if chosen.random() < 0.6:
        return f"{who} {did} {_a(narrow)}", [
            (f"{who} {did} {_a(wide)}", _TRUE),
            (f"{who} {did} {_a(beside)}", _UNSAID),
            (f"someone {did} {_a(narrow)}", _TRUE),
        ]
    return f"{who} {did} {_a(wide)}", [
        (f"{who} {did} {_a(narrow)}", _OPEN),
        (f"{who} {did} {_a(wide)}", _TRUE),
    ]


def _conversions(chosen: random.Random) -> Invented:
    what = chosen.choice(MADE)
    kind = chosen.randrange(6)
    if kind == 0:
        hour, minute = chosen.randint(1, 11), chosen.choice(["00", "15", "30", "45"])
        short = f"{hour} pm" if minute == "00" else f"{hour}:{minute} pm"
        wrong = f"{hour}:{minute} in the morning"
        one, two = _either(chosen, (short, f"{hour + 12}:{minute}"))
        return f"the {what} closes at {one}", [
            (f"the {what} closes at {two}", _TRUE),
            (f"the {what} closes at {wrong}", _FALSE),
            (f"the {what} closes at {hour + 11}:{minute}", _FALSE),
        ]
    if kind == 1:
        share, percent, wrong = chosen.choice(
            [
                ("two thirds", "67", "33"),
                ("a third", "33", "67"),
                ("a quarter", "25", "75"),
                ("three quarters", "75", "25"),
                ("half", "50", "15"),
                ("one in five", "20", "5"),
                ("one in ten", "10", "1"),
            ]
        )
        group = chosen.choice(GROUPS)
        return f"{share} of the {group} voted for it", [
            (f"about {percent} % of the {group} voted for it", _TRUE),
            (f"about {wrong} % of the {group} voted for it", _FALSE),
        ]
    if kind == 2:
        degrees = chosen.choice(range(-10, 45, 5))
        heat = round(degrees * 9 / 5 + 32)
        return f"it is kept at {degrees} degrees Celsius", [
            (f"it is kept at {heat} degrees Fahrenheit", _TRUE),
            (f"it is kept at {degrees} degrees Fahrenheit", _FALSE),
            (f"it is kept at {heat + chosen.choice([-9, 18, 27])} degrees Fahrenheit", _FALSE),
        ]
    first = chosen.randint(1850, 2005)
    span = chosen.randint(2, 15)
    if kind == 3:
        told = chosen.choice(
            [
                f"the {what} was in use from {first} to {first + span}",
                f"the {what} was in use between {first} and {first + span}",
            ]
        )
        return told, [
            (f"the {what} was in use for {_gap(span)}", _TRUE),
            (f"the {what} was in use for {_gap(span + chosen.choice([-1, 2, 3, 10]))}", _FALSE),
            (f"the {what} was still in use in {first + span + 4}", _UNSAID),
            (f"the {what} was in use in {first + span // 2}", _TRUE),
        ]
    if kind == 4:
        decade = first // 10 * 10
        return f"the {what} was built in {first}", [
            (f"the {what} was built in the {decade}s", _TRUE),
            (f"the {what} was built in the {decade + chosen.choice([-10, 10, 20])}s", _FALSE),
            (f"the {what} was built in the {_century(first)} century", _TRUE),
            (f"the {what} was built after {first + 3}", _FALSE),
            (f"the {what} was built before {first + 3}", _TRUE),
        ]
    metres = chosen.randint(2, 900)
    return f"the {what} is {metres / 1000:g} km long", [
        (f"the {what} is {metres} metres long", _TRUE),
        (f"the {what} is {metres} km long", _FALSE),
        (f"the {what} is {metres * 10} metres long", _FALSE),
    ]


def _sayings(chosen: random.Random) -> Invented:
    one, two = _two_names(chosen)
    what = f"the {chosen.choice(MADE)}"
    good = chosen.choice(["safe", "too small", "worth the money", "badly built", "beautiful"])
    return f"{one} said that {what} was {good}, but {two} disagreed", [
        (f"{one} called {what} {good}", _TRUE),
        (f"{two} said that {what} was {good}", _FALSE),
        (f"{two} did not think that {what} was {good}", _TRUE),
        (f"{one} disagreed with {two}'s view that {what} was {good}", _FALSE),
    ]


def _attributes(chosen: random.Random) -> Invented:
    one, two = _two_names(chosen)
    job, other = chosen.sample(JOBS, k=2)
    here, there = chosen.sample(CITIES, k=2)
    if chosen.random() < 0.5:
        told = f"{one}, {_a(job)} from {here}, met {two}, {_a(other)} from {there}"
    else:
        told = f"{one} is {_a(job)} in {here}. {two} works in {there} as {_a(other)}"
    return told, [
        (f"{one} is {_a(job)}", _TRUE),
        (f"{two} is {_a(other)}", _TRUE),
        (f"{one} is {_a(other)}", _FALSE),
        (f"{two} is {_a(job)}", _FALSE),
        (f"{two} was born in 19{chosen.randint(10, 99)}", _OPEN),
    ]


def _ends(chosen: random.Random) -> Invented:
    thing = chosen.choice(FIRST_THINGS)
    first, then = sorted(chosen.sample(range(1820, 2024), k=2))
    here, there = chosen.sample(CITIES, k=2)
    told = f"the first {thing} took place in {here} in {first}; the last one, in {there} in {then}"
    return told, [
        (f"the first {thing} took place in {first}", _TRUE),
        (f"the last {thing} took place in {then}", _TRUE),
        (f"the last {thing} took place in {first}", _FALSE),
        (f"the first {thing} took place in {there}", _FALSE),
        (f"the first {thing} was held in {here}", _TRUE),
        (f"there was no {thing} after {first}", _FALSE),
    ]


def _conditions(chosen: random.Random) -> Invented:
    what = f"the {chosen.choice(MADE)}"
    done = chosen.choice(["closed", "moved", "sold", "repaired", "painted"])
    when = chosen.choice(["it rains", "the price falls", "no buyer is found", "the council agrees"])
    return f"{what} will be {done} if {when}", [
        (f"if {when}, {what} will be {done}", _TRUE),
        (f"{what} has been {done}", _UNSAID),
        (f"{what} will be {done} whether or not {when}", _UNSAID),
        (f"{what} will not be {done} if {when}", _FALSE),
    ]


def _denials(chosen: random.Random) -> Invented:
    one, two = chosen.sample(JOBS, k=2)
    who = _name(chosen)
    city, other = chosen.sample(CITIES, k=2)
    told, denied, true = chosen.choice(
        [
            (
                f"contrary to what is often written, {who} was not {_a(one)} but {_a(two)}",
                f"{who} was {_a(one)}",
                f"{who} was {_a(two)}",
            ),
            (
                f"it is a myth that {who} came from {city}; in fact the family lived in {other}",
                f"{who} came from {city}",
                f"{who}'s family lived in {other}",
            ),
            (
                f"{who} applied for the post of {one} and was refused, and became {_a(two)}",
                f"{who} became {_a(one)}",
                f"{who} became {_a(two)}",
            ),
        ]
    )
    return told, [(denied, _FALSE), (true, _TRUE)]


_KINDS: dict[str, Callable[[random.Random], Invented]] = {
    "acts": _acts,
    "comparisons": _comparisons,
    "measured": _measured,
    "orders": _orders,
    "years": _years,
    "converses": _converses,
    "decisions": _decisions,
    "shares": _shares,
    "modality": _modality,
    "causes": _causes,
    "cells": _cells,
    "kinds": _kinds,
    "conversions": _conversions,
    "sayings": _sayings,
    "attributes": _attributes,
    "ends": _ends,
    "conditions": _conditions,
    "denials": _denials,
}


def _two_doers(chosen: random.Random) -> tuple[str, str]:
    if chosen.random() < 0.4:
        return _two_names(chosen)
    one, two = chosen.sample(PEOPLE, k=2)
    return f"the {one}", f"the {two}"


def _two_names(chosen: random.Random) -> tuple[str, str]:
    (one, two), (a, b) = chosen.sample(FIRST_NAMES, k=2), chosen.sample(LAST_NAMES, k=2)
    return (f"{one} {a}", f"{two} {b}") if chosen.random() < 0.6 else (one, two)


def _name(chosen: random.Random) -> str:
    return f"{chosen.choice(FIRST_NAMES)} {chosen.choice(LAST_NAMES)}"


def _either(chosen: random.Random, pair: tuple[str, str]) -> tuple[str, str]:
    return pair if chosen.random() < 0.5 else (pair[1], pair[0])


def _dated(chosen: random.Random, text: str) -> str:
    if chosen.random() < 0.5:
        return text
    when = chosen.choice([f"in {chosen.randint(1900, 2023)}", "last year", "that evening"])
    return chosen.choice([f"{when}, {text}", f"{text} {when}"])


def _base(past: str) -> str | None:
    """The infinitive of a regular verb whose past tense only adds -ed."""
    return past[:-2] if past.endswith(("ted", "sked", "wed", "yed", "ned", "med")) else None


def _gap(years: int) -> str:
    return f"{years} years" if years > 1 else "one year"


def _century(year: int) -> str:
    number = (year - 1) // 100 + 1
    return {21: "21st"}.get(number, f"{number}th")


def _a(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"


def _sentence(text: str) -> str:
    text = text[0].upper() + text[1:]
    return text if text.endswith((".", "|")) else f"{text}."


def among(told: str, sentences: Sequence[str], chosen: random.Random) -> str:
    """Put what is told at a random place among other sentences."""
    size = chosen.choice([0, 1, 2, 4, 8])
    around = chosen.sample(list(sentences), k=min(size, len(sentences)))
    place = chosen.randint(0, len(around))
    gap = "\n\n" if "|" in told else " "
    return gap.join([*around[:place], told, *around[place:]])
