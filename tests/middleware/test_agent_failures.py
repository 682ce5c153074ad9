"""A check that fails leaves the answer unchecked, says so, and ends nobody's run."""

import logging
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver

from langchain_groundedness import GroundednessMiddleware, GroundednessRunnable, VerificationError
from langchain_groundedness.testing import ScriptedChatModel
from middleware.agent_scripts import QUESTION, TRUE, How, agent_of, call, checker, run, search_tool

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

BROKEN = "This sentence is broken."
BLOCKED = "I cannot give an answer that the sources support."
THREAD: Any = {"configurable": {"thread_id": "1"}}


def failing(error: Exception) -> Runnable[Any, Any]:
    return RunnableLambda(Mock(side_effect=error))


def test_a_judge_that_fails_leaves_claims_unchecked(how: How) -> None:
    check, _ = checker()
    state = run(agent_of(call(), BROKEN, middleware=GroundednessMiddleware(check)), QUESTION, how)
    record = state["groundedness"]
    assert state["messages"][-1].text == BROKEN
    assert record["verdict"] == "unchecked"
    assert not record["is_trusted"]
    assert record["decision"]["action"] == "review"
    assert record["claims"][0]["reason"] == "verification failed (TimeoutError)"


@pytest.mark.parametrize("mode", ["annotate", "retry"])
def test_a_checker_that_raises_leaves_the_answer_unchecked_and_says_so_once(
    how: How, mode: Any, caplog: pytest.LogCaptureFixture
) -> None:
    middleware = GroundednessMiddleware(failing(ConnectionError("secret")), on_ungrounded=mode)
    with caplog.at_level(logging.WARNING):
        state = run(agent_of(call(), TRUE, middleware=middleware), QUESTION, how)
    record = state["groundedness"]
    assert state["messages"][-1].text == TRUE
    assert record["verdict"] == "unchecked"
    assert not record["is_trusted"]
    assert record["claims"][0]["reason"] == "the check failed (ConnectionError)"
    (line,) = [r.getMessage() for r in caplog.records if r.name.startswith("langchain_grounded")]
    assert "ConnectionError" in line
    assert "secret" not in line
    assert TRUE not in line


@pytest.mark.parametrize("mode", ["correct", "block"])
def test_a_checker_that_raises_is_no_way_past_a_block(how: How, mode: Any) -> None:
    middleware = GroundednessMiddleware(failing(ConnectionError()), on_ungrounded=mode)
    state = run(agent_of(call(), TRUE, middleware=middleware), QUESTION, how)
    assert state["messages"][-1].text == BLOCKED


def test_a_checker_that_raises_is_no_way_past_a_reviewer(how: How) -> None:
    middleware = GroundednessMiddleware(failing(ConnectionError()), on_ungrounded="review")
    agent = agent_of(call(), TRUE, middleware=middleware, checkpointer=InMemorySaver())
    paused = run(agent, QUESTION, how, THREAD)
    assert paused["__interrupt__"][0].value["groundedness"]["verdict"] == "unchecked"


def test_an_extractor_that_fails_leaves_the_answer_unchecked(how: How) -> None:
    read = Mock(side_effect=KeyError)
    middleware = GroundednessMiddleware(context_extractor=read, on_ungrounded="block")
    state = run(agent_of(call(), TRUE, middleware=middleware), QUESTION, how)
    assert state["messages"][-1].text == BLOCKED
    assert state["groundedness"]["claims"][0]["reason"] == "reading the state failed (KeyError)"


def test_who_asks_for_an_error_gets_it(how: How) -> None:
    check, _ = checker(raise_on_failure=True)
    agent = agent_of(call(), BROKEN, middleware=GroundednessMiddleware(check))
    with pytest.raises(VerificationError):
        run(agent, QUESTION, how)


@pytest.mark.parametrize("reply", ["gibberish", TimeoutError(), ""])
def test_a_model_that_judges_badly_supports_nothing(how: How, reply: Any) -> None:
    model: BaseChatModel = ScriptedChatModel(replies=[reply] * 9)
    check = GroundednessRunnable(model=model)
    state = run(agent_of(call(), TRUE, middleware=GroundednessMiddleware(check)), QUESTION, how)
    assert [c["verdict"] for c in state["groundedness"]["claims"]] == ["unchecked"]


def test_blank_documents_support_nothing(how: How) -> None:
    check, judge = checker()
    tools = [search_tool(Document("  "))]
    middleware = GroundednessMiddleware(check, on_ungrounded="block")
    state = run(agent_of(call(), TRUE, middleware=middleware, tools=tools), QUESTION, how)
    assert judge.tasks == []
    assert state["messages"][-1].text == BLOCKED


def test_a_run_that_ends_without_an_answer_says_so() -> None:
    check, judge = checker()
    middleware = GroundednessMiddleware(check, on_ungrounded="block")
    update = middleware.after_agent(
        {"messages": [call()]},
        None,  # type: ignore[arg-type]
    )
    assert judge.tasks == []
    assert update
    assert set(update) == {"groundedness"}
    assert update["groundedness"]["outcome"] == "not_judged"
    assert update["groundedness"]["verdict"] == "unchecked"
