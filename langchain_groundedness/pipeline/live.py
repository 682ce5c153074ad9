"""The check of an answer that is still being written.

No I/O: `LiveCheck` reads pieces, queues jobs, receives their states and produces chunks.
`pipeline.runs` and the callback handlers run the jobs.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.messages import AIMessageChunk, RemoveMessage
from langchain_core.runnables import Runnable
from langchain_core.runnables.utils import AddableDict

from langchain_groundedness._runtime.telemetry import CheckSpan
from langchain_groundedness.claims.extractors import SentenceClaimExtractor
from langchain_groundedness.claims.statements import (
    AnswerSentence,
    StatementReader,
    sentence_claims,
)
from langchain_groundedness.correction.corrector import Corrector
from langchain_groundedness.correction.edits import lookahead_for_removal, without_overlaps
from langchain_groundedness.exceptions import InputFormatError
from langchain_groundedness.inputs.formats import CheckInput, InputReader, has_text
from langchain_groundedness.pipeline.check import Check, CheckState
from langchain_groundedness.pipeline.events import ChunkMaker
from langchain_groundedness.types import (
    Claim,
    ClaimVerdict,
    Edit,
    GroundednessResult,
    GroundednessResultChunk,
    Usage,
)

__all__ = ["Job", "LiveCheck"]


@dataclass
class SentenceUnit:
    """A sentence of the answer with its claims and their verdicts."""

    start: int
    end: int
    first: int = 0
    """Index of its first claim among all claims."""
    claims: tuple[Claim, ...] = ()
    verdicts: tuple[ClaimVerdict, ...] = ()
    """One per claim once it is `done`."""
    edits: tuple[Edit, ...] = ()
    done: bool = False


@dataclass
class Job:
    """Work to run: `runnable` streams states for `value`."""

    runnable: Runnable[Any, CheckState]
    value: Any
    unit: SentenceUnit | None = None
    version: int = 0
    state: CheckState | None = None
    """The latest state."""


class LiveCheck:
    """A check that reads its answer piece by piece.

    The chunks add up to the result for the whole answer. Each sentence is a separate job, which can
    start once the end of the sentence is certain and documents are known. If documents or question
    change later, all sentences are checked again.
    """

    def __init__(
        self,
        check: Check,
        read: InputReader,
        *,
        removes: bool = False,
        whole: bool = False,
    ) -> None:
        """Start with an empty answer."""
        extractor = check.extractor
        waits = whole and check.single_pass is not None
        self._by_sentence = type(extractor) is SentenceClaimExtractor and not waits
        self.jobs: deque[Job] = deque()
        """Jobs that can start, in order."""
        self.units: list[SentenceUnit] = []
        self.closed = False
        self.edits_by_sentence = not check.edited_verdicts or type(check.corrector) is Corrector
        """Whether the edits of a sentence are known once it is checked."""
        self.check = check
        self._checking = CheckSpan(streamed=True)
        self._read = read
        self._verify = check.verifying(edit=self.edits_by_sentence)
        self.removes = removes or bool(check.edited_verdicts)
        """Whether sentences may be removed, including surrounding white space and markers."""
        self._upstream = UpstreamInput(read, keep=not self._by_sentence)
        self.text = ""
        """The answer so far, if it is read piece by piece."""
        self._reader = StatementReader(split_compound=getattr(extractor, "split_compound", False))
        self._context = CheckInput(answer="")
        self._version = 0
        self._planned = 0
        self._claims: list[Claim] = []
        self._verdicts: dict[str, ClaimVerdict] = {}
        self._edits_of_whole: tuple[Edit, ...] = ()
        self._last: Job | None = None
        self._maker = ChunkMaker()
        self._chunks: list[GroundednessResultChunk] = []

    @property
    def grows(self) -> bool:
        """Whether the answer is checked while it is written, not only at the end."""
        return self._by_sentence and self._upstream.grows

    @property
    def source(self) -> CheckInput:
        """The input so far."""
        return self._context.model_copy(update={"answer": self.text})

    @property
    def labelled(self) -> bool:
        """Whether no more labels of the question can arrive."""
        return self.closed or self._upstream.labelled

    @property
    def certain(self) -> int:
        """Length of the answer that is fully covered by `units`."""
        return len(self.text) if self.closed else self._reader.certain

    def feed(self, piece: Any) -> None:
        """Read the next piece."""
        text = self._upstream.feed(piece)
        self.text += text
        if self.grows:
            self._update_context()
            self._add(self._reader.feed(text))

    def end(self) -> None:
        """Mark the input as complete."""
        self.closed = True
        if self.grows:
            self._update_context()
            self._add(self._reader.close())
            self._queue_final_edit()
        elif not self._upstream.empty:
            self._last = Job(self.check.pipeline(self._read), self._upstream.whole())
            self.jobs.append(self._last)

    def add_state(self, job: Job, state: CheckState) -> None:
        """Store a state that a job streamed."""
        job.state = state
        if job.unit is None:
            if not self.grows:
                self._chunks += self._maker.feed(state)
        elif job.version == self._version:
            self._judge(state.verdicts)

    def finish(self, job: Job) -> None:
        """Store the outcome of a finished job."""
        state, unit = job.state, job.unit
        if state is None:
            return
        if unit is None:
            self._edits_of_whole = state.edits if self.grows else ()
        elif job.version == self._version:
            self._store(unit, state)
            self._queue_final_edit()

    def take(self) -> list[GroundednessResultChunk]:
        """Return and clear the new chunks."""
        chunks, self._chunks = self._chunks, []
        return chunks

    def conclude(
        self, usage: Usage, labels: Mapping[str, Any] | None = None
    ) -> GroundednessResult | None:
        """Build the result after all jobs have ended, and queue the last chunk."""
        if self._upstream.empty:
            return None
        state = self._state() if self.grows else self._maker.state
        assert state is not None  # noqa: S101  (the pipeline yields at least one state)
        if labels is not None:
            state = replace(state, source=state.source.model_copy(update=dict(labels)))
        result = self.check.result(state, usage)
        self._checking.end(result)
        self._chunks.append(self._maker.close(result))
        return result

    def abandon(self, usage: Usage) -> GroundednessResult | None:
        """Build a partial result when the reader stops early."""
        if not self.text:
            return None
        state = self._state()
        if not self.grows:
            state = replace(state, claims=tuple(sentence_claims(self.text)))
        result = self.check.result(state, usage)
        self._checking.end(result)
        return result

    def _update_context(self) -> None:
        """Restart all checks if documents or question changed."""
        known, self._context = self._context, self._upstream.context(whole=self.closed)
        # Verdicts do not depend on the labels of the question.
        if self._planned and self._context != known.model_copy(update=self._context.labels):
            self._version += 1
            self._planned = 0
            self.jobs.clear()
            self._verdicts.clear()
            for unit in self.units:
                unit.done, unit.verdicts, unit.edits = False, (), ()

    def _add(self, sentences: Sequence[AnswerSentence]) -> None:
        known = len(self._claims)
        for start, end, statements in sentences:
            first = len(self._claims)
            claims = tuple(
                Claim(id=f"c{number}", text=each.text, start=each.start, end=each.end)
                for number, each in enumerate(statements, first + 1)
            )
            self._claims += claims
            self.units.append(SentenceUnit(start, end, first, claims))
        if sentences:
            self._chunks.append(self._maker.claims(self.source, self._claims[known:]))
        while self._planned < len(self.units) and self._queue_job(self.units[self._planned]):
            self._planned += 1

    def _queue_job(self, unit: SentenceUnit) -> bool:
        """Queue a job for a unit; return whether it was possible yet."""
        end: int | None = unit.end
        if self.removes:  # edits may need text after the sentence
            end = len(self.text) if self.closed else lookahead_for_removal(self.text, unit.end)
        if end is None:
            return False
        source = self._context.model_copy(update={"answer": self.text[:end]})
        state = CheckState(source=source, claims=unit.claims, first=unit.first)
        documents = source.documents
        if not self.check.claims_to_check(state) or (self.closed and not has_text(documents)):
            if self.edits_by_sentence:
                state = self.check.without_unchecked(state)
            self._store(unit, state)
        elif has_text(documents):
            self.jobs.append(Job(self._verify, state, unit, self._version))
        else:
            return False
        return True

    def _store(self, unit: SentenceUnit, state: CheckState) -> None:
        unit.done, unit.verdicts, unit.edits = True, self.check.all_verdicts(state), state.edits
        self._judge(unit.verdicts)
        if unit.edits:
            self._chunks.append(GroundednessResultChunk(edits=self._edits()))

    def _judge(self, verdicts: Sequence[ClaimVerdict]) -> None:
        self._verdicts |= {verdict.claim.id: verdict for verdict in verdicts}
        self._chunks += self._maker.verdicts(verdicts)

    def _queue_final_edit(self) -> None:
        """Queue the editing of the whole text once all units are done, if needed."""
        if not self.closed or self.edits_by_sentence or self._last is not None:
            return
        if all(unit.done for unit in self.units):
            self._last = Job(self.check.editing(), self._state())
            self.jobs.append(self._last)

    def _edits(self) -> tuple[Edit, ...]:
        return without_overlaps(edit for unit in self.units for edit in unit.edits)

    def _state(self) -> CheckState:
        return CheckState(
            source=self.source,
            claims=tuple(self._claims),
            verdicts=tuple(
                self._verdicts[claim.id] for claim in self._claims if claim.id in self._verdicts
            ),
            edits=self._edits_of_whole or (self._edits() if self.closed else ()),
        )


_ANSWER = "answer"

_ALL = "__remove_all__"  # LangGraph's id for all messages


class UpstreamInput:
    """Collects input pieces: the text of a growing answer, or pieces that must be joined first.

    Texts, message chunks, and mappings with one of these under the key of the answer are read
    incrementally from the second piece of the answer on; an answer in one piece is checked as a
    whole. Updates of a LangGraph graph are merged into a state, which lacks the graph's input. All
    other pieces are joined with `+`, as runnables do.
    """

    def __init__(self, read: InputReader, *, keep: bool) -> None:
        """Start without pieces."""
        self.grows = False
        """Whether the answer is read incrementally."""
        self._read = read
        self._answer_key = read.answer_key or _ANSWER
        self._gather = read.context_extractor is not None
        self._keep = keep
        self._forms: set[type] = set()
        self._pieces: list[Any] = []
        self.texts: list[str] = []
        self._parts: dict[Any, Any] | None = None
        self._context: CheckInput | None = None

    @property
    def empty(self) -> bool:
        """Whether no piece has arrived."""
        return not self.grows and not self._pieces

    @property
    def labelled(self) -> bool:
        """Whether no later piece can carry labels of the question."""
        return self._parts is None

    def feed(self, piece: Any) -> str:
        """Read the next piece."""
        if self._gather:
            self._pieces.append(piece)
            return ""
        text = self._take(piece)
        if self.grows:
            if text is None:
                msg = (
                    "the pieces of a streamed answer must all be texts or all message chunks, "
                    f"got {type(piece).__name__}"
                )
                raise InputFormatError(msg)
            if self._keep:
                self._pieces.append(piece)
            return text
        self._pieces.append(piece)
        if text is None:
            self._gather = True
        elif text:
            self.texts.append(text)
            if len(self.texts) > 1:
                self.grows, self._pieces = True, self._pieces if self._keep else []
                return "".join(self.texts)
        return ""

    def context(self, *, whole: bool) -> CheckInput:
        """Return question and documents so far, with an empty answer."""
        if self._context is None or whole:
            value = "" if self._parts is None else {**self._parts, self._answer_key: ""}
            self._context = replace(self._read, partial=not whole)(value)
        return self._context

    def whole(self) -> Any:
        """Return all pieces as one value."""
        if self._read.context_extractor is None and all(map(_is_update, self._pieces)):
            return _state_of(self._pieces)
        pieces = iter(self._pieces)
        total = next(pieces)
        total = AddableDict(total) if isinstance(total, Mapping) else total
        for piece in pieces:
            try:
                total = total + piece
            except TypeError:
                total = piece
        return total

    def _take(self, piece: Any) -> str | None:
        """Return the text of a piece, or `None` if it must be joined with others first."""
        answer = piece
        if isinstance(piece, Mapping):
            answer = piece.get(self._answer_key)
            others = AddableDict({key: piece[key] for key in piece if key != self._answer_key})
            if others or self._parts is None:
                self._parts = _added(AddableDict(self._parts or {}), others)
                self._context = None
            if answer is None:
                return ""
        form = AIMessageChunk if isinstance(answer, AIMessageChunk) else str
        self._forms |= {form, Mapping if isinstance(piece, Mapping) else form}
        if not isinstance(answer, form) or len(self._forms - {Mapping}) > 1:
            return None
        if (Mapping in self._forms) != isinstance(piece, Mapping):
            return None
        return str(answer.text) if isinstance(answer, AIMessageChunk) else str(answer)


def _added(known: AddableDict, others: AddableDict) -> AddableDict:
    try:
        return known + others
    except TypeError:  # later values replace those that cannot be added
        return AddableDict({**known, **others})


def _is_update(piece: object) -> bool:
    """Return whether a piece maps node names to state updates."""
    if not isinstance(piece, Mapping) or not piece or _ANSWER in piece:
        return False
    return all(value is None or isinstance(value, Mapping) for value in piece.values())


def _state_of(updates: Iterable[Mapping[str, Mapping[str, Any] | None]]) -> dict[str, Any]:
    state: dict[str, Any] = {}
    for update in updates:
        for changes in filter(None, update.values()):
            update_messages = changes.get("messages")
            messages = _merged(
                state.get("messages", []),
                update_messages if isinstance(update_messages, list) else [update_messages],
            )
            state |= {**changes, "messages": messages} if update_messages else changes
    return state


def _merged(known: Iterable[Any], new: Iterable[Any]) -> list[Any]:
    """Append messages; one with a known id replaces the earlier one."""
    messages = {_id(message): message for message in known}
    for message in new:
        if not isinstance(message, RemoveMessage):
            messages[_id(message)] = message
        elif message.id == _ALL:
            messages.clear()
        else:
            messages.pop(message.id, None)
    return list(messages.values())


def _id(message: Any) -> Any:
    return getattr(message, "id", None) or id(message)
