"""What a model made of a sentence: its statements, and the sentence itself where they say less."""

import re
from collections.abc import Iterable, Sequence

from langchain_groundedness.evidence import locate_quote
from langchain_groundedness.types import Claim
from langchain_groundedness.words import content_words, fold, stem

__all__ = ["known_stems", "rewritings"]

_COVERED = 0.5
_WORD = re.compile(r"\w+")
_NEGATION = re.compile(
    r"\b(?:no|not|cannot|never|none|nobody|nothing|nowhere|neither|nor|without|hardly|rarely|seldom"
    r"|barely|scarcely|fail(?:s|ed)?|lack(?:s|ed)?|unable|nicht|kein\w*|nie|ohne|pas|jamais|sans"
    r"|non|nunca|sin|n\u00e3o|niet|geen|\u043d\u0435|\u043d\u0435\u0442)\b"
    r"|n['\u2019]t\b|\u4e0d|\u6ca1|\u672a|\u7121|\u65e0|\u306a\u3044|\u307e\u305b\u3093",
    re.IGNORECASE,
)


def known_stems(answer: str, question: str | None) -> frozenset[str]:
    """Give the stems that a rewriting may take its words from.

    Args:
        answer: The answer.
        question: The question, if there is one.

    Returns:
        The stems of the content words of both.
    """
    return frozenset(map(stem, content_words(f"{answer} {question or ''}")))


def rewritings(sentence: Claim, texts: Iterable[str], known: frozenset[str]) -> list[Claim]:
    """Make claims of what the model wrote for a sentence.

    A text about something else is dropped. The sentence is kept beside the texts if they may say
    less than it, or the opposite, so that no rewriting hides a statement.

    Args:
        sentence: The sentence, with its span in the answer.
        texts: The statements that the model found in it, in its words or in others.
        known: Stems of answer and question, of `known_stems`.

    Returns:
        Claims, all with the id of the sentence, with the span of the answer that they rest on.
    """
    words = content_words(sentence.text)
    kept = [t for t in dict.fromkeys(texts) if not words or words & content_words(t)]
    claims = [_located(sentence, text) for text in kept]
    if _loses_words(sentence.text, kept, known) or _negations_differ(sentence.text, kept):
        claims.append(sentence)
    return claims


def _loses_words(sentence: str, texts: Sequence[str], known: frozenset[str]) -> bool:
    """Tell whether a number, a name or most words are in no text, or a word was exchanged.

    What a text adds should come from elsewhere in the answer or from the question. A word that
    stands nowhere there, where one of the sentence is missing, may be its opposite.
    """
    words = frozenset(map(stem, content_words(sentence)))
    written = frozenset(stem(word) for text in texts for word in content_words(text))
    lost = words - written
    names = {stem(fold(word)) for word in _WORD.findall(sentence)[1:] if word[:1].isupper()}
    numbers = {word for word in words if any(map(str.isdigit, word))}
    if lost & (numbers | names) or len(lost) > (1 - _COVERED) * len(words):
        return True
    return bool(lost) and bool(written - known)


def _negations_differ(sentence: str, texts: Sequence[str]) -> bool:
    """Tell whether texts say less often than their sentence that something is not, or newly so."""
    before = len(_NEGATION.findall(sentence))
    after = sum(len(_NEGATION.findall(text)) for text in texts)
    return after < before or (after > 0 and before == 0)


def _located(sentence: Claim, text: str) -> Claim:
    start, end = sentence.start, sentence.end
    as_written = start is not None and end == start + len(sentence.text)  # no markup between
    found = locate_quote(text, sentence.text) if as_written else None
    if found is not None and start is not None:
        start, end = start + found[0], start + found[1]
    return Claim(id=sentence.id, text=text, start=start, end=end)
