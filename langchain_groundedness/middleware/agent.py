"""The check inside agents: a middleware for `create_agent`, and a node for hand-written graphs.

Needs the extra `agents` (langchain >= 1.4).
"""

import hashlib
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import reduce
from operator import add
from typing import Annotated, Any, ClassVar, NamedTuple, NotRequired, Unpack
from uuid import NAMESPACE_OID, uuid4, uuid5

from langchain.agents.middleware import AgentMiddleware, AgentState, hook_config
from langchain.agents.middleware.internal_call_transformer import (
    InternalCallTransformer,
    internal_call_metadata,
)
from langchain.agents.middleware.types import (
    ExtendedModelResponse,
    ModelRequest,
    ModelResponse,
    OmitFromInput,
)
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.runnables.config import ensure_config, merge_configs, run_in_executor
from langgraph.constants import TAG_NOSTREAM
from langgraph.errors import GraphBubbleUp
from langgraph.func import task
from langgraph.runtime import Runtime
from langgraph.stream import StreamTransformer
from langgraph.stream._types import ProtocolEvent
from langgraph.stream.stream_channel import StreamChannel
from langgraph.types import Command

from langchain_groundedness.audit import AuditLog, AuditRecord, Review
from langchain_groundedness.decision import DecisionPolicy
from langchain_groundedness.exceptions import (
    ConfigurationError,
    InputFormatError,
    VerificationError,
)
from langchain_groundedness.inputs.formats import LABELS, CheckInput, read_input
from langchain_groundedness.middleware.actions import AfterRetries, OnUngrounded, Rules
from langchain_groundedness.middleware.guarded_model import Listening, held_model
from langchain_groundedness.middleware.messages import in_paragraphs, without_annotations
from langchain_groundedness.middleware.review_decisions import (
    Decided,
    ask,
    first_decision,
    require_checkpointer,
    review_of,
)
from langchain_groundedness.middleware.state import (
    plain_result,
    read_result,
    record_of,
    unchecked_result,
)
from langchain_groundedness.middleware.turn import STATE_KEY, Turn, part, read_answer, read_turn
from langchain_groundedness.pipeline.recording import (
    Pending,
    Recorder,
    log_of,
    suggested,
    thread_of,
    unaudited,
)
from langchain_groundedness.runnable import (
    CheckerOptions,
    GroundednessRunnable,
    checker_from,
    show_checker_options,
)
from langchain_groundedness.types import GroundednessResult

__all__ = ["GroundednessMiddleware", "GroundednessState", "groundedness_node"]

BLOCKED = "I cannot give an answer that the sources support."
"""What the user reads instead of an answer that is withheld."""


class GroundednessState(AgentState[Any]):
    """State of an agent whose answers are checked."""

    groundedness: NotRequired[Annotated[dict[str, Any] | None, OmitFromInput]]
    """Verdicts on the last answer, as plain data: `verdict`, `trust_score`, `is_trusted`,
    `decision`, `claims`, `edits`, `usage`, `query_class`, `risk_tier`, `retrieval_score` as in
    `GroundednessResult`; `outcome` (what was done), `message_id`, `retries`."""


class GroundednessTransformer(StreamTransformer):
    """Picks the events of the check out of a run's custom events: `run.extensions["groundedness"]`.

    Each item is `{"event": "groundedness.claim" | ".verdict" | ".correction" | ".decision",
    "data": {...}}`, in the order in which they became known.
    """

    required_stream_modes: ClassVar[tuple[str, ...]] = ("custom",)

    def __init__(self, scope: tuple[str, ...] = ()) -> None:
        """Take the place in the graph whose events count."""
        super().__init__(scope)
        self._channel: StreamChannel[dict[str, Any]] = StreamChannel()

    def init(self) -> dict[str, Any]:
        """Offer the channel."""
        return {STATE_KEY: self._channel}

    def process(self, event: ProtocolEvent) -> bool:
        """Take an event of the run."""
        params = event["params"]
        if event["method"] == "custom" and params["namespace"] == list(self.scope):
            data = params["data"]
            if isinstance(data, dict) and str(data.get("event", "")).startswith(_PREFIX):
                self._channel.push(data)
        return True


