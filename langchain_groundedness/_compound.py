"""Split a sentence that plainly says two things of one subject.

Only three English patterns, and only where nothing else in the sentence could change what a half
of it means; every other sentence stays whole.
"""

import re
from typing import NamedTuple

__all__ = ["Part", "split_statement"]


class Part(NamedTuple):
    """One of the things that a sentence says."""

    text: str
    """The statement, with its subject."""
    own: str
    """The words of the sentence that only this part rests on."""


_SUBJECT = r"(?P<subject>(?:[A-Z\u00c0-\u00de\d][^\s,;:()]*|The|A|An)(?: [^\s,;:()]+){0,7}?)"
_END = r"(?P<end>[.!]?)$"
_BE = "(?P<be>is|was|are|were)"
_VERB = "(?P<verb>is|was|are|were|has|have|had)"
_WHAT = "(?P<what>[^,;:()]+?)"
_REST = "(?P<rest>[^,;:()]+?)"
_RELATIVE = re.compile(
    rf"{_SUBJECT} {_BE} {_WHAT}(?P<comma>,?) (?P<pronoun>that|which|who) {_VERB} {_REST}{_END}"
)
_COORDINATED = re.compile(
    rf"{_SUBJECT} {_VERB.replace('verb', 'be')} {_WHAT},? and {_VERB} {_REST}{_END}"
)
_COUNT = (
    r"(?:(?:more|less|fewer) than |over |about |around |nearly |almost |approximately |roughly "
    r"|some |at least |up to |under "
    r"|an? (?:estimated |total )?(?:population|area|height|length|budget|revenue) of )*"
    r"[$\u20ac\u00a3]?\d[\d.,]*"
)
_WITH = re.compile(rf"{_SUBJECT} {_BE} {_WHAT},? with (?P<rest>{_COUNT}[^;:()]*?){_END}")
_CLAUSE = (
    "that|which|who|whose|whom|if|when|while|because|although|though|unless|until|whether|but|not"
    "|never|neither|nor|either|both|only|is|was|are|were|has|have|had"
)
_NEGATED = r"n['\u2019]t\b"
_MORE_IN_SUBJECT = re.compile(
    rf"\b(?:{_CLAUSE}|what|since|and|or|no|none|nobody|some|few|many|most|several|half|one|said"
    "|says|say|believed|thought|claims?|claimed|reported|would|could|should|may|might|must|than"
    rf"|as|how|where|there|it|this)\b|{_NEGATED}",
    re.IGNORECASE,
)
_MORE_IN_PREDICATE = re.compile(rf"\b(?:{_CLAUSE})\b|{_NEGATED}", re.IGNORECASE)
_RELATION = re.compile(r"\b(?:of|in|for|from|by|with|to|on|at|about|between|among|under|over)\b")
_UNIQUE = re.compile(
    r"\b(?:only|first|second|third|last|next|same|most|least|best|worst|\w{3,}est)\b",
    re.IGNORECASE,
)
_SINGULAR = frozenset({"is", "was", "has"})
_PLURAL = frozenset({"are", "were", "have"})
_HAVE = {"is": "has", "was": "had", "are": "have", "were": "had"}
_WORDS_OF_A_STATEMENT = 3
_LONGEST = 300  # characters; a longer sentence has more in it than these patterns know


def split_statement(text: str) -> list[Part]:
    """Split a sentence in two, or leave it whole.

    Args:
        text: A sentence, free of markup.

    Returns:
        One part, or two that together say what the sentence says.

    Example:
        >>> [
        ...     p.text
        ...     for p in split_statement("Ada is a fast parallel machine that was built in 1990.")
        ... ]
        ['Ada is a fast parallel machine.', 'Ada was built in 1990.']
    """
    if len(text) > _LONGEST:
        return [Part(text, text)]
    return _relative(text) or _with_count(text) or _coordinated(text) or [Part(text, text)]


def _relative(text: str) -> list[Part] | None:
    match = _RELATIVE.fullmatch(text)
    if match is None or not _plain(match) or not _agree(match["be"], match["verb"]):
        return None
    what = match["what"]
    # Without a comma the clause may single out one of several: then neither half stands alone.
    indefinite = what.startswith(("a ", "an ")) and not _RELATION.search(what)
    aside = bool(match["comma"]) and match["pronoun"] != "that" and not _RELATION.search(what)
    if not (indefinite or aside) or len(what.split()) < _WORDS_OF_A_STATEMENT:
        return None
    if _UNIQUE.search(what) and not aside:
        return None
    return _two(match, f"{match['verb']} {match['rest']}", f"{match['pronoun']} {match['verb']}")


def _with_count(text: str) -> list[Part] | None:
    match = _WITH.fullmatch(text)
    if match is None or not _plain(match) or _UNIQUE.search(match["what"]):
        return None
    return _two(match, f"{_HAVE[match['be']]} {match['rest']}", "with")


def _coordinated(text: str) -> list[Part] | None:
    match = _COORDINATED.fullmatch(text)
    if match is None or not _plain(match) or not _agree(match["be"], match["verb"]):
        return None
    return _two(match, f"{match['verb']} {match['rest']}", match["verb"])


def _two(match: re.Match[str], predicate: str, opening: str) -> list[Part]:
    first = f"{match['subject']} {match['be']} {match['what']}"
    return [
        Part(f"{first}.", first),
        Part(f"{match['subject']} {predicate}.", f"{opening} {match['rest']}"),
    ]


def _plain(match: re.Match[str]) -> bool:
    more = _MORE_IN_SUBJECT.search(match["subject"]) or _MORE_IN_PREDICATE.search(match["what"])
    return more is None


def _agree(one: str, other: str) -> bool:
    pair = {one, other} - {"had"}
    return pair <= _SINGULAR or pair <= _PLURAL
