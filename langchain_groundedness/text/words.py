"""Words of a text, normalized so that different forms of a word compare equal."""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

__all__ = [
    "AUXILIARIES",
    "STOP_WORDS",
    "Word",
    "content_words",
    "each_word",
    "find_words",
    "fold",
    "informative_words",
    "most_similar",
    "stem",
    "word_stem",
]

# Han, kana and Thai write no spaces: each character counts as a word of its own.
_UNSPACED = r"\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]{{1,100000}}")
"""Longer runs are data, not words, and are split: one match holds the GIL, so it must be short."""
_STOP_WORDS = frozenset(
    """
    a an and are as at be been but by did do does for from had has have he her his i in
    is it its of on or our she so than that the their them then there these they this to
    was we were what when where which who will with would you your
    """.split()  # noqa: SIM905  (a word list reads better as words)
)
_EMPTY_WORDS = """
    about also am any being can could him how if into just may me might more most my no nor not
    only other out over own same shall should some such those through too us very while whom
    whose why yes s t re ve ll d m
    """.split()  # noqa: SIM905  (a word list reads better as words)


AUXILIARIES = {
    form: family
    for family, forms in {
        "be": "am is are was were", "have": "has have had", "do": "do does did",
        "can": "can could cannot", "will": "will would", "may": "may might", "must": "must",
        "shall": "shall should",
    }.items()
    for form in forms.split()
}  # fmt: skip
"""The forms of auxiliary verbs, each with its verb."""


class Word(NamedTuple):
    """A word of a text: its stem, and `text[start:end]` as it was written."""

    stem: str
    start: int
    end: int


def fold(text: str) -> str:
    """Fold case and Unicode form (NFKC)."""
    return unicodedata.normalize("NFKC", text).casefold()


def content_words(text: str) -> frozenset[str]:
    """Return the folded words of a text without stop words."""
    return frozenset(_WORD.findall(fold(text))) - _STOP_WORDS


def most_similar(text: str, others: Iterable[str]) -> int:
    """Return the index of the first text that shares most content words; 0 if there is none."""
    words = content_words(text)
    shared = [len(words & content_words(other)) for other in others]
    return shared.index(max(shared)) if shared else 0


def find_words(text: str) -> list[Word]:
    """Find all words of a text, stop words included, with their offsets."""
    return list(_recent_words(text) if len(text) <= _SENTENCE else each_word(text))


def informative_words(text: str) -> list[Word]:
    """Find the words of a text that are no stop words, with their offsets."""
    return [word for word in find_words(text) if word.stem not in STOP_WORDS]


def each_word(text: str) -> Iterator[Word]:
    """Yield the words of a long text."""
    for match in _WORD.finditer(text):
        word, end = match.group(), match.end()
        if text[end : end + 1] in _APOSTROPHES and _CONTRACTED.match(text, end - 1):
            word = _IN_FULL.get(word.lower(), word[:-1])
        yield Word(word_stem(word), match.start(), end)


_APOSTROPHES = frozenset("'\u2019")
_CONTRACTED = re.compile(r"n['\u2019]t(?![^\W_])", re.IGNORECASE)
"""Matches "n't", so that "wasn't" yields "was"; negations are detected elsewhere."""
_IN_FULL = {"can": "can", "won": "will", "shan": "shall", "ain": "is"}
_SENTENCE = 600
"""Characters up to which words are cached: claims and sentences are read repeatedly."""


@lru_cache(maxsize=256)
def _recent_words(text: str) -> tuple[Word, ...]:
    return tuple(each_word(text))


def word_stem(word: str) -> str:
    """Return the stem of a word as it is written."""
    if word.isdecimal() and word.isascii():
        return word  # unchanged; there are too many numbers to cache
    return _known_stem(word) if len(word) <= _LONGEST_KEPT else _stem_as_written(word)


def _stem_as_written(word: str) -> str:
    folded = fold(word)
    if folded.isascii():
        return stem(folded)
    bare = "".join(c for c in unicodedata.normalize("NFD", folded) if not unicodedata.combining(c))
    return stem(bare if bare.isascii() else folded)


_LONGEST_KEPT = 64
"""Longest word to cache, in characters, which bounds the memory of the cache."""
_known_stem = lru_cache(maxsize=100_000)(_stem_as_written)

_IRREGULAR = {
    form: base
    for base, *forms in map(
        str.split,
        """
    bear bore born borne, become became, begin began begun, bring brought, build built,
    buy bought, child children, choose chose chosen, come came, die dying dead death,
    draw drew drawn, eat ate eaten, fall fell fallen, feel felt, fight fought, find found,
    fly flew flown flight, get got gotten, give gave given, go went gone, good better best,
    grow grew grown growth, hold held, keep kept, know knew known, lead led, leave left,
    lose lost loss, make made, man men, marry marriage, meet met, pay paid, rise rose risen,
    run ran, say said, see saw seen, sell sold sale, send sent, sing sang sung song,
    speak spoke spoken, spend spent, take took taken, teach taught, tell told, think thought,
    use used using, win won, woman women, write wrote written
        """.split(","),  # noqa: SIM905  (a table)
    )
    for form in forms
}
"""Irregular forms, each with its base; a group of the table begins with the base."""
_SHORTEST = 4
_ENDINGS = (("ies", "y"), ("ied", "y"), ("sses", "ss"), ("ying", "y"), ("ily", "y"))


def stem(word: str) -> str:
    """Strip common English endings from a folded word.

    Plurals, past and -ing forms and adverbs map to their base; words of other scripts are returned
    unchanged.
    """
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) < _SHORTEST or not word.isascii() or not word.isalpha() or word == "news":
        return word
    for ending, base in _ENDINGS:
        if word.endswith(ending) and len(word) > len(ending) + 1:
            return word[: -len(ending)] + base
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed", "ly"):
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST - 1:
            return _undouble(word[: -len(ending)])
    return word[:-1] if word.endswith("e") and len(word) > _SHORTEST else word


def _undouble(base: str) -> str:
    if base[-1] == base[-2] and base[-1] not in "lsz":
        return base[:-1]
    return base[:-1] if base.endswith("e") and len(base) > _SHORTEST else base


STOP_WORDS = frozenset(map(stem, (*_STOP_WORDS, *_EMPTY_WORDS)))
"""Stemmed English stop words. `content_words` uses a shorter list, because a shared word counts as
evidence there and a missing one does not matter."""
