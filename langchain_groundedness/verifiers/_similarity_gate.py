"""What similarity overlooks: numbers, names and negations in which two texts differ."""

import re
import unicodedata

from langchain_groundedness.verifiers._polarity import says_no
from langchain_groundedness.verifiers._quantities import same_quantity
from langchain_groundedness.verifiers._quantity_reading import find_quantities
from langchain_groundedness.words import content_words, fold

__all__ = ["overlooked"]

_NUMBER = re.compile(r"\d+(?:[.,'\u2019]\d+)*")
_WORD = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)*")
_TOKEN = re.compile(r"[^\W_]+")
_VAGUE_NUMBERS = frozenset(
    "one half quarter once twice hundred thousand million billion trillion".split()  # noqa: SIM905  (a word list)
)
"""Number words that are no quantity by themselves."""
_MORE_NEGATIONS = frozenset(
    """
    nowhere barely fails failed
    nicht kein keine keinen keiner keines nie niemals ohne weder
    ne pas jamais aucun aucune rien sans ni non nunca ningún ninguna ninguno nada sin tampoco
    mai nessun nessuno nessuna niente senza né não nem nenhum nenhuma sem
    не нет ни без никогда
    """.split()  # noqa: SIM905  (a word list reads better as words)
)
"""Beside those that `says_no` knows."""
_UNSPACED_NEGATIONS = re.compile("[不没沒無无非未]|ない|ません|なかった")


def overlooked(claim: str, passage: str) -> tuple[str, ...]:
    """Tell in what a passage differs from a claim, beyond wording.

    Errs on the side of a difference: a claim is not to be taken for what a passage says because
    both read alike. A name is a word with a capital; in scripts without capitals, and in text
    written without any, every content word may be one.

    Args:
        claim: The claim.
        passage: The passage.

    Returns:
        Any of `"numbers"`, if the claim has some and the passage not just the same ones;
        `"names"`, if one of the claim's is not in the passage; `"negations"`, if only one of the
        two is negated; `"words"`, if they share no content word at all.

    Example:
        >>> overlooked("Rome has 4 million inhabitants.", "Rome has 2.8 million inhabitants.")
        ('numbers',)
    """
    kinds = []
    if _numbers_differ(claim, passage):
        kinds.append("numbers")
    if not _names(claim) <= content_words(passage):
        kinds.append("names")
    if _negated(claim) != _negated(passage):
        kinds.append("negations")
    if not content_words(claim) & content_words(passage):
        kinds.append("words")
    return tuple(kinds)


def _numbers_differ(claim: str, passage: str) -> bool:
    mine, theirs = find_quantities(claim), find_quantities(passage)
    rest, their_rest = (
        _other_numbers(text, [(q.start, q.end) for q in quantities])
        for text, quantities in ((claim, mine), (passage, theirs))
    )
    if not mine and not rest:
        return False
    return (
        rest != their_rest
        or any(not any(same_quantity(q, given) for given in theirs) for q in mine)
        or any(not any(same_quantity(claimed, q) for claimed in mine) for q in theirs)
    )


def _other_numbers(text: str, taken: list[tuple[int, int]]) -> frozenset[str]:
    """Give the digits and number words outside the quantities: parts of codes, "one", "half"."""
    edges = [0, *(edge for span in taken for edge in span), len(text)]
    folded = fold(" ".join(text[a:b] for a, b in zip(edges[::2], edges[1::2], strict=True)))
    digits = {_plain(found) for found in _NUMBER.findall(folded)}
    return frozenset(digits | (set(_WORD.findall(folded)) & _VAGUE_NUMBERS))


def _plain(number: str) -> str:
    """Drop separators of thousands, so that 2,100 and 2100 are the same number."""
    return re.sub(r"[,'\u2019](?=\d{3}(?!\d))", "", number)


def _names(text: str) -> frozenset[str]:
    words = _TOKEN.findall(unicodedata.normalize("NFKC", text))
    cased = any(word[0].isupper() for word in words)
    names = (w for w in words if not w.isnumeric() and (not cased or _marked(w)))
    return frozenset(w for w in content_words(" ".join(names)) if not _negated(w))


def _marked(word: str) -> bool:
    """Tell whether a word has a capital, or is of a script that has none."""
    return word != word.lower() or word.upper() == word.lower()


def _negated(text: str) -> bool:
    return (
        says_no(text)
        or not _MORE_NEGATIONS.isdisjoint(_WORD.findall(fold(text)))
        or _UNSPACED_NEGATIONS.search(text) is not None
    )
