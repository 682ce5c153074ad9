"""Tells whether a text reads as English, by its script and its function words.

Its own module because it is a language detector, and knows no claims. The words of 27 languages are
in `model/function_words.json`.
"""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import zip_longest
from typing import NamedTuple

from langchain_groundedness.exceptions import ModelFileError
from langchain_groundedness.verification.embedded.model_files import (
    damaged,
    read_model_json,
)

__all__ = ["reads_as_english"]

_LATIN = r"A-Za-z\u00aa\u00ba\u00c0-\u02af\u0300-\u036f\u1e00-\u1eff\ua720-\ua7ff\ufb00-\ufb06"
_UNSPACED = r"\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(r"[^\W\d_]+")
_OTHER_SCRIPT = re.compile(rf"[^\W\d_{_LATIN}]{{2,}}")
"""Two letters at least: a single one is a symbol, as in "alpha particle" written in Greek."""
_UNSPACED_SCRIPT = re.compile(rf"[{_UNSPACED}]{{2,}}")
_MOST_OF_OTHER_SCRIPTS = 0.3
"""Share of letters; a name given in its own script beside an English sentence is less."""

_FEWEST_SHOUTED = 4
"""Words in capitals that make a text in capitals; fewer may be names: "MIT", "IBM UK"."""
_LEAST_FOREIGN = 0.15
"""Share of the words. In half of the rows of TabFact that were mistaken for another language, names
in lower case ("team: los angeles fc") make less than .12; sentences of other languages have .34 and
more in `benchmarks/languages.jsonl`."""
_PARTICLES = frozenset(
    """
    al as da de del della den der di do dos du e el la las le les los o of os san
    ten ter van von y zu
    """.split()  # noqa: SIM905  (a word list reads better as words)
)
"""Words that occur in names: "Rio de Janeiro", "Los Angeles", "Vincent van Gogh"."""


def reads_as_english(text: str) -> bool:
    """Return whether a text is likely to be English, so that a model of English can be trusted.

    A text is taken for another language if about a third of its letters are of another script, or
    if more of its words are function words of one other language than of English, and these are a
    seventh of all its words or there is none of English. Names do not count; a word with accents
    counts as a function word, unless only English has any. A text in Latin script where nothing
    speaks for another language counts as English: "Paris", "42 km". Latin-script languages other
    than the 27 in the lists are recognised only by their accents and by words that they share with
    one of them.
    """
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
        if _mostly_of_other_scripts(text):
            return False
    known = _function_words()
    english = accented = words = 0
    others: Counter[str] = Counter()
    for word, in_name in _words_by_role(text):
        folded = word.casefold()
        words += 1
        languages = known.languages.get(folded, ())
        if not (in_name and languages):
            english += folded in known.english
            for language in languages:
                others[language] += 1
            accented += not word.isascii() and word[0].islower() and not languages
    if english and not others:
        return True
    foreign = max(others.values(), default=0) + accented
    return foreign <= (max(english, _LEAST_FOREIGN * words) if english else 0)


def _mostly_of_other_scripts(text: str) -> bool:
    """Compare letter counts by script; a character of a script without spaces counts twice."""
    other = sum(map(len, _OTHER_SCRIPT.findall(text)))
    unspaced = sum(map(len, _UNSPACED_SCRIPT.findall(text)))
    letters = sum(map(str.isalpha, text)) + unspaced
    return other + unspaced > _MOST_OF_OTHER_SCRIPTS * letters


def _words_by_role(text: str) -> Iterator[tuple[str, bool]]:
    """Yield each word, and whether it is likely to be part of a name or an abbreviation."""
    # Such words are a capitalised word before another one ("Los Angeles"), a particle between two
    # of them ("Rio de Janeiro"), and an upper-case word in a mixed-case text ("MIT").
    words = _WORD.findall(text)
    known = _function_words()
    shouted = len(words) >= _FEWEST_SHOUTED and text.isupper()
    after_name = False
    for word, *after in zip_longest(words, words[1:], words[2:], fillvalue=""):
        folded = word.casefold()
        capital = word[0].isupper()
        joins = folded in _PARTICLES and (capital or after_name)
        abbreviation = word.isupper() and len(word) > 1
        named = (capital or joins) and _begin_a_name(after)
        yield word, (abbreviation or named) and not shouted
        if folded not in _PARTICLES:
            after_name = capital and folded not in known.english and folded not in known.languages


def _begin_a_name(words: list[str]) -> bool:
    first = next((word for word in words if word.casefold() not in _PARTICLES), "")
    return first[:1].isupper()


class _FunctionWords(NamedTuple):
    """Function words of English, and which languages others belong to."""

    english: frozenset[str]
    languages: Mapping[str, tuple[str, ...]]


@cache
def _function_words() -> _FunctionWords:
    """Load the bundled word lists, once."""
    # A word counts for every language that has it: "in" counts for both Dutch and English, and
    # only words that English lacks tell the two apart.
    lists = read_model_json("function_words.json")
    languages: defaultdict[str, list[str]] = defaultdict(list)
    for language, words in lists.items():
        for word in words.split() if language != "en" else ():
            languages[word].append(language)
    try:
        english = frozenset(lists["en"].split())
    except KeyError as exc:
        raise ModelFileError(damaged("function_words.json")) from exc
    return _FunctionWords(english, {word: tuple(names) for word, names in languages.items()})
