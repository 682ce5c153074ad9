"""Claims made by rule from encyclopedia articles: true ones in other words, and false ones.

Every claim starts as a sentence of an article. Some are copied and some rewritten by edits that
keep them true (so that being a copy tells nothing); others are made false as language models err:
by another value, name, date, role, quantifier, polarity or order, by a detail from elsewhere, by
joining two true facts, or by taking the sentence out of the evidence. Each edit names its label.
"""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from articles import Article, read_articles
from false_edits import FALSE_EDITS
from true_edits import TRUE_EDITS

from langchain_groundedness.text.sentences import split_sentences

__all__ = ["Made", "made_claims", "reworded"]

_COPIED = 0.3
_EDITED = 0.6
_MOST_EDITS = 3
_FALSE_EACH = 2
_LEFT_OUT = 0.3
_FEWEST_WORDS = 5


class Made(NamedTuple):
    """A claim made by rule."""

    claim: str
    documents: tuple[str, ...]
    label: str
    group: int
    """Of the sentence that it was made from."""


def made_claims(path: Path, *, most: int, seed: int = 0) -> Iterator[Made]:
    """Make claims from articles.

    Args:
        path: Gzip JSON lines with `title` and `text`.
        most: How many sentences to make claims from.
        seed: Of the random choices.

    Yields:
        For each sentence a true claim and false ones.
    """
    articles = [article for article in read_articles(path) if len(article.sentences) >= 4]
    chosen = random.Random(seed)
    for group in range(most):
        place = group % len(articles)
        other = articles[(place + chosen.randrange(1, len(articles))) % len(articles)]
        yield from _make(articles[place], other, group, chosen)


def _make(article: Article, other: Article, group: int, chosen: random.Random) -> Iterator[Made]:
    source = chosen.choice(article.sentences)
    documents = _evidence(article, other, chosen)
    said = " ".join(article.paragraphs)
    yield Made(reworded(source, article, chosen), documents, "supported", group)
    made = 0
    for name in chosen.sample(list(FALSE_EDITS), k=len(FALSE_EDITS)):
        edit, label = FALSE_EDITS[name]
        # copied as often as reworded, so that neither tells
        claim = source if chosen.random() < _COPIED else reworded(source, article, chosen)
        edited = edit(claim, article, chosen)
        if edited and edited != claim and edited.rstrip(".") not in said:
            yield Made(edited, documents, label, group)
            made += 1
            if made == _FALSE_EACH:
                break
    if chosen.random() < _LEFT_OUT:
        claim = reworded(source, article, chosen)
        yield Made(claim, _without(documents, source), "unverifiable", group)


def reworded(text: str, article: Article, chosen: random.Random) -> str:
    """Say a sentence in other words, by some of the edits that keep it true.

    Args:
        text: The sentence.
        article: What it is from.
        chosen: Makes the choices.

    Returns:
        It, changed or not.
    """
    turns = 0
    for edit in chosen.sample(list(TRUE_EDITS.values()), k=len(TRUE_EDITS)):
        if turns < _MOST_EDITS and chosen.random() < _EDITED:
            edited = edit(text, article, chosen)
            if edited and edited != text and len(edited.split()) >= _FEWEST_WORDS:
                text = edited
                turns += 1
    return text


def _evidence(article: Article, other: Article, chosen: random.Random) -> tuple[str, ...]:
    """The article whole or in pieces, now and then with another one before or behind it."""
    paragraphs = list(article.paragraphs)
    if chosen.random() < 0.3:
        return ("\n".join(paragraphs),)
    groups = []
    while paragraphs:
        size = chosen.randint(1, 4)
        groups.append("\n".join(paragraphs[:size]))
        paragraphs = paragraphs[size:]
    if chosen.random() < 0.3:
        groups.insert(chosen.randint(0, len(groups)), "\n".join(other.paragraphs[:3]))
    return tuple(groups)


def _without(documents: tuple[str, ...], sentence: str) -> tuple[str, ...]:
    """Take a sentence out, and those that say nearly the same."""
    mine = set(sentence.lower().split())
    kept = []
    for text in documents:
        sentences = [
            s.text
            for s in split_sentences(text)
            if len(mine & set(s.text.lower().split())) < 0.6 * len(mine)
        ]
        if sentences:
            kept.append(" ".join(sentences))
    return tuple(kept) or ("",)
