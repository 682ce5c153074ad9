"""Review of ungrounded answers by a human."""

import asyncio
import operator
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, Send
from typing_extensions import TypedDict

from langchain_groundedness import (
    DecisionPolicy,
    GroundednessMiddleware,
    GroundednessRunnable,
    InputFormatError,
)
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
)

THREAD: Any = {"configurable": {"thread_id": "1"}}
BLOCKED = "I cannot give an answer that the sources support."


class Review:
    """An agent whose answer waits for a reviewer."""

    def __init__(self, how: How, *replies: Any, **options: Any) -> None:
        check, self.judge = checker()
        self.how = how
        self.model = Writer(replies=[call(), *(replies or (FALSE,))])
        middleware = GroundednessMiddleware(check, on_ungrounded="review", **options)
        self.agent = agent_of(model=self.model, middleware=middleware, checkpointer=InMemorySaver())
        self.paused = run(self.agent, QUESTION, how, THREAD)

    @property
    def request(self) -> dict[str, Any]:
        (interrupt,) = self.paused["__interrupt__"]
        value: dict[str, Any] = interrupt.value
        return value

    def resume(self, decision: Any) -> dict[str, Any]:
        return run(self.agent, Command(resume=decision), self.how, THREAD)


def test_the_reviewer_sees_answer_verdicts_and_choices(how: How) -> None:
    review = Review(how)
    assert review.request["type"] == "groundedness_review"
    (action,) = review.request["action_requests"]
    assert action["args"] == {"answer": FALSE}
    assert "contradict 1 of 1" in action["description"]
    allowed = review.request["review_configs"][0]["allowed_decisions"]
    assert allowed == ["approve", "edit", "reject", "respond"]
    assert review.request["groundedness"]["claims"][0]["verdict"] == "contradicted"
    assert review.request["suggestion"] is None


@pytest.mark.parametrize("options", [{"on_ungrounded": "review"}, {"on_ungrounded": "policy"}])
def test_an_agent_that_could_not_go_on_blocks_and_warns_instead_of_pausing(
    how: How, options: dict[str, Any], caplog: Any
) -> None:
    check, _ = checker(policy=DecisionPolicy(contradicted="review"))
    agent = agent_of(call(), FALSE, middleware=GroundednessMiddleware(check, **options))
    state = run(agent, QUESTION, how)
    assert state["messages"][-1].text == "I cannot give an answer that the sources support."
    assert state["groundedness"]["outcome"] == "blocked"
    assert caplog.text.count("no checkpointer") == 1
    assert FALSE not in caplog.text


def test_an_agent_without_a_checkpointer_that_asks_nobody_is_left_alone(how: How) -> None:
    check, _ = checker()
    middleware = GroundednessMiddleware(check, on_ungrounded="review")
    state = run(agent_of(call(), TRUE, middleware=middleware), QUESTION, how)
    assert state["messages"][-1].text == TRUE


def test_an_agent_in_a_graph_with_a_checkpointer_asks(how: How) -> None:
    check, _ = checker()
    middleware = GroundednessMiddleware(check, on_ungrounded="review")
    graph: Any = StateGraph(MessagesState)
    graph.add_node("agent", agent_of(call(), FALSE, middleware=middleware))
    graph.add_edge(START, "agent")
    outer = graph.compile(checkpointer=InMemorySaver())
    assert run(outer, QUESTION, how, THREAD)["__interrupt__"]
    state = run(outer, Command(resume={"type": "edit", "answer": TRUE}), how, THREAD)
    assert state["messages"][-1].text == TRUE


class Asked(TypedDict):
    """What several agents are asked, and what they have answered."""

    drafts: list[str]
    answers: Annotated[list[str], operator.add]


