"""The audit records of agents: refused answers, reviews, steps that run again."""

from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from langchain_groundedness import GroundednessMiddleware, SQLAuditLog
from langchain_groundedness.audit import AuditRecord
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


@pytest.fixture
def log(tmp_path: Path) -> SQLAuditLog:
    return SQLAuditLog(f"sqlite:///{tmp_path / 'audit.db'}")


def recorded(log: SQLAuditLog) -> list[AuditRecord]:
    assert log.flush()
    return list(log.records())


def test_each_answer_that_is_judged_gets_a_record_refused_ones_too(
    how: How, log: SQLAuditLog
) -> None:
    check, _ = checker()
    middleware = GroundednessMiddleware(check, on_ungrounded="retry", audit_log=log)
    agent = agent_of(call(), FALSE, TRUE, middleware=middleware)
    state = run(agent, QUESTION, how)
    assert state["messages"][-1].text == TRUE
    refused, passed = recorded(log)
    assert (refused.outcome, refused.attempt, refused.shown_answer) == ("retrying", 0, None)
    assert refused.original_answer == FALSE
    assert (passed.outcome, passed.attempt, passed.shown_answer) == ("passed", 1, TRUE)
    assert refused.source == passed.source == "middleware"
    assert passed.question == "What was Q3 revenue?"
    log.close()


def test_a_withheld_answer_is_recorded_with_what_was_shown_instead(
    how: How, log: SQLAuditLog
) -> None:
    check, _ = checker()
    middleware = GroundednessMiddleware(
        check, on_ungrounded="block", blocked_message="No.", audit_log=log
    )
    run(agent_of(call(), FALSE, middleware=middleware), QUESTION, how)
    [record] = recorded(log)
    assert (record.outcome, record.shown_answer) == ("blocked", "No.")
    log.close()


@pytest.mark.parametrize(
    ("resume", "action", "answer"),
    [
        ({"type": "approve"}, "approve", None),
        ({"type": "edit", "answer": "About $2B."}, "edit", "About $2B."),
        ({"type": "reject"}, "reject", None),
    ],
)
def test_an_answer_about_which_a_person_is_asked_has_one_record_that_waits_until_then(
    how: How, log: SQLAuditLog, resume: Any, action: str, answer: str | None
) -> None:
    check, _ = checker()
    middleware = GroundednessMiddleware(check, on_ungrounded="review", audit_log=log)
    agent = agent_of(call(), FALSE, middleware=middleware, checkpointer=InMemorySaver())
    paused = run(agent, QUESTION, how, THREAD)
    assert "__interrupt__" in paused
    [waits] = recorded(log)
    assert (waits.review.status, waits.outcome, waits.thread_id) == ("waiting", "waiting", "1")
    assert waits.shown_answer is None
    assert [record.id for record in log.query(thread_id="1").records] == [waits.id]
    run(agent, Command(resume=resume), how, THREAD)
    [decided] = recorded(log)
    assert decided.id == waits.id
    assert (decided.review.status, decided.revision) == ("decided", 2)  # then its outcome
    assert (decided.review.action, decided.review.answer) == (action, answer)
    log.close()


def test_a_reviewer_who_was_first_in_the_queue_is_not_overruled_by_the_run_that_goes_on(
    how: How, log: SQLAuditLog
) -> None:
    check, _ = checker()
    middleware = GroundednessMiddleware(check, on_ungrounded="review", audit_log=log)
    agent = agent_of(call(), FALSE, middleware=middleware, checkpointer=InMemorySaver())
    run(agent, QUESTION, how, THREAD)
    [waits] = recorded(log)
    log.decide(waits.id, revision=0, reviewer="ada", action="approve")
    run(agent, Command(resume={"type": "approve"}), how, THREAD)
    [decided] = recorded(log)
    assert (decided.review.reviewer, decided.outcome) == ("ada", "approved")
    log.close()


class Rewriting(AgentMiddleware[Any, Any]):
    """Writes another answer after the model."""

    def after_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        last = state["messages"][-1]
        return None if last.tool_calls else {"messages": [AIMessage(FALSE, id=last.id)]}


