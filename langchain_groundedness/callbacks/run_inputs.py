"""Question and evidence of a watched run, collected from callbacks.

Its own module because it only reads values, and does not handle runs, locks or events. A run is
named by its path: the ids of the runs around it, the root first, and its own.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, TypeAlias
from uuid import UUID

from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, LLMResult

from langchain_groundedness.exceptions import InputFormatError
from langchain_groundedness.inputs.formats import (
    LABELS,
    CheckInput,
    InputReader,
    is_question,
    mark_as_generated,
    tool_documents,
)
from langchain_groundedness.types import EvidenceSource

__all__ = ["Path", "RunInputs", "answer_of"]

Path: TypeAlias = tuple[UUID, ...]

_BEGINNING = 200
"""Length of the beginning by which a document is recognised in a text that cuts it short."""

_LABEL_WORDS = 8
"""Most words of the labels that prompts put beside documents; longer texts are evidence."""


@dataclass(kw_only=True)
class _FoundDocuments:
    """Documents of one retriever or tool."""

    path: Path
    time: int
    documents: Sequence[Document]
    tool: UUID | None = None
    """The outermost tool around it."""
    call_id: str | None = None
    generated: bool = False
    """Whether they are text that a model wrote inside the tool."""


@dataclass(frozen=True, kw_only=True)
class _WriterRun:
    """A run that wrote a text: a model, or a step that calls one unseen."""

    path: Path
    time: int
    """Only what was found before can have been read by it."""
    shown: object = None
    """What a model was given: its messages, or its prompts."""

    @property
    def messages(self) -> Sequence[BaseMessage]:
        """The messages that a model was given."""
        shown = self.shown if isinstance(self.shown, list) else []
        listed = shown[0] if shown and isinstance(shown[0], list) else []
        return [each for each in listed if isinstance(each, BaseMessage)]

    @property
    def text(self) -> str:
        """All text that a model was given."""
        prompts = self.shown if isinstance(self.shown, list) else []
        texts = [each for each in prompts if isinstance(each, str)]
        return "\n".join((*texts, *(str(each.text) for each in self.messages)))


class RunInputs:
    """Question and evidence of one root run, as far as known."""

    def __init__(self, reader: InputReader | None = None) -> None:
        """Start empty; the reader reads inputs and outputs."""
        self.question: str | None = None
        """The first question seen."""
        self._reader = reader or InputReader()
        self._found: list[_FoundDocuments] = []
        self._calls: set[str] = set()
        self._labels: dict[Any, Any] = {}
        self._root: UUID | None = None
        self._times = count()
        self._inputs: dict[UUID, Any] = {}
        self._prompts: dict[UUID, Any] = {}
        self._models: dict[UUID, _WriterRun] = {}
        self._writers: dict[str, _WriterRun] = {}
        self._last: _WriterRun | None = None
        self._around_writers: set[UUID] = set()
        self._generating: set[UUID] = set()

    def begin(self, path: Path, inputs: object, *, is_prompt: bool = False) -> None:
        """Read the inputs of a chain, or of a prompt template."""
        self._root = path[0]
        self._inputs[path[-1]] = inputs
        if is_prompt and len(path) > 1:
            self._prompts[path[-2]] = inputs
        self.take_inputs(inputs)

    def begin_model(self, path: Path, shown: object) -> None:
        """Remember what a model that may answer was shown, and when."""
        self._models[path[-1]] = _WriterRun(path=path, time=next(self._times), shown=shown)

    def begin_generating(self, path: Path) -> None:
        """Note that a model writes inside the tools of a path."""
        self._generating |= set(path)

    def end(self, path: Path, output: object, inputs: object = None) -> None:
        """Read the output of a chain or model, and the inputs of one that was streamed."""
        run_id = path[-1]
        if inputs is not None:
            self._inputs[run_id] = inputs
            self.take_inputs(inputs)
        text = _text_of(output)
        model = self._models.pop(run_id, None)
        if text and model:
            self._writers[text] = self._last = model
            self._around_writers |= set(path)
        elif text and text not in self._writers:
            self._writers[text] = _WriterRun(path=path, time=next(self._times))
            self._around_writers |= set(path)
        if run_id != self._root and run_id not in self._around_writers:
            self._inputs.pop(run_id, None)
            self._prompts.pop(run_id, None)

    def was_given(self, run_id: UUID, inputs: object) -> bool:
        """Tell whether a chain was given this very object."""
        return inputs is not None and self._inputs.get(run_id) is inputs

    def take_inputs(self, inputs: object) -> None:
        """Read the question and its labels."""
        if isinstance(inputs, Mapping):
            self.take_labels(inputs)
        if not self.question:
            text = inputs if isinstance(inputs, str) else None
            read = text or _read_inputs(self._reader, inputs).question
            self.question = read or None

    def take_labels(self, parts: Mapping[Any, Any]) -> None:
        """Read labels of the question; the first value of each is kept."""
        found = {name: parts[name] for name in LABELS if parts.get(name) is not None}
        self._labels = {**found, **self._labels}

    def take_retrieved(self, documents: Sequence[Document], path: Path, tool: UUID | None) -> None:
        """Add the documents of an outermost retriever."""
        self._found.append(
            _FoundDocuments(
                path=path, time=next(self._times), documents=tuple(documents), tool=tool
            )
        )

    def take_tool_output(
        self, output: object, path: Path, tool: UUID, name: str | None = None
    ) -> None:
        """Add the output of a tool; it replaces what was found inside the tool."""
        message = _as_message(output, name)
        if message is None:
            return
        if message.tool_call_id:
            self._calls.add(message.tool_call_id)
        if message.status == "error":
            self.drop(path[-1])
            return
        documents = tuple(tool_documents([message], trust_generated=True))
        is_text = not any(tool_documents([mark_as_generated(message)]))
        found = _FoundDocuments(
            path=path,
            time=next(self._times),
            documents=documents,
            tool=tool,
            call_id=message.tool_call_id,
            generated=is_text and path[-1] in self._generating,
        )
        inside = [each for each in self._found if path[-1] in each.path]
        if found.generated:
            for each in inside:
                each.call_id = message.tool_call_id
        else:
            known = [document for each in inside for document in each.documents]
            found.documents = _replace_by_known(documents, known)
            self.drop(path[-1])
        self._found.append(found)

    def drop(self, run_id: UUID) -> None:
        """Forget what was found and written inside a run."""
        self._found = [each for each in self._found if run_id not in each.path]
        self._models = {k: each for k, each in self._models.items() if run_id not in each.path}
        self._writers = {k: each for k, each in self._writers.items() if run_id not in each.path}
        if self._last is not None and run_id in self._last.path:
            self._last = None

    def shown_to(self, run_id: UUID) -> CheckInput:
        """Build question and evidence for the text that a model writes."""
        writer = self._models.get(run_id)
        documents, source = self._evidence(writer, writer.messages if writer else ())
        return CheckInput(
            question=self.question, answer="", documents=documents, evidence_source=source
        )

    def read(
        self, output: object, *, context_extractor: Callable[[Any], Any] | None = None
    ) -> CheckInput:
        """Build the input of the check when the root run ends."""
        read = replace(self._reader, context_extractor=context_extractor)(output)
        documents, source = read.documents, read.evidence_source
        if context_extractor is None or not documents:
            writer = self._writers.get(read.answer.strip(), self._last)
            if documents and source == "returned":
                documents = _replace_by_known(documents, self._known_documents(writer))
            else:
                documents, source = self._evidence(writer, _messages_of(output), output)
        whole = CheckInput(
            question=read.question or self.question,
            answer=read.answer,
            documents=documents,
            evidence_source=source,
        )
        return whole.labelled(read.labels).labelled(self._labels)

    def _evidence(
        self, writer: _WriterRun | None, messages: Sequence[BaseMessage], output: object = None
    ) -> tuple[tuple[Document, ...], EvidenceSource]:
        """Find the documents that a writer was shown or, failing that, may have read."""
        answering = _answering_call(messages) if output is not None else None
        found = [
            each
            for each in self._trusted_before(writer)
            if answering is None
            or each.call_id != answering
            or any("tool_call_id" not in document.metadata for document in each.documents)
        ]
        if prompt := self._prompt_documents(writer):
            read_by = writer.messages if writer else ()
            called = {m.tool_call_id for m in read_by if isinstance(m, ToolMessage)}
            read = [d for each in found if each.call_id in called for d in each.documents]
            return _distinct(
                (*_replace_by_known(prompt, self._known_documents(writer)), *read)
            ), "prompt"
        loose = [d for each in found if each.tool is None for d in each.documents]
        seen, _ = _found_in(writer.text if writer else "", loose)
        unseen = {id(d) for d in loose} - {id(d) for d in seen} if seen else set()
        documents = [d for each in found for d in each.documents if id(d) not in unseen]
        earlier = self._earlier_tool_results(messages, output)
        source: EvidenceSource = "prompt" if len(seen) == len(documents) > 0 else "retrieved"
        if documents or earlier:
            return _distinct((*documents, *earlier)), source
        given = self._inputs.get(self._root) if self._root else None
        return _read_inputs(self._reader, given).documents, "prompt"

    def _trusted_before(self, writer: _WriterRun | None) -> list[_FoundDocuments]:
        """Return what was found before a run wrote, and may be trusted."""
        trusts = self._reader.trust_generated
        found = (each for each in self._found if trusts or not each.generated)
        return [each for each in found if writer is None or each.time < writer.time]

    def _prompt_documents(self, writer: _WriterRun | None) -> tuple[Document, ...]:
        """Return the documents in the inputs of the nearest run that was given any."""
        for run_id in reversed(writer.path if writer else ()):
            # The inputs of the root may be anything.
            own = None if run_id == self._root else self._inputs.get(run_id)
            given = (self._prompts.get(run_id), own)
            for documents in map(self._reader.documents_in, given):
                if documents:
                    return documents
        return ()

    def _known_documents(self, writer: _WriterRun | None) -> list[Document]:
        """Return all documents that a text given to a writer may contain."""
        given = [self._inputs.get(run_id) for run_id in (writer.path if writer else ())]
        whole = [d for inputs in given for d in self._reader.documents_in(inputs)]
        known = [d for each in self._trusted_before(writer) for d in each.documents]
        return [*known, *(d for d in whole if not _is_plain(d))]

    def _earlier_tool_results(
        self, messages: Sequence[BaseMessage], output: object
    ) -> Sequence[Document]:
        """Return tool results from before this run: of earlier turns, or before an interrupt."""
        asked = max((n for n, message in enumerate(messages) if is_question(message)), default=0)
        rest = [
            message
            for place, message in enumerate(messages)
            if place < asked
            or not (isinstance(message, ToolMessage) and message.tool_call_id in self._calls)
        ]
        structured = output.get("structured_response") if isinstance(output, Mapping) else None
        if structured is None:
            return self._reader.tool_documents(rest) if rest else ()
        try:
            return self._reader({"messages": rest, "structured_response": structured}).documents
        except InputFormatError:
            return ()


def answer_of(response: LLMResult) -> str | None:
    """Read the answer of a model response; `None` if it calls tools."""
    generation = next((each for choices in response.generations for each in choices), None)
    said = generation.message if isinstance(generation, ChatGeneration) else generation
    return None if said is None or getattr(said, "tool_calls", None) else str(said.text)


def _text_of(output: object) -> str | None:
    """Read the text that a run wrote; `None` if it wrote none, or calls tools."""
    if isinstance(output, AIMessage):
        output = None if output.tool_calls else str(output.text)
    return output.strip() if isinstance(output, str) else None


def _read_inputs(reader: InputReader, inputs: object) -> CheckInput:
    if isinstance(inputs, list) and inputs and isinstance(inputs[0], BaseMessage):
        inputs = {"messages": inputs}
    if not isinstance(inputs, Mapping):
        return CheckInput(answer="")
    reader = replace(reader, answer_key=None)
    texts = {key: each for key, each in inputs.items() if isinstance(each, str | BaseMessage)}
    for parts in (inputs, texts):
        try:
            return reader({**parts, "answer": ""})
        except InputFormatError:
            continue
    return CheckInput(answer="")


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


def _is_plain(document: Document) -> bool:
    """Tell whether a document is only a text: the text of a prompt, or of a tool."""
    return document.id is None and document.metadata.keys() <= {"tool", "tool_call_id"}


def _replace_by_known(given: Iterable[Document], known: Sequence[Document]) -> tuple[Document, ...]:
    """Replace texts by the documents that they contain, and the rest of the texts."""
    traced: list[Document] = []
    for document in given:
        seen, rest = _found_in(document.page_content, known) if _is_plain(document) else ((), "")
        if not seen:
            traced.append(document)
            continue
        traced += seen
        if rest:
            traced.append(Document(page_content=rest, metadata=document.metadata))
    return _distinct(traced)


def _found_in(text: str, documents: Sequence[Document]) -> tuple[Sequence[Document], str]:
    """Return the documents that a text contains, whole or cut short, and the rest of the text."""
    whole = rest = " ".join(text.split())
    bodies = {place: " ".join(d.page_content.split()) for place, d in enumerate(documents)}
    seen = {place for place, body in bodies.items() if body and body in whole}
    for place in sorted(seen, key=lambda place: -len(bodies[place])):
        rest = rest.replace(bodies[place], "\n")
    for place in bodies.keys() - seen:
        body = bodies[place]
        start = rest.find(body[:_BEGINNING]) if len(body) > _BEGINNING else -1
        if start >= 0:
            seen.add(place)
            pairs = enumerate(zip(body, rest[start:], strict=False))
            shared = next((n for n, (own, other) in pairs if own != other), len(body))
            rest = rest[:start] + "\n" + rest[start + shared :]
    pieces = [piece.strip() for piece in rest.split("\n") if len(piece.split()) > _LABEL_WORDS]
    return [documents[place] for place in sorted(seen)], "\n".join(pieces)


def _distinct(documents: Iterable[Document]) -> tuple[Document, ...]:
    return tuple({(each.id, each.page_content): each for each in documents}.values())
