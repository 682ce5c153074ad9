"""Checks that are begun at the same moment do not all take the event loop at once."""

import asyncio
import gc
import time
import weakref
from itertools import pairwise
from typing import Any

import pytest
from langchain_core.callbacks import AsyncCallbackHandler
from typing_extensions import override

from langchain_groundedness import GroundednessRunnable
from langchain_groundedness._runtime import executors
from langchain_groundedness._runtime.executors import admitted
from langchain_groundedness.testing import ScriptedVerifier

STEPS = 30
"""Of a check by a chat model, about."""
ROW = {"answer": "Rome is in Italy.", "documents": ["Rome is in Italy."]}


async def rounds_of(count: int) -> list[int]:
    """Begin as many at once; give the pass of the event loop that each began in."""
    began: list[int] = []
    now = passes()

    async def begin() -> None:
        await admitted()
        began.append(now[0])

    await asyncio.gather(*(begin() for _ in range(count)))
    return began


def passes() -> list[int]:
    """Count the passes of the event loop from now on."""
    now = [0]

    def passing() -> None:
        now[0] += 1
        asyncio.get_running_loop().call_soon(passing)

    passing()
    return now


async def test_each_begins_when_the_event_loop_has_come_by_for_the_steps_of_the_one_before() -> (
    None
):
    began = await asyncio.wait_for(rounds_of(20), 300)
    assert all(after - before >= STEPS for before, after in pairwise(began))


async def test_who_comes_after_the_one_before_has_begun_does_not_wait() -> None:
    for _ in range(3):
        assert begins_at_once()
        await asyncio.sleep(0)


async def test_what_else_keeps_the_event_loop_busy_delays_nobody_for_long() -> None:
    async def busy() -> None:
        while True:
            asyncio.get_running_loop().call_soon(time.sleep, 0.005)
            await asyncio.sleep(0)

    other = asyncio.create_task(busy())
    began = await asyncio.wait_for(rounds_of(10), 300)
    other.cancel()
    assert all(after - before < STEPS for before, after in pairwise(began))


async def test_who_is_alone_does_not_wait() -> None:
    assert begins_at_once()


def begins_at_once() -> bool:
    waiting = admitted()
    try:
        waiting.send(None)
    except StopIteration:
        return True
    waiting.close()
    return False


async def test_they_begin_in_the_order_they_came_and_one_that_is_cancelled_holds_up_nobody() -> (
    None
):
    began: list[int] = []

    async def begin(number: int) -> None:
        await admitted()
        began.append(number)

    tasks = [asyncio.create_task(begin(number)) for number in range(6)]
    await asyncio.sleep(0)
    tasks[2].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert began == [0, 1, 3, 4, 5]
    await asyncio.wait_for(admitted(), 300)


async def test_checks_that_are_begun_at_once_all_end() -> None:
    checker = GroundednessRunnable(verifier=ScriptedVerifier(lambda _: "supported"))
    results = await asyncio.gather(*(checker.ainvoke(ROW) for _ in range(30)))
    assert {result.verdict for result in results} == {"grounded"}


class Begun(AsyncCallbackHandler):
    def __init__(self) -> None:
        self.passes, self.began = passes(), list[int]()

    @override
    async def on_chain_start(self, *_: Any, name: str | None = None, **__: Any) -> None:
        if name == "read_input":
            self.began.append(self.passes[0])


async def test_the_answers_of_a_batch_begin_one_after_the_other_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(executors, "_LONGEST_S", 60.0)  # however slow the machine is
    checker, begun = GroundednessRunnable(verifier=ScriptedVerifier(lambda _: "supported")), Begun()
    results = await checker.abatch([ROW] * 12, {"callbacks": [begun]})
    assert {result.verdict for result in results} == {"grounded"}
    assert len(begun.began) == 12
    assert all(after - before >= STEPS for before, after in pairwise(sorted(begun.began)))


def test_nothing_is_kept_of_an_event_loop_that_has_ended() -> None:
    with asyncio.Runner() as runner:
        runner.run(admitted())
        loop = weakref.ref(runner.get_loop())
    del runner
    gc.collect()
    assert loop() is None
