"""What may be withheld is in no stream before its check, whatever shows the agent's work."""

import asyncio
import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from types import UnionType
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    ModelCallLimitMiddleware,
    PIIMiddleware,
    hook_config,
)
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command
from pydantic import BaseModel, ConfigDict, Field, RootModel, computed_field, field_validator

from langchain_groundedness import DecisionPolicy, GroundednessMiddleware
from middleware.agent_scripts import (
    FALSE,
    QUESTION,
    TRUE,
    How,
    Writer,
    agent_of,
    call,
    checker,
    run,
    search_tool,
)

THREAD: Any = {"configurable": {"thread_id": "1"}}
BLOCKED = "I cannot give an answer that the sources support."
MODES: Any = [
    {"on_ungrounded": "block"},
    {"on_ungrounded": "review"},
    {"on_ungrounded": "policy"},
    {"on_ungrounded": "retry", "after_retries": "block"},
    {"on_ungrounded": "retry", "after_retries": "review"},
    {"on_ungrounded": "correct", "hold_stream": True},
]


class Figures(BaseModel):
    """Answer."""

    revenue: str


@dataclass
class PlainFigures:
    """Answer."""

    revenue: str


class Renamed(BaseModel):
    """Answer."""

    revenue: str = Field(alias="Revenue")


class Computed(Renamed):
    """Answer."""

    model_config = ConfigDict(extra="forbid", strict=True)
    day: date = Field(default=date(2026, 1, 31))

    @computed_field
    def length(self) -> int:
        """Count characters."""
        return len(self.revenue)


class Excluded(BaseModel):
    """Answer."""

    revenue: str = Field(alias="Revenue", exclude=True)


class Rows(RootModel[list[Computed]]):
    """Answers."""


class Nested(BaseModel):
    """Answer."""

    outer: Excluded
    others: Rows = Rows([Computed(Revenue="")])


class Derived(BaseModel):
    """Answer."""

    revenue: str
    last_year: str = "Nothing."

    @computed_field
    def first_word(self) -> str:
        """Fail on empty texts."""
        return self.revenue.split()[0] + self.last_year.split()[0]


class Converted(BaseModel):
    """Answer."""

    revenue: str
    share: float = 0.1

    @field_validator("share", mode="before")
    @classmethod
    def _of_percent(cls, value: Any) -> float:
        return float(value.strip("%")) / 100


class Rescaled(BaseModel):
    """Answer."""

    revenue: str
    share: float = 0.1

    @field_validator("share", mode="after")
    @classmethod
    def _of_percent(cls, value: float) -> float:
        return value / 100


def middleware(**options: Any) -> GroundednessMiddleware:
    check, _ = checker(policy=DecisionPolicy(contradicted="review"))
    return GroundednessMiddleware(check, **options)


def parts_of(agent: Any, how: How, mode: str, *, subgraphs: bool = False) -> list[Any]:
    """Give what a stream yields, without the verdicts and without the request to a reviewer."""

    async def collect() -> list[Any]:
        if mode == "events":
            events = agent.astream_events(QUESTION, THREAD, version="v2")
            # The check, which reads the answer, and its verdicts have this tag.
            events = [event async for event in events if "nostream" not in event["tags"]]
            return [e for e in events if e["event"] != "on_chat_model_start"]  # has the prompt
        stream = agent.astream(QUESTION, THREAD, stream_mode=mode, subgraphs=subgraphs)
        return [part async for part in stream]

    if how == "async" or mode == "events":
        parts = asyncio.run(collect())
    else:
        parts = list(agent.stream(QUESTION, THREAD, stream_mode=mode, subgraphs=subgraphs))
    return [_without_verdicts(part) for part in parts]


def _without_verdicts(part: Any) -> Any:
    """Leave out what names the claims that were judged, and what is for the reviewer."""
    if isinstance(part, dict):
        hidden = {"groundedness", "__interrupt__"}
        if part.get("event") == "on_chat_model_end":
            return part["data"]["output"]
        return {key: _without_verdicts(value) for key, value in part.items() if key not in hidden}
    if isinstance(part, list | tuple):
        return [_without_verdicts(each) for each in part]
    if isinstance(part, Command):
        return _without_verdicts(part.update)
    return part


@pytest.mark.parametrize("mode", ["messages", "updates", "values", "events"])
@pytest.mark.parametrize("options", MODES)
def test_an_answer_is_in_no_stream_before_its_check(
    how: How, mode: str, options: dict[str, Any]
) -> None:
    agent = agent_of(
        call(), FALSE, FALSE, middleware=middleware(**options), checkpointer=InMemorySaver()
    )
    parts = parts_of(agent, how, mode)
    assert "$2.4B" not in repr(parts)
    assert "found some documents" in repr(parts)


