"""Metrics and spans for OpenTelemetry, if `opentelemetry-api` is installed.

No text of an answer, a question or a document is in any of them.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib import import_module
from time import perf_counter
from typing import Any, NamedTuple, Self, TypeVar

from langchain_groundedness.types import GroundednessResult

__all__ = [
    "CheckSpan",
    "StreamedStep",
    "check_span",
    "count",
    "record_error",
    "step",
    "streamed_step",
]

_SCOPE = "langchain_groundedness"
_CHECK = "groundedness.check"
_ErrorT = TypeVar("_ErrorT", bound=BaseException)

_step_span: ContextVar[Any] = ContextVar("groundedness_step_span", default=None)
"""The span of the current step, also in the threads and tasks that it starts."""


class _Instruments(NamedTuple):
    trace: Any
    tracer: Any
    answers: Any
    claims: Any
    duration: Any


class CheckSpan:
    """A running check: its span and timer."""

    def __init__(self, *, streamed: bool) -> None:
        """Start the span and the timer."""
        self._streamed = streamed
        self._began = perf_counter()
        self.span = _start_span(_CHECK)

    def count(self, result: GroundednessResult) -> None:
        """Count a result; call it once per answer of a batch."""
        known = _instruments()
        if known is None or self.span is None:
            return
        count(result)
        seconds = perf_counter() - self._began
        known.duration.record(seconds, {"groundedness.streamed": self._streamed})
        attributes = {**_attributes(result), "groundedness.claims": len(result.claims)}
        self.span.set_attributes(attributes)

    def failed(self, error: Exception) -> None:
        """Record on the span an error that ended the check of an answer."""
        _record_failure(self.span, error)

    def end(self, result: GroundednessResult) -> None:
        """Count a result, and end the span."""
        self.count(result)
        if self.span is not None:
            self.span.end()


def count(result: GroundednessResult) -> None:
    """Count an answer and its claims."""
    known = _instruments()
    if known is None:
        return
    known.answers.add(1, _attributes(result))
    for found in result.claims:
        known.claims.add(1, {"groundedness.verdict": found.verdict})


@contextmanager
def check_span() -> Iterator[CheckSpan]:
    """Run a check in a span."""
    check = CheckSpan(streamed=False)
    with _current_span(check.span):
        yield check


@contextmanager
def step(name: str) -> Iterator[None]:
    """Run a step of a check in a span."""
    span = _start_span(f"groundedness.{name}")
    with _current_span(span), _as_current_step(span):
        yield


def record_error(error: _ErrorT) -> _ErrorT:
    """Record a handled error on the span of the current step, and return the error."""
    _record_failure(_step_span.get(), error)
    return error


class StreamedStep:
    """The items of a streaming step, whose span is current only while it produces one."""

    def __init__(self, span: Any, items: Iterator[Any] | AsyncIterator[Any]) -> None:
        """Take the items."""
        self._span = span
        self._items: Any = items

    def __iter__(self) -> Self:
        """Return self."""
        return self

    def __next__(self) -> Any:
        """Return the next item."""
        with _as_current_step(self._span):
            return next(self._items)

    def __aiter__(self) -> Self:
        """Return self."""
        return self

    async def __anext__(self) -> Any:
        """Return the next item."""
        with _as_current_step(self._span):
            return await anext(self._items)


@contextmanager
def streamed_step(name: str, items: Iterator[Any] | AsyncIterator[Any]) -> Iterator[StreamedStep]:
    """Run a streaming step in a span; between its items, the consumer's own spans are current."""
    span = _start_span(f"groundedness.{name}")
    try:
        yield StreamedStep(span, items)
    except Exception as exc:
        _record_failure(span, exc)
        raise
    finally:
        if span is not None:
            span.end()


def _start_span(name: str) -> Any:
    """Start a span; `None` without OpenTelemetry."""
    known = _instruments()
    return None if known is None else known.tracer.start_span(name)


@contextmanager
def _current_span(span: Any) -> Iterator[None]:
    """Make a span current, record failures on it, and end it."""
    # Only the type of an error is recorded: its message may contain checked text.
    known = _instruments()
    if known is None or span is None:
        yield
        return
    options = {"record_exception": False, "set_status_on_exception": False}
    with known.trace.use_span(span, end_on_exit=True, **options):
        try:
            yield
        except BaseException as exc:
            _record_failure(span, exc)
            raise


@contextmanager
def _as_current_step(span: Any) -> Iterator[None]:
    token = _step_span.set(span)
    try:
        yield
    finally:
        _step_span.reset(token)


def _record_failure(span: Any, error: BaseException) -> None:
    known = _instruments()
    if known is not None and span is not None:
        span.set_attribute("error.type", type(error).__qualname__)
        span.set_status(known.trace.StatusCode.ERROR)


def _attributes(result: GroundednessResult) -> dict[str, str]:
    return {"groundedness.decision": result.decision.action, "groundedness.verdict": result.verdict}


@cache
def _instruments() -> _Instruments | None:
    """Create the instruments once; they forward to a provider that is set later."""
    try:
        metrics, trace = map(import_module, ("opentelemetry.metrics", "opentelemetry.trace"))
    except ImportError:
        return None
    meter: Any = metrics.get_meter(_SCOPE)
    return _Instruments(
        trace=trace,
        tracer=trace.get_tracer(_SCOPE),
        answers=meter.create_counter(
            "groundedness.answers", unit="{answer}", description="Answers that were checked."
        ),
        claims=meter.create_counter(
            "groundedness.claims", unit="{claim}", description="Claims, by verdict."
        ),
        duration=meter.create_histogram(
            "groundedness.check.duration", unit="s", description="How long checks take."
        ),
    )
