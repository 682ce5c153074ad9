"""Whatever a judge replies, at whichever entry point: nothing false is supported."""

import json
import math
import random
from collections.abc import Iterator

import pytest
import reply_checks
from entries import ENTRIES
from hypothesis import given
from hypothesis import strategies as st
from matrix import Models, cell, judge
from no_labels import NO_LABELS
from reply_checks import STRATEGIES, read_honestly, supported_falsely
from reply_families import DIALECTS, WORST, a_lie, right_of

from langchain_groundedness.testing import (
    Fault,
    FaultyServer,
    ScriptedRequest,
    ScriptedResponse,
)

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])

SOME = [
    "runnable.invoke",
    "runnable.astream",
    "single_pass.invoke",
    "single_pass in plain lines",
    "guard.invoke",
    "guard.transform",
    "handler.invoke",
    "middleware.invoke",
    "evaluator.invoke",
]
"""One entry point of each kind; the other worst replies meet the others."""


@pytest.fixture(scope="module")
def server() -> Iterator[FaultyServer]:
    with FaultyServer(judge()) as server:
        yield server


@pytest.fixture(scope="module")
def models(server: FaultyServer) -> Models:
    return Models(server)


def worst(name: str) -> Fault:
    def spoil(response: ScriptedResponse, request: ScriptedRequest) -> ScriptedResponse:
        if not request.tag:
            return response
        return response._replace(text=WORST[name](right_of(request, response.text)))

    return Fault(name, name, spoil)


@pytest.mark.parametrize("name", WORST)
def test_the_worst_replies_support_nothing_false_at_any_kind_of_entry_point(
    server: FaultyServer, models: Models, name: str
) -> None:
    entries = [e for e in ENTRIES if e not in SOME and "per_claim" not in e]
    place = list(WORST).index(name)
    for entry in [*SOME, *entries[place :: len(WORST)]]:
        found = cell(server, models, entry, worst(name), 1.0)
        assert not found.wrong, entry
        assert found.ends["right"] < 4
        assert not found.ends["released"]


@pytest.mark.parametrize("text", NO_LABELS)
def test_a_word_that_is_not_alone_is_no_verdict(
    server: FaultyServer, models: Models, text: str
) -> None:
    fault = Fault("word", text, lambda response, _: response._replace(text=text))
    found = cell(server, models, "runnable.invoke, per_claim", fault, 1.0)
    assert set(found.ends) == {"unchecked"}


@pytest.mark.parametrize("logprob", [math.nan, 0.5])
def test_log_probabilities_that_are_none_cost_no_verification(
    server: FaultyServer, models: Models, logprob: float
) -> None:
    wrong = {"yes": logprob}
    fault = Fault("logprobs", "", lambda response, _: response._replace(logprobs=wrong))
    found = cell(server, models, "runnable.invoke, per_claim", fault, 1.0)
    assert not found.wrong
    assert set(found.ends) == {"right"}


def test_a_tool_call_under_another_name_is_no_reply(server: FaultyServer, models: Models) -> None:
    def spoil(response: ScriptedResponse, request: ScriptedRequest) -> ScriptedResponse:
        if not request.tag and "one word" not in request.text:
            return response
        function = {"name": "set_verdict", "arguments": response.text}
        call = {"id": "1", "type": "function", "function": function}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
        shell = {"id": "1", "object": "chat.completion", "created": 0, "model": "m"}
        return response._replace(body=json.dumps({**shell, "choices": [choice]}))

    for entry in ("runnable.invoke", "single_pass.invoke"):
        found = cell(server, models, entry, Fault("tool", "", spoil), 1.0)
        assert set(found.ends) == {"unchecked"}, entry


@pytest.mark.parametrize("strategy", STRATEGIES)
@given(seed=st.integers(0, 2**32))
def test_no_drawn_reply_makes_something_false_supported(strategy: str, seed: int) -> None:
    wrong, _ = supported_falsely(strategy, random.Random(seed))  # noqa: S311  (no secret)
    assert wrong == []


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_drawn_replies_would_show_a_reader_that_believes_too_much(
    strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reply_checks, "drawn", lambda right, _: a_lie(right).plain)
    monkeypatch.setattr(reply_checks, "label_drawn", lambda *_: "yes")
    monkeypatch.setattr(reply_checks, "number_drawn", lambda *_: "2")
    assert any(supported_falsely(strategy, random.Random(seed))[0] for seed in range(5))  # noqa: S311


@pytest.mark.parametrize("strategy", ["batched", "single_pass"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_honest_replies_of_every_dialect_are_read(strategy: str, dialect: str) -> None:
    assert read_honestly(strategy, dialect)
