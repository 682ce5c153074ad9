"""Measure what a cache of verdicts saves: `python benchmarks/cache.py`.

First the calls of a judge, over answers to questions of which some are asked often. Then the time
of a claim whose verdict is known, beside that of one which the embedded verifier has to read, in
turn, by store. Redis is measured if `redis-server` and the package `redis` are installed, SQLite
if `langchain-community` is. Fails if the cache saves fewer than half of the calls, or if a hit
costs more than a check.
"""

import argparse
import asyncio
import random
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from langchain_core.caches import InMemoryCache
from langchain_core.documents import Document
from langchain_core.stores import InMemoryByteStore

from langchain_groundedness import (
    CachedVerifier,
    Claim,
    EmbeddedVerifier,
    GroundednessRunnable,
    LLMVerifier,
    SentenceClaimExtractor,
    VerificationTask,
)
from langchain_groundedness.testing import ScriptedChatModel

QUESTIONS = 40
CLAIMS = 5
SENTENCE = "Station {} at the lake of {} measured {} millimetres of rain in the month of {}."
PLACES = ("Como", "Garda", "Iseo", "Orta", "Varese", "Lugano", "Ledro", "Idro")
MONTHS = ("January", "March", "May", "July", "September", "November")


class Timing(NamedTuple):
    """Milliseconds a claim: by the clock, and of the processor."""

    wall: float
    processor: float


def sentence(number: int) -> str:
    """Give one of very many statements."""
    return SENTENCE.format(
        number, PLACES[number % len(PLACES)], number * 7 % 193, MONTHS[number % len(MONTHS)]
    )


def document(first: int, sentences: int = 75) -> Document:
    """Give a document of some thousand words, in which each of these statements stands."""
    return Document(" ".join(map(sentence, range(first, first + sentences))))


def answers(number: int, seed: int) -> list[dict[str, Any]]:
    """Draw answers to questions of which the most popular one is asked most (Zipf's law)."""
    weights = [1 / rank for rank in range(1, QUESTIONS + 1)]
    drawn = random.Random(seed).choices(range(QUESTIONS), weights, k=number)
    return [
        {
            "question": f"What about question {place}?",
            "answer": " ".join(sentence(100 * place + n) for n in range(CLAIMS)),
            "documents": [document(100 * place)],
        }
        for place in drawn
    ]


def judge(waits: float) -> ScriptedChatModel:
    """Make a chat model that supports every claim with the sentence of its own number."""

    def reply(_: Any) -> str:
        time.sleep(waits)
        return "\n".join(f"{{tag}} C{n} {n} supported" for n in range(1, CLAIMS + 1))

    return ScriptedChatModel(replies=reply)


def checker(model: ScriptedChatModel, store: InMemoryByteStore | None) -> GroundednessRunnable:
    """Make a check that asks the model, and remembers if there is a store."""
    verifier: Any = LLMVerifier(model=model)
    if store is not None:
        verifier = CachedVerifier(verifier=verifier, store=store, key="scripted")
    return GroundednessRunnable(extractor=SentenceClaimExtractor(), verifier=verifier)


def calls_saved(number: int, waits: float) -> bool:
    """Count calls with and without a cache; tell whether it saves half of them."""
    drawn = answers(number, seed=1)
    distinct = len({each["answer"] for each in drawn})
    calls, seconds = {}, {}
    for name, store in (("without", None), ("with", InMemoryByteStore())):
        model = judge(waits)
        began = time.perf_counter()
        checked = asyncio.run(
            checker(model, store).abatch(drawn, {"max_concurrency": 8})  # type: ignore[arg-type]
        )
        seconds[name], calls[name] = time.perf_counter() - began, len(model.requests)
        assert all(result.is_trusted for result in checked)  # noqa: S101  (what is measured works)
    print(
        f"{number} answers to {distinct} questions, {1000 * waits:.0f} ms a call, 8 at once:\n"
        f"  calls  {calls['without']} without, {calls['with']} with the cache\n"
        f"  wall   {seconds['without']:.2f} s without, {seconds['with']:.2f} s with the cache"
    )
    return 2 * calls["with"] <= calls["without"]


