"""An answer that waits in a graph and in the audit log at once: two ways to one decision."""

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from audit.postgres_cluster import Cluster
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from langchain_groundedness import (
    Decision,
    GroundednessError,
    GroundednessMiddleware,
    SQLAuditLog,
)
from langchain_groundedness.audit import AuditRecord
from langchain_groundedness.middleware import aresume_reviewed, resume_reviewed, resume_value
from middleware.agent_scripts import FALSE, QUESTION, TRUE, How, agent_of, call, checker, run

THREAD: Any = {"configurable": {"thread_id": "t1"}}
BLOCKED = "I cannot give an answer that the sources support."

Decide: TypeAlias = Callable[..., AuditRecord]


@pytest.fixture
def log(tmp_path: Path) -> Iterator[SQLAuditLog]:
    with SQLAuditLog(f"sqlite:///{tmp_path / 'audit.db'}") as log:
        yield log


def agent(log: Any, *replies: Any, checkpointer: Any = None, **options: Any) -> Any:
    check, _ = checker()
    middleware = GroundednessMiddleware(check, on_ungrounded="review", audit_log=log, **options)
    saver = InMemorySaver() if checkpointer is None else checkpointer
    return agent_of(call(), *(replies or (FALSE,)), middleware=middleware, checkpointer=saver)


def ask(agent: Any, how: How = "sync", thread: Any = THREAD) -> Any:
    state = run(agent, QUESTION, how, thread)
    (interrupt,) = state["__interrupt__"]
    return interrupt.value


def waiting(log: SQLAuditLog) -> AuditRecord:
    log.flush()
    (record,) = log.waiting().records
    return record


def resume(agent: Any, record: AuditRecord, how: How) -> Any:
    if how == "async":
        return asyncio.run(aresume_reviewed(agent, record))
    return resume_reviewed(agent, record)


def said(state: Any) -> str:
    return str(state["messages"][-1].text)


# --- the reviewer is first ---


@pytest.mark.parametrize(
    ("action", "shown", "outcome"),
    [
        ("approve", FALSE, "approved"),
        ("edit", "It was $2.1B.", "edited"),
        ("reject", BLOCKED, "rejected"),
    ],
)
def test_a_waiting_graph_goes_on_with_the_reviewers_decision(
    log: SQLAuditLog, how: How, action: Any, shown: str, outcome: str
) -> None:
    answer = shown if action == "edit" else None
    graph = agent(log)
    assert ask(graph, how)["record_id"] == waiting(log).id
    decided = log.decide(
        waiting(log).id, revision=0, reviewer="ada", action=action, answer=answer, note="why"
    )
    state = resume(graph, decided, how)
    assert said(state) == shown
    assert state["groundedness"]["outcome"] == outcome
    log.flush()
    kept = log.get(decided.id)
    assert kept
    assert (kept.review, kept.outcome, kept.shown_answer) == (decided.review, outcome, shown)


def test_a_graph_is_resumed_once(log: SQLAuditLog, how: How) -> None:
    graph = agent(log)
    ask(graph, how)
    decided = log.decide(waiting(log).id, revision=0, reviewer="ada", action="approve")
    assert resume(graph, decided, how) is not None
    assert resume(graph, decided, how) is None


def test_the_first_decision_holds_when_the_graph_is_resumed_with_another(
    log: SQLAuditLog, how: How
) -> None:
    graph = agent(log)
    ask(graph, how)
    log.decide(waiting(log).id, revision=0, reviewer="ada", action="reject", note="wrong")
    state = run(graph, Command(resume={"type": "approve", "reviewer": "bob"}), how, THREAD)
    assert said(state) == BLOCKED
    (kept,) = log.query(status="decided").records
    assert (kept.review.reviewer, kept.review.action) == ("ada", "reject")


# --- the graph is resumed first ---


