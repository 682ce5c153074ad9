"""What OpenTelemetry is told of checks, read from its in-memory exporters."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import pytest
from langchain_core.cross_encoders import BaseCrossEncoder
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import RunnableLambda
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import Counter, Histogram, MeterProvider
from opentelemetry.sdk.metrics.export import AggregationTemporality, InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from langchain_groundedness import (
    CrossEncoderVerifier,
    EmbeddingVerifier,
    GroundednessCallbackHandler,
    GroundednessGuard,
    GroundednessRunnable,
    LLMVerifier,
    SentenceClaimExtractor,
)
from langchain_groundedness.testing import ScriptedVerifier

TOLD = "The code is swordfish."
GIVEN = {"question": "The code?", "answer": f"{TOLD} It rains.", "documents": [TOLD]}


class Seen:
    def __init__(self, reader: InMemoryMetricReader, exporter: InMemorySpanExporter) -> None:
        self._reader = reader
        self._exporter = exporter

    @cached_property
    def metrics(self) -> list[Any]:
        """All since the test began, read once, since what is read is forgotten."""
        data = self._reader.get_metrics_data()
        scopes = [s for r in data.resource_metrics for s in r.scope_metrics] if data else []
        return [metric for scope in scopes for metric in scope.metrics]

    def points(self, name: str) -> list[Any]:
        found = [metric for metric in self.metrics if metric.name == name]
        return [point for metric in found for point in metric.data.data_points]

    def counts(self, name: str) -> dict[tuple[Any, ...], int]:
        return {tuple(p.attributes.values()): p.value for p in self.points(name)}

    @property
    def spans(self) -> dict[str, Any]:
        return {span.name: span for span in self._exporter.get_finished_spans()}


class Switched(SimpleSpanProcessor):
    """Exports spans while a test of this module runs: a process has one provider, for good."""

    is_on = False

    def on_end(self, span: ReadableSpan) -> None:
        if self.is_on:
            super().on_end(span)


@pytest.fixture(scope="module")
def provided() -> tuple[InMemoryMetricReader, InMemorySpanExporter, Switched]:
    since_last: dict[type, Any] = dict.fromkeys((Counter, Histogram), AggregationTemporality.DELTA)
    reader = InMemoryMetricReader(preferred_temporality=since_last)
    exporter = InMemorySpanExporter()
    processor = Switched(exporter)
    tracing = TracerProvider()
    tracing.add_span_processor(processor)
    trace.set_tracer_provider(tracing)
    metrics.set_meter_provider(MeterProvider([reader]))
    return reader, exporter, processor


@pytest.fixture
def seen(
    provided: tuple[InMemoryMetricReader, InMemorySpanExporter, Switched],
) -> Iterator[Seen]:
    reader, exporter, processor = provided
    reader.get_metrics_data()
    exporter.clear()
    processor.is_on = True
    yield Seen(reader, exporter)
    processor.is_on = False


def checker() -> GroundednessRunnable:
    return GroundednessRunnable(
        verifier=ScriptedVerifier({TOLD: "supported", "It rains.": "unverifiable"})
    )


def expect_one_answer(seen: Seen) -> None:
    assert seen.counts("groundedness.answers") == {("flag", "partially_grounded"): 1}
    assert seen.counts("groundedness.claims") == {("supported",): 1, ("unverifiable",): 1}
    [duration] = seen.points("groundedness.check.duration")
    assert duration.count == 1


def test_check_is_counted_and_its_steps_are_spans_below_it(seen: Seen) -> None:
    checker().invoke(GIVEN)
    expect_one_answer(seen)
    spans = seen.spans
    check = spans["groundedness.check"]
    assert check.attributes["groundedness.decision"] == "flag"
    assert check.attributes["groundedness.claims"] == 2
    for step in ("extract_claims", "verify_claims"):
        assert spans[f"groundedness.{step}"].parent.span_id == check.context.span_id


async def test_check_in_an_event_loop_is_told_alike(seen: Seen) -> None:
    await checker().ainvoke(GIVEN)
    expect_one_answer(seen)
    check = seen.spans["groundedness.check"]
    assert seen.spans["groundedness.verify_claims"].parent.span_id == check.context.span_id


def test_answers_of_a_batch_are_counted_one_by_one(seen: Seen) -> None:
    checker().batch([GIVEN] * 3)
    assert seen.counts("groundedness.answers") == {("flag", "partially_grounded"): 3}


async def test_answers_of_a_batch_in_an_event_loop_are_counted_one_by_one(seen: Seen) -> None:
    await checker().abatch([GIVEN] * 2)
    assert seen.counts("groundedness.answers") == {("flag", "partially_grounded"): 2}


def test_streamed_check_is_counted_once(seen: Seen) -> None:
    list(checker().stream(GIVEN))
    expect_one_answer(seen)
    assert "groundedness.verify_claims" in seen.spans
    [duration] = seen.points("groundedness.check.duration")
    assert duration.attributes == {"groundedness.streamed": True}


def test_guard_and_handler_count_an_answer_once(seen: Seen) -> None:
    GroundednessGuard(checker()).invoke(GIVEN)
    expect_one_answer(seen)


def test_handler_counts_an_answer_once(seen: Seen) -> None:
    def answer(_: str) -> dict[str, Any]:
        return dict(GIVEN)

    handler = GroundednessCallbackHandler(checker())
    RunnableLambda(answer).invoke("?", config={"callbacks": [handler]})
    assert len(handler.results) == 1
    expect_one_answer(seen)


def test_failure_is_told_by_its_type_and_no_text_is(seen: Seen) -> None:
    failing = GroundednessRunnable(
        verifier=ScriptedVerifier({TOLD: RuntimeError(TOLD)}), raise_on_failure=True
    )
    with pytest.raises(Exception, match="verification failed"):
        failing.invoke(GIVEN)
    check = seen.spans["groundedness.check"]
    assert check.attributes["error.type"] == "VerificationError"
    told = "".join(span.to_json() for span in seen.spans.values())
    assert "swordfish" not in told


def test_opentelemetry_is_neither_looked_for_before_the_first_check_nor_needed_for_it() -> None:
    code = """
