"""Ten minutes of everything at once: `make soak`, or `python benchmarks/soak.py --minutes 10`.

Checks by `ainvoke` and `abatch`, guarded streams, chains that a handler watches, and agents behind
the middleware run side by side in one event loop, some judged by the embedded verifier, some by a
scripted chat model. One in twenty of the model's calls raises, one in twenty is answered with
prose. One check in ten is cancelled at a random moment; one stream in ten is left in the middle;
one document in a thousand has a megabyte. What is asserted of every check that ends: one verdict
per claim, and none that supports what the documents do not say.

Every half minute a line is printed. At the end, the exit status is 1 if memory grew by 1 KiB or
more per check after the first fifth of the time, threads, tasks or more state of a handler than it
allows are left, a check gave anything wrong, or the event loop kept others waiting for 10 ms or
more at the 99th percentile.
"""

import argparse
import asyncio
import gc
import random
import sys
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from time import perf_counter
from typing import Any

from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from load_scenarios import WrongError, answer_of, embedded, judged, prose, sound, tokens_of
from stalls import Control, Ticker, resident_mib
from typing_extensions import override
from watched import GROWTH_TARGET_KIB, KINDS, chain_of

from langchain_groundedness import GroundednessGuard, GroundednessMiddleware, GroundednessRunnable

STALL_TARGET_MS = 10.0
_WORKERS = 12
_LINE_S = 30
_CLAIMS = 2
_MOST_RUNS = 50
"""That a handler watches. Of a run that is cancelled while handlers hear of its start, LangChain
never tells the end: those stay until others need the room."""
Kind = Callable[[int], Awaitable[None]]


class Writer(BaseChatModel):
    """Answers what the last message says, as the model of an agent."""

    @property
    @override
    def _llm_type(self) -> str:
        return "writer"

    @override
    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self

    @override
    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        reply = AIMessage(answer_of(int(messages[-1].text))["answer"])
        return ChatResult(generations=[ChatGeneration(message=reply)])


class Soak:
    """All kinds of checks, and what became of them."""

    def __init__(self) -> None:
        """Build what is checked with."""
        self.counts: Counter[str] = Counter()
        self.wrong: Counter[str] = Counter()
        self._draw = random.Random(7)
        self._checkers = [embedded(), judged(latency=0.02, fails=0.05)]
        self.handlers = [
            KINDS[kind](checker, max_results=100, max_events=100, max_runs=_MOST_RUNS)
            for kind in KINDS
            for checker in self._checkers
        ]
        self._agents = [self._agent(checker) for checker in self._checkers]
        self._large = prose(1_000_000)
        self._kinds: dict[str, Kind] = {
            "ainvoke": self._ainvoke,
            "abatch": self._abatch,
            "guard": self._guard,
            "handler": self._handler,
            "agent": self._run_agent,
        }

    async def work(self, until: float) -> None:
        """Do one thing after the other until it is time."""
        while perf_counter() < until:
            self.counts["all"] += 1
            await self._one(*self._draw.choice(list(self._kinds.items())), self.counts["all"])

    async def _one(self, name: str, kind: Kind, number: int) -> None:
        task = asyncio.ensure_future(kind(number))
        if self._draw.random() < 0.1:  # noqa: PLR2004  (as the module says)
            await asyncio.sleep(self._draw.random() * 0.1)
            task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            self.counts["cancelled"] += 1
        except ConnectionError:
            self.counts["failed upstream"] += 1
        except Exception as exc:  # noqa: BLE001  (counted, and the soak goes on)
            self.wrong[f"{name}: {type(exc).__name__} {exc}"[:160]] += 1
        else:
            self.counts[name] += 1

    def _checker(self) -> GroundednessRunnable:
        return self._draw.choice(self._checkers)

    async def _ainvoke(self, number: int) -> None:
        row = answer_of(number, sentences=10)
        if self._draw.random() < 0.001:  # noqa: PLR2004  (as the module says)
            row["documents"].append(Document(self._large))
        sound(await self._checker().ainvoke(row), _CLAIMS, all_checked=False)

    async def _abatch(self, number: int) -> None:
        rows = [answer_of(number + place, sentences=10) for place in range(4)]
        for result in await self._checker().abatch(rows):
            sound(result, _CLAIMS, all_checked=False)

    async def _guard(self, number: int) -> None:
        row, shown = answer_of(number, sentences=10), ""
        leave = self._draw.random() < 0.1  # noqa: PLR2004  (as the module says)
        pieces: Any = GroundednessGuard(self._checker()).atransform(tokens_of(row, 0.001))
        async with aclosing(pieces):
            async for text in pieces:
                shown += text
                if leave:
                    break

    async def _handler(self, number: int) -> None:
        row = answer_of(number, sentences=10)
        chain = chain_of(row["answer"], row["documents"], words=5, fails=number % 10 == 1)
        config: Any = {"callbacks": [self._draw.choice(self.handlers)]}
        async for _ in chain.astream(str(number), config):
            pass

    @staticmethod
    def _agent(checker: GroundednessRunnable) -> Any:
        def read(state: Any) -> dict[str, Any]:
            documents = answer_of(int(state["messages"][0].text), sentences=10)["documents"]
            return {"answer": state["messages"][-1].text, "documents": documents}

        gate = GroundednessMiddleware(checker, on_ungrounded="annotate", context_extractor=read)
        return create_agent(Writer(), middleware=[gate])

    async def _run_agent(self, number: int) -> None:
        agent = self._draw.choice(self._agents)
        state = await agent.ainvoke({"messages": [("user", str(number))]})
        if len(state["groundedness"]["claims"]) != _CLAIMS:
            msg = "the agent's answer has not one verdict per claim"
            raise WrongError(msg)


