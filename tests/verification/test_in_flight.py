"""What is asked at the same time is asked once; nobody pays for how another one ends."""

import asyncio
import os
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from importlib import import_module
from typing import Any

import pytest
from langchain_core.stores import InMemoryByteStore
from verdict_caching import SOON, Reader, cached, task

from langchain_groundedness import CachedVerifier, ClaimVerdict, ConfigurationError
from langchain_groundedness.types import VerificationTask
from langchain_groundedness.verification import cached as _in_flight
from langchain_groundedness.verification.cached import Leading, Outcome, Question

CAPITAL = "Rome is the capital of Italy."
SEA = "Bari lies at the sea."
MANY = 6


class Gate:
    """Holds the judge up until the test lets it, and tells who waits for what another one asks."""

    def __init__(self) -> None:
        self.asked = threading.Semaphore(0)
        self.waiting = threading.Semaphore(0)
        self.let = threading.Event()
        self.ends: list[BaseException | None] = []
        """How questions end, in their order; beyond, well."""

    def __call__(self, given: VerificationTask) -> None:
        end = self.ends.pop(0) if self.ends else None
        self.asked.release()
        assert self.let.wait(SOON)
        if end is not None:
            raise end

    def until(self, *, asked: int = 0, waiting: int = 0) -> None:
        for _ in range(asked):
            assert self.asked.acquire(timeout=SOON)
        for _ in range(waiting):
            assert self.waiting.acquire(timeout=SOON)

    async def auntil(self, *, asked: int = 0, waiting: int = 0) -> None:
        await asyncio.to_thread(self.until, asked=asked, waiting=waiting)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    gate = Gate()
    module = import_module("langchain_groundedness.verification.cached")

    def follow(questions: Mapping[str, Question]) -> dict[str, Outcome]:
        gate.waiting.release()
        return _in_flight.follow(questions)

    async def afollow(questions: Mapping[str, Question]) -> dict[str, Outcome]:
        gate.waiting.release()
        return await _in_flight.afollow(questions)

    monkeypatch.setattr(module, "follow", follow)
    monkeypatch.setattr(module, "afollow", afollow)
    yield gate
    gate.let.set()
    assert not _in_flight._OPEN.questions, "a question was left open"


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2 * MANY) as pool:
        yield pool


Verdicts = list[ClaimVerdict]


def plain(asked: VerificationTask) -> Verdicts:
    return Reader().invoke(asked)


def in_new_loop(verifier: CachedVerifier, asked: VerificationTask) -> Verdicts:
    return asyncio.run(verifier.ainvoke(asked))


def test_threads_and_event_loops_share_one_call(gate: Gate, threads: ThreadPoolExecutor) -> None:
    judge = Reader(gate)
    verifier = cached(judge, InMemoryByteStore())
    asked = [task(*([SEA] * n), CAPITAL) for n in range(2 * MANY)]
    found: list[Future[Verdicts]] = [threads.submit(verifier.invoke, task(CAPITAL, SEA))]
    gate.until(asked=1)
    found += [threads.submit(verifier.invoke, each) for each in asked[:MANY]]
    found += [threads.submit(in_new_loop, verifier, each) for each in asked[MANY : 2 * MANY - 1]]
    gate.until(waiting=2 * MANY - 1)
    gate.let.set()
    for each, future in zip([task(CAPITAL, SEA), *asked], found, strict=False):
        assert future.result(SOON) == plain(each)
    assert judge.asked == [CAPITAL, SEA]


async def test_tasks_share_one_call_whoever_leads(gate: Gate) -> None:
    judge = Reader(gate)
    verifier = cached(judge, InMemoryByteStore())
    leader = asyncio.create_task(verifier.ainvoke(task(CAPITAL)))
    await gate.auntil(asked=1)
    others = [asyncio.create_task(verifier.ainvoke(task(CAPITAL))) for _ in range(MANY)]
    thread = asyncio.create_task(asyncio.to_thread(verifier.invoke, task(CAPITAL)))
    await gate.auntil(waiting=MANY + 1)
    gate.let.set()
    for found in await asyncio.gather(leader, *others, thread):
        assert found == plain(task(CAPITAL))
    assert judge.asked == [CAPITAL]