@pytest.mark.parametrize("mode", ["messages", "updates", "values"])
@pytest.mark.parametrize("options", MODES)
def test_an_agent_inside_a_graph_shows_nothing_before_its_check_either(
    how: How, mode: str, options: dict[str, Any]
) -> None:
    graph: Any = StateGraph(MessagesState)
    graph.add_node("agent", agent_of(call(), FALSE, FALSE, middleware=middleware(**options)))
    graph.add_edge(START, "agent")
    outer = graph.compile(checkpointer=InMemorySaver())
    parts = parts_of(outer, how, mode, subgraphs=True)
    assert "$2.4B" not in repr(parts)
    assert "found some documents" in repr(parts)


def test_the_custom_stream_has_the_verdicts_alone(how: How) -> None:
    agent = agent_of(call(), FALSE, middleware=middleware(on_ungrounded="block"))
    parts = parts_of(agent, how, "custom")
    assert {part["event"].split(".")[0] for part in parts} == {"groundedness"}


@pytest.mark.parametrize(
    ("strategy", "mode"),
    [
        (ToolStrategy, "updates"),
        (ToolStrategy, "values"),
        (ToolStrategy, "events"),
        (ProviderStrategy, "updates"),
        (ProviderStrategy, "values"),
    ],
)
@pytest.mark.parametrize("schema", [Figures, PlainFigures])
@pytest.mark.parametrize("options", [MODES[0], MODES[1], MODES[3]])
@pytest.mark.parametrize("tools", [True, False])
def test_a_structured_answer_is_in_no_stream_before_its_check(
    mode: str, strategy: Any, schema: Any, options: dict[str, Any], *, tools: bool
) -> None:
    value = {"revenue": FALSE}
    by_tool = strategy is ToolStrategy
    reply: Any = call(schema.__name__, **value) if by_tool else json.dumps(value)
    agent = agent_of(
        *([call()] if tools else []),
        *(reply, reply),
        tools=None if tools else [],
        middleware=middleware(**options),
        checkpointer=InMemorySaver(),
        response_format=strategy(schema),
    )
    assert "$2.4B" not in repr(parts_of(agent, "sync", mode))
    waits = options["on_ungrounded"] == "review"
    state = agent.get_state(THREAD)
    assert bool(state.interrupts) == waits
    if waits:
        done = agent.invoke(Command(resume={"type": "approve"}), THREAD)
        assert done["structured_response"] == schema(**value)
        assert "$2.4B" in repr(done["messages"][-1])
    else:
        assert state.values["structured_response"] is None
        assert state.values["groundedness"]["outcome"] == "blocked"


@pytest.mark.parametrize("schema", [Renamed, Computed, Excluded, Nested])
def test_a_structured_answer_is_approved_whatever_its_fields_are(how: How, schema: Any) -> None:
    value = {"outer": {"Revenue": FALSE}} if schema is Nested else {"Revenue": FALSE}
    agent = agent_of(
        call(),
        call(schema.__name__, **value),
        middleware=middleware(on_ungrounded="review"),
        checkpointer=InMemorySaver(),
        response_format=ToolStrategy(schema),
    )
    run(agent, QUESTION, how, THREAD)
    state = run(agent, Command(resume={"type": "approve"}), how, THREAD)
    assert state["structured_response"] == schema(**value)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (Derived, {}),
        (Renamed | Derived, {}),
        (Converted, {"share": "10%"}),
        (Rescaled, {"share": 10.0}),
    ],
)
@pytest.mark.parametrize("strategy", [ToolStrategy, ProviderStrategy])
def test_an_approved_structured_answer_is_of_its_type_though_that_refuses_empty_or_read_values(
    how: How, strategy: Any, schema: Any, value: dict[str, Any]
) -> None:
    value = {"revenue": FALSE, **value}
    of = Derived if isinstance(schema, UnionType) else schema
    if strategy is ProviderStrategy:
        schema = of
    reply: Any = call(of.__name__, **value) if strategy is ToolStrategy else json.dumps(value)
    agent = agent_of(
        call(),
        reply,
        middleware=middleware(on_ungrounded="review"),
        checkpointer=InMemorySaver(),
        response_format=strategy(schema),
    )
    run(agent, QUESTION, how, THREAD)
    state = run(agent, Command(resume={"type": "approve"}), how, THREAD)
    assert state["groundedness"]["outcome"] == "approved"
    assert state["structured_response"] == of(**value)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (Derived, {"revenue": TRUE, "last_year": "The weather was fine."}),
        (Converted, {"revenue": FALSE, "share": "10%"}),
        (Rescaled, {"revenue": FALSE, "share": 10.0}),
    ],
)
def test_a_structured_answer_whose_type_refuses_the_corrected_values_is_withheld(
    how: How, schema: Any, value: dict[str, Any]
) -> None:
    agent = agent_of(
        call(),
        call(schema.__name__, **value),
        middleware=middleware(on_ungrounded="correct"),
        response_format=ToolStrategy(schema),
    )
    state = run(agent, QUESTION, how)
    assert state["groundedness"]["outcome"] == "blocked"
    assert state["structured_response"] is None