def test_a_resumed_graph_decides_its_record_and_a_reviewer_comes_too_late(
    log: SQLAuditLog, how: How
) -> None:
    graph = agent(log)
    ask(graph, how)
    record = waiting(log)
    value = {"type": "edit", "answer": "It was $2.1B.", "reviewer": "bob", "note": "as reported"}
    state = run(graph, Command(resume=value), how, THREAD)
    assert said(state) == "It was $2.1B."
    log.flush()
    with pytest.raises(GroundednessError, match="was decided already"):
        log.decide(record.id, revision=0, reviewer="ada", action="approve")
    kept = log.get(record.id)
    assert kept
    assert (kept.review.reviewer, kept.review.note) == ("bob", "as reported")
    assert (kept.review.answer, kept.outcome) == ("It was $2.1B.", "edited")
    assert resume(graph, kept, how) is None


def test_whoever_resumes_a_graph_need_not_say_who_it_is(log: SQLAuditLog) -> None:
    graph = agent(log)
    ask(graph)
    record = waiting(log)
    graph.invoke(Command(resume={"type": "approve"}), THREAD)
    log.flush()
    kept = log.get(record.id)
    assert kept
    assert kept.review.reviewer == "whoever resumed the graph"


def test_a_graph_that_is_resumed_at_once_finds_its_record(log: SQLAuditLog) -> None:
    graph = agent(log)
    ask(graph)
    graph.invoke(Command(resume={"type": "reject", "reviewer": "bob"}), THREAD)
    log.flush()
    (kept,) = log.query(status="decided").records
    assert kept.review.reviewer == "bob"


def test_respond_is_kept_as_a_rejection_and_the_new_answer_gets_a_record_of_its_own(
    log: SQLAuditLog, how: How
) -> None:
    graph = agent(log, FALSE, TRUE)
    ask(graph, how)
    first = waiting(log)
    state = run(graph, Command(resume={"type": "respond", "message": "Again."}), how, THREAD)
    assert said(state) == TRUE
    log.flush()
    kept = log.get(first.id)
    assert kept
    assert (kept.review.action, kept.review.note) == ("reject", "Again.")
    assert kept.outcome == "responded"
    assert len(log.query().records) == 2


def test_a_step_that_is_run_again_after_a_crash_keeps_its_decision(log: SQLAuditLog) -> None:
    check, _ = checker()
    crashes = [True]

    class Crashing(InMemorySaver):
        def put(self, *args: Any, **kwargs: Any) -> Any:
            if log.query(status="decided").records and crashes:
                crashes.clear()
                raise ConnectionError
            return super().put(*args, **kwargs)

    middleware = GroundednessMiddleware(check, on_ungrounded="review", audit_log=log)
    graph = agent_of(call(), FALSE, TRUE, TRUE, middleware=middleware, checkpointer=Crashing())
    ask(graph)
    value = {"type": "respond", "message": "Again.", "reviewer": "bob"}
    with pytest.raises(ConnectionError):
        graph.invoke(Command(resume=value), THREAD)
    state = graph.invoke(Command(resume=value), THREAD)
    assert said(state) == TRUE


# --- when the log cannot help ---


