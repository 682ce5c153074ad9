"""The gate that an agent's answer goes through: read, judge, act, ask a human if need be.

Only judging does I/O, and only judging has an asynchronous form; the rest is the same for both.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any, NamedTuple
from uuid import uuid4

from langchain.agents.middleware.internal_call_transformer import internal_call_metadata
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import ensure_config, merge_configs
from langgraph.constants import TAG_NOSTREAM
from langgraph.errors import GraphBubbleUp
from langgraph.func import task

from langchain_groundedness._labels import LABELS
from langchain_groundedness.exceptions import (
    ConfigurationError,
    InputFormatError,
    VerificationError,
)
from langchain_groundedness.inputs import CheckInput, read_input
from langchain_groundedness.middleware._doors import Decided
from langchain_groundedness.middleware._held_model import Listening
from langchain_groundedness.middleware._record import (
    plain_result,
    read_result,
    record_of,
    unchecked_result,
)
from langchain_groundedness.middleware._settle import Rules
from langchain_groundedness.middleware._structured import in_paragraphs
from langchain_groundedness.middleware._turn import STATE_KEY, Turn, part, read_answer, read_turn
from langchain_groundedness.policy import DecisionPolicy
from langchain_groundedness.runnable import GroundednessRunnable
from langchain_groundedness.types import GroundednessResult

__all__ = ["Case", "Gate"]

LIVE_KEY = "live"
"""Where the record keeps what was found out while the answer was written, until it is judged."""

_LOGGER = logging.getLogger(__name__)
_ANSWER_KEYS = ("answer", "result", "output", "output_text", "response", "generation")


class Case(NamedTuple):
    """One answer at the gate."""

    turn: Turn
    source: CheckInput | None = None
    """What is to be checked; `None` if that is not needed, or not possible."""
    result: GroundednessResult | None = None
    """The result, if it is known without a check."""
    judged: bool = True
    """Whether there is an answer that must be judged."""
    key: str | None = None
    """Where the answer stands in the state, if not in its messages."""


class Gate:
    """Checks the answer in a state and says how the state changes."""

    def __init__(
        self,
        checker: Runnable[Any, GroundednessResult] | None,
        extractor: Callable[[Any], Any] | None,
        *,
        whole_state: bool = False,
        **options: Any,
    ) -> None:
        """Check the options.

        Args:
            checker: Checks the answers.
            extractor: Reads the state.
            whole_state: Whether the state is read as the output of any chain is.
            **options: Those of `Rules`.

        Raises:
            ConfigurationError: One of them has a value that cannot work.
        """
        checker = GroundednessRunnable() if checker is None else checker
        if not isinstance(checker, Runnable):
            msg = (
                "checker must be a GroundednessRunnable, or a runnable that returns a "
                f"GroundednessResult, got {type(checker).__name__}"
            )
            raise ConfigurationError(msg)
        if extractor is not None and not callable(extractor):
            msg = f"context_extractor must be callable, got {type(extractor).__name__}"
            raise ConfigurationError(msg)
        keeps = _set_by_user(checker, "on_unverifiable") == "keep"
        self.rules = Rules(strips_unverifiable=not keeps, **options)
        self.checker = _correcting(checker) if self.rules.corrects else checker
        self._policy = DecisionPolicy()
        if isinstance(checker, GroundednessRunnable):
            self._policy = checker.policy
        self._extractor = extractor
        self._whole_state = whole_state

    def open(self, state: Any) -> Case:
        """Read the answer from a state.

        Args:
            state: The state of an agent or a graph.

        Returns:
            The case.
        """
        turn = read_turn(state)
        key = self._answer_key(state)
        if key is None and turn.final is None:
            return self._not_judged(turn, "the turn ends without an answer")
        if key is None and turn.handed_over:
            why = "the answer is a tool's own result, handed over as it is"
            return self._not_judged(turn, why)
        try:
            source = self._read(state)
        except Exception as exc:  # noqa: BLE001  (a check that fails must not end the agent's run)
            text = str(part(state, key)) if key else str(turn.final.text) if turn.final else ""
            turn = turn if key is None else _standing_in(turn, text)
            result = self._failed(_unread(text), "reading the state", exc)
            return Case(turn, result=result, key=key)
        if (heard := _heard(state, turn, source)) is not None:
            return Case(turn, result=heard, key=key)
        if key is not None:
            turn = _asked_in(state, _standing_in(turn, source.answer), source)
        return Case(turn, source, key=key)

    def judge(self, case: Case) -> GroundednessResult:
        """Check the answer, unless the result is known.

        Args:
            case: The case.

        Returns:
            The result; if the check fails, one that says so.
        """
        if case.source is None:
            return _known(case)
        try:
            if self.rules.reviews:
                return read_result(_kept(self.checker, case.source).result(), case.source)
            return _result(self.checker, case.source)
        except Exception as exc:  # noqa: BLE001  (`_failure` raises it again if it must)
            return self._failure(case.source, exc)

    async def ajudge(self, case: Case) -> GroundednessResult:
        """Check the answer, unless the result is known.

        Args:
            case: The case.

        Returns:
            The result; if the check fails, one that says so.
        """
        if case.source is None:
            return _known(case)
        try:
            if self.rules.reviews:
                return read_result(await _akept(self.checker, case.source), case.source)
            return await _aresult(self.checker, case.source)
        except Exception as exc:  # noqa: BLE001  (`_failure` raises it again if it must)
            return self._failure(case.source, exc)

    def asks(self, case: Case, result: GroundednessResult) -> bool:
        """Tell whether a person is asked about an answer.

        Args:
            case: The case.
            result: The result of its check.

        Returns:
            Whether the run is interrupted for it.
        """
        return case.judged and self.rules.action(case.turn, result) == "review"

    def close(
        self, case: Case, result: GroundednessResult, decided: Decided | None = None
    ) -> dict[str, Any]:
        """Act on the result.

        Args:
            case: The case.
            result: The result of its check.
            decided: What a person has decided, if one was asked.

        Returns:
            The update of the state.
        """
        if not case.judged:
            return {STATE_KEY: record_of(result, case.turn, "not_judged")}
        if decided is not None:
            update = self.rules.reviewed(case.turn, result, decided)
        else:
            action = self.rules.action(case.turn, result)
            update = self.rules.settle(case.turn, result, action)
        return update if case.key is None else _into_key(update, case.key, result)

    def listen(self, state: Any, *, hold: bool, structured: bool) -> Listening:
        """Prepare to hear what a model writes.

        Args:
            state: The state that the model is called with.
            hold: Whether text leaves only when it is verified.
            structured: Whether the answer is no prose.

        Returns:
            What to listen with.
        """
        # An answer stands at the end, so that evidence is read as it will be then.
        messages = [*(part(state, "messages") or ()), AIMessage("")]
        try:
            source = self._read({**state, "messages": messages, "structured_response": None})
        except Exception as exc:  # noqa: BLE001  (without evidence, nothing counts as verified)
            source = _unread("")
            self._failed(source, "reading the state", exc)
        checker = self.checker
        assert isinstance(checker, GroundednessRunnable)  # noqa: S101  (checked at construction)
        silent = structured and hold
        return Listening(checker, source, _config(), hold=hold, silent=silent)

    def _read(self, state: Any) -> CheckInput:
        stated = {name: part(state, name) for name in LABELS}
        source = self._read_answer(state).labelled(stated)
        return source.labelled(ensure_config().get("metadata") or {})

    def _read_answer(self, state: Any) -> CheckInput:
        if self._whole_state:
            return read_input(state, context_extractor=self._extractor)
        source = read_answer(state, self._extractor)
        structured = part(state, "structured_response")
        if structured is None or self._extractor is not None:
            return source
        text = in_paragraphs(structured, source.answer)
        return source.model_copy(update={"answer": text})

    def _answer_key(self, state: Any) -> str | None:
        if not self._whole_state:
            return None
        return next((k for k in _ANSWER_KEYS if part(state, k) is not None), None)

    def _failure(self, source: CheckInput, error: Exception) -> GroundednessResult:
        if isinstance(error, GraphBubbleUp):
            raise error
        if isinstance(error, VerificationError) and getattr(self.checker, "raise_on_failure", True):
            raise error
        return self._failed(source, "the check", error)

    def _not_judged(self, turn: Turn, reason: str) -> Case:
        result = unchecked_result(CheckInput(answer=""), reason, self._policy)
        return Case(turn, result=result, judged=False)

    def _failed(self, source: CheckInput, what: str, error: Exception) -> GroundednessResult:
        _LOGGER.warning("groundedness: %s failed (%s); unchecked", what, type(error).__name__)
        reason = f"{what} failed ({type(error).__name__})"
        return unchecked_result(source, reason, self._policy)


def _heard(state: Any, turn: Turn, source: CheckInput) -> GroundednessResult | None:
    """Give the result of a check that was made while the answer was written."""
    record = part(state, STATE_KEY)
    live = record.get(LIVE_KEY) if isinstance(record, Mapping) else None
    if not live or turn.final is None or live["message_id"] != turn.final.id:
        return None
    result = read_result(live["result"], source)
    return result if result.original_answer == source.answer else None


def _known(case: Case) -> GroundednessResult:
    assert case.result is not None  # noqa: S101  (a case has a source or a result)
    return case.result


def _unread(answer: str) -> CheckInput:
    """Give an answer from a state that cannot be read, with what is known all the same."""
    try:
        return CheckInput(answer=answer).labelled(ensure_config().get("metadata") or {})
    except InputFormatError:
        return CheckInput(answer=answer)


def _check(checker: Runnable[Any, GroundednessResult], source: CheckInput) -> dict[str, Any]:
    return plain_result(_result(checker, source))


async def _acheck(checker: Runnable[Any, GroundednessResult], source: CheckInput) -> dict[str, Any]:
    return plain_result(await _aresult(checker, source))


def _result(checker: Runnable[Any, GroundednessResult], source: CheckInput) -> GroundednessResult:
    if not isinstance(checker, GroundednessRunnable):
        return checker.invoke(source, _config())
    # Streamed, so that each verdict is heard of when it is known.
    return reduce(add, checker.stream(source, _config()))


async def _aresult(
    checker: Runnable[Any, GroundednessResult], source: CheckInput
) -> GroundednessResult:
    if not isinstance(checker, GroundednessRunnable):
        return await checker.ainvoke(source, _config())
    return reduce(add, [chunk async for chunk in checker.astream(source, _config())])


# A task's result is kept by the checkpointer: a run that a reviewer resumes does not check again.
# Its decorator's types are those of the caller's event loop, which is not known here.
_kept: Any = task(name="check_groundedness")(_check)  # type: ignore[arg-type]  # see above
_akept: Any = task(name="check_groundedness")(_acheck)  # type: ignore[arg-type]  # see above


def _config() -> RunnableConfig:
    """Keep the calls of the judge out of the agent's message streams, but in its traces."""
    internal: RunnableConfig = {"tags": [TAG_NOSTREAM], "metadata": internal_call_metadata()}
    return merge_configs(ensure_config(), internal)


