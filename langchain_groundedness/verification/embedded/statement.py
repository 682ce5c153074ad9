"""A claim made ready for the search: its items (words, names, quantities) and their weights."""

import re
from bisect import bisect_left
from typing import NamedTuple

from langchain_groundedness.text.words import AUXILIARIES, STOP_WORDS, Word, find_words
from langchain_groundedness.verification.embedded.model_files import inverse_frequencies
from langchain_groundedness.verification.embedded.quantities import Quantity, find_quantities

__all__ = ["Item", "ParsedClaim", "blank_references", "is_short_answer", "read_statement"]

_QUANTITY_WEIGHT = 7.0

_QUESTION_SHARE = 0.5
"""Of a word's weight, if only the question says it: it tells what a short answer is about."""

_SHORT_ANSWER = 3

_SHORT_SENTENCE = 5

_BEFORE_WORDS = " \t\"'(\u201c\u2018*_["

_YES_OR_NO = re.compile(
    r"^\W*(?:yes|yeah|(?P<no>no|nope))\b(?:\s*[,.;:!-]+\s*|\s*$)", re.IGNORECASE
)
_REPEATED = re.compile(
    rf"\W*(?:i|you|he|she|it|we|they|this|that|there) (?P<verb>{'|'.join(AUXILIARIES)})"
    r"(?P<denied>n?['\u2019]t| not)?\W*",
    re.IGNORECASE,
)
"""What may follow yes or no: "it does", "they can't"."""


_THING = (
    r"(?:passages?|contexts?|documents?|information|sources?|texts?|articles?|excerpts?|snippets?)"
)
_NUMBERS = r"\d+(?:\s*(?:,|&|and|-|to)\s*\d+)*"
_PATTERN = re.compile(
    rf"""
      ^\s*(?:\#{{1,6}}\s+|>\s+|(?:\d{{1,3}}[.)]|[-*+\u2022])\s+)+                     # list markers
    | \[\^?\d+(?:\s*[,;-]\s*\d+)*\]                                                  # [1], [2, 3]
    | [(\[]\s*(?:(?:see|from|in)\s+)?{_THING}\s*\#?{_NUMBERS}\s*[)\]]                # (Passage 1)
    | [(\[]\s*(?:sources?:\s*)?[\w./-]+\.(?:md|txt|pdf|html?|docx?|csv|json)(?:\#[\w./-]+)?\s*[)\]]
    | \b(?:(?:based\ on|according\ to|as\ \w+\ (?:in|by)|from|in|per)\s+
        (?:(?:the|these|those|this|your)\s+)?
        (?:(?:given|provided|above|retrieved|following|available)\s+)*
        {_THING}(?:\s+(?:provided|given|above))?(?:\s+{_NUMBERS})?)\b\s*[,:]?
    """,
    re.IGNORECASE | re.VERBOSE,
)


class Item(NamedTuple):
    """One thing the evidence must say: a word or a quantity."""

    stem: str
    """Empty for a quantity."""
    quantity: Quantity | None
    weight: float
    is_name: bool
    own: bool
    """Whether the claim itself says it, not just the question."""
    position: int
    """Index of its first mention among the words of the statement."""


class ParsedClaim(NamedTuple):
    """A claim as the verifier reads it."""

    text: str
    own_start: int
    """Where in `text` the claim begins; what is before comes from the question."""
    words: tuple[Word, ...]
    items: tuple[Item, ...]
    quantities: tuple[Quantity, ...]
    denies: bool = False
    """Whether the claim is a bare "no", so that `text` is what it denies."""

    def place(self, item: Item) -> Word | Quantity:
        """Return where an item is first mentioned."""
        return item.quantity or self.words[item.position]


def read_statement(claim: str, question: str | None = None) -> ParsedClaim:
    """Read a claim; a very short one is read together with the question it answers."""
    text = blank_references(claim)
    own_start = 0
    denies = False
    bare = _YES_OR_NO.match(text)
    if bare and question and _says_no_more(text[bare.end() :], bare, question):
        text, denies = question, bool(bare["no"])
    else:
        if bare:
            text = " " * bare.end() + text[bare.end() :]
        if question and is_short_answer(text):
            text, own_start = f"{question} {text}", len(question) + 1
    words = find_words(text)
    quantities = find_quantities(text)
    return ParsedClaim(
        text,
        own_start,
        tuple(words),
        tuple(_items(text, words, quantities, own_start)),
        tuple(quantities),
        denies,
    )


def _says_no_more(rest: str, bare: re.Match[str], question: str) -> bool:
    """Return whether only the verb of the question follows yes or no, and agrees with it."""
    repeated = _REPEATED.fullmatch(rest.strip())
    if repeated is None:
        return not rest.strip()
    verbs = {question[word.start : word.end].casefold() for word in find_words(question)}
    agrees = bool(repeated["denied"]) == bool(bare["no"])
    return agrees and repeated["verb"].casefold() in verbs


def is_short_answer(claim: str) -> bool:
    """Return whether a claim says so little that it can only be read with its question."""
    words = find_words(claim)
    telling = [word.start for word in words if word.stem not in STOP_WORDS]
    verbs = [w.start for w in words if claim[w.start : w.end].casefold() in AUXILIARIES]
    is_sentence = bool(telling and verbs) and telling[0] < verbs[-1]  # has a subject of its own
    return len(telling) <= _SHORT_ANSWER and len(words) <= _SHORT_SENTENCE and not is_sentence


def _items(text: str, words: list[Word], quantities: list[Quantity], own_start: int) -> list[Item]:
    table = inverse_frequencies()
    found: dict[str, Item] = {}
    starts = [word.start for word in words]
    taken = {
        i
        for q in quantities
        for i in range(bisect_left(starts, q.start), bisect_left(starts, q.end))
    }
    titled = _is_titled(text, words)
    for position, word in enumerate(words):
        if position in taken or word.stem in STOP_WORDS:
            continue
        own = word.start >= own_start
        known = found.get(word.stem)
        if known is not None and (known.own or not own):
            continue
        weight = table.weight(word.stem) * (1.0 if own else _QUESTION_SHARE)
        is_name = word.stem in table.names or (
            not titled and text[word.start].isupper() and _inside_sentence(text, word.start)
        )
        found[word.stem] = Item(word.stem, None, weight, is_name, own, position)
    for number, quantity in enumerate(quantities):
        own = quantity.start >= own_start
        position = bisect_left(starts, quantity.start) % max(len(words), 1)
        weight = _QUANTITY_WEIGHT * (1.0 if own else _QUESTION_SHARE)
        found[f"#{number}"] = Item("", quantity, weight, is_name=False, own=own, position=position)
    return sorted(found.values(), key=lambda item: item.position)


def _is_titled(text: str, words: list[Word]) -> bool:
    content = [w for w in words if w.stem not in STOP_WORDS]
    capital = sum(text[w.start].isupper() for w in content)
    share = 0.8
    return len(content) > _SHORT_ANSWER and capital > share * len(content)


def _inside_sentence(text: str, start: int) -> bool:
    while start and text[start - 1] in _BEFORE_WORDS:
        start -= 1
    return start > 0 and text[start - 1] not in ".!?:\n"


def blank_references(claim: str) -> str:
    """Blank out list markers, citations such as `[1]` and "based on the given passages"."""
    blanked = _PATTERN.sub(lambda match: " " * len(match.group()), claim)
    return blanked if any(character.isalnum() for character in blanked) else claim
