"""What a policy always looks for in an answer, whatever its rules are; pure."""

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple, TypeAlias, get_args

from langchain_groundedness._checkable import declines, only_asks, without_interjection
from langchain_groundedness._statements import sentence_claims
from langchain_groundedness.policy._bounds import Range
from langchain_groundedness.policy._holds import Holds, Situation

__all__ = ["FINDINGS", "Finding", "FindingName", "findings"]

FindingName: TypeAlias = Literal[
    "contradicted",
    "untrusted",
    "conflicting",
    "unchecked",
    "no_claims",
    "nothing_checkable",
    "empty_answer",
]
FINDINGS: tuple[FindingName, ...] = get_args(FindingName)
_WITHOUT_CLAIMS: tuple[FindingName, ...] = ("no_claims", "nothing_checkable", "empty_answer")

_TITLE = re.compile(r"(?m)^ {0,3}(?:#{1,6} |\*\*)[^\s\d]{1,20}(?: [^\s\d]{1,20})?$")


class Finding(NamedTuple):
    """One of them, whether it was made, and in words what was found."""

    name: FindingName
    holds: Holds
    words: str


def findings(given: Situation) -> Iterator[Finding]:
    """Look at an answer.

    Args:
        given: What is known about it.

    Yields:
        What was found, and what may still be found.
    """
    if given.verdicts:
        yield from _about_claims(given)
    elif given.complete:
        yield _without_claims(given.answer)
    else:
        yield from _about_claims(given)
        yield from (Finding(name, Holds.OPEN, "") for name in _WITHOUT_CLAIMS)


def _about_claims(given: Situation) -> Iterator[Finding]:
    total, score, threshold = len(given.verdicts), given.trust_score, given.trust_threshold
    contradicted, conflicting = given.count("contradicted"), given.count("conflicting")
    yield Finding(
        "contradicted",
        given.rising(so=contradicted > 0),
        f"the documents contradict {contradicted} of {total} claims",
    )
    shown = "unknown" if score is None else f"{score:.2f}"
    yield Finding(
        "untrusted",
        _untrusted(given),
        f"trust score {shown} is below the threshold {threshold:.2f}",
    )
    yield Finding(
        "conflicting",
        given.rising(so=conflicting > 0),
        f"the documents disagree with each other on {conflicting} of {total} claims",
    )
    unchecked = [v.reason or "" for v in given.verdicts if v.verdict == "unchecked"]
    causes = ", ".join(sorted(set(unchecked)))
    why = f"{len(unchecked)} of {total} claims could not be checked: {causes}"
    yield Finding("unchecked", given.rising(so=bool(unchecked)), given.failure or why)


def _untrusted(given: Situation) -> Holds:
    return Range(below=given.trust_threshold).of_trust_score(given)


def _without_claims(answer: str) -> Finding:
    if not answer.strip():
        return Finding("empty_answer", Holds.YES, "the answer is empty")
    if _says_nothing(answer):
        return Finding("no_claims", Holds.YES, "the answer makes no checkable claim")
    why = "no claim was found in the answer, which is neither a refusal nor courtesy"
    return Finding("nothing_checkable", Holds.YES, why)


def _says_nothing(answer: str) -> bool:
    """Tell whether an answer is nothing but refusals, questions and courtesy, under any title."""
    sentences = sentence_claims(answer, only_checkable=False)
    texts = [without_interjection(sentence.text) for sentence in sentences]
    if not all(declines(text) or only_asks(text) for text in texts):
        return False
    spans = [(sentence.start or 0, sentence.end or 0) for sentence in sentences]
    between = zip(
        [0, *(end for _, end in spans)], [*(s for s, _ in spans), len(answer)], strict=True
    )
    rest = "\n".join(answer[start:end] for start, end in between)
    untitled = _TITLE.sub("", rest)
    return bool(sentences) and not any(map(str.isalnum, untitled))