async def test_each_asks_what_the_other_one_does_not(gate: Gate) -> None:
    judge = Reader(gate)
    verifier = cached(judge, InMemoryByteStore())
    one = asyncio.create_task(verifier.ainvoke(task(CAPITAL, SEA)))
    await gate.auntil(asked=1)
    other = asyncio.create_task(verifier.ainvoke(task("It rains.", SEA, CAPITAL)))
    await gate.auntil(asked=1)
    gate.let.set()
    assert await one == plain(task(CAPITAL, SEA))
    assert await other == plain(task("It rains.", SEA, CAPITAL))
    assert judge.asked == [CAPITAL, SEA, "It rains."]


async def test_who_is_cancelled_takes_nothing_from_those_who_wait(gate: Gate) -> None:
    judge = Reader(gate)
    verifier = cached(judge, InMemoryByteStore())
    leader = asyncio.create_task(verifier.ainvoke(task(CAPITAL)))
    await gate.auntil(asked=1)
    others = [asyncio.create_task(verifier.ainvoke(task(CAPITAL))) for _ in range(MANY)]
    await gate.auntil(waiting=MANY)
    leader.cancel()
    with pytest.raises(asyncio.CancelledError) as kept:  # its traceback keeps what it held alive
        await leader
    await gate.auntil(asked=1, waiting=MANY - 1)  # one of the others leads now
    others[-1].cancel()
    with pytest.raises(asyncio.CancelledError):
        await others[-1]
    gate.let.set()
    for found in await asyncio.gather(*others[:-1]):
        assert found == plain(task(CAPITAL))
    assert judge.asked == [CAPITAL, CAPITAL]
    del kept


def test_who_is_interrupted_in_a_thread_takes_nothing_from_the_others(
    gate: Gate, threads: ThreadPoolExecutor
) -> None:
    gate.ends = [KeyboardInterrupt()]
    judge = Reader(gate)
    verifier = cached(judge, InMemoryByteStore())
    leader = threads.submit(verifier.invoke, task(CAPITAL))
    gate.until(asked=1)
    other = threads.submit(verifier.invoke, task(CAPITAL))
    gate.until(waiting=1)
    gate.let.set()
    with pytest.raises(KeyboardInterrupt):
        leader.result(SOON)
    assert other.result(SOON) == plain(task(CAPITAL))


async def test_who_waits_and_goes_leaves_the_leader_at_work(gate: Gate) -> None:
    judge = Reader(gate)
    verifier = cached(judge, InMemoryByteStore())
    leader = asyncio.create_task(verifier.ainvoke(task(CAPITAL)))
    await gate.auntil(asked=1)
    other = asyncio.create_task(verifier.ainvoke(task(CAPITAL)))
    await gate.auntil(waiting=1)
    other.cancel()
    with pytest.raises(asyncio.CancelledError):
        await other
    gate.let.set()
    assert await leader == plain(task(CAPITAL))
    assert judge.asked == [CAPITAL]


class BrokenError(Exception):
    pass


async def test_an_error_leaves_the_claim_unchecked_for_all_who_share_it(gate: Gate) -> None:
    gate.ends = [BrokenError("with a secret")]
    judge = Reader(gate)
    verifier = cached(judge, store := InMemoryByteStore())
    leader = asyncio.create_task(verifier.ainvoke(task(CAPITAL)))
    await gate.auntil(asked=1)
    others = [asyncio.create_task(verifier.ainvoke(task(SEA, CAPITAL))) for _ in range(MANY)]
    await gate.auntil(asked=1)
    await gate.auntil(waiting=MANY - 1)
    gate.let.set()
    for found in await asyncio.gather(leader, *others):
        [failed] = [v for v in found if v.claim.text == CAPITAL]
        assert failed.reason == "Reader failed with BrokenError"
        assert all(v.verdict == "supported" for v in found if v.claim.text == SEA)
    assert len(list(store.yield_keys())) == 1
    assert [v.verdict for v in await verifier.ainvoke(task(CAPITAL))] == ["supported"]


async def test_what_no_second_attempt_mends_is_heard_by_all(gate: Gate) -> None:
    gate.ends = [ConfigurationError("broken")] * 3
    verifier = cached(Reader(gate), InMemoryByteStore())
    leader = asyncio.create_task(verifier.ainvoke(task(CAPITAL)))
    await gate.auntil(asked=1)
    others = [asyncio.create_task(verifier.ainvoke(task(CAPITAL))) for _ in range(2)]
    await gate.auntil(waiting=2)
    gate.let.set()
    for found in await asyncio.gather(leader, *others, return_exceptions=True):
        assert isinstance(found, ConfigurationError)


