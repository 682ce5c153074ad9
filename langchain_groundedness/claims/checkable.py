"""Decides which sentences of an answer are claims that documents can support or contradict.

In doubt, a sentence is kept: one kept wrongly costs a check, one dropped wrongly is never checked.
"""

import re

from langchain_groundedness.claims.checkworthiness import is_checkworthy
from langchain_groundedness.text.words import content_words, fold

__all__ = [
    "is_checkable",
    "is_statement_as_heading",
    "may_be_skipped",
    "only_addresses_reader",
    "says_no_answer",
    "without_interjection",
]

_WORD = re.compile(r"\w+")

_OPINIONS = frozenset(
    """
    amazing awesome beautiful charming cool delightful excellent exciting fantastic fascinating fun
    good great impressive interesting lovely nice pleasant remarkable truly very really wonderful
    worth seeing
    """.split()  # noqa: SIM905  (a word list reads better as words)
)

_LONGEST = 400  # characters of a sentence that only speaks to the reader

_OPENING = re.compile(
    r"(?!(?:here|i|we|you)\b(?! (?:understand|appreciate)\b"
    r"|(?:['\u2019]| a)(?:m|re) (?:\w+ )?(?:sorry|glad|happy|pleased|welcome)\b))"
    r"((?:[^\s,.!?:;\u2013\u2014]+ ){0,4}[^\s,.!?:;\u2013\u2014]+ ?)"
    r"(?:[,.!:;\u2013\u2014]+| -)\s+(?=\w)",
    re.IGNORECASE,
)
"""What may be an interjection. An assistant that says what it does or knows makes a statement."""

_MOST_OPENINGS = 4
"""Interjections that are dropped from one sentence."""

_NEGATED = re.compile(r"not\b|n['\u2019]t\b", re.IGNORECASE)

_QUESTION = re.compile(r"[?\uff1f\u061f][\s)*_]*$")

_QUOTED_QUESTION = re.compile(r"^[\"'\u201c\u00ab].*[?\uff1f\u061f][\"'\u201d\u00bb]$", re.DOTALL)

_TAG = re.compile(
    r", (?:right|correct|yes|no|ok|okay|eh|huh|(?:is|are|was|were|do|does|did|has|have|ca|wo)"
    r"(?:n['\u2019]t| not)? (?:it|he|she|they|we|you))\?\W*$",
    re.IGNORECASE,
)

_ASKS = re.compile(
    r"(?:who|whom|whose|what|when|where|which|why|how|is|are|was|were|do|does|did|has|have|had|can"
    r"|could|will|would|should|may|might|shall|am)(?:n't|n\u2019t)?\b",
    re.IGNORECASE,
)

_ENDS_SENTENCE = re.compile(r"\w[.!\u3002\uff01]\W*$")

_GIVES_NUMBER = re.compile(r"\w:\W*\d")

_FEWEST_WORDS = 4

_VERB = re.compile(r"\b(?:is|are|was|were|has|had|have)\b", re.IGNORECASE)

_UNKNOWN = re.compile(
    r"\b(?:unknown|unable|unclear|cannot|silent|wei(?:\u00df|ss)|sais|s\u00e9|lo so|sei|weet)\b"
    r"|\b(?:no|not|none|nothing|neither)\b.{0,200}"
    r"\b(?:know|sure|sa(?:y|id)|mention|answer|tell|f[io]nd|information|details|determine"
    r"|provide|state|specif|give|contain|possible|document|context)"
    r"|n['\u2019]t (?!hesitate|worry|mention it)"
    r"|\bdo[ck]ument\w* .{0,200}\b(?:nicht|kein\w*|pas|no|non|n\u00e3o|niet|geen)\b"
    r"|\u0437\u043d\u0430\u044e|\u77e5\u9053|\u6e05\u695a|\u6ca1\u6709|\u304b\u308a\u307e\u305b\u3093"
    r"|\ubaa8\ub974|\u0623\u0639\u0631\u0641",
    re.IGNORECASE,
)


def without_interjection(text: str) -> str:
    """Drop introductory phrases such as `Sure,` or `Based on the documents,`."""
    for _ in range(_MOST_OPENINGS):
        match = _OPENING.match(text)
        if match is None or _NEGATED.search(match[1]) or is_checkworthy(f"{match[1]}."):
            break
        if only_addresses_reader(text):
            break
        text = text[match.end() :]
        text = text[0].upper() + text[1:]
    return text


def is_checkable(text: str) -> bool:
    """Return whether a sentence makes a statement."""
    if not any(map(str.isalnum, text)):
        return False
    if text.endswith((":", "\uff1a")):
        return _says_a_number(text) and is_checkworthy(text)
    if _QUESTION.search(text) or _QUOTED_QUESTION.match(text):
        return _is_statement_with_question_mark(text)
    return not only_addresses_reader(text)


def is_statement_as_heading(text: str) -> bool:
    """Return whether a heading makes a statement, such as "Revenue: $2.4B"."""
    if _ENDS_SENTENCE.search(text) or _GIVES_NUMBER.search(text):
        return True
    return len(text.split()) >= _FEWEST_WORDS and bool(_VERB.search(text)) and not _ASKS.match(text)


def only_addresses_reader(text: str) -> bool:
    """Return whether a sentence only speaks to the reader.

    It is small talk, an offer, a question, a request, a refusal, or says who is speaking.
    """
    if len(text) > _LONGEST or text.endswith((":", "\uff1a")):
        return False
    return not is_checkworthy(text)


def says_no_answer(text: str) -> bool:
    """Return whether a sentence says that there is no answer, and nothing else."""
    return len(text) <= _LONGEST and bool(_UNKNOWN.search(text)) and only_addresses_reader(text)


def _says_a_number(text: str) -> bool:
    """Return whether a lead-in contains a statement: a verb and a number."""
    return any(map(str.isdigit, text)) and bool(_VERB.search(text))


def _is_statement_with_question_mark(text: str) -> bool:
    """Return whether a question is a statement: "It was $9, right?", "It was $9?"."""
    if _TAG.search(text):
        return True
    opens = _ASKS.match(text) or any(_ASKS.match(part.strip()) for part in text.split(","))
    return _says_a_number(text) and not opens


def may_be_skipped(text: str) -> bool:
    """Return whether an extractor may skip a sentence: no statement, or an opinion only."""
    if not is_checkable(without_interjection(text)):
        return True
    words = _WORD.findall(text)
    about = words[:1] + [word for word in words if word[:1].isupper()]
    said = content_words(text) - {fold(word) for word in about}
    return bool(said) and said <= _OPINIONS
