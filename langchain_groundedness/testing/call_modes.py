"""The ways to call a runnable, each as one function."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, NoReturn

from langchain_core.runnables import Runnable, RunnableConfig

__all__ = [
    "ASYNC_WAYS",
    "WAYS",
    "Call",
    "agree",
    "called",
    "raised",
    "short",
    "skip",
    "unlike",
    "within",
]

_SECONDS = 30
_LONGEST_SHOWN = 400
_SHOWN_BEFORE = 100

Call = Callable[[Runnable[Any, Any], Any, RunnableConfig | None], Any]


def called(
    make: Callable[[], Runnable[Any, Any]], inputs: Sequence[Any]
) -> Iterator[tuple[str, list[Any]]]:
    """Call a runnable with all inputs, in every way there is."""
    for name, call in WAYS.items():
        yield name, [call(make(), each, None) for each in inputs]
    many = list(inputs)
    yield "batch", make().batch(many)
    yield "abatch", within(make().abatch(many))
    yield "batch_as_completed", _by_place(make().batch_as_completed(many))

    async def completed() -> list[Any]:
        return [pair async for pair in make().abatch_as_completed(many)]

    yield "abatch_as_completed", _by_place(within(completed()))


def raised(
    call: Call, runnable: Runnable[Any, Any], given: Any, config: RunnableConfig | None = None
) -> BaseException | None:
    """Give what a call raises, a cancellation too; `None` if it gives an output."""
    try:
        call(runnable, given, config)
    except (Exception, asyncio.CancelledError) as exc:  # noqa: BLE001  (it is looked at)
        return exc
    return None


def within(call: Awaitable[Any]) -> Any:
    """Wait for a coroutine on an event loop of its own, half a minute at most."""

    async def bounded() -> Any:
        return await asyncio.wait_for(call, _SECONDS)

    try:
        return asyncio.run(bounded())
    except TimeoutError as exc:
        name = getattr(call, "__qualname__", type(call).__name__)
        msg = f"{name} did not end, or ended with a TimeoutError, within {_SECONDS} s"
        raise TimeoutError(msg) from exc


def agree(found: Any, expected: Any, told: str) -> None:
    """Fail unless two values are equal, and show where they are not."""
    if found != expected:
        msg = f"{told}: {unlike(found, expected)}"
        raise AssertionError(msg)


def unlike(found: Any, expected: Any) -> str:
    """Write two values that differ for a message, from shortly before the place where they do."""
    one, other = repr(found), repr(expected)
    alike = takewhile(lambda signs: signs[0] == signs[1], zip(one, other, strict=False))
    same = sum(1 for _ in alike) - _SHOWN_BEFORE
    if same <= 0 or max(len(one), len(other)) <= _LONGEST_SHOWN:
        return f"{_cut(one)}, not {_cut(other)}"
    return f"…{_cut(one[same:])}, not …{_cut(other[same:])}"


def short(value: Any) -> str:
    """Write a value for a message, its beginning if it is long."""
    return _cut(repr(value))


def skip(reason: str) -> NoReturn:
    """Show the test that runs as skipped."""
    import pytest  # noqa: PLC0415  (only where tests run)

    pytest.skip(reason)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


def _invoke(runnable: Runnable[Any, Any], given: Any, config: RunnableConfig | None) -> Any:
    return runnable.invoke(given, config)


def _stream(runnable: Runnable[Any, Any], given: Any, config: RunnableConfig | None) -> Any:
    return _sum(runnable.stream(given, config))


def _transform(runnable: Runnable[Any, Any], given: Any, config: RunnableConfig | None) -> Any:
    return _sum(runnable.transform(iter([given]), config))


def _ainvoke(runnable: Runnable[Any, Any], given: Any, config: RunnableConfig | None) -> Any:
    return within(runnable.ainvoke(given, config))


def _astream(runnable: Runnable[Any, Any], given: Any, config: RunnableConfig | None) -> Any:
    return within(_asum(runnable.astream(given, config)))


def _atransform(runnable: Runnable[Any, Any], given: Any, config: RunnableConfig | None) -> Any:
    async def pieces() -> AsyncIterator[Any]:
        yield given

    return within(_asum(runnable.atransform(pieces(), config)))


ASYNC_WAYS: Mapping[str, Call] = {
    "ainvoke": _ainvoke,
    "astream": _astream,
    "atransform": _atransform,
}
WAYS: Mapping[str, Call] = {
    "invoke": _invoke,
    "stream": _stream,
    "transform": _transform,
    **ASYNC_WAYS,
}


def _sum(chunks: Iterator[Any]) -> Any:
    total = None
    for chunk in chunks:
        total = chunk if total is None else _added(total, chunk)
    return total


async def _asum(chunks: AsyncIterator[Any]) -> Any:
    total = None
    async for chunk in chunks:
        total = chunk if total is None else _added(total, chunk)
    return total


def _added(one: Any, other: Any) -> Any:
    """Add two chunks as LangChain does: one that cannot be added takes the other's place."""
    try:
        return one + other
    except TypeError:
        return other


def _by_place(pairs: Any) -> list[Any]:
    return [output for _, output in sorted(pairs, key=lambda pair: pair[0])]
