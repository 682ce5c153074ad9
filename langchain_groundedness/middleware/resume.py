"""Agents and graphs that wait for a reviewer, and go on with what the audit log says.

An answer that waits has two doors: whoever resumes the graph can decide, and so can a reviewer of
the audit log. The first decision holds, whichever door it came through.
"""

from typing import Any

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import merge_configs

from langchain_groundedness.audit.record import AuditRecord
from langchain_groundedness.exceptions import ConfigurationError, GroundednessError, require

__all__ = ["aresume_reviewed", "resume_reviewed", "resume_value"]


def resume_value(record: AuditRecord) -> dict[str, Any]:
    """Give what a graph that waits for a review is resumed with: `Command(resume=...)`.

    Args:
        record: A record that a reviewer has decided.

    Returns:
        The decision, in the form that `GroundednessMiddleware` reads.

    Raises:
        GroundednessError: Nobody has decided it, or the reviewer's text was not kept.
        ConfigurationError: It is no record.

    Example:
        >>> from langchain_groundedness import Decision
        >>> record = AuditRecord(
        ...     verdict="unchecked",
        ...     decision=Decision(action="review"),
        ...     review={"status": "decided", "action": "reject", "reviewer": "ada"},
        ... )
        >>> resume_value(record)
        {'type': 'reject', 'reviewer': 'ada'}
    """
    if not isinstance(record, AuditRecord):
        kind = type(record).__name__
        msg = f"record must be an AuditRecord, such as log.get(id) gives, got {kind}"
        raise ConfigurationError(msg)
    review = record.review
    if review.status != "decided" or review.action is None:
        msg = f"the record is not decided (status {review.status!r}): a graph would not know how"
        raise GroundednessError(msg)
    value: dict[str, Any] = {"type": review.action}
    if review.action == "edit":
        if record.content != "full" or not review.answer:
            msg = "the reviewer's text is not in the record: the audit log keeps no texts"
            raise GroundednessError(msg)
        value["answer"] = review.answer
    said = {"reviewer": review.reviewer, "note": review.note}
    return value | {name: text for name, text in said.items() if text}


def resume_reviewed(
    graph: Any, record: AuditRecord, config: RunnableConfig | None = None
) -> dict[str, Any] | None:
    """Resume the graph that waits for the review of a record, if it still does.

    It can be called again, or by several processes one after the other: a graph that has gone on
    is left alone.

    Args:
        graph: The agent or graph, compiled with the checkpointer that it has waited on.
        record: A record that a reviewer has decided, as the audit log gives it.
        config: Options of the run; the thread comes from the record.

    Returns:
        What the run returns; `None` if nothing waits for this record.

    Raises:
        GroundednessError: Nobody has decided it, or the record names no thread.
    """
    value, config = resume_value(record), _in_thread(record, config)
    answer = _answer(graph.get_state(config, subgraphs=True), record, value)
    return None if answer is None else graph.invoke(answer, config)


async def aresume_reviewed(
    graph: Any, record: AuditRecord, config: RunnableConfig | None = None
) -> dict[str, Any] | None:
    """Resume the graph that waits for the review of a record, if it still does.

    Args:
        graph: As for `resume_reviewed`.
        record: As for `resume_reviewed`.
        config: As for `resume_reviewed`.

    Returns:
        As `resume_reviewed`.

    Raises:
        GroundednessError: As `resume_reviewed`.
    """
    value, config = resume_value(record), _in_thread(record, config)
    answer = _answer(await graph.aget_state(config, subgraphs=True), record, value)
    return None if answer is None else await graph.ainvoke(answer, config)


def _in_thread(record: AuditRecord, config: RunnableConfig | None) -> RunnableConfig:
    if record.thread_id is None:
        msg = "the record names no thread: its answer was not given by a graph that can wait"
        raise GroundednessError(msg)
    return merge_configs(config, {"configurable": {"thread_id": record.thread_id}})


def _answer(snapshot: Any, record: AuditRecord, value: dict[str, Any]) -> Any:
    """Answer the question that is about this record, and leave others open."""
    asked = (
        interrupt.id
        for interrupt in snapshot.interrupts
        if isinstance(interrupt.value, dict) and interrupt.value.get("record_id") == record.id
    )
    identity = next(asked, None)
    if identity is None:
        return None
    return require("langgraph.types", extra="agents").Command(resume={identity: value})