class GroundednessMiddleware(AgentMiddleware[GroundednessState, Any, Any]):
    """Checks the final answers of an agent against what its tools have returned.

    Evidence are the tool results since the last question of the user: the documents in their
    artifacts where there are any, else their texts. Turns that call tools are not judged, and
    neither is a tool's own result that the agent hands over as it is. The verdicts stand in the
    state under `groundedness`, as plain data, and the supported parts of the answer get native
    `Citation` annotations.

    What happens to an answer that is not grounded, or could not be checked:

    - `annotate`: it stays, with its verdicts;
    - `correct`: contradicted claims are corrected or taken out, unverifiable ones taken out
      (unless the checker says otherwise), under the same message id;
    - `retry`: the model is told which claims failed, and answers again, at most `max_retries`
      times; then `after_retries` says what happens. Refused answers do not stay in the state;
    - `block`: `blocked_message` stands in its place;
    - `policy`: the decision of the checker's policy is followed, also for answers that are
      grounded: `block` and `review` as below, `pass` and `flag` as `annotate`;
    - `review`: the run is interrupted, and resumed with `Command(resume={"type": ...})`:
      `approve`, `edit` (with `answer`), `reject` (with `message`, or the blocked message) or
      `respond` (`message` goes to the model, which answers again). Needs a checkpointer.

    Whatever is chosen: an answer that the checker's policy blocks goes out only if a person lets
    it, and one that it sends to review counts as not grounded. Policies read `query_class`,
    `risk_tier` and `retrieval_score` from the state, and from the metadata of the run.

    Example:
        >>> from langchain.agents import create_agent
        >>> from langchain_groundedness.testing import ScriptedChatModel
        >>> model = ScriptedChatModel(replies=["Revenue was $2.4B."])
        >>> agent = create_agent(model, middleware=[GroundednessMiddleware(on_ungrounded="block")])
        >>> state = agent.invoke({"messages": [("user", "What was Q3 revenue?")]})
        >>> state["messages"][-1].text
        'I cannot give an answer that the sources support.'
        >>> state["groundedness"]["claims"][0]["reason"]
        'no documents to check against'
    """

    state_schema = GroundednessState
    transformers = (InternalCallTransformer, GroundednessTransformer)

    @show_checker_options
    def __init__(  # noqa: PLR0913  (options by keyword)
        self,
        checker: Runnable[Any, GroundednessResult] | None = None,
        *,
        on_ungrounded: OnUngrounded = "annotate",
        max_retries: int = 1,
        after_retries: AfterRetries = "annotate",
        blocked_message: str = BLOCKED,
        context_extractor: Callable[[Any], Any] | None = None,
        hold_stream: bool = False,
        live: bool = False,
        audit_log: AuditLog | None = None,
        **options: Unpack[CheckerOptions],
    ) -> None:
        """Choose how to check, and what to do.

        Args:
            checker: Checks the answers; by default a `GroundednessRunnable` with the options given
                here.
            on_ungrounded: What happens to an answer that is not grounded, or could not be checked.
            max_retries: With `retry`, how often the model answers again.
            after_retries: With `retry`, what happens when the last retry was not grounded either.
            blocked_message: What the user reads instead of a blocked answer.
            context_extractor: Reads answer, documents and question from the agent's state.
            hold_stream: Whether streamed text leaves only after its verdict.
            live: Whether sentences are checked while the model writes.
            audit_log: Gets a record of each decision; by default the checker's.
            **options: Options of `GroundednessRunnable`, such as `model=`, if no checker is given.

        Raises:
            ConfigurationError: An option has a value that cannot work, or a checker came together
                with options of one.
        """
        super().__init__()
        self._audited = AuditedGate(
            checker_from(checker, options),
            context_extractor,
            on_ungrounded=on_ungrounded,
            max_retries=max_retries,
            after_retries=after_retries,
            blocked_message=blocked_message,
            audit_log=audit_log,
        )
        self._gate = self._audited.gate
        self._hold = hold_stream
        self._live = live or hold_stream
        if self._live and not isinstance(self._gate.checker, GroundednessRunnable):
            msg = (
                "hold_stream and live need a GroundednessRunnable as the checker, got "
                f"{type(self._gate.checker).__name__}: only that can check unfinished answers"
            )
            raise ConfigurationError(msg)

    @hook_config(can_jump_to=["model"])
    def after_agent(self, state: Any, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Check the answer and act on the verdicts.

        Args:
            state: The agent's state.
            runtime: Not used.

        Returns:
            The update of the state.
        """
        return self._audited.settle(state)

    @hook_config(can_jump_to=["model"])
    async def aafter_agent(self, state: Any, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Check the answer and act on the verdicts.

        Args:
            state: The agent's state.
            runtime: Not used.

        Returns:
            The update of the state.
        """
        return await self._audited.asettle(state)

    def wrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], ModelResponse[Any]],
    ) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        """Listen to the model if that was asked for.

        Args:
            request: The call of the model.
            handler: Calls it.

        Returns:
            Its response; the model has read its earlier answers without our annotations.
        """
        request, listening = self._prepared(request)
        return _with_result(request, handler(request), listening)

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        """Listen to the model if that was asked for.

        Args:
            request: The call of the model.
            handler: Calls it.

        Returns:
            Its response; the model has read its earlier answers without our annotations.
        """
        request, listening = self._prepared(request)
        return _with_result(request, await handler(request), listening)

    def _prepared(self, request: ModelRequest[Any]) -> tuple[ModelRequest[Any], Listening | None]:
        request = request.override(messages=without_annotations(request.messages))
        if not self._live:
            return request, None
        structured = request.response_format is not None
        listening = self._gate.listen(request.state, hold=self._hold, structured=structured)
        return request.override(model=held_model(request.model, listening)), listening


