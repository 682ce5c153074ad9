"""Sentences that are quoted but not asserted, and the same ones asserted, in many wordings.

A wording is a pattern of `frames.txt` with `X` where the sentence stands; alternatives are written
`(a|b)`. One wording in three is kept for measuring, and so is every pattern that begins with `*`.
"""

import itertools
import json
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

__all__ = ["FRAMES", "Framed", "Wording", "framed_pairs", "wordings"]

_NO = (
    "no",
    "false",
    "wrong",
    "not true",
    "\u2717",
    "\u274c",
    "incorrect",
    "myth",
    "denied",
    "refuted",
)
_YES = (
    "yes",
    "true",
    "right",
    "correct",
    "\u2713",
    "\u2705",
    "confirmed",
    "fact",
    "ok",
    "verified",
)
_ASKED = ("true?", "correct", "verdict", "status", "is it so?", "answer", "holds", "rating")
_WHAT = ("statement", "claim", "sentence", "assertion", "what is said", "item")
_TITLES_NO = (
    "Myths", "Common misconceptions", "What is not true", "False claims", "Things people get wrong",
    "Debunked", "Retracted statements", "Errors in the first edition", "Never happened",
    "What we do not claim", "Rejected proposals", "Lies",
)  # fmt: skip
_TITLES_YES = (
    "Facts", "What is true", "Confirmed", "Key points", "Summary", "What we know", "Background",
    "Verified statements", "Details", "Overview", "Highlights", "Notes",
)  # fmt: skip
_KEPT_FOR_MEASURING = 3


class Wording(NamedTuple):
    """One way to put a sentence."""

    kind: str
    label: str
    """Of the sentence, by this wording alone."""
    text: str
    held: bool
    """Kept for measuring."""

    def put(self, sentence: str) -> str:
        """Put a sentence so.

        Args:
            sentence: With or without a full stop at its end.
        """
        return self.text.replace("X", _bare(sentence), 1)


class Framed(NamedTuple):
    """What is read, and a claim about it."""

    evidence: str
    claim: str
    label: str
    kind: str
    held: bool


def wordings(kind: str) -> list[Wording]:
    """Give all wordings of a kind.

    Args:
        kind: Of `FRAMES`.

    Returns:
        The wordings, those kept for measuring among them.
    """
    label, patterns = FRAMES[kind]
    found = []
    for pattern in patterns:
        for text in _expanded(pattern.lstrip("*")):
            new = pattern.startswith("*") and not pattern.startswith("* ") and "**" not in pattern
            held = new or ("(" in pattern and crc32(text.encode()) % _KEPT_FOR_MEASURING == 0)
            found.append(Wording(kind, label, text, held))
    return found


def framed_pairs(
    first: str, second: str, around: Sequence[str], chosen: random.Random, *, held: bool
) -> Iterator[Framed]:
    """Put two sentences of a text, one of them so that it is not asserted, and ask for both.

    Args:
        first: A sentence that the text asserts.
        second: Another.
        around: Further sentences.
        chosen: Makes the choices.
        held: Use the wordings that are kept for measuring.

    Yields:
        The first not asserted, the second asserted; then the other way round.
    """
    shapes = (_prose, _prose, _prose, _prose, _prose, _table, _records, _list, _labels)
    shape = chosen.choice(shapes)
    for denied, asserted in ((first, second), (second, first)):
        evidence, label, kind = shape(denied, asserted, around, chosen, held=held)
        yield Framed(evidence, denied, label, kind, held)
        yield Framed(evidence, asserted, "supported", f"not {kind}", held)
        if kind == "deny" and chosen.random() < 0.25:
            said = chosen.choice(["It is not true that X.", "It is false that X.", "X is a myth."])
            kind = "claim denies"
            yield Framed(evidence, said.replace("X", _bare(denied)), "supported", kind, held)
            yield Framed(evidence, said.replace("X", _bare(asserted)), "contradicted", kind, held)


def _prose(
    denied: str, asserted: str, around: Sequence[str], chosen: random.Random, *, held: bool
) -> tuple[str, str, str]:
    # as many wordings deny as all others together
    kind = chosen.choice(["deny", *(k for k in FRAMES if k != "assert")])
    wording = chosen.choice(_of(kind, held=held))
    yes = chosen.choice(_of("assert", held=held)) if chosen.random() < 0.7 else _PLAIN
    said = [(wording, denied), (yes, asserted)]
    chosen.shuffle(said)
    texts = [each.put(sentence) for each, sentence in said]
    for other in around:
        texts.insert(chosen.randint(0, len(texts)), other)
    parts = "\n" if any(_starts_line(text) for text in texts) else " "
    return parts.join(texts), wording.label, wording.kind


def _starts_line(text: str) -> bool:
    return text.startswith(("- ", "* ", "1. ", "> "))


