"""Question and evidence of a watched run, collected from callbacks.

Its own module because it only reads values, and does not handle runs, locks or events.
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
    """Question and evidence of one root run, as far as known."""

    def __init__(self) -> None:
        """Start empty."""
        self.question: str | None = None
        """The first question seen."""
        self._found: list[_Found] = []
        self._calls: set[str] = set()
        self._given: tuple[Document, ...] = ()
        self._labels: dict[Any, Any] = {}

    @property
    def documents(self) -> tuple[Document, ...]:
        """The evidence so far."""
        return _distinct(d for found in self._found for d in found.documents) or self._given

    def take_inputs(self, inputs: object) -> None:
        """Read the question, and documents as a fallback."""
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
        """Read labels of the question; the first value of each is kept."""
        found = {name: parts[name] for name in LABELS if parts.get(name) is not None}
        self._labels = {**found, **self._labels}

    def take_retrieved(self, documents: Sequence[Document], *, tool: UUID | None) -> None:
        """Add the documents of an outermost retriever."""
        self._found.append(_Found(tuple(documents), tool))

    def take_tool_output(self, output: object, *, tool: UUID, name: str | None = None) -> None:
        """Add the output of an outermost tool, unless a retriever inside it found documents."""
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
        """Remove the findings of a failed tool: the model has not seen them."""
        self._found = [found for found in self._found if found.tool != tool]

    def read(
        self, output: object, *, context_extractor: Callable[[Any], Any] | None = None
    ) -> CheckInput:
        """Build the input of the check when the root run ends."""
        read = read_input(output, context_extractor=context_extractor)
        documents = read.documents
        if context_extractor is None or not documents:
            messages = _messages_of(output)
            answering = _answering_call(messages)
            seen = _distinct(
                document
                for found in self._found
                if answering is None or found.call_id != answering or _retrieved(found)
                for document in found.documents
            )
            others = self._unseen(output, messages) if seen and messages else ()
            documents = _distinct((*seen, *others)) or read.documents or self._given
        question = read.question or self.question
        whole = CheckInput(question=question, answer=read.answer, documents=documents)
        return whole.labelled(read.labels).labelled(self._labels)

    def _unseen(self, output: object, messages: Sequence[BaseMessage]) -> Sequence[Document]:
        """Return tool results from before this run, if it resumes an interrupted one."""
        rest = [
            message
            for message in messages
            if not (isinstance(message, ToolMessage) and message.tool_call_id in self._calls)
        ]
        structured = output.get("structured_response") if isinstance(output, Mapping) else None
        return _read_messages({"messages": rest, "structured_response": structured})


@dataclass
class _Found:
    """Documents of one retriever or tool."""

    documents: Sequence[Document]
    tool: UUID | None
    """The outermost tool around it."""
    call_id: str | None = None


def answer_of(response: LLMResult) -> str | None:
    """Read the answer of a model response; `None` if it calls tools."""
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
    """Convert a tool's output to the message that the model reads."""
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
    """Return the call whose result is the answer, and thus no evidence for it."""
    last = messages[-1] if messages else None
    return last.tool_call_id if isinstance(last, ToolMessage) else None


def _retrieved(found: _Found) -> bool:
    return not all("tool_call_id" in document.metadata for document in found.documents)


def _distinct(documents: Iterable[Document]) -> tuple[Document, ...]:
    return tuple({(each.id, each.page_content): each for each in documents}.values())