import sys, traceback
looked_for = []
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "opentelemetry":
            files = [frame.filename for frame in traceback.extract_stack()[:-1]]
            if "langchain_groundedness" in [f for f in files if "importlib" not in f][-1]:
                looked_for.append(name)
            raise ModuleNotFoundError(f"blocked: {name}", name=name)
sys.meta_path.insert(0, Blocked())
import langchain_groundedness as package
from langchain_groundedness.testing import ScriptedVerifier
checker = package.GroundednessRunnable(verifier=ScriptedVerifier({"It rains.": "unverifiable"}))
assert not looked_for
print(checker.invoke({"answer": "It rains.", "documents": ["Rome."]}).verdict)
assert looked_for
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "ungrounded\n", done.stderr


FAILING: dict[str, Any] = {
    "whole": lambda: GroundednessRunnable(verifier=RunnableLambda(_timeout)),
    "one claim": lambda: GroundednessRunnable(
        verifier=LLMVerifier(model=RunnableLambda(_timeout)), extractor=SentenceClaimExtractor()
    ),
    "embeddings": lambda: GroundednessRunnable(
        verifier=EmbeddingVerifier(embeddings=Unreachable()), extractor=SentenceClaimExtractor()
    ),
    "cross-encoder": lambda: GroundednessRunnable(
        verifier=CrossEncoderVerifier(cross_encoder=Unreachable()),
        extractor=SentenceClaimExtractor(),
    ),
}
CALLS: dict[str, Any] = {
    "invoke": lambda check: check.invoke(GIVEN),
    "ainvoke": lambda check: asyncio.run(check.ainvoke(GIVEN)),
    "batch": lambda check: check.batch([GIVEN, GIVEN])[0],
    "stream": lambda check: list(check.stream(GIVEN))[-1],
    "astream": lambda check: asyncio.run(_last(check)),
}


async def _last(check: GroundednessRunnable) -> Any:
    return [chunk async for chunk in check.astream(GIVEN)][-1]


def _timeout(_: object) -> Any:
    raise TimeoutError(TOLD)


class Unreachable(Embeddings, BaseCrossEncoder):
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        raise TimeoutError(TOLD)

    def embed_query(self, text: str) -> list[float]:
        raise TimeoutError(TOLD)

    def score(self, text_pairs: list[tuple[str, str]]) -> list[float]:
        raise TimeoutError(TOLD)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("verifier", FAILING)
def test_a_failure_that_leaves_claims_unchecked_stands_in_the_span_of_its_step(
    seen: Seen, verifier: str, call: str
) -> None:
    CALLS[call](FAILING[verifier]())
    span = seen.spans["groundedness.verify_claims"]
    assert span.attributes["error.type"] == "TimeoutError"
    assert span.status.status_code == trace.StatusCode.ERROR
    others = [s for name, s in seen.spans.items() if name != "groundedness.verify_claims"]
    assert not any("error.type" in other.attributes for other in others)
    assert "swordfish" not in "".join(span.to_json() for span in seen.spans.values())


@pytest.mark.parametrize("call", CALLS)
def test_where_nothing_fails_no_span_says_so(seen: Seen, call: str) -> None:
    CALLS[call](checker())
    assert not any("error.type" in span.attributes for span in seen.spans.values())


def test_a_verifier_that_replies_with_something_else_stands_in_the_span(seen: Seen) -> None:
    GroundednessRunnable(verifier=RunnableLambda(lambda _: "nonsense")).invoke(GIVEN)
    span = seen.spans["groundedness.verify_claims"]
    assert span.attributes["error.type"] == "UnexpectedReplyError"