def _standing_in(turn: Turn, answer: str) -> Turn:
    """Let a message stand in for an answer that is none."""
    return replace(turn, final=AIMessage(answer, id=str(uuid4())), call=None, structured=None)


def _asked_in(state: Any, turn: Turn, source: CheckInput) -> Turn:
    """Tell turns apart in a state without messages: by the question."""
    if turn.key:
        return turn
    record = part(state, STATE_KEY)
    key = source.question or ""
    same = isinstance(record, Mapping) and record.get("turn") == key
    return replace(turn, key=key, retries=int(record["retries"]) if same else 0, drafts=())


def _into_key(update: dict[str, Any], key: str, result: GroundednessResult) -> dict[str, Any]:
    record = {**update[STATE_KEY], "message_id": None, "drafts": []}
    said = [m for m in update.get("messages", ()) if isinstance(m, AIMessage)]
    text = _text(said)
    changed = text is not None and text != result.original_answer
    return {STATE_KEY: record, **({key: text} if changed else {})}


def _text(messages: Sequence[BaseMessage]) -> str | None:
    return str(messages[-1].text) if messages else None


def _set_by_user(checker: object, option: str) -> object:
    given = isinstance(checker, GroundednessRunnable) and option in checker.model_fields_set
    return getattr(checker, option) if given else None


def _correcting(
    checker: Runnable[Any, GroundednessResult],
) -> Runnable[Any, GroundednessResult]:
    """Give a checker that corrects, unless its own options say what else it should do."""
    if not isinstance(checker, GroundednessRunnable):
        return checker
    given = checker.model_fields_set
    defaults = {"on_contradicted": "correct", "on_unverifiable": "strip"}
    options = {name: getattr(checker, name) for name in given}
    return type(checker)(**{**defaults, **options})
