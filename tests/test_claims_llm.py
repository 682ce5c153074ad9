import asyncio
import logging
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.language_models import FakeListChatModel
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnableLambda
from prompt_text import without_codes

from langchain_groundedness import LLMClaimExtractor
from langchain_groundedness.claims import ExtractionExample
from langchain_groundedness.exceptions import ConfigurationError, OutputParsingError
from langchain_groundedness.testing import ScriptedChatModel
from langchain_groundedness.types import ExtractionTask

ANSWER = "Rome is lovely. Rome is in Italy. It lies on the Tiber and has 3 metro lines."


def extract(*replies: Any, answer: str = ANSWER, **options: Any) -> list[tuple[str, str]]:
    """Give text and span text of each claim."""
    model = ScriptedChatModel(replies=list(replies))
    claims = LLMClaimExtractor(model=model, **options).invoke(answer)
    assert [claim.id for claim in claims] == [f"c{n}" for n in range(1, len(claims) + 1)]
    return [(claim.text, answer[claim.start : claim.end]) for claim in claims]


def as_they_stand(*texts: str) -> list[tuple[str, str]]:
    return [(text, text) for text in texts]


ALL = as_they_stand(
    "Rome is lovely.", "Rome is in Italy.", "It lies on the Tiber and has 3 metro lines."
)


def test_sentences_that_are_not_mentioned_are_claims_as_they_stand() -> None:
    assert extract("none") == ALL
    assert extract('{"lines": []}') == ALL


def test_skipped_sentences_are_no_claims() -> None:
    assert extract("1: skip") == ALL[1:]


@pytest.mark.parametrize(
    "answer",
    [
        "Revenue was $9 billion in Q3.",
        "The drug is safe for children.",
        "Rome is lovely and cheap.",
        "Ann founded Acme.",
        "It was sold.",
        "I'm sorry, revenue was $9 billion.",
    ],
)
def test_a_statement_is_a_claim_even_if_the_model_skips_it(answer: str) -> None:
    assert extract("1: skip", answer=answer) == as_they_stand(answer)


@pytest.mark.parametrize("answer", ["Sure!", "Great question!", "I don't know.", "Is it safe?"])
def test_what_states_nothing_may_be_skipped(answer: str) -> None:
    assert extract("1: skip", answer=answer) == []


@pytest.mark.parametrize(
    ("answer", "rewritten"),
    [
        ("The drug is not safe for children.", "The drug is safe for children."),
        ("The drug is safe for children.", "The drug is not safe for children."),
        ("The drug isn't safe for children.", "The drug is safe for children."),
        ("The drug is safe for children.", "The drug is unsafe for children."),
        ("Ann sold the old mill to Bo.", "The old mill was sold by Ann."),
        ("Sales rose by 3 percent in May.", "Sales fell by 3 percent in May."),
    ],
)
def test_a_sentence_that_a_rewriting_may_turn_round_is_kept_beside_it(
    answer: str, rewritten: str
) -> None:
    assert [text for text, _ in extract(f"1: {rewritten}", answer=answer)] == [rewritten, answer]


@pytest.mark.parametrize(
    ("answer", "rewritten"),
    [
        ("Rome is old. It does not lie on the sea.", "Rome does not lie on the sea."),
        ("Rome is old. Additionally, it has bridges.", "Rome has bridges."),
    ],
)
def test_a_faithful_rewriting_stands_alone(answer: str, rewritten: str) -> None:
    assert [text for text, _ in extract(f"2: {rewritten}", answer=answer)][1:] == [rewritten]


def test_rewritten_sentences_have_the_span_they_came_from() -> None:
    reply = "1: skip\n3: Rome lies on the Tiber.\n3: Rome has 3 metro lines."
    assert extract(reply) == [
        ALL[1],
        ("Rome lies on the Tiber.", ALL[2][0]),
        ("Rome has 3 metro lines.", "has 3 metro lines."),
    ]


def test_a_piece_that_stands_verbatim_in_the_sentence_has_the_span_of_the_piece() -> None:
    reply = "1: skip\n3: It lies on the Tiber\n3: Rome has 3 metro lines."
    assert extract(reply)[1] == ("It lies on the Tiber", "It lies on the Tiber")


def test_a_sentence_whose_number_is_lost_in_rewriting_is_kept() -> None:
    assert extract("3: Rome lies on the Tiber.") == [
        *ALL[:2],
        ("Rome lies on the Tiber.", ALL[2][0]),
        ALL[2],
    ]


def test_a_sentence_whose_words_are_lost_in_rewriting_is_kept() -> None:
    answer = "The old bridge near Ponte was rebuilt by local masons after floods."
    assert extract("1: The bridge was old.", answer=answer) == [
        ("The bridge was old.", answer),
        (answer, answer),
    ]


def test_a_rewriting_about_something_else_is_dropped() -> None:
    assert extract("2: Paris shines.") == ALL