def _table(
    denied: str, asserted: str, around: Sequence[str], chosen: random.Random, *, held: bool
) -> tuple[str, str, str]:
    what, asked = chosen.choice(_half(_WHAT, held=held)), chosen.choice(_half(_ASKED, held=held))
    no, yes = chosen.choice(_half(_NO, held=held)), chosen.choice(_half(_YES, held=held))
    rows = [(denied, no), (asserted, yes)]
    rows += [(other, chosen.choice([yes, no])) for other in around]
    chosen.shuffle(rows)
    if chosen.random() < 0.5:
        text = " ".join(f"{what}: {_bare(s)}; {asked}: {a}." for s, a in rows)
    elif chosen.random() < 0.5:
        text = " ".join(f"{asked}: {a}; {what}: {_bare(s)}." for s, a in rows)
    else:
        lines = [f"| {what} | {asked} |", *(f"| {_bare(s)} | {a} |" for s, a in rows)]
        text = "\n".join(lines)
    return text, "contradicted", "table"


def _records(
    denied: str, asserted: str, around: Sequence[str], chosen: random.Random, *, held: bool
) -> tuple[str, str, str]:
    what = chosen.choice(_half(_WHAT, held=held))
    asked = chosen.choice(_half(("true", "valid", "correct", "accepted", "verified"), held=held))
    rows = [{what: denied, asked: False}, {what: asserted, asked: True}]
    rows += [{what: other, asked: chosen.choice([True, False])} for other in around]
    chosen.shuffle(rows)
    if chosen.random() < 0.4:
        text = json.dumps(rows, ensure_ascii=False)
    else:
        text = " ".join(
            f"{what}: {_bare(r[what])}; {asked}: {str(r[asked]).lower()}." for r in rows
        )
    return text, "contradicted", "JSON"


def _list(
    denied: str, asserted: str, around: Sequence[str], chosen: random.Random, *, held: bool
) -> tuple[str, str, str]:
    no, yes = (
        chosen.choice(_half(_TITLES_NO, held=held)),
        chosen.choice(_half(_TITLES_YES, held=held)),
    )
    parts = [(no, [denied]), (yes, [asserted])]
    for other in around:
        parts[chosen.randrange(2)][1].append(other)
    for _, items in parts:
        chosen.shuffle(items)
    chosen.shuffle(parts)
    style = chosen.randrange(3)
    if style == 0:
        text = " ".join(f"{title}: {item}" for title, items in parts for item in items)
    elif style == 1:
        text = "\n".join(
            f"## {title}\n" + "\n".join(f"- {item}" for item in items) for title, items in parts
        )
    else:
        text = "\n".join(f"{title}. {' '.join(items)}" for title, items in parts)
    return text, "contradicted", "list"


def _labels(
    denied: str, asserted: str, around: Sequence[str], chosen: random.Random, *, held: bool
) -> tuple[str, str, str]:
    no = chosen.choice(_half(("Myth", "False", "Wrong", "Rumour", "Before", "Claim"), held=held))
    yes = {"Before": "Now", "Claim": "Fact", "Rumour": "Fact", "Wrong": "Right", "False": "True"}
    parts = [f"{no}: {denied}", f"{yes.get(no, 'Fact')}: {asserted}"]
    if chosen.random() < 0.3:
        parts = [f"~~{_bare(denied)}~~ {asserted}"]
    if chosen.random() < 0.3:
        parts.reverse()
    return " ".join([*parts, *around]), "contradicted", "label"


def _of(kind: str, *, held: bool) -> list[Wording]:
    return [wording for wording in _WORDINGS[kind] if wording.held == held]


def _half(words: Sequence[str], *, held: bool) -> list[str]:
    """Give every third word for measuring, and the others for learning."""
    return [word for place, word in enumerate(words) if (place % 3 == 2) == held]


def _expanded(pattern: str) -> Iterator[str]:
    pieces = re.split(r"\(([^()]*\|[^()]*)\)", pattern)
    choices = [piece.split("|") if place % 2 else [piece] for place, piece in enumerate(pieces)]
    for words in itertools.product(*choices):
        yield "".join(words)


def _read() -> dict[str, tuple[str, tuple[str, ...]]]:
    blocks = Path(__file__).with_name("frames.txt").read_text(encoding="utf-8").split("\n\n")
    kinds = {}
    for title, *patterns in map(str.splitlines, blocks):
        kind, label = title.strip("[]").split(": ")
        kinds[kind] = (label, tuple(patterns))
    return kinds


def _bare(sentence: str) -> str:
    return sentence.strip().removesuffix(".")


FRAMES = _read()
"""Kinds of wordings: what the sentence is by them, and their patterns."""
_PLAIN = Wording("assert", "supported", "X.", held=False)
_WORDINGS = {kind: wordings(kind) for kind in FRAMES}
