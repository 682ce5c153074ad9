"""What similarity overlooks: numbers, names and negations in which two texts differ."""

import re
import unicodedata

from langchain_groundedness.words import content_words, fold

__all__ = ["differences"]

_NUMBER = re.compile(r"\d+(?:[.,'\u2019]\d+)*")
_WORD = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)*")
_TOKEN = re.compile(r"[^\W_]+")
_NUMBER_WORDS = frozenset(
    """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
    sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety
    hundred thousand million billion trillion dozen half quarter third once twice first second
    """.split()  # noqa: SIM905  (a word list reads better as words)
)
_NEGATIONS = frozenset(
    """
    no not never none neither nor nobody nothing nowhere without cannot hardly barely fails failed
    nicht kein keine keinen keiner keines nie niemals ohne weder
    ne pas jamais aucun aucune rien sans ni non nunca ningún ninguna ninguno nada sin tampoco
    mai nessun nessuno nessuna niente senza né não nem nenhum nenhuma sem
    не нет ни без никогда
    """.split()  # noqa: SIM905
)
_UNSPACED_NEGATIONS = re.compile("[不没沒無无非未]|ない|ません|なかった")


def differences(claim: str, passage: str) -> tuple[str, ...]:
    """Tell in what a passage differs from a claim, beyond wording.

    Errs on the side of a difference: a claim is not to be taken for what a passage says because
    both read alike. A name is a word with a capital; in scripts without capitals, and in text
    written without any, every content word may be one.

    Args:
        claim: The claim.
        passage: The passage.

    Returns:
        Any of `"numbers"`, if the claim has some and the passage not exactly the same ones;
        `"names"`, if one of the claim's is not in the passage; `"negations"`, if only one of the
        two is negated; `"words"`, if they share no content word at all.

    Example:
        >>> differences("Rome has 4 million inhabitants.", "Rome has 2.8 million inhabitants.")
        ('numbers',)
    """
    kinds = []
    numbers = _numbers(claim)
    if numbers and numbers != _numbers(passage):
        kinds.append("numbers")
    if not _names(claim) <= content_words(passage):
        kinds.append("names")
    if _negated(claim) != _negated(passage):
        kinds.append("negations")
    if not content_words(claim) & content_words(passage):
        kinds.append("words")
    return tuple(kinds)


def _numbers(text: str) -> frozenset[str]:
    digits = {_plain(found) for found in _NUMBER.findall(fold(text))}
    return frozenset(digits | (set(_WORD.findall(fold(text))) & _NUMBER_WORDS))


def _plain(number: str) -> str:
    """Drop separators of thousands, so that 2,100 and 2100 are the same number."""
    return re.sub(r"[,'\u2019](?=\d{3}(?!\d))", "", number)


def _names(text: str) -> frozenset[str]:
    words = _TOKEN.findall(unicodedata.normalize("NFKC", text))
    cased = any(word[0].isupper() for word in words)
    names = (w for w in words if not w.isnumeric() and (not cased or _marked(w)))
    return content_words(" ".join(names)) - _NEGATIONS


def _marked(word: str) -> bool:
    """Tell whether a word has a capital, or is of a script that has none."""
    return word != word.lower() or word.upper() == word.lower()


def _negated(text: str) -> bool:
    words = _WORD.findall(fold(text))
    return (
        any(w in _NEGATIONS or w.endswith(("n't", "n\u2019t")) for w in words)
        or _UNSPACED_NEGATIONS.search(text) is not None
    )
