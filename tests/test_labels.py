"""What is known about a question before it is answered, through every entry point to the result."""

from enum import Enum
from typing import Any, NamedTuple

import numpy as np
import pytest
from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import Runnable, RunnableLambda

from langchain_groundedness import (
    AsyncGroundednessCallbackHandler,
    GroundednessCallbackHandler,
    GroundednessMiddleware,
    GroundednessRunnable,
    InputFormatError,
    groundedness_node,
)
from langchain_groundedness.inputs import read_input
from langchain_groundedness.testing import ScriptedChatModel
from langchain_groundedness.types import GroundednessResult, VerificationTask

ROME = {"answer": "Rome is in Italy.", "documents": ["Rome is in Italy."]}
LABELS: dict[str, Any] = {"query_class": "sensitive", "risk_tier": "high", "retrieval_score": 0.25}


class Tier(Enum):
    HIGH = "high"


class Labelled(NamedTuple):
    label: str


class Scored(NamedTuple):
    score: float


NOTHING: Any = []
CHECKER = GroundednessRunnable(verifier=RunnableLambda(lambda _: NOTHING))


def labels_of(result: GroundednessResult) -> dict[str, object]:
    return {name: getattr(result, name) for name in LABELS}


def test_inputs_without_labels_have_none() -> None:
    assert read_input(ROME).labels == dict.fromkeys(LABELS)


@pytest.mark.parametrize(
    ("given", "read"),
    [
        (LABELS, LABELS),
        ({"risk_tier": Tier.HIGH}, {"risk_tier": "high"}),
        ({"query_class": Labelled("generic")}, {"query_class": "generic"}),
        ({"query_class": "  "}, {"query_class": None}),
        ({"retrieval_score": Scored(0.5)}, {"retrieval_score": 0.5}),
        ({"retrieval_score": np.float32(0.5)}, {"retrieval_score": 0.5}),
        ({"retrieval_score": 1}, {"retrieval_score": 1.0}),
    ],
)
def test_labels_are_read_as_what_classifiers_and_gates_give(
    given: dict[str, object], read: dict[str, object]
) -> None:
    assert read_input({**ROME, **given}).labels == {**dict.fromkeys(LABELS), **read}


@pytest.mark.parametrize(
    "given",
    [
        {"query_class": 3},
        {"risk_tier": ["high"]},
        {"retrieval_score": "0.5"},
        {"retrieval_score": True},
        {"retrieval_score": float("nan")},
    ],
)
def test_labels_of_another_type_are_an_error_that_names_the_key(given: dict[str, object]) -> None:
    with pytest.raises(InputFormatError, match=rf"'{next(iter(given))}' is of type .*; accepted: "):
        read_input({**ROME, **given})


def test_a_label_is_no_place_where_documents_may_have_been() -> None:
    assert read_input({"answer": "Rome.", "query_class": "generic"}).unread == ()


def test_the_runnable_carries_labels_from_input_to_result() -> None:
    result = CHECKER.invoke({**ROME, **LABELS})
    assert labels_of(result) == LABELS
    assert labels_of(CHECKER.invoke(result)) == LABELS


def test_labels_can_be_bound_for_inputs_without_any() -> None:
    assert labels_of(CHECKER.invoke(ROME, **LABELS)) == LABELS


@pytest.mark.parametrize("late", [True, False])
def test_chunks_add_up_to_a_result_with_labels_whenever_they_came(*, late: bool) -> None:
    tasks: list[VerificationTask] = []

    def judged(task: VerificationTask) -> list[Any]:
        tasks.append(task)
        return []

    pieces: list[dict[str, Any]] = [{"answer": "Rome is in Italy. "}, {"answer": "It is old."}]
    pieces.insert(0, {"documents": ["Rome is in Italy."]})
    pieces.insert(len(pieces) if late else 0, dict(LABELS))
    checker = GroundednessRunnable(verifier=RunnableLambda(judged))
    chunks = list(checker.transform(iter(pieces)))
    total = chunks[0]
    for chunk in chunks[1:]:
        total += chunk
    assert labels_of(total) == LABELS
    assert len(tasks) == 2  # a label that comes late makes nothing be checked again


