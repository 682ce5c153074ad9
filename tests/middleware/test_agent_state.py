"""What the middleware leaves in the state: plain data that every checkpointer can keep."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver

from langchain_groundedness import ClaimVerdict, GroundednessMiddleware
from langchain_groundedness.middleware import GroundednessState
from middleware.agent_scripts import (
    FALSE,
    QUESTION,
    TRUE,
    How,
    agent_of,
    call,
    checker,
    run,
    search_tool,
)

ODD = Document(TRUE, metadata={"when": Path("x"), "set": {1}, "nested": {"tuple": (1, None)}})
THREAD: Any = {"configurable": {"thread_id": "1"}}


def is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(type(key) is str and is_plain(inner) for key, inner in value.items())
    if isinstance(value, list):
        return all(map(is_plain, value))
    return value is None or type(value) in (str, int, float, bool)


@pytest.mark.parametrize("answer", [TRUE, FALSE, f"{TRUE} {FALSE}"])
@pytest.mark.parametrize("mode", ["annotate", "correct", "retry", "block"])
def test_the_record_is_plain_data_whatever_the_metadata_of_documents_hold(
    mode: Any, answer: str, how: How
) -> None:
    check, _ = checker()
    middleware = GroundednessMiddleware(check, on_ungrounded=mode, max_retries=0)
    state = run(
        agent_of(call(), answer, middleware=middleware, tools=[search_tool(ODD)]), QUESTION, how
    )
    assert is_plain(state["groundedness"])
    assert json.loads(json.dumps(state["groundedness"])) == state["groundedness"]


def test_a_strict_serializer_keeps_the_whole_state() -> None:
    check, _ = checker()
    serde = JsonPlusSerializer(allowed_msgpack_modules=None)
    saver = InMemorySaver(serde=serde)
    agent = agent_of(
        call(), f"{TRUE} {FALSE}", middleware=GroundednessMiddleware(check), checkpointer=saver
    )
    state = agent.invoke(QUESTION, THREAD)
    kept = agent.get_state(THREAD).values
    assert kept["groundedness"] == state["groundedness"]
    assert kept["messages"][-1].content == state["messages"][-1].content
    assert serde.loads_typed(serde.dumps_typed(state["groundedness"])) == state["groundedness"]


def test_a_database_keeps_verdicts_and_annotations(tmp_path: Path) -> None:
    check, _ = checker()
    saver = SqliteSaver(sqlite3.connect(tmp_path / "kept.db", check_same_thread=False))
    agent = agent_of(
        call(), f"{TRUE} {FALSE}", middleware=GroundednessMiddleware(check), checkpointer=saver
    )
    state = agent.invoke(QUESTION, THREAD)
    kept = agent.get_state(THREAD).values
    saver.conn.close()
    assert kept["groundedness"] == state["groundedness"]
    verdicts = [ClaimVerdict.model_validate(v) for v in kept["groundedness"]["claims"]]
    assert [v.verdict for v in verdicts] == ["supported", "contradicted"]
    assert kept["messages"][-1].content == state["messages"][-1].content


def test_the_verdicts_can_be_read_from_the_output_but_not_given_as_input() -> None:
    agent = agent_of(TRUE, middleware=GroundednessMiddleware())
    assert "groundedness" in agent.get_output_jsonschema()["properties"]
    assert "groundedness" not in agent.get_input_jsonschema()["properties"]
    assert GroundednessState.__annotations__["groundedness"]


def test_a_new_turn_gets_a_new_record(how: How) -> None:
    check, _ = checker(evidence="turn")
    replies = (call(), FALSE, "You are welcome, ask me anything.")
    middleware = GroundednessMiddleware(check)
    agent = agent_of(*replies, middleware=middleware, checkpointer=InMemorySaver())
    first = run(agent, QUESTION, how, THREAD)["groundedness"]
    second = run(agent, {"messages": [("user", "Thanks!")]}, how, THREAD)["groundedness"]
    assert first["verdict"] == "has_contradictions"
    assert second["verdict"] == "unchecked" or second["claims"] == []
    assert second["message_id"] != first["message_id"]
