"""Tables, lists, JSON and sections made by rule, and statements about their values.

A statement names a row, a column and a value; it is false with the value of another row, heading or
column, or where a comparison is turned round. Kinds of tables are in `records.txt`: title, word for
a row, names of rows, and columns with their values and what is said of them, `E` and `F` standing
for rows and `V` for the value (`=`; `>` more than, `<` less than, `+` most, `-` least).
"""

import json
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

__all__ = ["Column", "Kind", "Recorded", "kinds", "recorded"]

_FILE = Path(__file__).with_name("records.txt")
_FEWEST_ROWS, _MOST_ROWS = 3, 7
_COMPARED = 0.4
_SUPERLATIVE = 0.4
_HALF = 0.5
_HELD = ("Rooms", "Medicines")
_YES_AND_NO = {
    "supported": ("E is supported", "E is no longer supported"),
    "prescription": ("E needs a prescription", "E is available without a prescription"),
    "projector": ("E has a projector", "There is no projector in E"),
}
_PREPOSITIONS = {"at", "by", "from", "in", "on", "to", "until"}
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip


class Column(NamedTuple):
    """What is known of each row, and how one says it."""

    header: str
    values: str
    said: Mapping[str, tuple[str, ...]]

    def value(self, chosen: random.Random) -> str:
        """Choose a value.

        Args:
            chosen: Makes the choice.
        """
        kind, *rest = self.values.split(" ", 4)
        if kind == "number":
            low, high, step = map(int, rest[:3])
            return " ".join([str(chosen.randrange(low, high, step)), *rest[3:]])
        if kind == "price":
            low, high = map(int, rest)
            return f"{chosen.randrange(low, high)}.{chosen.choice(('00', '50', '90', '20'))}"
        if kind == "date":
            month, year = chosen.choice(_MONTHS), chosen.randrange(1990, 2025)
            return f"{chosen.randrange(1, 29)} {month} {year}"
        if kind == "time":
            return f"{chosen.randrange(6, 23)}:{chosen.choice(('00', '15', '30', '45'))}"
        return chosen.choice(self.values.split(" | "))


class Kind(NamedTuple):
    """A kind of table."""

    title: str
    noun: str
    names: tuple[str, ...]
    columns: tuple[Column, ...]


class Recorded(NamedTuple):
    """A document, and what is said of it."""

    document: str
    claim: str
    label: str
    group: int
    """Statements that differ by little have the same."""


_Rows = dict[str, dict[str, str]]
_Pair = tuple[tuple[str, str], ...]


def kinds(*, held: bool) -> list[Kind]:
    """Give the kinds of tables to learn from, or those kept for measuring.

    Args:
        held: Which.
    """
    return [kind for kind in _KINDS if (kind.title in _HELD) == held]


def recorded(kind: Kind, chosen: random.Random) -> Iterator[Recorded]:
    """Make a table and statements about it.

    Args:
        kind: Of table.
        chosen: Makes the choices.

    Yields:
        Each true statement next to a false one.
    """
    size = min(chosen.randint(_FEWEST_ROWS, _MOST_ROWS), len(kind.names))
    columns = chosen.sample(kind.columns, k=chosen.randint(2, len(kind.columns)))
    rows = {
        name: {column.header: column.value(chosen) for column in columns}
        for name in chosen.sample(kind.names, k=size)
    }
    document = _document(kind, rows, chosen)
    for group in range(chosen.randint(2, 4)):
        column = chosen.choice(columns)
        compared = ">" in column.said and chosen.random() < _COMPARED
        pair = (_comparison if compared else _value)(column, rows, chosen)
        for label, claim in pair:
            yield Recorded(document, _sentence(claim), label, group)


def _value(column: Column, rows: _Rows, chosen: random.Random) -> _Pair:
    name = chosen.choice(list(rows))
    value = wrong = rows[name][column.header]
    others = sorted({row[column.header] for row in rows.values()} - {value})
    if not others:
        return ()
    if column.header in _YES_AND_NO:
        yes, no = (_put(text, E=name) for text in _YES_AND_NO[column.header])
        true, false = (yes, no) if value == "yes" else (no, yes)
        return ("supported", true), ("contradicted", false)
    of = name
    if chosen.random() < _HALF:
        wrong = chosen.choice(others)
    elif chosen.random() < _HALF:
        of = chosen.choice([n for n in rows if rows[n][column.header] != value])
    else:
        wrong = chosen.choice(sorted({column.value(chosen) for _ in range(9)} - {value}) or others)
    true, false = (chosen.choice(column.said["="]) for _ in range(2))
    return ("supported", _put(true, E=name, V=value)), ("contradicted", _put(false, E=of, V=wrong))


