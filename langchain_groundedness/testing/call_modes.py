"""The ways to call a runnable as functions, and messages for outputs that differ."""

import asyncio
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from itertools import takewhile
from typing import Any, NoReturn

from langchain_core.runnables import Runnable, RunnableConfig

__all__ = [
    "ASYNC_CALL_MODES",
    "CALL_MODES",
    "CallMode",
    "assert_equal",
    "difference",
    "error_of",
    "outputs_by_mode",
    "run_bounded",
    "shortened",
    "skip",
]

_SECONDS = 30
_LONGEST_SHOWN = 400
_SHOWN_BEFORE = 100

CallMode = Callable[[Runnable[Any, Any], Any, RunnableConfig | None], Any]
ASYNC_CALL_MODES: Mapping[str, CallMode] = {
    "ainvoke": lambda runnable, given, config: run_bounded(runnable.ainvoke(given, config)),
    "astream": lambda runnable, given, config: _sum_async(runnable.astream(given, config)),
    "atransform": lambda runnable, given, config: _sum_async(
        runnable.atransform(_as_stream(given), config)
    ),
}
CALL_MODES: Mapping[str, CallMode] = {
    "invoke": lambda runnable, given, config: runnable.invoke(given, config),
    "stream": lambda runnable, given, config: _sum(runnable.stream(given, config)),
    "transform": lambda runnable, given, config: _sum(runnable.transform(iter([given]), config)),
    **ASYNC_CALL_MODES,
}


def outputs_by_mode(
    make: Callable[[], Runnable[Any, Any]], inputs: Sequence[Any]
) -> Iterator[tuple[str, list[Any]]]:
    """Call a runnable with all inputs, in every mode there is."""
    for name, call in CALL_MODES.items():
        yield name, [call(make(), each, None) for each in inputs]
    many = list(inputs)
    yield "batch", make().batch(many)
    yield "abatch", run_bounded(make().abatch(many))
    yield "batch_as_completed", _by_place(make().batch_as_completed(many))
    yield "abatch_as_completed", _by_place(run_bounded(_listed(make().abatch_as_completed(many))))


def error_of(
    call: CallMode, runnable: Runnable[Any, Any], given: Any, config: RunnableConfig | None = None
) -> BaseException | None:
    """Return the exception of a call, cancellation included; `None` if it succeeds."""
    try:
        call(runnable, given, config)
    except (Exception, asyncio.CancelledError) as exc:  # noqa: BLE001  (it is looked at)
        return exc
    return None


def run_bounded(call: Awaitable[Any]) -> Any:
    """Run a coroutine on its own event loop, with a timeout."""

    async def bounded() -> Any:
        return await asyncio.wait_for(call, _SECONDS)

    try:
        return asyncio.run(bounded())
    except TimeoutError as exc:
        name = getattr(call, "__qualname__", type(call).__name__)
        msg = f"{name} did not end, or ended with a TimeoutError, within {_SECONDS} s"
        raise TimeoutError(msg) from exc


def assert_equal(found: Any, expected: Any, message: str) -> None:
    """Fail unless two values are equal, and show where they are not."""
    if found != expected:
        msg = f"{message}: {difference(found, expected)}"
        raise AssertionError(msg)


def difference(found: Any, expected: Any) -> str:
    """Describe two values, from shortly before their first difference."""
    one, other = repr(found), repr(expected)
    alike = takewhile(lambda signs: signs[0] == signs[1], zip(one, other, strict=False))
    same = sum(1 for _ in alike) - _SHOWN_BEFORE
    if same <= 0 or max(len(one), len(other)) <= _LONGEST_SHOWN:
        return f"{_cut(one)}, not {_cut(other)}"
    return f"…{_cut(one[same:])}, not …{_cut(other[same:])}"


def shortened(value: Any) -> str:
    """Write a value for a message, its beginning if it is long."""
    return _cut(repr(value))


def skip(reason: str) -> NoReturn:
    """Skip the test that runs."""
    import pytest  # noqa: PLC0415  (only where tests run)

    pytest.skip(reason)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


def _sum(chunks: Iterable[Any]) -> Any:
    """Add chunks as LangChain does: one that cannot be added takes the other's place."""
    total = None
    for chunk in chunks:
        try:
            total = chunk if total is None else total + chunk
        except TypeError:
            total = chunk
    return total


def _sum_async(chunks: AsyncIterator[Any]) -> Any:
    return _sum(run_bounded(_listed(chunks)))


async def _listed(chunks: AsyncIterator[Any]) -> list[Any]:
    return [chunk async for chunk in chunks]


async def _as_stream(given: Any) -> AsyncIterator[Any]:
    yield given


def _by_place(pairs: Any) -> list[Any]:
    return [output for _, output in sorted(pairs, key=lambda pair: pair[0])]