@show_checker_options
def groundedness_node(  # noqa: PLR0913  (options by keyword)
    checker: Runnable[Any, GroundednessResult] | None = None,
    *,
    on_ungrounded: OnUngrounded = "annotate",
    max_retries: int = 1,
    after_retries: AfterRetries = "annotate",
    blocked_message: str = BLOCKED,
    context_extractor: Callable[[Any], Any] | None = None,
    audit_log: AuditLog | None = None,
    **options: Unpack[CheckerOptions],
) -> Runnable[Any, dict[str, Any]]:
    """Make a node for a hand-written graph that does what the middleware does.

    The graph's state needs a key `groundedness` (a dict) and either `messages` (with
    `add_messages`) or the keys of a chain (`answer`, `documents` or `context`, `question`); a
    changed answer goes back to where it came from. With `retry`, or after the decision `respond`
    of a review, an edge of yours must lead back to the model while
    `state["groundedness"]["outcome"]` is `retrying` or `responded`. What the model should hear is
    then the last message, and stands under `state["groundedness"]["feedback"]`.

    Args:
        checker: As for `GroundednessMiddleware`.
        on_ungrounded: As for `GroundednessMiddleware`.
        max_retries: As for `GroundednessMiddleware`.
        after_retries: As for `GroundednessMiddleware`.
        blocked_message: As for `GroundednessMiddleware`.
        context_extractor: As for `GroundednessMiddleware`.
        audit_log: As for `GroundednessMiddleware`.
        **options: As for `GroundednessMiddleware`.

    Returns:
        The node, for `add_node`.

    Raises:
        ConfigurationError: An option has a value that cannot work.

    Example:
        >>> node = groundedness_node()
        >>> update = node.invoke({"answer": "Rome is big.", "documents": ["Rome is big."]})
        >>> update["groundedness"]["verdict"]
        'grounded'
    """
    gate = AuditedGate(
        checker_from(checker, options),
        context_extractor,
        on_ungrounded=on_ungrounded,
        max_retries=max_retries,
        after_retries=after_retries,
        blocked_message=blocked_message,
        whole_state=True,
        audit_log=audit_log,
    )

    return RunnableLambda(gate.settle, gate.asettle, name="groundedness")