@pytest.mark.parametrize("thread", [THREAD, None])
def test_an_answer_that_other_middleware_changes_has_one_record_of_what_is_shown(
    how: How, log: SQLAuditLog, thread: Any
) -> None:
    check, _ = checker()
    agent: Any = create_agent(
        Writer(replies=[call(), TRUE]),
        tools=[search_tool()],
        middleware=[
            Rewriting(),
            GroundednessMiddleware(
                check, on_ungrounded="block", blocked_message="No.", audit_log=log
            ),
        ],
        checkpointer=InMemorySaver() if thread else None,
    )
    run(agent, QUESTION, how, thread)
    [record] = recorded(log)
    assert log.count(verdict=record.verdict) == 1
    assert (record.original_answer, record.outcome, record.shown_answer) == (
        FALSE,
        "blocked",
        "No.",
    )
    log.close()


def test_a_changed_answer_about_which_a_person_is_asked_has_one_record(
    how: How, log: SQLAuditLog
) -> None:
    check, _ = checker()
    asks = GroundednessMiddleware(check, on_ungrounded="review", audit_log=log)
    agent: Any = create_agent(
        Writer(replies=[call(), TRUE]),
        tools=[search_tool()],
        middleware=[Rewriting(), asks],
        checkpointer=InMemorySaver(),
    )
    run(agent, QUESTION, how, THREAD)
    [waits] = recorded(log)
    assert (waits.original_answer, waits.review.status) == (FALSE, "waiting")
    state = run(agent, Command(resume={"type": "reject", "reviewer": "bob"}), how, THREAD)
    assert state["groundedness"]["outcome"] == "rejected"
    [decided] = recorded(log)
    assert (decided.id, decided.outcome, decided.review.reviewer) == (waits.id, "rejected", "bob")
    log.close()


@pytest.mark.parametrize("corrects", [True, False])
def test_an_answer_that_waits_brings_its_correction_if_there_is_one(
    how: How, log: SQLAuditLog, *, corrects: bool
) -> None:
    check, _ = checker(on_contradicted="correct" if corrects else "annotate")
    middleware = GroundednessMiddleware(check, on_ungrounded="review", audit_log=log)
    agent = agent_of(call(), FALSE, middleware=middleware, checkpointer=InMemorySaver())
    paused = run(agent, QUESTION, how, THREAD)
    [waits] = recorded(log)
    assert waits.suggested_answer == paused["__interrupt__"][0].value["suggestion"]
    assert (waits.suggested_answer is not None) == corrects
    run(agent, Command(resume={"type": "edit", "answer": "About $2B."}), how, THREAD)
    [decided] = recorded(log)
    assert decided.suggested_answer == waits.suggested_answer
    assert decided.shown_answer == "About $2B."
    log.close()


def test_an_answer_that_is_sent_back_by_the_reviewer_and_the_one_after_it_have_a_record_each(
    how: How, log: SQLAuditLog
) -> None:
    check, _ = checker()
    middleware = GroundednessMiddleware(check, on_ungrounded="review", audit_log=log)
    agent = agent_of(call(), FALSE, TRUE, middleware=middleware, checkpointer=InMemorySaver())
    run(agent, QUESTION, how, THREAD)
    resume: Any = {"type": "respond", "message": "Look again."}
    run(agent, Command(resume=resume), how, THREAD)
    sent_back, passed = recorded(log)
    assert sent_back.review.action == "reject"
    assert "Look again." in (sent_back.review.note or "")
    assert (passed.outcome, passed.review.status) == ("passed", "none")
    log.close()


def test_turns_of_one_thread_with_the_same_answer_have_a_record_each(
    how: How, log: SQLAuditLog
) -> None:
    check, _ = checker()
    middleware = GroundednessMiddleware(check, audit_log=log)
    agent = agent_of(
        call(), TRUE, call(), TRUE, middleware=middleware, checkpointer=InMemorySaver()
    )
    run(agent, QUESTION, how, THREAD)
    run(agent, QUESTION, how, THREAD)
    assert len(recorded(log)) == 2
    log.close()