def test_a_structured_answer_with_aliases_is_corrected(how: How) -> None:
    agent = agent_of(
        call(),
        call("Renamed", Revenue=f"{FALSE} {TRUE}"),
        middleware=middleware(on_ungrounded="correct"),
        response_format=ToolStrategy(Renamed),
    )
    state = run(agent, QUESTION, how)
    assert state["structured_response"] == Renamed(Revenue=f"{TRUE} {TRUE}")


def test_while_a_reviewer_is_asked_the_blocked_message_stands_in_the_state(how: How) -> None:
    agent = agent_of(
        call(), FALSE, middleware=middleware(on_ungrounded="review"), checkpointer=InMemorySaver()
    )
    paused = run(agent, QUESTION, how, THREAD)
    assert paused["messages"][-1].text == BLOCKED
    assert paused["groundedness"]["outcome"] == "waiting"
    assert paused["__interrupt__"][0].value["action_requests"][0]["args"] == {"answer": FALSE}
    state = run(agent, Command(resume={"type": "approve"}), how, THREAD)
    assert state["messages"][-1].text == FALSE
    assert state["messages"][-1].id == paused["messages"][-1].id
    assert "held" not in state["groundedness"]


@pytest.mark.parametrize("mode", ["updates", "values"])
def test_an_approved_answer_is_streamed_when_it_is_approved(how: How, mode: str) -> None:
    agent = agent_of(
        call(), FALSE, middleware=middleware(on_ungrounded="review"), checkpointer=InMemorySaver()
    )
    run(agent, QUESTION, how, THREAD)
    stream = agent.stream(Command(resume={"type": "approve"}), THREAD, stream_mode=mode)
    assert FALSE in repr([_without_verdicts(part) for part in stream])


def test_another_process_resumes_from_the_file(how: How, tmp_path: Path) -> None:
    path = str(tmp_path / "threads.db")

    async def athread(value: Any, *replies: Any) -> Any:
        async with AsyncSqliteSaver.from_conn_string(path) as saver:
            options = middleware(on_ungrounded="review")
            agent = agent_of(*replies, middleware=options, checkpointer=saver)
            return await agent.ainvoke(value, THREAD)

    def thread(value: Any, *replies: Any) -> Any:
        if how == "async":
            return asyncio.run(athread(value, *replies))
        with closing(sqlite3.connect(path, check_same_thread=False)) as connection:
            options = middleware(on_ungrounded="review")
            saver = SqliteSaver(connection)
            agent = agent_of(*replies, middleware=options, checkpointer=saver)
            return agent.invoke(value, THREAD)

    assert thread(QUESTION, call(), FALSE)["messages"][-1].text == BLOCKED
    done = thread(Command(resume={"type": "approve"}))
    assert done["messages"][-1].text == FALSE


def test_a_model_that_answers_again_sees_its_draft_and_what_was_wrong(how: How) -> None:
    model = Writer(replies=[call(), FALSE, TRUE])
    options = middleware(on_ungrounded="retry", after_retries="block")
    state = run(agent_of(model=model, middleware=options), QUESTION, how)
    draft, told = model.requests[-1][-2:]
    assert draft.text == FALSE
    assert isinstance(told, HumanMessage)
    assert "say otherwise: Revenue was $2.1B" in str(told.text)
    assert [m.text for m in state["messages"]][-1] == TRUE
    assert "$2.4B" not in repr(state["messages"])


