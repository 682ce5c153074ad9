"""Measure how soon a guard lets a sentence go: `python benchmarks/streaming.py`.

A scripted model writes one answer per stream at a steady pace; a judge takes a fixed time, or is
the embedded verifier (`--embedded`). Printed per number of streams at once, in milliseconds:

- `release`: from the last token of a sentence to its release;
- `judge`: the time the judge itself took for that sentence;
- `added`: what is left when the judge's time and the wait for the next word, which tells that the
  sentence has ended, are taken off;
- `stall`: the longest that one step kept the event loop from going on, and the 99.9th percentile;
  processor time, since the machine's other work is none of ours, without the garbage collector;
- `gc`: the longest pass of the garbage collector. It looks at all objects of the process; servers
  call `gc.freeze()` after loading to shorten it.

Then the same steps of the event loop for chains that a callback handler watches, beside chains
that nobody watches, and the memory of the process over many such runs (`--runs`, per handler), of
which every tenth fails and every tenth is left early. A scripted judge replies at once.
"""

import argparse
import asyncio
import gc
import sys
from asyncio.events import Handle
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median, quantiles
from time import perf_counter, thread_time
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from watched import GROWTH_TARGET_KIB, KINDS, SENTENCE, chain_of, measure_memory, watcher

from langchain_groundedness import (
    Citation,
    ClaimVerdict,
    EmbeddedVerifier,
    GroundednessGuard,
    GroundednessRunnable,
    VerificationTask,
)

STALL_TARGET_MS = 5.0


