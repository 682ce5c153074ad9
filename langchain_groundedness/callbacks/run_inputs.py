"""The question and the evidence of a watched run, read from what callbacks report.

Its own module because it only reads values: it knows no runs, locks or events.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, LLMResult

from langchain_groundedness.exceptions import InputFormatError
from langchain_groundedness.inputs.formats import LABELS, CheckInput, read_input

__all__ = ["RunInputs", "answer_of"]


class RunInputs:
    """What is known so far about the question and the evidence of one root run."""

    def __init__(self) -> None:
        """Start with nothing known."""
        self.question: str | None = None
        """The first question seen."""
        self._found: list[_Found] = []
        self._calls: set[str] = set()
        self._given: tuple[Document, ...] = ()
        self._labels: dict[Any, Any] = {}

    @property
    def documents(self) -> tuple[Document, ...]:
        """The evidence so far."""
        return _once(d for found in self._found for d in found.documents) or self._given

    def take_inputs(self, inputs: object) -> None:
        """Look for the question, and for documents in case no others come."""
        if isinstance(inputs, Mapping):
            self.take_labels(inputs)
        if self.question and (self._found or self._given):
            return
        if isinstance(inputs, str):
            self.question = self.question or inputs or None
        elif isinstance(inputs, list) and inputs and isinstance(inputs[0], BaseMessage):
            inputs = {"messages": inputs}
        if isinstance(inputs, Mapping):
            read = _read_inputs(inputs)
            self.question = self.question or read.question or None
            self._given = self._given or read.documents

    def take_labels(self, parts: Mapping[Any, Any]) -> None:
        """Look for labels of the question, and keep the new ones."""
        found = {name: parts[name] for name in LABELS if parts.get(name) is not None}
        self._labels = {**found, **self._labels}

    def take_retrieved(self, documents: Sequence[Document], *, tool: UUID | None) -> None:
        """Take what an outermost retriever has found."""
        self._found.append(_Found(tuple(documents), tool))

    def take_tool_output(self, output: object, *, tool: UUID, name: str | None = None) -> None:
        """Take what an outermost tool has returned, unless a retriever in it has said it better."""
        message = _as_message(output, name)
        if message is None:
            return
        own = [found for found in self._found if found.tool == tool]
        if message.tool_call_id:
            self._calls.add(message.tool_call_id)
        if message.status == "error":
            self.drop_tool(tool)
        elif any(found.documents for found in own):
            for found in own:
                found.call_id = message.tool_call_id
        else:
            documents = _read_messages({"messages": [message, AIMessage("-")]})
            self._found.append(_Found(documents, tool, message.tool_call_id))

    def drop_tool(self, tool: UUID) -> None:
        """Forget what was found in a tool that has failed: the model has not seen it."""
        self._found = [found for found in self._found if found.tool != tool]

    def read(
        self, output: object, *, context_extractor: Callable[[Any], Any] | None = None
    ) -> CheckInput:
        """Put everything together at the end of the root."""
        read = read_input(output, context_extractor=context_extractor)
        documents = read.documents
        if context_extractor is None or not documents:
            messages = _messages_of(output)
            answering = _answering_call(messages)
            seen = _once(
                document
                for found in self._found
                if answering is None or found.call_id != answering or _retrieved(found)
                for document in found.documents
            )
            others = self._unseen(output, messages) if seen and messages else ()
            documents = _once((*seen, *others)) or read.documents or self._given
        question = read.question or self.question
        whole = CheckInput(question=question, answer=read.answer, documents=documents)
        return whole.labelled(read.labels).labelled(self._labels)

    def _unseen(self, output: object, messages: Sequence[BaseMessage]) -> Sequence[Document]:
        """Give what tools found before this run began, in a run that goes on after a pause."""
        rest = [
            message
            for message in messages
            if not (isinstance(message, ToolMessage) and message.tool_call_id in self._calls)
        ]
        structured = output.get("structured_response") if isinstance(output, Mapping) else None
        return _read_messages({"messages": rest, "structured_response": structured})


@dataclass
class _Found:
    """What one retriever or one tool has found."""

    documents: Sequence[Document]
    tool: UUID | None
    """The outermost tool that it belongs to."""
    call_id: str | None = None


def answer_of(response: LLMResult) -> str | None:
    """Read the answer of a model that was called by itself."""
    generation = next((each for choices in response.generations for each in choices), None)
    if isinstance(generation, ChatGeneration):
        message = generation.message
        return None if getattr(message, "tool_calls", None) else str(message.text)
    return None if generation is None else str(generation.text)


def _read_inputs(inputs: Mapping[Any, Any]) -> CheckInput:
    texts = {key: each for key, each in inputs.items() if isinstance(each, str | BaseMessage)}
    for parts in (inputs, texts):
        try:
            return read_input({**parts, "answer": ""})
        except InputFormatError:
            continue
    return CheckInput(answer="")


def _read_messages(state: Mapping[str, Any]) -> tuple[Document, ...]:
    try:
        return read_input(state).documents
    except InputFormatError:
        return ()


def _as_message(output: object, name: str | None) -> ToolMessage | None:
    """Give what a tool returned as the message that the model gets to read."""
    if isinstance(output, ToolMessage):
        return output
    if hasattr(output, "goto"):  # LangGraph's `Command`
        update = getattr(output, "update", None)
        listed = update.get("messages") or () if isinstance(update, Mapping) else ()
        return next((each for each in reversed(listed) if isinstance(each, ToolMessage)), None)
    if output is None:
        return None
    if isinstance(output, str):
        return ToolMessage(str(output), name=name, tool_call_id="")
    listed = output if isinstance(output, list | tuple) else [output]
    if listed and all(isinstance(each, Document) for each in listed):
        return ToolMessage("", artifact=list(listed), name=name, tool_call_id="")
    text = json.dumps(output, ensure_ascii=False, default=str)
    return ToolMessage(text, name=name, tool_call_id="")


def _messages_of(output: object) -> Sequence[BaseMessage]:
    if isinstance(output, list):
        listed: Any = output
    elif isinstance(output, Mapping):
        listed = output.get("messages")
    else:
        listed = getattr(output, "messages", None)
    if not isinstance(listed, list | tuple):
        return ()
    return [each for each in listed if isinstance(each, BaseMessage)]


def _answering_call(messages: Sequence[BaseMessage]) -> str | None:
    """Give the call whose result is itself the answer: its text is no evidence for it."""
    last = messages[-1] if messages else None
    return last.tool_call_id if isinstance(last, ToolMessage) else None


def _retrieved(found: _Found) -> bool:
    return not all("tool_call_id" in document.metadata for document in found.documents)


def _once(documents: Iterable[Document]) -> tuple[Document, ...]:
    return tuple({(each.id, each.page_content): each for each in documents}.values())
