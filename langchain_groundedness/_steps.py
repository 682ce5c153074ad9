"""One step of the check as a runnable: what it asks, and what the answer changes.

A step turns a state into a richer state. It asks a bound runnable (an extractor, a verifier, a
corrector) for what `prepare` makes of the state, and `absorb`s the reply. So the whole check is
the LCEL sequence `read | extract | verify | correct | recheck`: every step has its name in
traces, honours the caller's config, batches across inputs and streams states as they grow.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, Protocol, Self, TypeVar

from langchain_core.callbacks import AsyncCallbackManagerForChainRun, CallbackManagerForChainRun
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from typing_extensions import override

from langchain_groundedness._edits import apply_edits
from langchain_groundedness._input_schema import InputReader
from langchain_groundedness._interruptions import exceptions_at_most
from langchain_groundedness._telemetry import aside, caught, step
from langchain_groundedness.exceptions import VerificationError
from langchain_groundedness.inputs import CheckInput
from langchain_groundedness.types import (
    Claim,
    ClaimVerdict,
    CorrectedAnswer,
    Edit,
    VerificationTask,
)

__all__ = ["Absorb", "CheckState", "Step", "UnexpectedReplyError", "reading", "replies_of"]

_Reply = TypeVar("_Reply")


@dataclass(frozen=True, kw_only=True)
class CheckState:
    """What is known so far about one answer."""

    source: CheckInput
    claims: tuple[Claim, ...] | None = None
    """`None` until they are extracted."""
    first: int = 0
    """Place of the first of them among all claims of the answer."""
    failure: str | None = None
    """Why no claim can be checked, if none can."""
    verdicts: tuple[ClaimVerdict, ...] = ()
    corrected: CorrectedAnswer | None = None
    timings: Mapping[str, float] = field(default_factory=dict)
    """Milliseconds that steps have waited for what they asked, by their names, if not streamed."""

    def task(self, claims: Sequence[Claim]) -> VerificationTask:
        """Ask for verdicts on claims."""
        source = self.source
        return VerificationTask(
            claims=tuple(claims),
            documents=source.documents,
            question=source.question,
            answer=source.answer,
        )

    def with_edits(self, edits: Sequence[Edit]) -> Self:
        """Make these edits, and no others, to the answer as it came."""
        text = apply_edits(self.source.answer, edits)
        return replace(self, corrected=CorrectedAnswer(text=text, edits=tuple(edits)))


class Absorb(Protocol):
    """From a state and a reply to the new state."""

    def __call__(self, state: CheckState, reply: Any, *, complete: bool) -> CheckState:
        """Absorb a reply; `complete` tells whether more of it may follow."""


@dataclass(frozen=True)
class _Ask:
    index: int
    state: CheckState
    request: Any


class UnexpectedReplyError(TypeError):
    """A runnable of the user's replied with something that the step cannot use."""


def replies_of(kind: type[_Reply], reply: Any, *, source: str) -> tuple[_Reply, ...]:
    """Read the reply of a runnable that has to be a list of one kind.

    Args:
        kind: What it has to hold.
        reply: What came; `None` for nothing.
        source: What to call the runnable in an error.

    Returns:
        The items.

    Raises:
        UnexpectedReplyError: It is no list, or holds something else.
    """
    if reply is None:
        return ()
    items = reply if isinstance(reply, list | tuple) else [reply]
    wrong = [type(item).__name__ for item in items if not isinstance(item, kind)]
    if wrong or items is not reply:
        given = wrong[0] if wrong else kind.__name__
        msg = f"the {source} gave {given} where a list of {kind.__name__} is needed"
        raise UnexpectedReplyError(msg)
    return tuple(items)


def reading(read: InputReader) -> Runnable[Any, CheckState]:
    """Make the step that every check begins with.

    Args:
        read: What reads the inputs.

    Returns:
        The step, from any input to a state.
    """

    def begun(value: Any) -> CheckState:
        return CheckState(source=read(value))

    async def abegun(value: Any) -> CheckState:
        return CheckState(source=await read.aread(value))

    return RunnableLambda(begun, abegun, name="read_input")


