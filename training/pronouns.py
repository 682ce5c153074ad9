"""Claims as they stand within an answer: with a pronoun as subject, or two sentences in one."""

import random
import re
from collections import Counter
from collections.abc import Sequence

from langchain_groundedness.text.sentences import split_sentences

__all__ = ["join_sentences", "with_pronouns"]

_VERBS = "is|was|are|were|has|had|have|will|would|can|could|may|must|does|did|do"
_SUBJECT = re.compile(
    rf"(?P<subject>(?:The [a-z-]+(?: [a-z-]+)?(?= (?:{_VERBS})\b)"
    r"|(?:The )?(?!The\b)[A-Z][\w'\u2019-]*(?: (?:(?:of|de|van|von|the) )?[A-Z][\w'\u2019-]*)*))"
    r" (?P<verb>(?!(?:and|or|of|in|at|on|for|who|that|which|with|from|to|by|as)\b)[a-z]+)\b"
)
_OPENINGS = frozenset(
    """
    A After All An Any As At Because Before Both By During Each Every For From He Her His How I If
    In It Its Many Most Neither No Nobody None Nothing On Once One Only She Since Some That Their
    There These They This Those Two Under Unlike Until We What When While With You Your
    """.split()  # noqa: SIM905  (a word list reads better as words)
)
"""Words that open a claim whose subject is no name."""
_PREDICATE = re.compile(rf"(?P<pronoun>He|She|It|They) (?P<rest>(?:{_VERBS}|[a-z]+(?:ed|s))\b.+)\.")
_MOST_JOINED = 40
"""Words of a claim that says what two sentences say."""
_SHORTENED = 0.3
"""Share of the names of several words that are cut to the last one."""
_PLURAL = {"are", "were", "have", "do"}
_PRONOUNS = {
    "He": re.compile(r"\b(?:he|his|him|himself)\b", re.IGNORECASE),
    "She": re.compile(r"\b(?:she|hers?|herself)\b", re.IGNORECASE),
    "It": re.compile(r"\b(?:it|its|itself)\b", re.IGNORECASE),
    "They": re.compile(r"\b(?:they|their|them|themselves)\b", re.IGNORECASE),
}


def with_pronouns(
    text: str, claims: Sequence[tuple[str, str]], chosen: random.Random
) -> list[tuple[str, str]]:
    """Put a pronoun, or the last word of its name, for what a text is about.

    That is the subject of most claims, if the first sentence of the text names it.

    Args:
        text: What the claims are about.
        claims: Claims and their labels.
        chosen: Chooses between pronoun and part of the name.

    Returns:
        The claims that begin with this subject, in their new words, with their labels.
    """
    found = [(_SUBJECT.match(claim), claim, label) for claim, label in claims]
    found = [one for one in found if one[0] and one[0]["subject"].split()[0] not in _OPENINGS]
    if not found:
        return []
    last = Counter(match["subject"].split()[-1] for match, _, _ in found).most_common(1)[0][0]
    opening = next((sentence.text for sentence in split_sentences(text)), "")
    if not re.search(rf"\b{re.escape(last)}\b", opening):
        return []
    return [
        (_short(match, text, chosen) + claim[match.end("subject") :], label)
        for match, claim, label in found
        if match["subject"].split()[-1] == last
    ]


def join_sentences(first: str, second: str) -> str | None:
    """Say what two neighbouring sentences say in one: "It was built in 1990 and has two floors".

    Args:
        first: A sentence.
        second: The one behind it.

    Returns:
        Both, if the second begins with a pronoun and a verb and the first with a name or a thing.
    """
    more, subject = _PREDICATE.fullmatch(second), _SUBJECT.match(first)
    if more is None or subject is None or not first.endswith("."):
        return None
    opening = subject["subject"].split()[0]
    is_person = more["pronoun"] in ("He", "She")
    if opening in _OPENINGS or is_person == (opening == "The"):
        return None  # "Otto Klein built the museum. It opened in 1950": of something else
    if (more["pronoun"] == "They") != (subject["verb"] in _PLURAL):
        return None
    claim = f"{first[:-1]} and {more['rest']}."
    return claim if len(claim.split()) <= _MOST_JOINED else None


def _short(match: re.Match[str], text: str, chosen: random.Random) -> str:
    subject = match["subject"].split()
    if len(subject) > 1 and subject[0] != "The" and chosen.random() < _SHORTENED:
        return subject[-1]
    if match["verb"] in _PLURAL:
        return "They"
    said = {pronoun: len(form.findall(text)) for pronoun, form in _PRONOUNS.items()}
    del said["They"]
    if subject[0] == "The" or not any(said.values()):
        return "It"
    return max(said, key=said.__getitem__)
