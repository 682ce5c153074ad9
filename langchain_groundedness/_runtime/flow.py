"""Logic without input and output: generators that yield calls, and what carries the calls out.

So each piece of logic is written once, for `invoke` and `ainvoke` alike.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, TypeAlias, TypeVar, cast

from langchain_core.runnables import Runnable, RunnableConfig, RunnableSerializable
from typing_extensions import override

from langchain_groundedness._runtime.executors import computed
from langchain_groundedness._runtime.timeouts import acall_with_timeout, call_with_timeout

__all__ = [
    "Flow",
    "FlowRunnable",
    "ModelCall",
    "adrive",
    "drive",
    "exceptions_at_most",
    "quiet",
]

ResultT = TypeVar("ResultT")


class ModelCall(NamedTuple):
    """A call that a flow asks its driver to make."""

    runnable: Runnable[Any, Any]
    input: Any
    seconds: float | None = None
    """How long to wait for what it returns; `None` for as long as it takes."""
    options: Mapping[str, Any] = MappingProxyType({})
    """More arguments of the call."""

    def bound(self, way: str, config: RunnableConfig) -> Callable[[], Any]:
        """Bind all but the time to the method that makes the call."""
        return partial(getattr(self.runnable, way), self.input, config, **self.options)


Flow: TypeAlias = Generator[ModelCall, Any, ResultT]
"""Logic without I/O: yields calls, receives what they returned or raised, returns a result."""


def drive(flow: Flow[ResultT], config: RunnableConfig) -> ResultT:
    """Run a flow to its end."""
    step = _advanced(flow, None, None)
    while isinstance(step, ModelCall):
        try:
            reply = call_with_timeout(step.seconds, step.bound("invoke", config))
        except Exception as exc:  # noqa: BLE001  (the flow decides what it means)
            step = _advanced(flow, None, exc)
        else:
            step = _advanced(flow, reply, None)
    return step.result  # type: ignore[no-any-return]  # untyped


async def adrive(flow: Flow[ResultT], config: RunnableConfig, *, size: int = 0) -> ResultT:
    """Run a flow to its end without blocking the event loop."""
    reply, error = None, None
    while True:
        if size > _MANY:
            step = await computed(size, _advanced, flow, reply, error)
        else:
            step = _advanced(flow, reply, error)
        if isinstance(step, _End):
            return step.result  # type: ignore[no-any-return]  # untyped
        reply = error = None
        try:
            reply = await acall_with_timeout(step.seconds, step.bound("ainvoke", config))
        except Exception as exc:  # noqa: BLE001  (the flow decides what it means)
            error = exc


_MANY = 5_000
"""Characters whose sentences take some five milliseconds to find."""


class _End(NamedTuple):
    """What a flow returned; a `StopIteration` cannot cross threads."""

    result: Any


def _advanced(flow: Flow[Any], reply: Any, error: Exception | None) -> ModelCall | _End:
    try:
        return flow.send(reply) if error is None else flow.throw(error)
    except StopIteration as end:
        return _End(end.value)


def quiet(config: RunnableConfig) -> RunnableConfig:
    """Keep model calls made under this config out of the token streams that users read."""
    return {**config, "tags": list(dict.fromkeys([*(config.get("tags") or []), "nostream"]))}


_Output = TypeVar("_Output")


def exceptions_at_most(outputs: list[_Output]) -> list[_Output]:
    """Raise a cancellation or an interrupt that was returned as an outcome.

    With `return_exceptions=True`, LangChain also returns exceptions that must end the program or
    the task.
    """
    for output in outputs:
        if isinstance(output, BaseException) and not isinstance(output, Exception):
            raise output
    return outputs


InputT = TypeVar("InputT")


class FlowRunnable(RunnableSerializable[InputT, ResultT], ABC):
    """A runnable whose logic is a flow."""

    _is_quiet: ClassVar[bool] = True
    """Whether its model calls stay out of the token streams that users read."""
    _is_slow: ClassVar[bool] = False
    """Whether it computes off the event loop however little text it reads."""

    @abstractmethod
    def _flow(self, value: InputT, /, **options: Any) -> Flow[ResultT]:
        """Give the result; what is raised comes through to the caller."""

    def _size(self, _: InputT, /) -> int:
        """Count the characters that the flow reads: many are read off the event loop."""
        return 0

    # Casts to Any: LangChain passes the config by name, which its types do not say.

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
            size = self._size(value) + (_MANY if self._is_slow else 0)
            return await adrive(flow, self._calling(config), size=size)

        return await self._acall_with_config(cast("Any", run), input, config, **kwargs)

    def _calling(self, config: RunnableConfig) -> RunnableConfig:
        return quiet(config) if self._is_quiet else config
