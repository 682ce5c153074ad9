"""Evidence of earlier turns, which outlives the messages, and text that models wrote in tools."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, SummarizationMiddleware
from langchain.agents.structured_output import ToolStrategy
from langchain.tools import tool
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, RemoveMessage, ToolMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import BaseTool, create_retriever_tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command
from pydantic import BaseModel

from langchain_groundedness import GroundednessMiddleware, groundedness_node
from middleware.agent_scripts import (
    FALSE,
    QUESTION,
    REPORT,
    TRUE,
    How,
    Writer,
    agent_of,
    call,
    checker,
    run,
    search_tool,
    text_tool,
    tokens,
)

THREAD: Any = {"configurable": {"thread_id": "1"}}
ASK_AGAIN = {"messages": [("user", "Are you sure about Q3?")]}


@pytest.fixture(params=["memory", "SQLite"])
def saver(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    if request.param == "memory":
        return InMemorySaver()
    return SqliteSaver(sqlite3.connect(tmp_path / "kept.db", check_same_thread=False))


@pytest.mark.parametrize("mode", ["annotate", "correct", "block"])
def test_a_second_turn_is_checked_against_the_documents_of_the_first(mode: Any, saver: Any) -> None:
    middleware = GroundednessMiddleware(on_ungrounded=mode)
    agent = agent_of(call(), TRUE, TRUE, FALSE, middleware=middleware, checkpointer=saver)
    run(agent, QUESTION, "sync", THREAD)
    state = run(agent, ASK_AGAIN, "sync", THREAD)
    assert state["messages"][-1].text == TRUE
    assert state["groundedness"]["verdict"] == "grounded"
    assert state["groundedness"]["evidence_source"] == "retrieved"
    [citation] = state["groundedness"]["claims"][0]["citations"]
    assert citation["metadata"] == {**REPORT.metadata, "turn": 1}
    state = run(agent, ASK_AGAIN, "sync", THREAD)
    assert state["groundedness"]["verdict"] == "has_contradictions"


@pytest.mark.parametrize("mode", ["block", "review", "correct", "retry"])
def test_agents_inside_a_graph_keep_the_evidence_of_their_thread(mode: Any, saver: Any) -> None:
    middleware = GroundednessMiddleware(on_ungrounded=mode)
    agent = agent_of(call(), TRUE, TRUE, middleware=middleware, checkpointer=True)
    graph: Any = StateGraph(MessagesState)
    graph.add_node("agent", agent)
    graph.add_edge(START, "agent")
    outer = graph.compile(checkpointer=saver)
    for asked in (QUESTION, ASK_AGAIN):
        state = outer.invoke(asked, THREAD)
        assert state["messages"][-1].text == TRUE
        assert "__interrupt__" not in state


def test_only_the_turn_counts_where_that_is_asked_for(how: How) -> None:
    middleware = GroundednessMiddleware(on_ungrounded="block", evidence="turn", blocked_message="-")
    agent = agent_of(call(), TRUE, TRUE, middleware=middleware, checkpointer=InMemorySaver())
    run(agent, QUESTION, how, THREAD)
    assert run(agent, ASK_AGAIN, how, THREAD)["messages"][-1].text == "-"


def test_a_held_stream_of_a_second_turn_is_checked_against_the_first(how: How) -> None:
    middleware = GroundednessMiddleware(hold_stream=True)
    agent = agent_of(
        call(), TRUE, f"{TRUE} {FALSE}", middleware=middleware, checkpointer=InMemorySaver()
    )
    run(agent, QUESTION, how, THREAD)
    assert "".join(tokens(agent, ASK_AGAIN, how, THREAD)).strip() == TRUE


class Trimming(AgentMiddleware[Any, Any]):
    """Keeps the last message only."""

    def before_model(self, state: Any, runtime: Any) -> dict[str, Any]:
        return {"messages": [RemoveMessage(id=m.id) for m in state["messages"][:-1]]}

    async def abefore_model(self, state: Any, runtime: Any) -> dict[str, Any]:
        return self.before_model(state, runtime)


def shortening(kind: str) -> Any:
    if kind == "trimming":
        return Trimming()
    model = FakeListChatModel(responses=["They spoke of revenue."])
    return SummarizationMiddleware(model, trigger=("messages", 3), keep=("messages", 1))


@pytest.mark.parametrize("kind", ["trimming", "summarization"])
@pytest.mark.parametrize("ours_first", [True, False])
def test_evidence_outlives_the_messages_in_both_orders(
    kind: str,
    ours_first: bool,  # noqa: FBT001  (pytest passes it by name)
    how: How,
) -> None:
    check, judge = checker()
    both = [GroundednessMiddleware(check), shortening(kind)]
    model = Writer(replies=[call(), TRUE, call("lookup"), TRUE, TRUE])
    agent: Any = create_agent(
        model,
        [search_tool(), text_tool("Costs were $1B.")],
        middleware=both if ours_first else both[::-1],
        checkpointer=InMemorySaver(),
    )
    for _ in range(3):
        state = run(agent, QUESTION, how, THREAD)
    assert not any(isinstance(message, ToolMessage) for message in state["messages"])
    found = judge.tasks[-1].documents
    assert [(d.page_content, d.id, d.metadata["turn"]) for d in found] == [
        ("Costs were $1B.", None, 2),
        (REPORT.page_content, "report", 1),
    ]
    assert state["groundedness"]["verdict"] == "grounded"
    assert [m.text for m in model.requests[-1]][-1] == "What was Q3 revenue?"


def test_what_is_kept_is_bounded_and_not_in_the_output() -> None:
    check, judge = checker()
    tools = [search_tool(Document("Revenue. " * 10_000))]
    replies = [call(), TRUE] * 4 + [TRUE]
    agent = agent_of(
        *replies,
        middleware=GroundednessMiddleware(check),
        tools=[*tools],
        checkpointer=InMemorySaver(),
    )
    for _ in range(5):
        state = run(agent, QUESTION, "sync", THREAD)
    kept = agent.get_state(THREAD).values["groundedness_evidence"]
    assert len(str(kept)) < 250_000
    assert "groundedness_evidence" not in state
    assert judge.tasks[-1].documents
    assert all("turn" in document.metadata for document in judge.tasks[-1].documents)


class Figures(BaseModel):
    """Answer."""

    revenue: str


def test_a_structured_answer_of_an_earlier_turn_is_no_evidence(how: How) -> None:
    check, judge = checker()
    replies = [call(), call("Figures", revenue="$2.4B"), call("Figures", revenue="$2.4B")]
    middleware = GroundednessMiddleware(check)
    agent = agent_of(
        *replies,
        middleware=middleware,
        response_format=ToolStrategy(Figures),
        checkpointer=InMemorySaver(),
    )
    run(agent, QUESTION, how, THREAD)
    run(agent, ASK_AGAIN, how, THREAD)
    assert [d.page_content for d in judge.tasks[-1].documents] == [REPORT.page_content]


def test_a_node_reads_the_thread_from_the_messages() -> None:
    check, judge = checker()
    found = ToolMessage("Revenue: $2.1B", tool_call_id="1", name="search")
    messages = [
        ("user", "Revenue?"),
        call(),
        found,
        AIMessage(TRUE),
        ("user", "Sure?"),
        ("ai", TRUE),
    ]
    for evidence, count in (("thread", 1), ("turn", 1)):
        check, judge = checker(evidence=evidence)
        groundedness_node(check).invoke({"messages": messages})
        assert len(judge.tasks) == (count if evidence == "thread" else 0)


# Text that a model wrote inside a tool


class Library(BaseRetriever):
    """Finds the report, and asks a model how to search first."""

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        callbacks = run_manager.get_child()
        Writer(replies=["Q3 revenue"]).invoke(query, {"callbacks": callbacks})
        return [REPORT]


def sub_agent() -> Any:
    return create_agent(Writer(replies=[call(), FALSE, call(), FALSE]), [search_tool()])


@tool
def ask_analyst(query: str) -> str:
    """Ask the analyst."""
    state = sub_agent().invoke({"messages": [("user", query)]})
    return str(state["messages"][-1].text)


@tool
async def ask_analyst_later(query: str) -> str:
    """Ask the analyst."""
    state = await sub_agent().ainvoke({"messages": [("user", query)]})
    return str(state["messages"][-1].text)


@tool
def hand_over(query: str) -> Command[Any]:
    """Let a model answer, and hand over what it says."""
    said = Writer(replies=[FALSE]).invoke(query).text
    message = ToolMessage(said, name="hand_over", tool_call_id="call-hand_over")
    return Command(update={"messages": [message]})


def reply_of(used: BaseTool, how: How, **options: Any) -> dict[str, Any]:
    name = used.name
    middleware = GroundednessMiddleware(**options)
    agent = agent_of(call(name), FALSE, middleware=middleware, tools=[used])
    record: dict[str, Any] = run(agent, QUESTION, how)["groundedness"]
    return record


@pytest.mark.parametrize("used", [ask_analyst, ask_analyst_later, hand_over])
def test_the_text_of_a_sub_agent_is_no_evidence_unless_it_is_trusted(used: Any, how: How) -> None:
    if used is ask_analyst_later and how == "sync":
        pytest.skip("a tool that must be awaited")
    assert reply_of(used, how)["verdict"] == "unchecked"
    assert reply_of(used, how, trust_generated=True)["verdict"] == "grounded"


def test_a_retriever_that_asks_a_model_how_to_search_finds_evidence(how: How) -> None:
    search = create_retriever_tool(Library(), "search", "Searches.")
    assert reply_of(search, how)["verdict"] == "has_contradictions"


def test_two_tools_that_run_together_are_told_apart(how: How) -> None:
    calls = [*call("ask_analyst").tool_calls, *call("lookup").tool_calls]
    check, judge = checker()
    agent = agent_of(
        AIMessage("", tool_calls=calls),
        TRUE,
        middleware=GroundednessMiddleware(check),
        tools=[ask_analyst, text_tool("Revenue: $2.1B")],
    )
    run(agent, QUESTION, how)
    assert [d.page_content for d in judge.tasks[-1].documents] == ["Revenue: $2.1B"]


def test_watching_tools_leaves_their_callbacks_alone() -> None:
    class Seen(BaseCallbackHandler):
        starts = 0

        def on_chat_model_start(self, *args: Any, **kwargs: Any) -> None:
            self.starts += 1

    seen = Seen()
    agent = agent_of(
        call("ask_analyst"), TRUE, middleware=GroundednessMiddleware(), tools=[ask_analyst]
    )
    agent.invoke(QUESTION, {"callbacks": [seen]})
    assert seen.starts == 4
