"""The node for hand-written graphs."""

import operator
import pickle
from typing import Annotated, Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langchain_core.runnables import RunnablePassthrough
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, Send
from pydantic import BaseModel
from typing_extensions import TypedDict

from langchain_groundedness import ConfigurationError, groundedness_node
from middleware.agent_scripts import (
    FALSE,
    QUESTION,
    REPORT,
    TRUE,
    How,
    Writer,
    call,
    checker,
    run,
)

THREAD: Any = {"configurable": {"thread_id": "1"}}
BLOCKED = "I cannot give an answer that the sources support."


class Talk(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    groundedness: dict[str, Any]


class Lookup(TypedDict, total=False):
    question: str
    context: list[Document]
    answer: str
    groundedness: dict[str, Any]


class Answered(BaseModel):
    question: str = ""
    context: list[str] = []
    answer: str = ""
    groundedness: dict[str, Any] | None = None


def again(state: Any) -> str:
    return "model" if state["groundedness"]["outcome"] in {"retrying", "responded"} else END


def talking(*replies: str, **options: Any) -> tuple[Any, Writer]:
    """Make a graph of a search, a model and the node."""
    model = Writer(replies=list(replies))
    found = ToolMessage("found", artifact=[REPORT], tool_call_id="call-search")
    check, _ = checker()
    graph: Any = StateGraph(Talk)
    graph.add_node("search", lambda state: {"messages": [call(), found]})  # noqa: ARG005
    graph.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
    graph.add_node("check", groundedness_node(check, **options))
    for first, second in ((START, "search"), ("search", "model"), ("model", "check")):
        graph.add_edge(first, second)
    graph.add_conditional_edges("check", again, ["model", END])
    return graph.compile(checkpointer=InMemorySaver()), model


def looking_up(answer: str, schema: Any = Lookup, **options: Any) -> Any:
    """Make a graph without messages."""
    check, _ = checker()
    graph: Any = StateGraph(schema)
    graph.add_node("answer", lambda state: {"answer": answer})  # noqa: ARG005
    graph.add_node("check", groundedness_node(check, **options))
    for first, second in ((START, "answer"), ("answer", "check"), ("check", END)):
        graph.add_edge(first, second)
    return graph.compile(checkpointer=InMemorySaver())


def test_the_node_annotates_the_answer_and_tells_the_verdicts(how: How) -> None:
    graph, _ = talking(TRUE)
    state = run(graph, QUESTION, how, THREAD)
    assert state["groundedness"]["verdict"] == "grounded"
    (block,) = state["messages"][-1].content
    assert block["annotations"][0]["cited_text"] == REPORT.page_content


def test_a_graph_can_lead_back_to_the_model(how: How) -> None:
    graph, model = talking(FALSE, TRUE, on_ungrounded="retry")
    state = run(graph, QUESTION, how, THREAD)
    assert FALSE in model.requests[-1][-1].text
    assert [m.type for m in state["messages"]] == ["human", "ai", "tool", "ai"]
    assert state["messages"][-1].text == TRUE
    assert state["groundedness"]["retries"] == 1


def test_retries_of_a_graph_are_capped(how: How) -> None:
    graph, model = talking(FALSE, FALSE, on_ungrounded="retry", after_retries="block")
    state = run(graph, QUESTION, how, THREAD)
    assert len(model.requests) == 2
    assert state["messages"][-1].text == BLOCKED


def test_the_node_blocks_and_warns_where_the_graph_could_not_go_on(how: How, caplog: Any) -> None:
    check, _ = checker()
    graph: Any = StateGraph(Lookup)
    graph.add_node("answer", lambda state: {"answer": FALSE})  # noqa: ARG005
    graph.add_node("check", groundedness_node(check, on_ungrounded="review"))
    graph.add_edge(START, "answer").add_edge("answer", "check")
    state = run(graph.compile(), {"question": "How was Q3?", "context": [REPORT]}, how)
    assert (state["answer"], state["groundedness"]["outcome"]) == (BLOCKED, "blocked")
    assert "no checkpointer" in caplog.text


def test_the_node_asks_a_reviewer(how: How) -> None:
    graph, _ = talking(FALSE, on_ungrounded="review")
    paused = run(graph, QUESTION, how, THREAD)
    assert paused["__interrupt__"][0].value["type"] == "groundedness_review"
    state = run(graph, Command(resume={"type": "edit", "answer": TRUE}), how, THREAD)
    assert state["messages"][-1].text == TRUE


@pytest.mark.parametrize("schema", [Lookup, Answered])
def test_a_graph_without_messages_gets_its_changed_answer_where_it_was(
    how: How, schema: Any
) -> None:
    documents: list[Any] = [REPORT] if schema is Lookup else [REPORT.page_content]
    value = {"question": "Revenue?", "context": documents}
    blocked = run(looking_up(FALSE, schema, on_ungrounded="block"), value, how, THREAD)
    passed = run(looking_up(TRUE, schema, on_ungrounded="block"), value, how, THREAD)
    assert blocked["answer"] == BLOCKED
    assert blocked["groundedness"]["outcome"] == "blocked"
    assert passed["answer"] == TRUE
    assert passed["groundedness"]["verdict"] == "grounded"


def test_a_graph_without_messages_finds_in_its_state_what_the_model_should_hear() -> None:
    node = groundedness_node(checker()[0], on_ungrounded="retry")
    state = {"question": "Revenue?", "context": [REPORT], "answer": FALSE}
    first = node.invoke(state)
    assert set(first) == {"groundedness"}
    assert first["groundedness"]["outcome"] == "retrying"
    assert FALSE in first["groundedness"]["feedback"]
    second = node.invoke({**state, **first})
    assert second["groundedness"]["outcome"] == "annotated"
    assert node.invoke({**state, **first, "question": "?"})["groundedness"]["outcome"] == "retrying"


def test_a_graph_without_messages_can_be_reviewed(how: How) -> None:
    graph = looking_up(FALSE, on_ungrounded="review")
    run(graph, {"question": "Revenue?", "context": [REPORT]}, how, THREAD)
    state = run(graph, Command(resume={"type": "reject", "message": "Ask Ann."}), how, THREAD)
    assert state["answer"] == "Ask Ann."


def test_a_state_that_cannot_be_read_is_unchecked_and_not_fine(how: How) -> None:
    graph = looking_up(TRUE, on_ungrounded="block")
    documents: Any = [3]
    state = run(graph, {"question": "Revenue?", "context": documents}, how, THREAD)
    assert state["groundedness"]["verdict"] == "unchecked"
    assert not state["groundedness"]["is_trusted"]
    assert state["answer"] == BLOCKED


def test_a_state_with_two_lists_of_documents_says_which_option_chooses(
    caplog: pytest.LogCaptureFixture,
) -> None:
    state = {"answer": TRUE, "hits": [REPORT], "others": [REPORT]}
    found = groundedness_node().invoke(state)["groundedness"]
    wanted = "under 'hits' and 'others': name one of them with documents_key="
    assert wanted in found["claims"][0]["reason"]
    assert wanted in caplog.text


def test_options_of_the_node_are_checked() -> None:
    with pytest.raises(ConfigurationError, match="on_ungrounded must be one of"):
        groundedness_node(on_ungrounded="ignore")  # type: ignore[arg-type]


class Parts(TypedDict):
    """Several answers of one graph."""

    drafts: list[str]
    answers: Annotated[list[str], operator.add]


def test_each_branch_of_a_graph_has_its_own_check(how: How) -> None:
    check, _ = checker()
    inner: Any = StateGraph(Lookup)
    inner.add_node("check", groundedness_node(check, on_ungrounded="block"))
    inner.add_edge(START, "check")
    branch = inner.compile()

    def ask(given: dict[str, str]) -> dict[str, Any]:
        state = branch.invoke({"answer": given["draft"], "context": [REPORT]})
        return {"answers": [state["answer"]]}

    def spread(state: Parts) -> list[Send]:
        return [Send("ask", {"draft": draft}) for draft in state["drafts"]]

    outer: Any = StateGraph(Parts)
    outer.add_node("ask", ask)
    outer.add_conditional_edges(START, spread, ["ask"])
    app = outer.compile(checkpointer=InMemorySaver())
    state = run(app, {"drafts": [TRUE, FALSE, TRUE], "answers": []}, how, THREAD)
    assert state["answers"] == [TRUE, BLOCKED, TRUE]


def test_an_artifact_that_is_no_document_leaves_the_answer_unchecked(how: How) -> None:
    graph = StateGraph(Talk).add_node("check", groundedness_node())
    graph.add_edge(START, "check")
    broken = {"page_content": "Rome", "metadata": "abc"}
    tool = ToolMessage("Rome is big.", artifact=broken, tool_call_id="call-search")
    state = run(graph.compile(), {"messages": [*QUESTION["messages"], *_searching(), tool]}, how)
    assert state["groundedness"]["verdict"] == "unchecked"


def _searching() -> list[Any]:
    calls = [{"name": "search", "args": {}, "id": "call-search"}]
    return [AIMessage("", tool_calls=calls)]


def test_a_node_with_any_runnable_as_checker_can_be_pickled() -> None:
    node = groundedness_node(RunnablePassthrough())
    assert pickle.loads(pickle.dumps(node)) is not None  # noqa: S301  (our own bytes)