async def test_a_thread_that_keeps_the_leaders_event_loop_waiting_asks_by_itself(
    gate: Gate,
) -> None:
    """Without that, both would wait for each other for ever."""
    judge = Reader(gate)
    verifier = cached(judge, InMemoryByteStore())
    leader = asyncio.create_task(verifier.ainvoke(task(CAPITAL)))
    await gate.auntil(asked=1)
    gate.ends = []
    gate.let.set()
    answers: list[Any] = []

    def block_the_loop() -> None:  # the loop waits for a thread that waits for the loop
        thread = threading.Thread(target=lambda: answers.append(verifier.invoke(task(CAPITAL))))
        thread.start()
        thread.join(SOON)

    asyncio.get_running_loop().call_soon(block_the_loop)
    assert await leader == plain(task(CAPITAL))
    assert answers == [plain(task(CAPITAL))]


def test_a_reader_who_stops_in_the_middle_keeps_nobody_waiting(
    gate: Gate, threads: ThreadPoolExecutor
) -> None:
    judge, store = Reader(gate), InMemoryByteStore()
    gate.let.set()
    verifier = cached(judge, store)
    verifier.invoke(task(CAPITAL))
    slow = verifier.stream(task(CAPITAL, SEA))
    next(slow)
    found = threads.submit(verifier.invoke, task(SEA)).result(SOON)
    assert found == plain(task(SEA))
    assert [v.claim.text for part in slow for v in part] == [SEA]


def test_what_was_found_out_between_looking_and_asking_is_not_asked_again(gate: Gate) -> None:
    judge, store = Reader(gate), InMemoryByteStore()
    gate.let.set()
    verifier = cached(judge, store)

    class Late(InMemoryByteStore):
        """Another check finds out all there is while this one looks for it."""

        looked = 0

        def mget(self, keys: Any) -> Any:
            found = store.mget(keys)
            self.looked += 1
            if self.looked == 1:
                verifier.invoke(task(CAPITAL))
            return found

        def mset(self, key_value_pairs: Any) -> None:
            store.mset(key_value_pairs)

    assert cached(judge, Late()).invoke(task(CAPITAL)) == plain(task(CAPITAL))
    assert judge.asked == [CAPITAL]


async def test_other_stores_are_other_circles(gate: Gate) -> None:
    judge = Reader(gate)
    both = [cached(judge, InMemoryByteStore()) for _ in range(2)]
    asks = [asyncio.create_task(verifier.ainvoke(task(CAPITAL))) for verifier in both]
    await gate.auntil(asked=2)
    gate.let.set()
    await asyncio.gather(*asks)
    assert judge.asked == [CAPITAL, CAPITAL]


def test_who_was_cancelled_before_it_could_lead_leads_nothing() -> None:
    with Leading(object()) as leading:
        pass
    with pytest.raises(RuntimeError, match="nobody waits"):
        leading.claim(["key"])
    assert not _in_flight._OPEN.questions


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_waits_for_nobody() -> None:
    circle = object()
    with Leading(circle) as leading:
        leading.claim(["key"])
        pid = os.fork()
        if pid == 0:
            free = Leading(circle).claim(["key"])[0] == {"key"}
            os._exit(0 if free else 1)
        _, status = os.waitpid(pid, 0)
    assert status == 0


def closed_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    loop.close()
    return loop


async def test_who_waits_for_an_event_loop_that_was_closed_asks_by_itself() -> None:
    circle, loop = object(), asyncio.new_event_loop()
    with Leading(circle, loop) as left_behind, Leading(circle) as leading:
        left_behind.claim(["key"])
        _, others = leading.claim(["key"])
        loop.close()
        async with asyncio.timeout(SOON):
            assert (await _in_flight.afollow(others))["key"] is _in_flight.STUCK


async def test_who_waits_for_an_event_loop_that_stands_still_asks_by_itself() -> None:
    circle, loop = object(), asyncio.new_event_loop()
    with Leading(circle, loop) as left_behind, Leading(circle) as leading:
        left_behind.claim(["key"])
        _, others = leading.claim(["key"])
        async with asyncio.timeout(SOON):
            assert (await _in_flight.afollow(others))["key"] is _in_flight.STUCK
    loop.close()


def test_what_was_left_behind_in_a_closed_event_loop_is_led_anew() -> None:
    circle = object()
    with Leading(circle, closed_loop()) as left_behind, Leading(circle) as leading:
        left_behind.claim(["key"])
        assert leading.claim(["key"]) == ({"key"}, {})
        left_behind.settle("key", _in_flight.ABANDONED)
        with Leading(circle) as third:
            assert list(third.claim(["key"])[1]) == ["key"]
    assert not _in_flight._OPEN.questions
