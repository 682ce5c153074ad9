"""What is judged in an agent, and against what."""

from typing import Any

import pytest
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from langchain_core.documents import Document
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel

from langchain_groundedness import GroundednessMiddleware
from middleware.agent_scripts import (
    QUESTION,
    REPORT,
    TRUE,
    How,
    agent_of,
    call,
    checker,
    run,
    search_tool,
    text_tool,
)


class Figures(BaseModel):
    """Answer."""

    revenue: str
    quarter: int = 3


def texts(documents: Any) -> list[str]:
    return [document.page_content for document in documents]


def test_documents_in_artifacts_are_the_evidence_and_not_the_text_beside_them(how: How) -> None:
    check, judge = checker()
    agent = agent_of(call(), TRUE, middleware=GroundednessMiddleware(check))
    run(agent, QUESTION, how)
    assert judge.tasks[0].documents == (REPORT,)
    assert judge.tasks[0].question == "What was Q3 revenue?"


def test_text_of_tools_without_artifacts_is_evidence(how: How) -> None:
    check, judge = checker()
    tools = [text_tool("Revenue: $2.1B")]
    replies = (call("lookup"), TRUE)
    run(agent_of(*replies, middleware=GroundednessMiddleware(check), tools=tools), QUESTION, how)
    assert texts(judge.tasks[0].documents) == ["Revenue: $2.1B"]


def test_documents_come_before_texts_only_where_a_tool_gives_both(how: How) -> None:
    check, judge = checker()
    tools = [text_tool("Revenue: $2.1B"), search_tool()]
    replies = (call("lookup"), call("search"), TRUE)
    run(agent_of(*replies, middleware=GroundednessMiddleware(check), tools=tools), QUESTION, how)
    assert texts(judge.tasks[0].documents) == ["Revenue: $2.1B", REPORT.page_content]


def test_results_of_earlier_turns_are_no_evidence_where_only_the_turn_counts(how: How) -> None:
    check, judge = checker(evidence="turn")
    middleware = GroundednessMiddleware(check)
    replies = (call(), TRUE, call("lookup"), "It is sunny in Rome today.")
    tools = [search_tool(), text_tool("Rome: sunny")]
    agent = agent_of(*replies, middleware=middleware, tools=tools, checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "1"}}
    run(agent, QUESTION, how, config)
    state = run(agent, {"messages": [("user", "How is it in Rome?")]}, how, config)
    assert texts(judge.tasks[-1].documents) == ["Rome: sunny"]
    assert state["groundedness"]["message_id"] == state["messages"][-1].id


def test_the_system_prompt_is_no_evidence(how: How) -> None:
    check, judge = checker()
    middleware = GroundednessMiddleware(check)
    state = run(agent_of(TRUE, middleware=middleware, system_prompt=TRUE), QUESTION, how)
    assert judge.tasks == []
    assert state["groundedness"]["claims"][0]["reason"] == "no documents to check against"
    assert not state["groundedness"]["is_trusted"]


def test_other_keys_of_the_state_are_no_evidence() -> None:
    check, judge = checker()
    middleware = GroundednessMiddleware(check)
    update = middleware.after_agent(
        {"messages": [AIMessage(TRUE)], "documents": [TRUE], "answer": "no", "context": TRUE},
        None,  # type: ignore[arg-type]
    )
    assert judge.tasks == []
    assert update
    assert update["groundedness"]["verdict"] == "unchecked"


def test_an_extractor_may_name_other_evidence(how: How) -> None:
    def read(state: Any) -> Any:
        return state["messages"][-1].text, ["my own source"]

    check, judge = checker()
    middleware = GroundednessMiddleware(check, context_extractor=read)
    state = run(agent_of(TRUE, middleware=middleware), QUESTION, how)
    assert texts(judge.tasks[0].documents) == ["my own source"]
    assert state["groundedness"]["outcome"] == "passed"


def test_turns_that_call_tools_are_not_judged(how: How) -> None:
    check, judge = checker()
    replies = (call(text="Revenue was $9B in 1920."), call(text="It was $8B in 1921."), TRUE)
    run(agent_of(*replies, middleware=GroundednessMiddleware(check)), QUESTION, how)
    assert [claim.text for task in judge.tasks for claim in task.claims] == [TRUE]


def test_a_tool_result_that_is_handed_over_is_left_alone_and_said_to_be_unchecked(
    how: How,
) -> None:
    check, judge = checker()
    middleware = GroundednessMiddleware(check, on_ungrounded="block")
    tools = [text_tool("Revenue was $2.4B.", return_direct=True)]
    state = run(agent_of(call("lookup"), middleware=middleware, tools=tools), QUESTION, how)
    assert state["messages"][-1].text == "Revenue was $2.4B."
    assert judge.tasks == []
    assert state["groundedness"]["outcome"] == "not_judged"
    assert state["groundedness"]["verdict"] == "unchecked"


def test_a_tool_that_answers_itself_from_documents_is_judged(how: How) -> None:
    check, judge = checker()
    middleware = GroundednessMiddleware(check, on_ungrounded="block", blocked_message="No.")
    tools = [search_tool(Document("Nothing."), return_direct=True)]
    state = run(agent_of(call(), middleware=middleware, tools=tools), QUESTION, how)
    assert texts(judge.tasks[0].documents) == ["Nothing."]
    assert state["messages"][-1].text == "found some documents on Q3"


@pytest.mark.parametrize("strategy", [ToolStrategy(Figures), Figures])
def test_structured_answers_are_judged_by_their_values(how: How, strategy: Any) -> None:
    check, judge = checker()
    replies = (call(), call("Figures", revenue="$2.1B in total", quarter=3))
    middleware = GroundednessMiddleware(check)
    state = run(agent_of(*replies, middleware=middleware, response_format=strategy), QUESTION, how)
    assert state["structured_response"] == Figures(revenue="$2.1B in total")
    assert judge.tasks[0].answer == "revenue: $2.1B in total\n\nquarter: 3"
    assert judge.tasks[0].documents == (REPORT,)
    assert state["groundedness"]["verdict"] == "grounded"


def test_structured_answers_of_the_provider_are_judged_too(how: How) -> None:
    check, judge = checker()
    replies = (call(), '{"revenue": "$2.1B in total", "quarter": 3}')
    middleware = GroundednessMiddleware(check)
    agent = agent_of(*replies, middleware=middleware, response_format=ProviderStrategy(Figures))
    state = run(agent, QUESTION, how)
    assert judge.tasks[0].answer == "revenue: $2.1B in total\n\nquarter: 3"
    assert state["messages"][-1].text == '{"revenue": "$2.1B in total", "quarter": 3}'
