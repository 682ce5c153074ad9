"""The check in agents: a middleware for `create_agent`, and a node for hand-written graphs.

Needs the extra `agents` (langchain >= 1.4).
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, NotRequired, Unpack
from uuid import UUID

from langchain.agents.middleware import AgentMiddleware, AgentState, hook_config
from langchain.agents.middleware.internal_call_transformer import InternalCallTransformer
from langchain.agents.middleware.types import (
    ExtendedModelResponse,
    ModelRequest,
    ModelResponse,
    OmitFromInput,
    PrivateStateAttr,
    ToolCallRequest,
)
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import ToolMessage
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_core.tracers.context import register_configure_hook
from langgraph.runtime import Runtime
from langgraph.stream import StreamTransformer
from langgraph.stream._types import ProtocolEvent
from langgraph.stream.stream_channel import StreamChannel
from langgraph.types import Command
from typing_extensions import override

from langchain_groundedness._runtime.options import require_bool
from langchain_groundedness.audit import AuditLog
from langchain_groundedness.exceptions import ConfigurationError
from langchain_groundedness.inputs.formats import mark_as_generated
from langchain_groundedness.middleware.answer_check import (
    AfterRetries,
    AnswerCheck,
    OnUngrounded,
    approved_response,
    with_held_answers,
)
from langchain_groundedness.middleware.guarded_model import GuardedCall, guarded_model
from langchain_groundedness.middleware.messages import without_annotations
from langchain_groundedness.middleware.state import STATE_KEY
from langchain_groundedness.runnable import (
    CheckerOptions,
    GroundednessRunnable,
    checker_from,
    show_checker_options,
)
from langchain_groundedness.types import GroundednessResult

__all__ = ["GroundednessMiddleware", "GroundednessState", "groundedness_node"]

_EVENT_PREFIX = "groundedness."

BLOCKED = "I cannot give an answer that the sources support."
"""What the user reads instead of an answer that is withheld."""


class GroundednessState(AgentState[Any]):
    """State of an agent whose answers are checked."""

    groundedness: NotRequired[Annotated[dict[str, Any] | None, OmitFromInput]]
    """Verdicts on the last answer, as plain data: `verdict`, `trust_score`, `is_trusted`,
    `decision`, `final`, `claims`, `edits`, `usage`, `evidence_source`, `query_class`, `risk_tier`,
    `retrieval_score` as in `GroundednessResult`; `outcome` (what was done), `message_id`,
    `retries`. After a reviewer's edit they are about the edited text. While an answer waits for a
    reviewer or another attempt, `outcome` is `waiting` and there are no verdicts."""
    groundedness_evidence: NotRequired[Annotated[dict[str, Any] | None, PrivateStateAttr]]
    """The tool results of the conversation, up to 200,000 characters, as plain data."""


class GroundednessTransformer(StreamTransformer):
    """Picks the events of the check out of a run's custom events: `run.extensions["groundedness"]`.

    Each item is `{"event": "groundedness.claim" | ".verdict" | ".correction" | ".decision",
    "data": {...}}`, in the order in which they became known.
    """

    required_stream_modes: ClassVar[tuple[str, ...]] = ("custom",)

    def __init__(self, scope: tuple[str, ...] = ()) -> None:
        """Set the scope of the graph whose events count."""
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
            if isinstance(data, dict) and str(data.get("event", "")).startswith(_EVENT_PREFIX):
                self._channel.push(data)
        return True


class GroundednessMiddleware(AgentMiddleware[GroundednessState, Any, Any]):
    """Checks the final answers of an agent against the results of its tools.

    The evidence is the tool results of the conversation: the documents in their artifacts or, if
    there are none, their texts, unless a model wrote them inside the tool. The state keeps them
    under `groundedness_evidence`, so they outlive messages that are trimmed or summarised. With
    `evidence="turn"`, only those since the user's last question count. Model turns that call tools
    are not checked, and neither is a tool result that the agent returns unchanged. The verdicts are
    in the state under `groundedness`, as plain data, and supported parts of the answer get native
    `Citation` annotations: with `annotate` in the content of the message, otherwise in its
    `response_metadata["groundedness"]["annotations"]`, so that the content keeps its type.

    `on_ungrounded` says what happens to an answer that is not grounded, or could not be checked:

    - `annotate`: the answer stays, with its verdicts;
    - `correct`: contradicted claims are corrected or removed, unverifiable and unchecked ones
      removed (unless the checker has `on_unverifiable="keep"`), under the same message id;
    - `retry`: the model gets the failed claims and answers again, at most `max_retries`
      times; then `after_retries` applies. Rejected answers are removed from the state;
    - `block`: `blocked_message` replaces the answer;
    - `policy`: the decision of the checker's policy applies, to grounded answers too: `block` and
      `review` as here, `pass` and `flag` as `annotate`;
    - `review`: the run is interrupted, and resumed with `Command(resume={"type": ...})`:
      `approve`, `edit` (with `answer`), `reject` (with `message`, or the blocked message) or
      `respond` (`message` goes to the model, which answers again). Needs a checkpointer; without
      one, the answer is blocked, and the log has a warning.

    The model's answer is checked in the model's own step: `updates` and `values` have it only once
    it is decided what happens to it. While the model or a reviewer is asked, they have the blocked
    message. The following may have more:

    - tokens and events of the model, unless they are held as `hold_stream` says;
    - the verdicts and the request to a reviewer, which quote the answer; callbacks and traces of
      the model and the check; LangGraph's modes for debugging;
    - what other middleware writes after the model's step, and an answer under `answer_key`: both
      are checked at the end of the run.

    In every case, an answer that the checker's policy blocks is released only by a reviewer, and
    one that the policy sends to review counts as not grounded. Policies read `query_class`,
    `risk_tier` and `retrieval_score` from the state and from the metadata of the run.

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
        hold_stream: bool | None = None,
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
            hold_stream: Whether streamed text is released only after its verdict. By default it is
                where an answer may be withheld: with `block` and `review`, with `policy` and
                wherever the policy may block; there it cannot be turned off.
            live: Whether sentences are checked while the model writes.
            audit_log: Gets a record of each decision; by default the checker's.
            **options: Options of `GroundednessRunnable`, such as `model=`, if no checker is given.

        Raises:
            ConfigurationError: An option has an invalid value, or both a checker and options
                for one were given.
        """
        super().__init__()
        require_bool(hold_stream=hold_stream is None or hold_stream, live=live)
        self._check = AnswerCheck(
            checker_from(checker, options, type(self).__name__, GroundednessMiddleware.__init__),
            context_extractor,
            on_ungrounded=on_ungrounded,
            max_retries=max_retries,
            after_retries=after_retries,
            blocked_message=blocked_message,
            audit_log=audit_log,
        )
        withholds = self._check.may_withhold
        if hold_stream is False and withholds:
            msg = (
                "hold_stream=False cannot be combined with a mode or policy that may block or "
                "review: the text would be streamed before the check. Remove it."
            )
            raise ConfigurationError(msg)
        self._hold = withholds if hold_stream is None else hold_stream
        self._live = live or self._hold
        if (live or hold_stream) and not isinstance(self._check.checker, GroundednessRunnable):
            msg = (
                "hold_stream and live need a GroundednessRunnable as the checker, got "
                f"{type(self._check.checker).__name__}: only it can check unfinished answers"
            )
            raise ConfigurationError(msg)

    @hook_config(can_jump_to=["model"])
    def after_agent(self, state: Any, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Retry or ask a reviewer, or check an answer that other middleware has changed.

        Args:
            state: The agent's state.
            runtime: Not used.

        Returns:
            The update of the state.
        """
        return {**self._check.update(state), **self._check.evidence_update(state)}

    @hook_config(can_jump_to=["model"])
    async def aafter_agent(self, state: Any, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Retry or ask a reviewer, or check an answer that other middleware has changed.

        Args:
            state: The agent's state.
            runtime: Not used.

        Returns:
            The update of the state.
        """
        return {**await self._check.aupdate(state), **self._check.evidence_update(state)}

    def wrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], ModelResponse[Any]],
    ) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        """Check the model's answer, while it is written if that was asked for.

        Args:
            request: The call of the model.
            handler: Calls it.

        Returns:
            Its response, with what may be shown instead of the answer. The model gets its earlier
            answers without annotations of the check.
        """
        if (approved := approved_response(request.state, request.response_format)) is not None:
            return approved
        request, call = self._prepared(request)
        response = _without_evidence(handler(request))
        return self._with_state_update(
            request, response, self._check.check_response(request.state, response, call)
        )

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        """Check the model's answer, while it is written if that was asked for.

        Args:
            request: The call of the model.
            handler: Calls it.

        Returns:
            Its response, with what may be shown instead of the answer. The model gets its earlier
            answers without annotations of the check.
        """
        if (approved := approved_response(request.state, request.response_format)) is not None:
            return approved
        request, call = self._prepared(request)
        response = _without_evidence(await handler(request))
        update = await self._check.acheck_response(request.state, response, call)
        return self._with_state_update(request, response, update)

    def wrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]],
    ) -> ToolMessage | Command[Any]:
        """Mark the result of a tool in which a model ran, since it is no evidence by itself.

        Args:
            request: The call of the tool.
            handler: Calls it.

        Returns:
            Its result.
        """
        with ModelWatcher.watch() as watcher:
            result = handler(request)
        return mark_generated(result) if watcher.found else result

    async def awrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]],
    ) -> ToolMessage | Command[Any]:
        """Mark the result of a tool in which a model ran, since it is no evidence by itself.

        Args:
            request: The call of the tool.
            handler: Calls it.

        Returns:
            Its result.
        """
        with ModelWatcher.watch() as watcher:
            result = await handler(request)
        return mark_generated(result) if watcher.found else result

    def _prepared(self, request: ModelRequest[Any]) -> tuple[ModelRequest[Any], GuardedCall | None]:
        seen = with_held_answers({**request.state, "messages": request.messages})["messages"]
        request = request.override(messages=list(map(without_annotations, seen)))
        if not self._live:
            return request, None
        structured = request.response_format is not None
        call = self._check.guarded_call(request.state, hold=self._hold, structured=structured)
        return request.override(model=guarded_model(request.model, call)), call

    def _with_state_update(
        self, request: ModelRequest[Any], response: ModelResponse[Any], update: dict[str, Any]
    ) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        """Pass the outcome on through the state, since another process may go on."""
        update = {**self._check.evidence_update(request.state), **update}
        return ExtendedModelResponse(response, Command(update=update)) if update else response


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
    `state["groundedness"]["outcome"]` is `retrying` or `responded`. The last
    message then tells the model what to change; it is also in `state["groundedness"]["feedback"]`.

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
        ConfigurationError: An option has an invalid value.

    Example:
        >>> node = groundedness_node()
        >>> update = node.invoke({"answer": "Rome is big.", "documents": ["Rome is big."]})
        >>> update["groundedness"]["verdict"]
        'grounded'
    """
    check = AnswerCheck(
        checker_from(checker, options, "groundedness_node", groundedness_node),
        context_extractor,
        on_ungrounded=on_ungrounded,
        max_retries=max_retries,
        after_retries=after_retries,
        blocked_message=blocked_message,
        whole_state=True,
        audit_log=audit_log,
    )
    return RunnableLambda(check.update, check.aupdate, name="groundedness")


def _without_evidence(response: ModelResponse[Any]) -> ModelResponse[Any]:
    """Mark the tool message of a structured answer, which repeats it."""
    response.result = [
        mark_as_generated(m) if isinstance(m, ToolMessage) else m for m in response.result
    ]
    return response


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


def mark_generated(result: ToolMessage | Command[Any]) -> ToolMessage | Command[Any]:
    """Mark what a tool returned as text that a model wrote."""
    if isinstance(result, ToolMessage):
        return mark_as_generated(result)
    update = result.update
    if not isinstance(update, Mapping) or not isinstance(update.get("messages"), list):
        return result
    messages = [
        mark_as_generated(m) if isinstance(m, ToolMessage) else m for m in update["messages"]
    ]
    return replace(result, update={**update, "messages": messages})