def _with_result(
    request: ModelRequest[Any], response: ModelResponse[Any], listening: Listening | None
) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
    """Hand what was found out to `after_agent`, through the state: another process may run it."""
    answer = response.result[-1] if response.result else None
    result = listening.result if listening else None
    if result is None or not isinstance(answer, AIMessage) or answer.tool_calls:
        return response
    found = {"message_id": answer.id, "result": plain_result(result)}
    record = {**(part(request.state, STATE_KEY) or {}), LIVE_KEY: found}
    return ExtendedModelResponse(response, Command(update={STATE_KEY: record}))


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
        checker: Runnable[Any, GroundednessResult],
        extractor: Callable[[Any], Any] | None,
        *,
        whole_state: bool = False,
        **options: Any,
    ) -> None:
        """Check the options."""
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
        """Read the answer from a state."""
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
        """Check the answer, unless the result is known."""
        if case.source is None:
            return _known(case)
        try:
            if self.rules.reviews:
                return read_result(_kept(self.checker, case.source).result(), case.source)
            return _result(self.checker, case.source)
        except Exception as exc:  # noqa: BLE001  (`_failure` raises it again if it must)
            return self._failure(case.source, exc)

    async def ajudge(self, case: Case) -> GroundednessResult:
        """Check the answer, unless the result is known."""
        if case.source is None:
            return _known(case)
        try:
            if self.rules.reviews:
                return read_result(await _akept(self.checker, case.source), case.source)
            return await _aresult(self.checker, case.source)
        except Exception as exc:  # noqa: BLE001  (`_failure` raises it again if it must)
            return self._failure(case.source, exc)

    def asks(self, case: Case, result: GroundednessResult) -> bool:
        """Tell whether a person is asked about an answer."""
        return case.judged and self.rules.action(case.turn, result) == "review"

    def close(
        self, case: Case, result: GroundednessResult, decided: Decided | None = None
    ) -> dict[str, Any]:
        """Act on the result."""
        if not case.judged:
            return {STATE_KEY: record_of(result, case.turn, "not_judged")}
        if decided is not None:
            update = self.rules.reviewed(case.turn, result, decided)
        else:
            action = self.rules.action(case.turn, result)
            update = self.rules.settle(case.turn, result, action)
        return update if case.key is None else _into_key(update, case.key, result)

    def listen(self, state: Any, *, hold: bool, structured: bool) -> Listening:
        """Prepare to hear what a model writes."""
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


def _config() -> RunnableConfig:
    """Keep the calls of the judge out of the agent's message streams, but in its traces."""
    internal: RunnableConfig = {"tags": [TAG_NOSTREAM], "metadata": internal_call_metadata()}
    return merge_configs(ensure_config(), internal)


# A task's result is kept by the checkpointer: a run that a reviewer resumes does not check again.
# Its decorator's types are those of the caller's event loop, which is not known here.
_kept: Any = task(name="check_groundedness")(_check)  # type: ignore[arg-type]  # see above

_akept: Any = task(name="check_groundedness")(_acheck)  # type: ignore[arg-type]  # see above


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


_NOT_SHOWN = ("retrying", "responded")

WAITING = "waiting"
"""Outcome of an answer about which a person is asked."""


class AuditedGate:
    """A gate whose decisions are recorded."""

    def __init__(
        self,
        checker: Runnable[Any, GroundednessResult],
        extractor: Callable[[Any], Any] | None,
        *,
        whole_state: bool = False,
        audit_log: AuditLog | None = None,
        **options: Any,
    ) -> None:
        """Check the options."""
        if audit_log is not None and not isinstance(audit_log, AuditLog):
            msg = f"audit_log must be an AuditLog, got {type(audit_log).__name__}"
            raise ConfigurationError(msg)
        log = log_of(checker) if audit_log is None else audit_log
        self.gate = Gate(unaudited(checker), extractor, whole_state=whole_state, **options)
        source = "node" if whole_state else "middleware"
        self._recorder = Recorder(log, source, self.gate.checker)

    def settle(self, state: Any) -> dict[str, Any]:
        """Read, check, act, and record what was decided."""
        case, audited = self._opened(state)
        result = self.gate.judge(case)
        decided = None
        if self.gate.asks(case, result):
            require_checkpointer()
            audited.before(result)
            decided = audited.agreed(ask(case.turn, result, audited.record_id))
        update = self.gate.close(case, result, decided)
        audited.after(result, update)
        return update

    async def asettle(self, state: Any) -> dict[str, Any]:
        """Read, check, act, and record what was decided."""
        case, audited = self._opened(state)
        result = await self.gate.ajudge(case)
        decided = None
        if self.gate.asks(case, result):
            require_checkpointer()
            await audited.abefore(result)
            given = ask(case.turn, result, audited.record_id)
            decided = await run_in_executor(None, audited.agreed, given)
        update = self.gate.close(case, result, decided)
        await audited.aafter(result, update)
        return update

    def _opened(self, state: Any) -> tuple[Case, "_Audited"]:
        case = self.gate.open(state)
        answer = case.source.answer if case.source else ""
        return case, _Audited(self._recorder, case.turn, key=case.key, answer=answer)


