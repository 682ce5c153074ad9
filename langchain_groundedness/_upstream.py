"""Reads what an upstream yields piece by piece, as far as it can be read before it is whole."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from langchain_core.messages import AIMessageChunk, RemoveMessage
from langchain_core.runnables.utils import AddableDict

from langchain_groundedness.exceptions import InputFormatError
from langchain_groundedness.inputs import CheckInput

__all__ = ["Upstream"]

_ANSWER = "answer"
_ALL = "__remove_all__"  # what LangGraph calls all messages


class Upstream:
    """What came so far: the text of an answer that grows, or pieces that only make sense as one.

    Read as they come are texts, message chunks, and mappings that hold the answer as one of these
    under `answer`, from the second piece of the answer on: what comes in one piece is checked as
    one. Updates of a LangGraph graph are put together to its state, in which the input is missing.
    Everything else is gathered with `+`, as every runnable does.
    """

    def __init__(
        self, read: Callable[[Any], CheckInput], *, gather: bool = False, keep: bool = False
    ) -> None:
        """Start with nothing.

        Args:
            read: Reads a whole input.
            gather: Whether to only gather the pieces, whatever they are.
            keep: Whether `whole` is wanted also if the answer could be read piece by piece.
        """
        self.grows = False
        """Whether the answer is read piece by piece."""
        self._read = read
        self._gather = gather
        self._by_node = not gather
        self._keep = keep
        self._forms: set[type] = set()
        self._pieces: list[Any] = []
        self._texts: list[str] = []
        self._parts: dict[Any, Any] | None = None
        self._head: CheckInput | None = None

    @property
    def empty(self) -> bool:
        """Whether nothing came."""
        return not self.grows and not self._pieces

    @property
    def labelled(self) -> bool:
        """Whether no later piece can say more about the question."""
        return self._parts is None

    def feed(self, piece: Any) -> str:
        """Read on.

        Args:
            piece: What the upstream yielded.

        Returns:
            What is new of the answer; nothing while the pieces are only gathered.

        Raises:
            InputFormatError: The answer changed its form after its first pieces were read.
        """
        if self._gather:
            self._pieces.append(piece)
            return ""
        text = self._take(piece)
        if self.grows:
            if text is None:
                msg = "the pieces of a streamed answer must all be texts, or all message chunks"
                raise InputFormatError(msg)
            if self._keep:
                self._pieces.append(piece)
            return text
        self._pieces.append(piece)
        if text is None:
            self._gather = True
        elif text:
            self._texts.append(text)
            if len(self._texts) > 1:
                self.grows, self._pieces = True, self._pieces if self._keep else []
                return "".join(self._texts)
        return ""

    def head(self) -> CheckInput:
        """Give question and documents as far as they came, with an empty answer.

        Raises:
            InputFormatError: They cannot be read.
        """
        if self._head is None:
            value = "" if self._parts is None else {**self._parts, _ANSWER: ""}
            self._head = self._read(value)
        return self._head

    def whole(self) -> Any:
        """Give all pieces as one value."""
        if self._by_node and all(map(_is_update, self._pieces)):
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
        """Give the text of a piece, or `None` if it cannot be read by itself."""
        answer = piece
        if isinstance(piece, Mapping):
            answer = piece.get(_ANSWER)
            others = AddableDict({key: piece[key] for key in piece if key != _ANSWER})
            if others or self._parts is None:
                self._parts = _added(AddableDict(self._parts or {}), others)
                self._head = None
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
    except TypeError:  # values that cannot be added replace each other
        return AddableDict({**known, **others})


def _is_update(piece: object) -> bool:
    """Tell whether a piece says by the name of a node what this has changed in a state."""
    if not isinstance(piece, Mapping) or not piece or _ANSWER in piece:
        return False
    return all(value is None or isinstance(value, Mapping) for value in piece.values())


def _state_of(updates: Iterable[Mapping[str, Mapping[str, Any] | None]]) -> dict[str, Any]:
    state: dict[str, Any] = {}
    for update in updates:
        for changes in filter(None, update.values()):
            said = changes.get("messages")
            messages = _merged(
                state.get("messages", []), said if isinstance(said, list) else [said]
            )
            state |= {**changes, "messages": messages} if said else changes
    return state


def _merged(known: Iterable[Any], new: Iterable[Any]) -> list[Any]:
    """Add messages to others; those of the same id take their places."""
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
