"""Articles of an encyclopedia, and what the edits that make claims of them share."""

import gzip
import json
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from langchain_groundedness.text.sentences import split_sentences

__all__ = [
    "LONGEST",
    "MONTH",
    "MONTHS",
    "PASSIVE",
    "PRONOUN",
    "SHORTEST",
    "SMALL",
    "WORDS_FOR",
    "Article",
    "Edit",
    "read_articles",
]

_SHORT_LINE = 40
"""Characters of a line that is a title or part of a list."""
SHORTEST, LONGEST = 6, 45
"""Words of a sentence that a claim is made of."""
MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
MONTH = "|".join(MONTHS)
PASSIVE = re.compile(
    r"^(?P<thing>.{3,70}?) (?:was|were) "
    r"(?P<verb>\w+ed|written|won|built|led|founded|sung|shot|made) "
    r"by (?P<who>[A-Z][\w.'\u2019-]*(?: [A-Z][\w.'\u2019-]*)*)(?P<rest>[^A-Za-z].*|)$"
)
PRONOUN = re.compile(r"^(?:He|She|It|They)\b(?! (?:is|was) (?:also )?(?:said|believed|possible))")
WORDS_FOR = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
]
SMALL = re.compile(r"\b(" + "|".join(WORDS_FOR[2:]) + r")\b", re.IGNORECASE)


class Article(NamedTuple):
    """An article without its lists of references."""

    title: str
    paragraphs: tuple[str, ...]
    sentences: tuple[str, ...]


Edit = Callable[[str, Article, random.Random], str | None]
"""Rewrites a sentence of an article; `None` where it does not apply."""


def read_articles(path: Path) -> Iterator[Article]:
    """Read articles.

    Args:
        path: Gzip JSON lines with `title` and `text`.

    Yields:
        The articles, in order.
    """
    with gzip.open(path, "rt", encoding="utf-8") as rows:
        for row in map(json.loads, rows):
            text = re.split(r"\n== ?(?:References|See also|External links|Notes)", row["text"])[0]
            paragraphs = tuple(
                p for p in text.split("\n") if len(p) > _SHORT_LINE and not p.startswith("=")
            )
            sentences = tuple(
                s.text
                for p in paragraphs
                for s in split_sentences(p)
                if SHORTEST <= len(s.text.split()) <= LONGEST and s.text.endswith(".")
            )
            yield Article(re.sub(r" \(.*", "", row["title"]), paragraphs, sentences)
