"""Tells claims from sentences that only address the reader.

Small talk, offers and self-descriptions have too many wordings for patterns. A linear model over
words and phrases decides; `training/train_checkworthiness.py` says how it learned.
Its own module because training computes the same features from it, with no claims around.
"""

import json
import re
from collections.abc import Iterator
from functools import cache
from pkgutil import get_data
from typing import NamedTuple

__all__ = ["SHRINKAGE", "CheckworthinessModel", "clauses", "is_checkworthy", "phrases", "words_of"]

_TOKEN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W\d_]+(?:['\u2019][^\W\d_]+)*|\d+|[^\w\s]")
"""Words and signs; Han characters and kana are words of their own."""

_CLAUSE_END = re.compile(
    r"\s*[;:,]\s+|\s*[\u2013\u2014]\s*|\s-\s|(?<=\bthat)\s"
    r"|\s(?=(?:but|and|because|since|so|which|although|though|while)\s)",
    re.IGNORECASE,
)

_CONTRACTIONS = {
    "n't": " not", "'m": " am", "'re": " are", "'ll": " will", "'ve": " have", "'d": " would",
}  # fmt: skip

_DOCUMENTS = re.compile(
    r"\b(?:(?:provided|given|available|retrieved|supplied|above|attached|current|following) ){0,4}"
    r"(?:documents?|context|passages?|sources?|texts?|excerpts?|articles?|materials?"
    r"|search results|knowledge base|documentation|information(?= (?:provided|given|above))"
    r"|(?<=provided )information)\b(?: \d{1,2}\b)?"
    r"(?: (?:provided|given|available|above|i have|you (?:provided|gave me|gave|shared)))?",
    re.IGNORECASE,
)
"""How answers refer to their documents; all of it counts as one word."""

_CLAUSE_WEIGHT = 0.3
"""Share of the clause that says most."""
SHRINKAGE = 6
"""Added to the number of words in a mean: one word alone says little."""
_LONGEST_PHRASE = 3
_WORDS_PER_LENGTH = 4
_MOST_LENGTHS = 5


class CheckworthinessModel(NamedTuple):
    """A linear model; above zero, a text only addresses the reader."""

    bias: float
    words: dict[str, float]
    """Of each known word; their mean counts."""
    unknown: float
    """Of any other word."""
    phrases: dict[str, float]
    """Of each phrase; their sum counts."""

    def is_conversational(self, text: str) -> bool:
        """Return whether a sentence only addresses the reader."""
        return self._score(text) > 0 and self.score(text) > 0  # clauses can only lower a score

    def score(self, text: str) -> float:
        """Score a sentence by itself and by its least conversational clause."""
        whole = self._score(text)
        least = min(map(self._score, clauses(text)), default=whole)
        return whole + _CLAUSE_WEIGHT * min(least - whole, 0.0)

    def _score(self, text: str) -> float:
        words = words_of(text)
        known = [self.words.get(word, self.unknown) for word in words]
        said = sum(self.phrases.get(phrase, 0.0) for phrase in phrases(words))
        return self.bias + said + sum(known) / (len(known) + SHRINKAGE)


def is_checkworthy(text: str) -> bool:
    """Return whether documents could support or contradict a sentence."""
    return not _model().is_conversational(text)


def words_of(text: str) -> list[str]:
    """Return lower-case words and signs; `0` stands for a number, `^` precedes a likely name."""
    words: list[str] = []
    for token in _TOKEN.findall(_DOCUMENTS.sub("documents", text.replace("\u2019", "'"))):
        word = token.lower()
        if words and token[0].isupper() and word.partition("'")[0] != "i":
            words.append("^")
        end = next((end for end in _CONTRACTIONS if word.endswith(end)), "")
        word = word.removesuffix(end) + _CONTRACTIONS.get(end, "")
        words += ["0"] if word.isdigit() else word.split()
    return words


def phrases(words: list[str]) -> set[str]:
    """Return all of up to three words, with `<` and `>` for start and end, and the length."""
    marked = ["<", *words, ">"]
    length = min(sum(map(str.isalpha, words)) // _WORDS_PER_LENGTH, _MOST_LENGTHS)
    return {f"#{length}"} | {
        " ".join(marked[first : first + size])
        for size in range(1, _LONGEST_PHRASE + 1)
        for first in range(len(marked) - size + 1)
    }


def clauses(text: str) -> Iterator[str]:
    """Yield the parts between commas, conjunctions and the like; one word alone is no clause."""
    return (part for part in _CLAUSE_END.split(text) if len(part.split()) > 1)


@cache
def _model() -> CheckworthinessModel:
    """Load the model that is shipped with the package, once."""
    # Read as an import reads a module, which is allowed on an event loop.
    content = get_data("langchain_groundedness", "model/checkworthiness.json")
    return CheckworthinessModel(**json.loads(content or b""))