async def soak(seconds: float) -> list[str]:
    """Soak; give what is wrong at the end."""
    soaking = Soak()
    await _all_at_once(soaking, seconds / 10)
    gc.collect()
    gc.freeze()  # as servers do: else each full pass looks at all modules again
    begun = perf_counter()
    marks: list[tuple[int, float]] = []

    async def note() -> None:
        while True:
            await asyncio.sleep(min(_LINE_S, seconds / 20))
            marks.append((soaking.counts["all"], resident_mib()))
            passed = perf_counter() - begun
            print(
                f"{passed:7.0f} s {marks[-1][0]:8} checks {marks[-1][1]:7.1f} MiB"
                f" {len(asyncio.all_tasks()):4} tasks {threading.active_count():3} threads",
                flush=True,
            )

    before = len(asyncio.all_tasks())
    noting = asyncio.create_task(note())
    async with Ticker() as ticker:
        await _all_at_once(soaking, seconds)
    noting.cancel()
    with suppress(asyncio.CancelledError):
        await noting
    await asyncio.gather(*(handler.aflush(_LINE_S) for handler in soaking.handlers))
    held = sum(each.open_runs for each in soaking.handlers)
    for handler in soaking.handlers:
        handler.close()
    await asyncio.sleep(1)
    print(", ".join(f"{name} {count}" for name, count in soaking.counts.most_common()))
    usual, high, by_clock = (
        delays.wait_at(share)
        for delays, share in ((ticker.own, 0.5), (ticker.own, 0.99), (ticker.late, 0.99))
    )
    longest = 1000 * ticker.own.longest
    print(f"event loop: p50 {usual:.1f} ms, p99 {high:.1f} ms, longest {longest:.0f} ms;", end=" ")
    print(f"p99 by the clock {by_clock:.1f} ms")
    return list(_problems(soaking, marks, ticker, held, len(asyncio.all_tasks()) - before))


async def _all_at_once(soaking: Soak, seconds: float) -> None:
    until = perf_counter() + seconds
    async with asyncio.TaskGroup() as group:
        for _ in range(_WORKERS):
            group.create_task(soaking.work(until))


def _problems(
    soaking: Soak, marks: list[tuple[int, float]], ticker: Ticker, held: int, tasks: int
) -> list[str]:
    found = [f"{count} times {what}" for what, count in soaking.wrong.items()]
    (checks, mib), (all_checks, last) = marks[len(marks) // 5], marks[-1]
    grown = 1024 * (last - mib) / max(1, all_checks - checks)
    print(f"memory: {grown:.3f} KiB per check after the first fifth")
    if grown >= GROWTH_TARGET_KIB:
        found.append(f"memory grew by {grown:.2f} KiB per check")
    print(f"runs that handlers still watch: {held}")
    if held > _MOST_RUNS * len(soaking.handlers) or tasks > 0:
        found.append(f"{held} runs of handlers and {tasks} tasks are left")
    threads = [each.name for each in threading.enumerate() if _is_left(each)]
    if threads:
        found.append(f"threads are left: {', '.join(threads)}")
    if (stall := ticker.own.wait_at(0.99)) >= STALL_TARGET_MS:
        found.append(f"the event loop kept others waiting for {stall:.1f} ms")
    return found


def _is_left(thread: threading.Thread) -> bool:
    """Tell whether a thread is none of those that stay for the next check."""
    pools = ("asyncio_", "groundedness-encoder", "groundedness-short", "groundedness-long")
    return thread is not threading.main_thread() and not thread.name.startswith(pools)


def main() -> int:
    """Soak, and fail if anything is wrong."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=10)
    options = parser.parse_args()
    with Control() as control:
        wrong = asyncio.run(soak(60 * options.minutes))
    print(f"a loop without load, at the same time: p99 {control.p99:.1f} ms")
    print(*(f"wrong: {what}" for what in wrong), sep="\n")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