def test_agents_side_by_side_each_ask_about_their_own_answer(tmp_path: Path) -> None:
    def ask(given: dict[str, str]) -> dict[str, Any]:
        check, _ = checker()
        middleware = GroundednessMiddleware(check, on_ungrounded="review")
        agent = agent_of(call(), given["draft"], middleware=middleware)
        return {"answers": [agent.invoke(QUESTION)["messages"][-1].text]}

    def spread(state: Asked) -> list[Send]:
        return [Send("ask", {"draft": draft}) for draft in state["drafts"]]

    graph: Any = StateGraph(Asked)
    graph.add_node("ask", ask)
    graph.add_conditional_edges(START, spread, ["ask"])
    with closing(sqlite3.connect(tmp_path / "s.db", check_same_thread=False)) as connection:
        app = graph.compile(checkpointer=SqliteSaver(connection))
        drafts = [TRUE, FALSE, f"{FALSE} Really."]
        paused = app.invoke({"drafts": drafts, "answers": []}, THREAD)
        requests = {i.id: i.value["action_requests"][0]["args"] for i in paused["__interrupt__"]}
        asked = {request["answer"]: name for name, request in requests.items()}
        assert set(asked) == set(drafts[1:])
        edit = {"type": "edit", "answer": "One."}
        said = {asked[FALSE]: edit, asked[drafts[2]]: {"type": "approve"}}
        done = app.invoke(Command(resume=said), THREAD)
    assert done["answers"] == [TRUE, "One.", drafts[2]]


def test_a_checker_that_corrects_makes_a_suggestion(how: How) -> None:
    middleware = GroundednessMiddleware(
        GroundednessRunnable(on_contradicted="correct"), on_ungrounded="review"
    )
    agent = agent_of(call(), FALSE, middleware=middleware, checkpointer=InMemorySaver())
    paused = run(agent, QUESTION, how, THREAD)
    assert paused["__interrupt__"][0].value["suggestion"] == (
        "Revenue was [CORRECTED: $2.1B] in Q3."
    )
    state = run(agent, Command(resume={"type": "approve"}), how, THREAD)
    assert state["messages"][-1].text == FALSE


def test_approve_lets_the_answer_out_with_its_verdicts(how: How) -> None:
    state = Review(how).resume({"type": "approve"})
    assert state["messages"][-1].text == FALSE
    assert state["groundedness"]["outcome"] == "approved"
    assert state["groundedness"]["claims"][0]["verdict"] == "contradicted"


@pytest.mark.parametrize(
    "decision",
    [
        {"type": "edit", "answer": "It was $2.1B."},
        {"type": "edit", "edited_action": {"name": "answer", "args": {"answer": "It was $2.1B."}}},
    ],
)
def test_edit_puts_the_reviewers_text_under_the_same_id(how: How, decision: Any) -> None:
    review = Review(how)
    state = review.resume({"decisions": [decision]})
    assert state["messages"][-1].content == "It was $2.1B."
    assert state["messages"][-1].id == review.paused["messages"][-1].id
    assert len(state["messages"]) == 4
    assert state["groundedness"]["outcome"] == "edited"


@pytest.mark.parametrize(
    ("decision", "shown"),
    [({"type": "reject"}, BLOCKED), ({"type": "reject", "message": "Ask Ann."}, "Ask Ann.")],
)
def test_reject_withholds_the_answer(how: How, decision: Any, shown: str) -> None:
    state = Review(how).resume(decision)
    assert state["messages"][-1].content == shown
    assert state["groundedness"]["outcome"] == "rejected"


def test_respond_sends_the_reviewers_words_to_the_model_which_answers_again(how: How) -> None:
    review = Review(how, FALSE, TRUE)
    state = review.resume({"type": "respond", "message": "Read the report again."})
    told = review.model.requests[-1][-1]
    assert isinstance(told, HumanMessage)
    assert "Read the report again." in told.text
    assert state["messages"][-1].text == TRUE
    assert [m.type for m in state["messages"]] == ["human", "ai", "tool", "ai"]
    assert state["groundedness"]["outcome"] == "passed"


def test_the_answer_after_respond_is_reviewed_again_if_it_is_not_grounded(how: How) -> None:
    review = Review(how, FALSE, FALSE)
    paused = review.resume({"type": "respond", "message": "Again."})
    assert paused["__interrupt__"][0].value["action_requests"][0]["args"] == {"answer": FALSE}
    assert review.resume({"type": "reject"})["messages"][-1].text == BLOCKED