@dataclass
class Stream:
    """One answer: when its tokens were written, and when its sentences were judged and let go."""

    number: int
    sentences: int
    written: dict[int, float] = field(default_factory=dict)
    """By the character that a token ends at."""
    judged: dict[int, float] = field(default_factory=dict)
    released: dict[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Write the answer; every other sentence is wrong."""
        said = [
            SENTENCE.format(self.number % 70, 7 * (self.number % 70) + (99 if place % 2 else 0))
            for place in range(self.sentences)
        ]
        self.answer = " ".join(said)
        self.documents = [
            Document(
                f"Report {self.number}. "
                + " ".join(SENTENCE.format(station, 7 * station + day) for station in range(70))
            )
            for day in range(5)
        ]
        self.ends = [len(" ".join(said[: place + 1])) for place in range(self.sentences)]

    async def tokens(self, pause: float) -> AsyncIterator[Any]:
        """Write at a steady pace."""
        yield {"documents": self.documents}
        end = 0
        for word in self.answer.split(" "):
            token = word if not end else f" {word}"
            end += len(token)
            await asyncio.sleep(pause)
            self.written[end] = perf_counter()
            yield {"answer": token}

    def rows(self) -> Iterator[tuple[float, float, float]]:
        """Give release, judge and added time of each sentence but the last, in milliseconds."""
        for place, end in enumerate(self.ends[:-1]):
            # Tokens start with a space, so a word is whole when the token after it has come.
            told = sorted(at for written, at in self.written.items() if written > end)[1]
            released, judge = self.released[place], self.judged[place]
            yield (
                1000 * (released - self.written[end]),
                1000 * judge,
                1000 * (released - told - judge),
            )


def guard_of(stream: Stream, *, judge_s: float | None) -> GroundednessGuard:
    """Build the guard of one stream, with a judge that notes how long it took."""
    embedded = EmbeddedVerifier()

    async def judge(task: VerificationTask) -> list[ClaimVerdict]:
        start = perf_counter()
        if judge_s is None:
            verdicts = await embedded.ainvoke(task)
        else:
            await asyncio.sleep(judge_s)
            quote = Citation.from_document(task.documents, 0, 0, 70)
            verdicts = [
                ClaimVerdict(claim=claim, verdict="supported", citations=(quote,))
                for claim in task.claims
            ]
        for claim in task.claims:
            place = next((n for n, end in enumerate(stream.ends) if end == claim.end), None)
            if place is not None:
                stream.judged[place] = perf_counter() - start
        return verdicts

    return GroundednessGuard(GroundednessRunnable(verifier=RunnableLambda(judge)))


async def run(stream: Stream, *, pause: float, judge_s: float | None) -> None:
    """Read one stream through its guard."""
    length, pieces = 0, stream.tokens(pause)
    async for text in guard_of(stream, judge_s=judge_s).atransform(pieces):
        length += len(text)
        for place, end in enumerate(stream.ends):
            if end <= length:
                stream.released.setdefault(place, perf_counter())


@contextmanager
def timed_steps() -> Iterator[tuple[list[float], list[float]]]:
    """Note the processor time of every step of the event loop and pass of the collector, in ms."""
    steps, passes = [0.0], [0.0]
    original = Handle._run  # noqa: SLF001  (the one place where all steps come by)

    def timed(handle: Any) -> None:
        before, start = len(passes), thread_time()
        original(handle)
        steps.append(1000 * (thread_time() - start) - sum(passes[before:]))

    def note(phase: str, _: Any) -> None:
        now = 1000 * thread_time()
        if phase == "start":
            passes.append(now)
        else:
            passes[-1] = now - passes[-1]

    Handle._run = timed  # type: ignore[assignment,method-assign]  # noqa: SLF001  (the one place all callbacks pass)
    gc.callbacks.append(note)
    try:
        yield steps, passes
    finally:
        gc.callbacks.remove(note)
        Handle._run = original  # type: ignore[method-assign]  # noqa: SLF001  (as above)


async def measure(streams: int, options: argparse.Namespace) -> float:
    """Print one row of the table; give the longest stall."""
    judge_s = None if options.embedded else options.judge_ms / 1000
    pause = 1 / options.tokens_per_second
    await run(Stream(0, 2), pause=0.0, judge_s=judge_s)  # warm up
    answers = [Stream(number, options.sentences) for number in range(streams)]
    with timed_steps() as (steps, passes):
        async with asyncio.TaskGroup() as group:
            for place, answer in enumerate(answers):
                work = _later(place * pause / streams, answer, pause, judge_s)
                group.create_task(work)
    columns = list(zip(*(row for answer in answers for row in answer.rows()), strict=True))
    cells = " | ".join(f"{median(values):7.1f} {tail(values):7.1f}" for values in columns)
    stalls = f"{max(steps):6.2f} {tail(steps, 999):6.2f}"
    print(f"| {streams:7} | {cells} | {stalls} | {max(passes):6.1f} |")
    return max(steps)


async def _later(delay: float, answer: Stream, pause: float, judge_s: float | None) -> None:
    """Start a stream a little after the one before, as requests do."""
    await asyncio.sleep(delay)
    await run(answer, pause=pause, judge_s=judge_s)


async def measure_watched(streams: int, name: str, options: argparse.Namespace) -> float:
    """Print the steps of the event loop while chains are watched; give the longest."""
    handlers = [watcher(KINDS[name])] if name in KINDS else []
    pause = 1 / options.tokens_per_second

    async def answer(number: int, pause: float, callbacks: Sequence[Any]) -> None:
        stream = Stream(number, options.sentences)
        chain = chain_of(stream.answer, stream.documents, pause=pause)
        await asyncio.sleep(number * pause / streams)
        async for _ in chain.astream(str(number), {"callbacks": list(callbacks)}):
            pass

    await answer(0, 0.0, [watcher(KINDS["async"])])  # warm up
    with timed_steps() as (steps, passes):
        async with asyncio.TaskGroup() as group:
            for number in range(streams):
                group.create_task(answer(number, pause, handlers))
    results = [result for handler in handlers for result in handler.results.values()]
    checked = sum(result.verdict == "grounded" for result in results)
    stalls = f"{max(steps):6.2f} {tail(steps, 999):6.2f}"
    print(f"| {streams:7} | {name:7} | {stalls} | {max(passes):6.1f} | {checked:7} |")
    for handler in handlers:
        handler.close()
    return max(steps)


def tail(values: Sequence[float], permille: int = 950) -> float:
    """Give a high percentile, the 95th if nothing else is asked for."""
    return quantiles(values, n=1000, method="inclusive")[permille - 1]


def main() -> int:
    """Print the tables, and fail if the event loop was kept waiting or memory not given back."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 8, 64])
    parser.add_argument("--sentences", type=int, default=8)
    parser.add_argument("--tokens-per-second", type=float, default=25)
    parser.add_argument("--judge-ms", type=float, default=200)
    parser.add_argument("--embedded", action="store_true", help="judge with the embedded verifier")
    parser.add_argument("--runs", type=int, default=10_000, help="watched runs per handler")
    options = parser.parse_args()
    print("| streams | release    p95 |   judge    p95 |   added    p95 |  stall  p99.9 |     gc |")
    print("|---------|----------------|----------------|----------------|---------------|--------|")
    stalls = [asyncio.run(measure(streams, options)) for streams in options.streams]
    print("\n| streams | handler |  stall  p99.9 |     gc | checked |")
    print("|---------|---------|---------------|--------|---------|")
    stalls += [
        asyncio.run(measure_watched(streams, name, options))
        for streams in options.streams
        for name in ("none", *KINDS)
    ]
    print(f"target for a stall: below {STALL_TARGET_MS} ms of processor time")
    print("\n| handler |   runs | warm MiB |  end MiB | KiB per run | held | threads |")
    print("|---------|--------|----------|----------|-------------|------|---------|")
    flat = [measure_memory(name, options.runs) for name in KINDS]
    print(
        f"target for memory: below {GROWTH_TARGET_KIB} KiB per run after the first fifth, none held"
    )
    if late := max(stalls) >= STALL_TARGET_MS:
        print(f"missed: a step on the event loop took {max(stalls):.1f} ms")
    if grown := not all(flat):
        print("missed: memory grew, or runs were held")
    return int(late or grown)


if __name__ == "__main__":
    sys.exit(main())
