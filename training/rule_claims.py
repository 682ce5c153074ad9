"""Claims made by rule from encyclopedia articles: true ones in other words, and false ones.

Every claim starts as a sentence of an article and is first rewritten by edits that keep it true
(so that being a copy tells nothing); half of them are then made false as language models err: by
another value, name, date, role, quantifier, polarity or order, by a detail from elsewhere, by
joining two true facts, or by taking its sentence out of the evidence. Each edit names its label.
"""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from articles import Article, read_articles
from false_edits import FALSE_EDITS
from true_edits import TRUE_EDITS

from langchain_groundedness.text.sentences import split_sentences

__all__ = ["Made", "made_claims"]


class Made(NamedTuple):
    """A claim made by rule."""

    claim: str
    documents: tuple[str, ...]
    label: str
    rule: str


def made_claims(path: Path, *, most: int, seed: int = 0) -> Iterator[Made]:
    """Make claims from articles.

    Args:
        path: Gzip JSON lines with `title` and `text`.
        most: How many to make at most.
        seed: Of the random choices.

    Yields:
        The claims, articles in order, a few rounds over all of them.
    """
    articles = [article for article in read_articles(path) if len(article.sentences) >= 4]
    chosen = random.Random(seed)
    made = 0
    while made < most:
        before = made
        for place, article in enumerate(articles):
            other = articles[(place + chosen.randrange(1, len(articles))) % len(articles)]
            one = _make(article, other, chosen)
            if one is not None:
                yield one
                made += 1
                if made == most:
                    return
        if made == before:
            return


def _make(article: Article, other: Article, chosen: random.Random) -> Made | None:
    source = chosen.choice(article.sentences)
    claim = source
    rules = []
    for name, edit in chosen.sample(list(TRUE_EDITS.items()), k=len(TRUE_EDITS)):
        if len(rules) < 3 and chosen.random() < 0.6:
            edited = edit(claim, article, chosen)
            if edited and edited != claim and len(edited.split()) >= 5:
                claim = edited
                rules.append(name)
    documents = _evidence(article, other, chosen)
    kind = chosen.random()
    if kind < 0.46:
        return Made(claim, documents, "supported", "+".join(rules) or "copy")
    if kind < 0.66:
        return Made(claim, _without(documents, source), "unverifiable", "left out")
    for name in chosen.sample(list(FALSE_EDITS), k=len(FALSE_EDITS)):
        edit, label = FALSE_EDITS[name]
        edited = edit(claim, article, chosen)
        if edited and edited != claim and edited.rstrip(".") not in " ".join(article.paragraphs):
            return Made(edited, documents, label, name)
    return None


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