def test_a_log_that_is_down_does_not_hold_up_the_decision(
    log: SQLAuditLog, how: How, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = agent(log)
    ask(graph, how)

    def down(*_: Any, **__: Any) -> Any:
        msg = "the database is down"
        raise GroundednessError(msg)

    record = waiting(log)
    monkeypatch.setattr(log, "decide", down)
    state = run(graph, Command(resume={"type": "approve", "reviewer": "bob"}), how, THREAD)
    assert said(state) == FALSE
    monkeypatch.undo()
    log.flush()
    kept = log.get(record.id)
    assert kept
    assert (kept.review.reviewer, kept.review.action, kept.revision) == ("bob", "approve", 1)


def test_a_log_without_texts_lets_no_edit_out_that_it_cannot_show(tmp_path: Path, how: How) -> None:
    with SQLAuditLog(f"sqlite:///{tmp_path / 'hash.db'}", content="hash") as log:
        graph = agent(log)
        ask(graph, how)
        record = waiting(log)
        edited = log.decide(record.id, revision=0, reviewer="ada", action="edit", answer="$2.1B")
        with pytest.raises(GroundednessError, match="keeps no texts"):
            resume(graph, edited, how)
        state = run(graph, Command(resume={"type": "approve"}), how, THREAD)
        assert said(state) == BLOCKED
        assert resume(graph, edited, how) is None


def test_without_an_audit_log_the_graph_decides_alone(how: How) -> None:
    graph = agent(None)
    assert ask(graph, how)["record_id"] is not None
    state = run(graph, Command(resume={"type": "approve"}), how, THREAD)
    assert said(state) == FALSE


# --- which graph ---


def decided(**fields: Any) -> AuditRecord:
    review = {"status": "decided", "action": "approve", "reviewer": "ada"}
    known = {"verdict": "unchecked", "decision": Decision(action="review"), "review": review}
    return AuditRecord(**{**known, **fields})


def test_a_record_that_nobody_decided_resumes_nothing() -> None:
    undecided = decided(review={"status": "waiting"})
    with pytest.raises(GroundednessError, match="status 'waiting'"):
        resume_value(undecided)
    with pytest.raises(GroundednessError, match="status 'waiting'"):
        resume_reviewed(object(), undecided)


@pytest.mark.parametrize("action", ["approve", "edit"])
def test_a_record_without_a_thread_resumes_nothing(log: SQLAuditLog, how: How, action: str) -> None:
    review = {"status": "decided", "action": action, "reviewer": "ada"}
    assert resume(agent(log), decided(review=review), how) is None


def test_a_graph_that_waits_for_something_else_is_left_alone(log: SQLAuditLog, how: How) -> None:
    graph = agent(log)
    ask(graph, how)
    assert resume(graph, decided(thread_id="t1"), how) is None
    assert resume(graph, decided(thread_id="never seen"), how) is None
    assert graph.get_state(THREAD).interrupts


def test_each_thread_goes_on_with_its_own_decision(log: SQLAuditLog) -> None:
    graph = agent(log, FALSE, call(), FALSE)
    for name in ("t1", "t2"):
        ask(graph, thread={"configurable": {"thread_id": name}})
    log.flush()
    for record in log.waiting().records:
        action: Any = "approve" if record.thread_id == "t1" else "reject"
        log.decide(record.id, revision=0, reviewer="ada", action=action)
    shown = {
        record.thread_id: said(resume_reviewed(graph, record))
        for record in log.query(status="decided").records
    }
    assert shown == {"t1": FALSE, "t2": BLOCKED}


def test_a_decision_that_can_be_undone_resumes_nothing(log: SQLAuditLog) -> None:
    graph = agent(log)
    ask(graph)
    held = log.decide(waiting(log).id, revision=0, reviewer="ada", action="approve", hold=3600)
    assert resume_reviewed(graph, held) is None
    undone = log.undo(held.id, revision=held.revision, reviewer="ada")
    final = log.decide(undone.id, revision=undone.revision, reviewer="ada", action="reject")
    assert said(resume_reviewed(graph, final)) == BLOCKED


def test_a_held_decision_that_a_resumed_run_has_used_cannot_be_undone(
    log: SQLAuditLog, how: How
) -> None:
    graph = agent(log)
    ask(graph, how)
    held = log.decide(waiting(log).id, revision=0, reviewer="ada", action="approve", hold=3600)
    state = run(graph, Command(resume={"type": "reject", "reviewer": "bob"}), how, THREAD)
    assert said(state) == FALSE
    with pytest.raises(GroundednessError, match="nothing was written"):
        log.undo(held.id, revision=held.revision, reviewer="ada")
    log.flush()
    [kept] = log.records(status="decided")
    assert (kept.review.reviewer, kept.review.action, kept.outcome) == (
        "ada",
        "approve",
        "approved",
    )


def decided_and_undone(log: SQLAuditLog) -> tuple[AuditRecord, AuditRecord]:
    """Decide and undo, and give the record of then, as if it were in effect, and of now."""
    stale = log.decide(waiting(log).id, revision=0, reviewer="ada", action="approve", hold=3600)
    now = log.undo(stale.id, revision=stale.revision, reviewer="ada")
    held = {"time": stale.review.time - timedelta(hours=2)} if stale.review.time else {}
    return stale.model_copy(update={"review": stale.review.model_copy(update=held)}), now


def test_a_record_whose_decision_was_undone_releases_nothing(log: SQLAuditLog, how: How) -> None:
    graph = agent(log)
    asked = ask(graph, how)
    stale, now = decided_and_undone(log)
    for paused in (
        resume(graph, stale, how),
        run(graph, Command(resume=resume_value(stale)), how, THREAD),
        run(graph, None, how, THREAD),
    ):
        assert said(paused) == BLOCKED
        assert paused["__interrupt__"][0].value == asked
    assert waiting(log).outcome == "waiting"
    final = log.decide(now.id, revision=now.revision, reviewer="eve", action="edit", answer=TRUE)
    assert said(resume(graph, final, how)) == TRUE
    log.flush()
    [kept] = log.records(status="decided")
    assert (kept.review.reviewer, kept.outcome) == ("eve", "edited")


def test_after_a_decision_that_was_undone_the_graph_takes_another(
    log: SQLAuditLog, how: How
) -> None:
    graph = agent(log)
    ask(graph, how)
    stale, _ = decided_and_undone(log)
    resume(graph, stale, how)
    edit = {"type": "edit", "answer": TRUE, "reviewer": "eve"}
    assert said(run(graph, Command(resume=edit), how, THREAD)) == TRUE
    assert resume(graph, stale, how) is None


@pytest.mark.parametrize("other", ["eve", None])
def test_a_decision_that_is_undone_before_it_is_used_does_not_count(
    tmp_path: Path, how: How, other: str | None
) -> None:
    class Undoing(SQLAuditLog):
        """Its reviewer undoes a decision just before it is used, and another one decides."""

        def take_effect(self, record_id: str) -> AuditRecord:
            if not undone:
                undone.append(self.undo(record_id, revision=1, reviewer="ada"))
                if other is not None:
                    self.decide(record_id, revision=0, reviewer=other, action="reject", hold=3600)
            return super().take_effect(record_id)

    undone: list[AuditRecord] = []
    with Undoing(f"sqlite:///{tmp_path / 'audit.db'}") as log:
        graph = agent(log)
        ask(graph, how)
        log.decide(waiting(log).id, revision=0, reviewer="ada", action="approve", hold=3600)
        state = run(graph, Command(resume={"type": "reject", "reviewer": "bob"}), how, THREAD)
        assert said(state) == BLOCKED
        log.flush()
        [kept] = log.records(status="decided")
        assert (kept.review.reviewer, kept.outcome) == (other or "bob", "rejected")


# --- checkpointers ---


def test_another_process_resumes_from_sqlite(log: SQLAuditLog, tmp_path: Path) -> None:
    def once(use: Callable[[Any], Any]) -> Any:
        path = tmp_path / "checkpoints.db"
        with closing(sqlite3.connect(path, check_same_thread=False)) as connection:
            return use(agent(log, checkpointer=SqliteSaver(connection)))

    once(ask)
    record = log.decide(waiting(log).id, revision=0, reviewer="ada", action="reject")
    assert said(once(lambda graph: resume_reviewed(graph, record))) == BLOCKED
    assert once(lambda graph: resume_reviewed(graph, record)) is None


def test_log_and_checkpoints_can_share_a_postgresql_database(postgres: Cluster) -> None:
    url = postgres.database()

    def once(use: Callable[[Any], Any]) -> Any:
        with PostgresSaver.from_conn_string(url) as saver:
            saver.setup()
            return use(agent(log, checkpointer=saver))

    with SQLAuditLog(url, on_store_down="raise") as log:
        once(ask)
        record = log.decide(
            waiting(log).id, revision=0, reviewer="ada", action="edit", answer="It was $2.1B."
        )
        assert said(once(lambda graph: resume_reviewed(graph, record))) == "It was $2.1B."
        assert once(lambda graph: resume_reviewed(graph, record)) is None
        log.flush()
        kept = log.get(record.id)
        assert kept
        assert kept.outcome == "edited"
