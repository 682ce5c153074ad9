"""Keeps the tool results of a conversation in the agent's state, and finds text of models in them.

Its own module because messages are trimmed and summarised, and do not say who wrote them.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.messages import BaseMessage, ToolMessage
from langchain_core.tracers.context import register_configure_hook
from langgraph.types import Command
from typing_extensions import override

from langchain_groundedness.inputs.formats import (
    EARLIER_CHARACTERS,
    CheckInput,
    InputReader,
    generated,
    is_question,
    tool_documents,
    turns_of,
    within_budget,
)
from langchain_groundedness.middleware.state import plain, state_value

__all__ = ["EVIDENCE_KEY", "ModelWatcher", "kept_evidence", "marked", "with_kept_evidence"]

EVIDENCE_KEY = "groundedness_evidence"
"""State key of the tool results of a conversation."""


def kept_evidence(state: Any, reader: InputReader) -> dict[str, Any]:
    """Return what the state must keep: the tool results it has kept, and those in its messages.

    Turns are numbered from the start of the conversation, even if its first messages are gone.
    """
    known = state_value(state, EVIDENCE_KEY) or {}
    messages = [m for m in state_value(state, "messages") or () if isinstance(m, BaseMessage)]
    questions = [message.id for message in messages if is_question(message)]
    number, question = known.get("turn", 0), known.get("question")
    if known and question in questions:
        number += len(questions) - 1 - questions.index(question)
    elif questions:
        number += 1 if known else len(questions)
    results = {result["message"]: result for result in known.get("results", ())}
    for back, turn in enumerate(reversed(turns_of(messages))):
        for message in turn:
            if isinstance(message, ToolMessage) and (back == 0 or _id(message) not in results):
                results[_id(message)] = _result(message, number - back, reader)
    return {
        "turn": number,
        "question": questions[-1] if questions else question,
        "results": list(_bounded(results.values())),
    }


def with_kept_evidence(source: CheckInput, state: Any, reader: InputReader) -> CheckInput:
    """Add kept tool results to those in the messages of the last turn."""
    if source.documents and source.evidence_source == "returned":
        return source
    messages = [m for m in state_value(state, "messages") or () if isinstance(m, BaseMessage)]
    read = {_id(m) for m in turns_of(messages)[-1] if isinstance(m, ToolMessage)}
    kept = kept_evidence(state, reader)
    turn = kept["turn"]
    others = [
        document
        for result in kept["results"]
        if result["message"] not in read and (reader.evidence == "thread" or result["turn"] == turn)
        for document in _documents(result, now=turn)
    ]
    documents = (*source.documents, *within_budget(others, known=source.documents))
    return source.model_copy(update={"documents": documents, "evidence_source": "retrieved"})


def _result(message: ToolMessage, turn: int, reader: InputReader) -> dict[str, Any]:
    found = tool_documents([message], trust_generated=reader.trust_generated)
    documents = [
        {"page_content": d.page_content, "metadata": d.metadata, "id": d.id} for d in found
    ]
    return plain({"turn": turn, "message": _id(message), "documents": documents})  # type: ignore[no-any-return]  # a dict


def _bounded(results: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Keep the latest results, the last turn first, up to a limit of text."""
    left = EARLIER_CHARACTERS
    for result in sorted(results, key=lambda result: -result["turn"]):
        left -= sum(len(document["page_content"]) for document in result["documents"])
        if left < 0:
            return
        if result["documents"]:
            yield result


def _documents(result: Mapping[str, Any], *, now: int) -> Iterator[Document]:
    turn = {} if result["turn"] == now else {"turn": result["turn"]}
    for document in result["documents"]:
        yield Document(**{**document, "metadata": {**document["metadata"], **turn}})


def _id(message: ToolMessage) -> str:
    return message.id or message.tool_call_id


@dataclass(eq=False)
class ModelWatcher(BaseCallbackHandler):
    """Finds out whether a model writes what a tool returns.

    Models inside retrievers and checks do not: retrievers return documents.
    """

    found: bool = False
    _apart: set[UUID] = field(default_factory=set)
    raise_error = False

    @classmethod
    @contextmanager
    def watch(cls) -> Iterator["ModelWatcher"]:
        """Watch all runs of a block of code."""
        watcher = cls()
        token = _watching.set(watcher)
        try:
            yield watcher
        finally:
            _watching.reset(token)

    @override
    def on_retriever_start(self, *args: Any, run_id: UUID, **run: Any) -> None:
        self._apart.add(run_id)

    @override
    def on_chain_start(
        self, *args: Any, run_id: UUID, parent_run_id: UUID | None = None, **run: Any
    ) -> None:
        checks = run.get("name") in ("GroundednessRunnable", "GroundednessGuard")
        if checks or parent_run_id in self._apart:
            self._apart.add(run_id)

    @override
    def on_chat_model_start(
        self, *args: Any, run_id: UUID, parent_run_id: UUID | None = None, **run: Any
    ) -> None:
        self.found = self.found or parent_run_id not in self._apart

    on_llm_start = on_chat_model_start


_watching: ContextVar[ModelWatcher | None] = ContextVar("groundedness_watching", default=None)
register_configure_hook(_watching, inheritable=True)


def marked(result: ToolMessage | Command[Any]) -> ToolMessage | Command[Any]:
    """Mark what a tool returned as text that a model wrote."""
    if isinstance(result, ToolMessage):
        return generated(result)
    update = result.update
    if not isinstance(update, Mapping) or not isinstance(update.get("messages"), list):
        return result
    messages = [generated(m) if isinstance(m, ToolMessage) else m for m in update["messages"]]
    return replace(result, update={**update, "messages": messages})