def test_the_judge_is_paid_once(how: How) -> None:
    review = Review(how)
    assert len(review.judge.tasks) == 1
    review.resume({"type": "approve"})
    assert len(review.judge.tasks) == 1
    assert len(review.model.requests) == 2


def test_a_decision_of_no_known_form_can_be_given_again(how: How) -> None:
    review = Review(how)
    for wrong in ({"type": "maybe"}, {"type": "edit"}, {"type": "respond"}, "yes"):
        with pytest.raises(InputFormatError, match=r"Command\(resume=.*'approve'") as raised:
            review.resume(wrong)
        assert "\n" not in str(raised.value)
    assert review.resume({"type": "approve"})["groundedness"]["outcome"] == "approved"
    assert len(review.judge.tasks) == 1


@pytest.mark.parametrize(("text", "verdict"), [(TRUE, "grounded"), (FALSE, "has_contradictions")])
def test_after_an_edit_the_state_has_the_verdicts_on_the_edited_text(
    how: How, text: str, verdict: str
) -> None:
    check, _ = checker()
    middleware = GroundednessMiddleware(check, on_ungrounded="review")
    agent = agent_of(call(), f"{FALSE} No.", middleware=middleware, checkpointer=InMemorySaver())
    run(agent, QUESTION, how, THREAD)
    state = run(agent, Command(resume={"type": "edit", "answer": text}), how, THREAD)
    record = state["groundedness"]
    assert (state["messages"][-1].text, record["outcome"]) == (text, "edited")
    assert (record["verdict"], record["final"]["verdict"]) == (verdict, verdict)
    assert [claim["claim"]["text"] for claim in record["claims"]] == [text]
    assert record["evidence_source"] == "retrieved"


def test_review_may_follow_retries(how: How) -> None:
    check, judge = checker()
    middleware = GroundednessMiddleware(check, on_ungrounded="retry", after_retries="review")
    agent = agent_of(call(), FALSE, FALSE, middleware=middleware, checkpointer=InMemorySaver())
    paused = run(agent, QUESTION, how, THREAD)
    assert paused["__interrupt__"][0].value["groundedness"]["retries"] == 1
    state = run(agent, Command(resume={"type": "edit", "answer": TRUE}), how, THREAD)
    assert state["messages"][-1].text == TRUE
    assert len(state["messages"]) == 4
    assert [task.answer for task in judge.tasks] == [FALSE, FALSE, TRUE]


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Path]:
    return tmp_path / "checkpoints.db"  # type: ignore[return-value]


def new_agent(checkpointer: Any) -> tuple[Any, Any]:
    check, judge = checker()
    middleware = GroundednessMiddleware(check, on_ungrounded="review")
    return agent_of(call(), FALSE, middleware=middleware, checkpointer=checkpointer), judge


def test_another_process_resumes_a_run_from_its_database(database: Path) -> None:
    values: list[Any] = [QUESTION, Command(resume={"type": "approve"})]
    for value in values:
        connection = sqlite3.connect(database, check_same_thread=False)
        agent, judge = new_agent(SqliteSaver(connection))
        state = agent.invoke(value, THREAD)
        connection.close()
    assert judge.tasks == []
    assert state["groundedness"]["outcome"] == "approved"
    assert state["groundedness"]["claims"][0]["verdict"] == "contradicted"


def test_another_process_resumes_an_async_run_from_its_database(database: Path) -> None:
    async def once(value: Any) -> Any:
        async with AsyncSqliteSaver.from_conn_string(str(database)) as saver:
            agent, judge = new_agent(saver)
            return await agent.ainvoke(value, THREAD), judge

    asyncio.run(once(QUESTION))
    state, judge = asyncio.run(once(Command(resume={"type": "approve"})))
    assert judge.tasks == []
    assert state["groundedness"]["outcome"] == "approved"