class Step(Runnable[CheckState, CheckState]):
    """A named step that asks a runnable and absorbs what it answers."""

    def __init__(  # noqa: PLR0913  (a step is described once, by keyword)
        self,
        name: str,
        bound: Runnable[Any, Any],
        *,
        prepare: Callable[[CheckState], Any | None],
        absorb: Absorb,
        recover: Callable[[CheckState, Exception], CheckState],
        limit: AbstractAsyncContextManager[Any] | None = None,
    ) -> None:
        """Describe the step.

        Args:
            name: Its name in traces.
            bound: The runnable it asks.
            prepare: From the state to the request, or `None` when there is nothing to ask.
            absorb: From the state and a reply to the new state.
            recover: From the state and an error of `bound` to the new state; may raise.
            limit: Entered while `bound` works, such as a semaphore that several checks share.
        """
        self.name = self._title = name
        self.bound = bound
        self._prepare = prepare
        self._absorb = absorb
        self._recover = recover
        self._limit = nullcontext() if limit is None else limit

    @override
    def invoke(
        self, input: CheckState, config: RunnableConfig | None = None, **kwargs: Any
    ) -> CheckState:
        return self.batch([input], config)[0]

    @override
    async def ainvoke(
        self, input: CheckState, config: RunnableConfig | None = None, **kwargs: Any
    ) -> CheckState:
        return (await self.abatch([input], config))[0]

    @override
    def batch(
        self,
        inputs: list[CheckState],
        config: RunnableConfig | list[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **kwargs: Any,
    ) -> list[CheckState]:
        return exceptions_at_most(
            self._batch_with_config(
                self._ask_all, inputs, config, return_exceptions=return_exceptions
            )
        )

    @override
    async def abatch(
        self,
        inputs: list[CheckState],
        config: RunnableConfig | list[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **kwargs: Any,
    ) -> list[CheckState]:
        return exceptions_at_most(
            await self._abatch_with_config(
                self._aask_all, inputs, config, return_exceptions=return_exceptions
            )
        )

    @override
    def transform(
        self,
        input: Iterator[CheckState],
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> Iterator[CheckState]:
        yield from self._transform_stream_with_config(input, self._grow, config)

    @override
    async def atransform(
        self,
        input: AsyncIterator[CheckState],
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[CheckState]:
        async for state in self._atransform_stream_with_config(input, self._agrow, config):
            yield state

    def _ask_all(
        self,
        states: list[CheckState],
        run_manager: list[CallbackManagerForChainRun],
        config: list[RunnableConfig],
    ) -> list[Exception | CheckState]:
        grown, asks = self._begun(states)
        if asks:
            configs = [config[ask.index] for ask in asks]
            requests = [ask.request for ask in asks]
            began = perf_counter()
            with step(self._title):
                replies = self.bound.batch(requests, configs, return_exceptions=True)
                self._conclude_all(grown, asks, exceptions_at_most(replies), began)
        return grown

    async def _aask_all(
        self,
        states: list[CheckState],
        run_manager: list[AsyncCallbackManagerForChainRun],
        config: list[RunnableConfig],
    ) -> list[Exception | CheckState]:
        grown, asks = self._begun(states)
        if asks:
            configs = [config[ask.index] for ask in asks]
            requests = [ask.request for ask in asks]
            began = perf_counter()
            async with self._limit:
                with step(self._title):
                    replies = await self.bound.abatch(requests, configs, return_exceptions=True)
                    self._conclude_all(grown, asks, exceptions_at_most(replies), began)
        return grown

    def _begun(
        self, states: Sequence[CheckState]
    ) -> tuple[list[Exception | CheckState], list[_Ask]]:
        """Give each state as it stays if nothing is asked about it, and what is to be asked."""
        grown: list[Exception | CheckState] = list(states)
        asks = []
        for index, state in enumerate(states):
            try:
                request = self._prepare(state)
            except Exception as exc:  # noqa: BLE001  (`_outcome` decides what it means)
                grown[index] = self._outcome(state, exc)
            else:
                asks += [] if request is None else [_Ask(index, state, request)]
        return grown, asks

    def _conclude_all(
        self,
        grown: list[Exception | CheckState],
        asks: Sequence[_Ask],
        replies: Sequence[Any],
        began: float,
    ) -> None:
        waited = {self._title: round(1000 * (perf_counter() - began), 3)}
        for ask, reply in zip(asks, replies, strict=True):
            state = replace(ask.state, timings={**ask.state.timings, **waited})
            grown[ask.index] = self._outcome(state, reply)

    def _outcome(self, state: CheckState, reply: Any) -> Exception | CheckState:
        try:
            return self._conclude(state, reply)
        except Exception as exc:  # noqa: BLE001  (handed over as this input's outcome, not lost)
            return exc

    def _conclude(self, state: CheckState, reply: Any) -> CheckState:
        """Absorb a reply; an error, also one in absorbing it, is for `recover`."""
        if isinstance(reply, Exception):
            return self._recover(state, caught(reply))
        try:
            return self._absorb(state, reply, complete=True)
        except VerificationError:  # what `raise_on_failure` asks for
            raise
        except Exception as exc:  # noqa: BLE001  (a reply that cannot be read is a failure too)
            return self._recover(state, caught(exc))

    def _grow(
        self,
        states: Iterator[CheckState],
        run_manager: CallbackManagerForChainRun,
        config: RunnableConfig,
    ) -> Iterator[CheckState]:
        state: CheckState | None = None
        for state in states:
            yield state
        if state is None:
            return
        parts = _Parts()
        try:
            request = self._prepare(state)
            if request is None:
                return
            with aside(self._title) as beside:
                for part in beside.each(self.bound.stream(request, config)):
                    yield self._absorb(state, parts.add(part), complete=False)
        except Exception as exc:  # noqa: BLE001  (`_finish` raises it again if it must)
            parts.error = exc
        yield self._finish(state, parts)

    async def _agrow(
        self,
        states: AsyncIterator[CheckState],
        run_manager: AsyncCallbackManagerForChainRun,
        config: RunnableConfig,
    ) -> AsyncIterator[CheckState]:
        state: CheckState | None = None
        async for state in states:
            yield state
        if state is None:
            return
        parts = _Parts()
        try:
            request = self._prepare(state)
            if request is None:
                return
            with aside(self._title) as beside:
                async for part in beside.each(self.bound.astream(request, config)):
                    yield self._absorb(state, parts.add(part), complete=False)
        except Exception as exc:  # noqa: BLE001  (`_finish` raises it again if it must)
            parts.error = exc
        yield self._finish(state, parts)

    def _finish(self, state: CheckState, parts: "_Parts") -> CheckState:
        if parts.error is None:
            return self._conclude(state, parts.total)
        try:  # What was answered before the error stays.
            kept = (
                state if parts.total is None else self._absorb(state, parts.total, complete=False)
            )
        except Exception:  # noqa: BLE001  (unreadable: this was the error)
            kept = state
        return self._recover(kept, parts.error)


class _Parts:
    """What a stream has given so far, added up."""

    def __init__(self) -> None:
        self.total: Any = None
        self.error: Exception | None = None

    def add(self, part: Any) -> Any:
        self.total = part if self.total is None else self.total + part
        return self.total