def test_who_asks_anew_instead_of_deciding_gets_a_checked_answer(how: How) -> None:
    model = Writer(replies=[call(), FALSE, TRUE])
    options = middleware(on_ungrounded="review")
    agent = agent_of(model=model, middleware=options, checkpointer=InMemorySaver())
    run(agent, QUESTION, how, THREAD)
    state = run(agent, {"messages": [("user", "And now?")]}, how, THREAD)
    assert state["messages"][-1].text == TRUE
    assert FALSE not in repr(model.requests[-1])


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("options", [{"on_ungrounded": "block"}, {"on_ungrounded": "review"}])
def test_what_other_middleware_redacts_stays_redacted(
    how: How, options: dict[str, Any], *, first: bool
) -> None:
    wrong = options["on_ungrounded"] == "review"
    answer = f"{FALSE if wrong else TRUE} Thanks, ann@example.org!"
    redact: Any = PIIMiddleware("email", apply_to_output=True, apply_to_input=False)
    both = [middleware(**options), redact]
    agent = create_agent(
        Writer(replies=[call(), answer]),
        tools=[search_tool()],
        middleware=both if first else both[::-1],
        checkpointer=InMemorySaver(),
    )
    state = run(agent, QUESTION, how, THREAD)
    if wrong:
        state = run(agent, Command(resume={"type": "approve"}), how, THREAD)
    assert "ann@example.org" not in repr(state["messages"])
    assert "[REDACTED_EMAIL]" in state["messages"][-1].text


class Rewriting(AgentMiddleware[Any, Any]):
    """Writes another answer after the model."""

    def after_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        last = state["messages"][-1]
        return None if last.tool_calls else {"messages": [AIMessage(FALSE, id=last.id)]}


def test_an_answer_that_other_middleware_writes_is_checked_at_the_end(how: How) -> None:
    agent: Any = create_agent(
        Writer(replies=[call(), TRUE]),
        tools=[search_tool()],
        middleware=[Rewriting(), middleware(on_ungrounded="block")],
    )
    state = run(agent, QUESTION, how)
    assert state["messages"][-1].text == BLOCKED
    assert state["groundedness"]["outcome"] == "blocked"


class RewritingFigures(AgentMiddleware[Any, Any]):
    """Writes another structured response after the model, and leaves the messages."""

    def after_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        value = state.get("structured_response")
        return None if value is None else {"structured_response": Figures(revenue=FALSE)}


@pytest.mark.parametrize("strategy", [ToolStrategy, ProviderStrategy])
def test_a_structured_answer_that_other_middleware_writes_is_checked_at_the_end(
    how: How, strategy: Any
) -> None:
    value = {"revenue": TRUE}
    reply: Any = call("Figures", **value) if strategy is ToolStrategy else json.dumps(value)
    agent: Any = create_agent(
        Writer(replies=[call(), reply]),
        tools=[search_tool()],
        middleware=[RewritingFigures(), middleware(on_ungrounded="block")],
        response_format=strategy(Figures),
    )
    state = run(agent, QUESTION, how)
    assert state["structured_response"] is None
    assert state["groundedness"]["outcome"] == "blocked"


class Ending(AgentMiddleware[Any, Any]):
    """Ends a run before the third call of the model."""

    @hook_config(can_jump_to=["end"])
    def before_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        answers = [m for m in state["messages"] if isinstance(m, AIMessage)]
        return {"jump_to": "end"} if len(answers) > 1 else None


@pytest.mark.parametrize("structured", [True, False])
@pytest.mark.parametrize("other", [ModelCallLimitMiddleware(thread_limit=2), Ending()])
def test_an_approved_answer_is_shown_even_if_other_middleware_ends_the_run(
    how: How, other: Any, *, structured: bool
) -> None:
    agent: Any = create_agent(
        Writer(replies=[call(), call("Figures", revenue=FALSE) if structured else FALSE]),
        tools=[search_tool()],
        middleware=[middleware(on_ungrounded="review"), other],
        checkpointer=InMemorySaver(),
        response_format=ToolStrategy(Figures) if structured else None,
    )
    paused = run(agent, QUESTION, how, THREAD)
    state = run(agent, Command(resume={"type": "approve"}), how, THREAD)
    assert FALSE in state["messages"][-1].text
    assert [m.id for m in state["messages"]] == [m.id for m in paused["messages"]]
    assert state["groundedness"]["outcome"] == "approved"
    assert "held" not in state["groundedness"]
    if structured:
        assert state["structured_response"] == Figures(revenue=FALSE)


@pytest.mark.parametrize("strategy", [ToolStrategy, ProviderStrategy])
def test_a_text_in_place_of_a_structured_answer_leaves_no_structured_one(strategy: Any) -> None:
    value = {"revenue": FALSE}
    reply: Any = call("Figures", **value) if strategy is ToolStrategy else json.dumps(value)
    agent = agent_of(
        call(),
        reply,
        middleware=middleware(on_ungrounded="review"),
        checkpointer=InMemorySaver(),
        response_format=strategy(Figures),
    )
    agent.invoke(QUESTION, THREAD)
    done = agent.invoke(Command(resume={"type": "edit", "answer": TRUE}), THREAD)
    assert done["messages"][-1].text == TRUE
    assert done["structured_response"] is None