class _Audited:
    """One answer at the gate, on its way into the audit log."""

    def __init__(self, recorder: Recorder, turn: Turn, *, key: str | None, answer: str) -> None:
        """Take note that its check begins."""
        config = ensure_config()
        self._turn = turn
        self._key = key
        self._asked = False
        callbacks: Any = config.get("callbacks")
        above = getattr(callbacks, "parent_run_id", None)
        self._pending = Pending(recorder, run_id=above, thread_id=thread_of(config))
        self._fields: dict[str, Any] = {"attempt": turn.retries}
        self._log = recorder.log
        self._decided: Decided | None = None
        self._standing: AuditRecord | None = None
        self.record_id = _identity(config, turn, key, answer)
        """Id of the record, the same when the step is run again; `None` outside of a thread."""
        if self.record_id is not None:
            self._fields["id"] = self.record_id

    def before(self, result: GroundednessResult) -> None:
        """Record that a person is asked; when the run is resumed, this changes nothing."""
        self._pending.end(result, **self._waiting(result))

    async def abefore(self, result: GroundednessResult) -> None:
        """Record that a person is asked."""
        await self._pending.aend(result, **self._waiting(result))

    def agreed(self, given: Decided) -> Decided:
        """Give the decision that holds; blocks while the log is asked."""
        self._decided, self._standing = first_decision(self._log, self.record_id, given)
        return self._decided

    def after(self, result: GroundednessResult, update: Mapping[str, Any]) -> None:
        """Record what was done."""
        if (fields := self._done(result, update)) is not None:
            self._pending.end(result, **fields)

    async def aafter(self, result: GroundednessResult, update: Mapping[str, Any]) -> None:
        """Record what was done."""
        if (fields := self._done(result, update)) is not None:
            await self._pending.aend(result, **fields)

    def _waiting(self, result: GroundednessResult) -> dict[str, Any]:
        self._asked = True
        self._fields["suggested_answer"] = suggested(result)
        review = Review(status="waiting")
        return {**self._fields, "outcome": WAITING, "shown_answer": None, "review": review}

    def _done(self, result: GroundednessResult, update: Mapping[str, Any]) -> dict[str, Any] | None:
        record = update[STATE_KEY]
        outcome = record["outcome"]
        if outcome == "not_judged":
            return None
        shown = None if outcome in _NOT_SHOWN else self._shown(result, update)
        fields = {**self._fields, "outcome": outcome, "shown_answer": shown}
        if not self._asked:
            return fields
        if self._standing is not None:
            if self._standing.content != "full":
                return None  # what is kept of the review must not be digested again
            kept = {"revision": self._standing.revision + 1, "review": self._standing.review}
            return {**fields, **kept}
        assert self._decided is not None  # noqa: S101  (somebody was asked)
        review = review_of(self._decided).model_copy(update={"time": datetime.now(UTC)})
        return {**fields, "revision": 1, "review": review}

    def _shown(self, result: GroundednessResult, update: Mapping[str, Any]) -> str:
        if self._key is not None:
            return str(update.get(self._key, result.original_answer))
        said = [m for m in update.get("messages", ()) if isinstance(m, AIMessage)]
        return str(said[-1].text) if said else result.original_answer


def _identity(config: Any, turn: Turn, key: str | None, answer: str) -> str | None:
    """Name the answer so that a step which is run again, by whichever process, names it alike."""
    thread = thread_of(config)
    if thread is None:
        return None
    place = (config.get("configurable") or {}).get("checkpoint_ns", "")
    message = turn.final.id if key is None and turn.final is not None else None
    digest = hashlib.sha256(answer.encode("utf-8", errors="replace")).hexdigest()
    named = "\n".join((thread, place, turn.key, message or digest, str(turn.retries)))
    return str(uuid5(NAMESPACE_OID, named))


_PREFIX = "groundedness."