@contextmanager
def stores() -> Iterator[dict[str, Any]]:
    """Open every kind of store that can be had here."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        found: dict[str, Any] = {
            "InMemoryByteStore": InMemoryByteStore(),
            "InMemoryCache": InMemoryCache(),
        }
        if find_spec("langchain_classic"):
            from langchain_classic.storage import LocalFileStore  # noqa: PLC0415  (optional)

            found["LocalFileStore"] = LocalFileStore(folder / "files")
        if find_spec("langchain_community"):
            from langchain_community.cache import SQLiteCache  # noqa: PLC0415  (optional)

            found["SQLiteCache"] = SQLiteCache(str(folder / "verdicts.db"))
        if find_spec("langchain_community") and find_spec("redis") and shutil.which("redis-server"):
            found |= redis_stores(stack, str(folder / "redis.sock"))
        warnings.simplefilter("ignore")  # of what they do at each look-up
        yield found


def redis_stores(stack: ExitStack, socket: str) -> dict[str, Any]:
    """Start a server on a unix socket, and give both kinds of store that it can be."""
    from langchain_community.cache import RedisCache  # noqa: PLC0415  (optional)
    from langchain_community.storage import RedisStore  # noqa: PLC0415  (same)
    from redis import Redis  # noqa: PLC0415  (same)

    program = str(shutil.which("redis-server"))
    server = subprocess.Popen(
        [program, "--port", "0", "--unixsocket", socket, "--save", ""], stdout=subprocess.DEVNULL
    )
    stack.callback(server.wait)
    stack.callback(server.kill)
    while not Path(socket).exists():
        time.sleep(0.01)
    client = stack.enter_context(Redis(unix_socket_path=socket))
    return {"RedisStore": RedisStore(client=client), "RedisCache": RedisCache(client)}


def task(number: int) -> VerificationTask:
    """Give a task that no other number gives."""
    first = 10_000 + 100 * number
    claims = (Claim(id=f"c{n}", text=sentence(first + n)) for n in range(CLAIMS))
    return VerificationTask(claims=tuple(claims), documents=(document(first),))


def timed(run: Callable[[], object]) -> Timing:
    """Time a call, by claim."""
    wall, processor = time.perf_counter(), time.process_time()
    run()
    spent = time.perf_counter() - wall, time.process_time() - processor
    return Timing(*(1000 * each / CLAIMS for each in spent))


def hits_beside_checks(repeat: int) -> bool:
    """Time checks and hits in turn, by store; tell whether hits are the cheaper ones."""
    embedded = EmbeddedVerifier()
    embedded.invoke(task(0))
    cheaper, number = True, 1
    print(f"ms a claim, {CLAIMS} claims on 1,100 words, median of {repeat} interleaved:")
    print(f"{'':20}{'check':>8}{'first':>8}{'hit':>8}{'hit cpu':>9}{'checks a hit':>14}")
    with stores() as found:
        for name, store in found.items():
            cached = CachedVerifier(verifier=embedded, store=store)
            cached.invoke(task(0))
            lines: list[tuple[Timing, Timing, Timing]] = []
            for _ in range(repeat):
                plain, kept = task(number), task(number + 1)
                number += 2
                lines.append(
                    (
                        timed(partial(embedded.invoke, plain)),
                        timed(partial(cached.invoke, kept)),
                        timed(partial(cached.invoke, kept)),
                    )
                )
            check, first, hit = (median(line[n].wall for line in lines) for n in range(3))
            processor = median(line[2].processor for line in lines)
            ratio = median(line[0].wall / line[2].wall for line in lines)
            cheaper = cheaper and ratio > 1
            print(f"{name:20}{check:8.2f}{first:8.2f}{hit:8.3f}{processor:9.3f}{ratio:14.1f}")
    return cheaper


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--answers", type=int, default=200, help="answers to check (200)")
    parser.add_argument("--wait", type=float, default=0.05, help="seconds of a call (0.05)")
    parser.add_argument("--repeat", type=int, default=15, help="pairs by store (15)")
    given = parser.parse_args()
    none_twice = calls_saved(given.answers, given.wait)
    cheaper = hits_beside_checks(given.repeat)
    if not none_twice:
        print("missed: a question was asked twice")
    if not cheaper:
        print("missed: finding a verdict took longer than a check by the embedded verifier")
    sys.exit(0 if none_twice and cheaper else 1)


if __name__ == "__main__":
    main()