def chain(output: dict[str, Any]) -> Runnable[Any, Any]:
    return RunnableLambda(lambda _: {**ROME, **output})


def test_a_handler_reads_labels_from_the_metadata_of_the_run() -> None:
    handler = GroundednessCallbackHandler(CHECKER)
    chain({}).invoke("Where?", {"callbacks": [handler], "metadata": {**LABELS, "own": 1}})
    [result] = handler.results.values()
    assert labels_of(result) == LABELS


async def test_what_the_chain_returns_counts_more_than_metadata() -> None:
    handler = AsyncGroundednessCallbackHandler(CHECKER)
    output = {"query_class": "generic"}
    await chain(output).ainvoke("Where?", {"callbacks": [handler], "metadata": LABELS})
    [result] = handler.results.values()
    assert labels_of(result) == {**LABELS, "query_class": "generic"}


def test_a_handler_reads_labels_from_what_the_chain_was_given() -> None:
    handler = GroundednessCallbackHandler(CHECKER)
    chain({}).invoke({"question": "Where?", **LABELS}, {"callbacks": [handler]})
    [result] = handler.results.values()
    assert labels_of(result) == LABELS


def test_metadata_of_another_type_leaves_the_answer_unchecked_and_says_why() -> None:
    handler = GroundednessCallbackHandler(CHECKER)
    chain({}).invoke("Where?", {"callbacks": [handler], "metadata": {"risk_tier": 3}})
    [result] = handler.results.values()
    assert result.verdict == "unchecked"
    assert "'risk_tier' is of type int" in result.decision.reasons[0]


def seen(results: list[GroundednessResult]) -> Runnable[Any, GroundednessResult]:
    def check(value: Any) -> GroundednessResult:
        results.append(CHECKER.invoke(value))
        return results[-1]

    return RunnableLambda(check)


def test_the_middleware_reads_labels_from_the_metadata_of_the_run() -> None:
    results: list[GroundednessResult] = []
    model = ScriptedChatModel(replies=["Rome is in Italy."])
    agent: Any = create_agent(model, middleware=[GroundednessMiddleware(seen(results))])
    agent.invoke({"messages": [("user", "Where?")]}, {"metadata": LABELS})
    assert [labels_of(result) for result in results] == [LABELS]


@pytest.mark.parametrize("options", [{}, {"live": True}, {"hold_stream": True}])
def test_the_middleware_leaves_labels_in_the_state_however_it_listens(
    options: dict[str, Any],
) -> None:
    model = ScriptedChatModel(replies=["Rome is in Italy."])
    agent: Any = create_agent(model, middleware=[GroundednessMiddleware(CHECKER, **options)])
    asked = {"messages": [("user", "Where?")]}
    config = {"metadata": LABELS}
    states = [
        value
        for mode, value in agent.stream(asked, config, stream_mode=["values", "messages"])
        if mode == "values"
    ]
    record = states[-1]["groundedness"]
    assert {name: record[name] for name in LABELS} == LABELS


def test_a_node_reads_labels_from_the_state_and_then_from_metadata() -> None:
    results: list[GroundednessResult] = []
    node = groundedness_node(seen(results))
    state = {**ROME, "query_class": "generic"}
    node.invoke(state, {"metadata": LABELS})
    assert labels_of(results[0]) == {**LABELS, "query_class": "generic"}


def test_labels_stand_beside_messages() -> None:
    call = AIMessage("", tool_calls=[{"name": "find", "args": {}, "id": "1"}])
    tool = ToolMessage("", tool_call_id="1", artifact=[Document("Rome is in Italy.")])
    messages = [HumanMessage("Where?"), call, tool, AIMessage("In Italy.")]
    assert read_input({"messages": messages, **LABELS}).labels == LABELS
