"""Flows: generators that yield model calls, and drivers that make the calls.

This way, each piece of logic serves both `invoke` and `ainvoke`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar, Generic, NamedTuple, TypeAlias, TypeVar, cast

from langchain_core.runnables import Runnable, RunnableConfig, RunnableSerializable
from pydantic import ConfigDict
from typing_extensions import override

from langchain_groundedness._runtime.executors import run_in_worker
from langchain_groundedness._runtime.timeouts import acall_with_timeout, call_with_timeout

__all__ = [
    "Flow",
    "FlowRunnable",
    "JointBatch",
    "ModelCall",
    "adrive",
    "drive",
    "reraise_interrupts",
]

ResultT = TypeVar("ResultT")


class ModelCall(NamedTuple):
    """A call that a flow requests from its driver.

    Example:
        >>> from langchain_core.runnables import RunnableLambda
        >>> ModelCall(RunnableLambda(len), "Rome is old.").input
        'Rome is old.'
    """

    runnable: Runnable[Any, Any]
    input: Any
    seconds: float | None = None
    """Timeout in seconds; `None` for no timeout."""
    options: Mapping[str, Any] = MappingProxyType({})
    """Further keyword arguments of the call."""

    def bound(self, method: str, config: RunnableConfig) -> Callable[[], Any]:
        """Bind everything but the timeout to a method of the runnable."""
        return partial(getattr(self.runnable, method), self.input, config, **self.options)


Flow: TypeAlias = Generator[ModelCall, Any, ResultT]
"""Logic without I/O: yields calls, receives their results or errors, returns a result."""


def drive(flow: Flow[ResultT], config: RunnableConfig) -> ResultT:
    """Run a flow to its end."""
    reply, error = None, None
    while isinstance(step := _resume(flow, reply, error), ModelCall):
        reply = error = None
        try:
            reply = call_with_timeout(step.seconds, step.bound("invoke", config))
        except Exception as exc:  # noqa: BLE001  (the flow handles it)
            error = exc
    return step.result


async def adrive(flow: Flow[ResultT], config: RunnableConfig, *, size: int = 0) -> ResultT:
    """Run a flow to its end without blocking the event loop."""
    reply, error = None, None
    while True:
        resume = partial(_resume, flow, reply, error)
        step = await run_in_worker(size, resume) if size > _OFF_LOOP_SIZE else resume()
        if not isinstance(step, ModelCall):
            return step.result
        reply = error = None
        try:
            reply = await acall_with_timeout(step.seconds, step.bound("ainvoke", config))
        except Exception as exc:  # noqa: BLE001  (the flow handles it)
            error = exc


_OFF_LOOP_SIZE = 5_000
"""Characters that take about five milliseconds to split into sentences."""


class _FlowResult(NamedTuple, Generic[ResultT]):
    """The result of a flow; a `StopIteration` cannot cross threads."""

    result: ResultT


def _resume(
    flow: Flow[ResultT], reply: Any, error: Exception | None
) -> ModelCall | _FlowResult[ResultT]:
    try:
        return flow.send(reply) if error is None else flow.throw(error)
    except StopIteration as end:
        return _FlowResult(end.value)


_Output = TypeVar("_Output")


def reraise_interrupts(outputs: list[_Output]) -> list[_Output]:
    """Raise a cancellation or interrupt that LangChain returned as an outcome."""
    for output in outputs:
        if isinstance(output, BaseException) and not isinstance(output, Exception):
            raise output
    return outputs


InputT = TypeVar("InputT")


class JointBatch(Runnable[InputT, ResultT], ABC):
    """A runnable that works on all inputs of a batch together."""

    @abstractmethod
    def _run(self, *args: Any, **kwargs: Any) -> Any:
        """Return the output, or the error, of each input; LangChain calls it with lists."""

    @abstractmethod
    async def _arun(self, *args: Any, **kwargs: Any) -> Any:
        """Do what `_run` does without blocking the event loop."""

    @override
    def invoke(self, input: InputT, config: RunnableConfig | None = None, **kwargs: Any) -> ResultT:
        return self.batch([input], config, **kwargs)[0]

    @override
    async def ainvoke(
        self, input: InputT, config: RunnableConfig | None = None, **kwargs: Any
    ) -> ResultT:
        return (await self.abatch([input], config, **kwargs))[0]

    @override
    def batch(
        self,
        inputs: list[InputT],
        config: RunnableConfig | list[RunnableConfig] | None = None,
        **kwargs: Any,
    ) -> list[ResultT]:
        return reraise_interrupts(self._batch_with_config(self._run, inputs, config, **kwargs))

    @override
    async def abatch(
        self,
        inputs: list[InputT],
        config: RunnableConfig | list[RunnableConfig] | None = None,
        **kwargs: Any,
    ) -> list[ResultT]:
        outputs = await self._abatch_with_config(self._arun, inputs, config, **kwargs)
        return reraise_interrupts(outputs)


class FlowRunnable(RunnableSerializable[InputT, ResultT], ABC):
    """A runnable whose logic is a flow."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    _is_quiet: ClassVar[bool] = True
    """Whether its model calls stay out of users' token streams."""
    _is_slow: ClassVar[bool] = False
    """Whether it always computes off the event loop."""

    @abstractmethod
    def _flow(self, value: InputT, /, **options: Any) -> Flow[ResultT]:
        """Return the result; errors propagate to the caller."""

    def _size(self, _: InputT, /) -> int:
        """Count the characters that the flow processes; many are processed off the event loop."""
        return 0

    # Casts to Any: LangChain passes the config by keyword, which its annotations do not show.

    @override
    def invoke(self, input: InputT, config: RunnableConfig | None = None, **kwargs: Any) -> ResultT:
        def run(value: InputT, config: RunnableConfig, **options: Any) -> ResultT:
            return drive(self._flow(value, **options), self._calling(config))

        return self._call_with_config(cast("Any", run), input, config, **kwargs)

    @override
    async def ainvoke(
        self, input: InputT, config: RunnableConfig | None = None, **kwargs: Any
    ) -> ResultT:
        async def run(value: InputT, config: RunnableConfig, **options: Any) -> ResultT:
            flow = self._flow(value, **options)
            size = self._size(value) + (_OFF_LOOP_SIZE if self._is_slow else 0)
            return await adrive(flow, self._calling(config), size=size)

        return await self._acall_with_config(cast("Any", run), input, config, **kwargs)

    def _calling(self, config: RunnableConfig) -> RunnableConfig:
        tags = dict.fromkeys((*(config.get("tags") or ()), "nostream"))
        return {**config, "tags": list(tags)} if self._is_quiet else config