def _comparison(column: Column, rows: _Rows, chosen: random.Random) -> _Pair:
    amounts = {name: float(row[column.header].split()[0]) for name, row in rows.items()}
    if len(set(amounts.values())) < len(amounts):
        return ()
    ordered = sorted(amounts, key=amounts.__getitem__)
    if "+" in column.said and chosen.random() < _SUPERLATIVE:
        sign = chosen.choice("+-")
        text = chosen.choice(column.said[sign])
        if sign == "+":
            ordered.reverse()
        true, false = ordered[0], chosen.choice(ordered[1:])
        return ("supported", _put(text, E=true)), ("contradicted", _put(text, E=false))
    low, high = (ordered[place] for place in sorted(chosen.sample(range(len(ordered)), k=2)))
    more, less = chosen.choice(column.said[">"]), chosen.choice(column.said["<"])
    true = chosen.choice([_put(more, E=high, F=low), _put(less, E=low, F=high)])
    false = chosen.choice([_put(more, E=low, F=high), _put(less, E=high, F=low)])
    return ("supported", true), ("contradicted", false)


def _put(text: str, **values: str) -> str:
    """Fill in what single capitals stand for."""
    return " ".join(_put_word(word, values) for word in text.split(" "))


def _put_word(word: str, values: Mapping[str, str]) -> str:
    found = next((each for each in values if _stands_for(word, each)), None)
    return values[found] + word[1:] if found else word


def _stands_for(word: str, capital: str) -> bool:
    return word.startswith(capital) and not word[1:2].isalpha()


def _document(kind: Kind, rows: _Rows, chosen: random.Random) -> str:
    shape = chosen.choice(
        ("table", "table", "objects", "paths", "sections", "prose", "clauses", "clauses")
    )
    if shape == "clauses":
        columns = [each for each in kind.columns if each.header in next(iter(rows.values()))]
        return " ".join(
            _sentence(each) for column in columns for each in _clauses(column, rows, chosen)
        )
    if shape == "objects":
        return json.dumps([{kind.noun: _bare(name)} | row for name, row in rows.items()])
    if shape == "paths":
        return json.dumps({_bare(name): row for name, row in rows.items()})
    if shape == "table":
        headers = [kind.noun, *next(iter(rows.values()))]
        cells = [headers, ["---"] * len(headers)]
        cells += [[_bare(name), *row.values()] for name, row in rows.items()]
        return f"# {kind.title}\n\n" + "\n".join(f"| {' | '.join(row)} |" for row in cells)
    if shape == "sections":
        parts = [f"# {kind.title}"]
        for name, row in rows.items():
            parts.append(f"## {_sentence(name)[:-1]}")
            parts += [f"- {header}: {value}" for header, value in row.items()]
        return "\n".join(parts)
    return " ".join(
        _sentence(_in_words(column, name, row[column.header], chosen))
        for name, row in rows.items()
        for column in kind.columns
        if column.header in row
    )


def _in_words(column: Column, name: str, value: str, chosen: random.Random) -> str:
    if column.header in _YES_AND_NO:
        return _put(_YES_AND_NO[column.header][value != "yes"], E=name)
    return _put(chosen.choice(column.said["="]), E=name, V=value)


def _clauses(column: Column, rows: _Rows, chosen: random.Random) -> Iterator[str]:
    """Say several values in a sentence, as people do: "the lid costs 6 euros, the pan 12"."""
    left = list(rows)
    while left:
        size = chosen.choice((2, 2, 3))
        names, left = left[:size], left[size:]
        if column.header in _YES_AND_NO:
            yield from (_in_words(column, n, rows[n][column.header], chosen) for n in names)
            continue
        text = chosen.choice(column.said["="])
        shorter = [text, *[_left_out(text)] * (len(names) - 1)]
        *said, last = (
            _put(each, E=name, V=rows[name][column.header])
            for each, name in zip(shorter, names, strict=True)
        )
        join = chosen.choice((", ", ", ", "; ", " and ", ", but ", ", and "))
        yield join.join([", ".join(said), last]) if said else last


def _left_out(text: str) -> str:
    """Keep of a statement what a later clause of the same sentence says of another row."""
    words = text.split(" ")
    row, value = (next(n for n, w in enumerate(words) if _stands_for(w, each)) for each in "EV")
    if value < row:  # "You pay V euros for E": "V for E"
        return " ".join([words[value], *words[max(value + 1, row - 1) : row + 1]])
    whose = "that of " if row and words[0] == "The" else ""
    place = [words[value - 1]] if words[value - 1] in _PREPOSITIONS else []
    return " ".join([f"{whose}{words[row]}", *place, words[value]])


def _bare(name: str) -> str:
    return name.removeprefix("the ")


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _read() -> Iterator[Kind]:
    for block in _FILE.read_text(encoding="utf-8").strip().split("\n\n"):
        top, *parts = block.split("\n# ")
        first, names = top.splitlines()
        title, noun = first.strip("[]").split(": ")
        columns = []
        for part in parts:
            head, *lines = part.splitlines()
            header, values = head.split(" = ")
            said = {line[0]: tuple(line[2:].split(" | ")) for line in lines}
            columns.append(Column(header, values, said))
        yield Kind(title, noun, tuple(names.split(" | ")), tuple(columns))


_KINDS = tuple(_read())