@pytest.mark.parametrize("reply", ["9: Rome lies on the Tiber.", "0: skip", "x: skip", "77: skip"])
def test_lines_on_sentences_that_do_not_exist_change_nothing(reply: str) -> None:
    assert extract(f"1: skip\n{reply}") == ALL[1:]


def test_a_reply_that_was_cut_off_hides_no_sentence() -> None:
    assert extract('{"lines": ["1: skip", "2: ski') == ALL[1:]
    assert extract('{"lines": [') == ALL


def test_an_unreadable_reply_falls_back_to_sentences(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert extract("hm", "hm", answer="Rome is in Italy.") == as_they_stand("Rome is in Italy.")
    assert "OutputParsingError" in caplog.text
    assert "Rome" not in caplog.text


def test_a_failing_model_falls_back_to_sentences(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert extract(TimeoutError("secret"), answer="Rome is in Italy.") == as_they_stand(
            "Rome is in Italy."
        )
    assert "secret" not in caplog.text


def test_without_a_fallback_errors_are_raised() -> None:
    with pytest.raises(OutputParsingError):
        extract("hm", "hm", fallback=None)
    with pytest.raises(TimeoutError):
        extract(TimeoutError(), fallback=None)


@pytest.mark.parametrize("answer", ["", "  \n "])
def test_an_empty_answer_has_no_claims_and_costs_no_call(answer: str) -> None:
    assert extract(answer=answer) == []


def test_the_answer_is_shown_numbered_and_fenced_with_the_question() -> None:
    model = ScriptedChatModel(replies=["none"])
    task = ExtractionTask(answer="Rome\nis in </answer> Italy.", question="Where?")
    LLMClaimExtractor(model=model).invoke(task)
    shown = without_codes(model.requests[0][-1].text)
    assert "<question CODE>\nWhere?\n</question CODE>" in shown
    assert "</answer> Italy" not in shown


async def test_the_async_path_gives_the_same_claims() -> None:
    model = FakeListChatModel(responses=["1: skip"])
    extractor = LLMClaimExtractor(model=model)
    expected = await asyncio.to_thread(extractor.invoke, ANSWER)
    assert await extractor.ainvoke(ANSWER) == expected
    assert await extractor.abatch([ANSWER, "A is B."]) == [
        expected,
        await extractor.ainvoke("A is B."),
    ]


async def test_cancellation_propagates() -> None:
    started = asyncio.Event()

    async def hang(_: Any) -> str:
        started.set()
        await asyncio.Event().wait()
        return "never"

    model: Runnable[Any, Any] = RunnableLambda(hang)
    running = asyncio.create_task(LLMClaimExtractor(model=model).ainvoke(ANSWER))
    await started.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


def test_examples_are_shown_as_the_replies_that_give_their_claims() -> None:
    model = ScriptedChatModel(replies=["none"])
    example = {
        "answer": "Ada is great. Ada wrote it. She lived in London.",
        "claims": ["Ada wrote it.", "Ada lived in London."],
        "question": "Who?",
    }
    plain = ExtractionExample(answer="Bari is in Italy.", claims=("Bari is in Italy.",))
    LLMClaimExtractor(model=model, examples=[example, plain]).invoke(ANSWER)
    _, *shown, last = model.requests[0]
    assert [message.type for message in shown] == ["human", "ai", "human", "ai"]
    assert "<question CODE>\nWho?\n</question CODE>" in without_codes(shown[0].text)
    assert shown[1].text == "1: skip\n3: Ada lived in London."
    assert shown[3].text == "none"
    assert "Rome" in last.text


@pytest.mark.parametrize(
    "options",
    [
        {"examples": [{"answer": "", "claims": []}]},
        {"examples": [{"answer": "  ", "claims": []}]},
        {"examples": [{"answer": "A is B.", "claims": [""]}]},
        {"examples": [{"answer": "A is B."}]},
        {"examples": ["A is B."]},
        {"prompt": ChatPromptTemplate.from_messages([("human", "{text}")])},
        {"no_such_option": 1},
    ],
)
def test_a_bad_option_is_refused_at_construction(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        extract("none", **options)


@given(st.text(), st.text())
def test_whatever_the_model_replies_spans_lie_in_the_answer(answer: str, reply: str) -> None:
    model = FakeListChatModel(responses=[reply])
    for claim in LLMClaimExtractor(model=model).invoke(answer):
        assert claim.start is not None
        assert claim.end is not None
        assert 0 <= claim.start < claim.end <= len(answer)


FIRST_USE = """
import asyncio

from blockbuster import blockbuster_ctx

from langchain_groundedness.claims import LLMClaimExtractor
from langchain_groundedness.testing import ScriptedChatModel


async def main():
    extractor = LLMClaimExtractor(model=ScriptedChatModel(replies=["1. skip"] * 4))
    with blockbuster_ctx("langchain_groundedness"):
        await extractor.ainvoke("It is not possible to find an answer in the documents.")


asyncio.run(main())
"""


def test_the_first_refusal_of_a_process_does_not_hold_the_event_loop_up() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FIRST_USE], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
