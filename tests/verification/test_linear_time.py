"""Twice the text takes about twice the time, whatever sign runs away in it."""

import string
from collections.abc import Callable, Mapping
from time import process_time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.messages import BaseMessage

from langchain_groundedness import (
    GroundednessGuard,
    GroundednessRunnable,
    LLMVerifier,
    SentenceClaimExtractor,
)
from langchain_groundedness.testing import ScriptedChatModel, ScriptedVerifier
from langchain_groundedness.verification.verdict_replies import ReplyReader

READ = ReplyReader("XKQ", claims=12, sentences=9)
READ_SENTENCES = READ._replace(has_statements=True)
CHECK = GroundednessRunnable(
    verifier=ScriptedVerifier(lambda _: "unverifiable"), extractor=SentenceClaimExtractor()
)


def answer(text: str) -> None:
    CHECK.invoke((f"Rome is in Italy{text}and wet.", ["Rome."]))


def guard(text: str) -> None:
    list(GroundednessGuard(CHECK).stream({"answer": f"Rome{text}is.", "documents": ["Rome."]}))


def document(text: str) -> None:
    CHECK.invoke(("Rome is in Italy.", [Document(f"Rome is{text}in Italy.")]))


def question(text: str) -> None:
    CHECK.invoke({"question": text, "answer": "Rome is in Italy.", "documents": ["Rome."]})


def reply(text: str) -> None:
    for raw in (
        text,
        f"XKQ C1 [1] supported{text}",
        f"XKQ C1 {text} supported",
        f"{text}XKQ C1 [1] supported",
        f'{{"tag": "XKQ", "lines": ["C1 {text}',
        f"{{{text}",
    ):
        READ(raw)


def single_pass_reply(text: str) -> None:
    for raw in (
        f"XKQ S1 ({text}): 1 supported",
        f"XKQ S1 (a{text}",
        f'XKQ S1 "{text}": 1 supported | {text}',
        f"S1 ({text}",
    ):
        READ_SENTENCES(raw)


def plain_reply(text: str) -> None:
    def replied(messages: list[BaseMessage]) -> str:
        asked = messages[-1].text.lower()
        return f"1{text}" if "number only" in asked else f"yes{text}" if "one word" in asked else ""

    judge = LLMVerifier(model=ScriptedChatModel(replies=replied))
    GroundednessRunnable(verifier=judge, extractor=SentenceClaimExtractor()).invoke(
        ("Rome is in Italy.", ["Rome is in Italy."])
    )


PLACES: Mapping[str, Callable[[str], Any]] = {
    each.__name__: each
    for each in (answer, guard, document, question, reply, single_pass_reply, plain_reply)
}
SIGNS = [
    *string.punctuation,
    *" \n\t\r\x0b\u00a0\u2028\u3000\u200b\u3002\u2026\u201c\u2013",
    *("a): ", "a): 1 supported ", "(a", "[1] ", "- ", "1. ", "> ", "\n ", "\n- ", "a. ", "| "),
]
_N = 1_500
_LEAST = 0.02
"""Seconds of processor time, below which a ratio says nothing."""
_MOST = 12
"""Times as long for four times the text: 4 if it is linear, 16 if it is quadratic."""


def seconds(check: Callable[[str], Any], text: str) -> float:
    begun = process_time()
    check(text)
    return process_time() - begun


@pytest.mark.parametrize("place", PLACES)
@settings(max_examples=settings().max_examples // 2)
@given(sign=st.sampled_from(SIGNS), other=st.sampled_from(["", *SIGNS]))
def test_four_times_the_text_takes_far_less_than_sixteen_times_the_time(
    place: str, sign: str, other: str
) -> None:
    check, unit = PLACES[place], sign + other
    check(unit)
    measured = []
    for _ in range(4):  # quadratic time is so each time; what else the process does is not
        first, double, fourfold = (seconds(check, unit * (_N * times)) for times in (1, 2, 4))
        measured.append(fourfold / max(first, double / 2, _LEAST))
        if measured[-1] <= _MOST:
            break
    assert min(measured) <= _MOST, measured


def staircase(lines: int) -> str:
    return "\n".join(f"{' ' * n}Line {n} is red." for n in range(lines))


def nested(lines: int) -> str:
    return "\n".join(f"{' ' * n}- Item {n} is red." for n in range(lines))


@pytest.mark.parametrize("shape", [staircase, nested])
def test_lines_that_are_indented_more_and_more_take_time_by_their_characters(
    shape: Callable[[int], str],
) -> None:
    answer("x")
    small, large = shape(150), shape(300)
    size = len(large) / len(small)
    assert seconds(answer, large) <= 3 * size * max(seconds(answer, small), _LEAST)
