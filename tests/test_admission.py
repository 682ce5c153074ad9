"""Checks that are begun at the same moment do not all take the event loop at once."""

import asyncio
import gc
import weakref
from itertools import pairwise
from typing import Any

import pytest
from conftest import LoopClock
from langchain_core.callbacks import AsyncCallbackHandler
from typing_extensions import override

from langchain_groundedness import GroundednessRunnable
from langchain_groundedness.testing import ScriptedVerifier

STEPS = 30
"""Of a check by a chat model, about."""
ROW = {"answer": "Rome is in Italy.", "documents": ["Rome is in Italy."]}


CHECKER = GroundednessRunnable(verifier=ScriptedVerifier(lambda _: "supported"))


class Begun(AsyncCallbackHandler):
    """Notes in which pass of the event loop each check has begun, and which."""

    def __init__(self) -> None:
        self.passes, self.began, self.names = 0, list[int](), list[str]()
        self.first = asyncio.Event()
        self._pass()

    def _pass(self) -> None:
        self.passes += 1
        asyncio.get_running_loop().call_soon(self._pass)

    @override
    async def on_chain_start(
        self, *_: Any, name: str | None = None, tags: list[str] | None = None, **__: Any
    ) -> None:
        if name == "read_input":
            self.began.append(self.passes)
            self.first.set()
            self.names += [tag for tag in tags or () if tag.startswith("check ")]

    async def check(self, number: int = 0) -> str:
        result = await CHECKER.ainvoke(ROW, {"callbacks": [self], "tags": [f"check {number}"]})
        return result.verdict


def apart(began: list[int]) -> list[int]:
    return [after - before for before, after in pairwise(sorted(began))]


@pytest.mark.usefixtures("clock")
async def test_each_begins_when_the_event_loop_has_come_by_for_the_steps_of_the_one_before() -> (
    None
):
    begun = Begun()
    verdicts = await asyncio.gather(*(begun.check() for _ in range(20)))
    assert verdicts == ["grounded"] * 20
    assert len(begun.began) == 20
    assert min(apart(begun.began)) >= STEPS


@pytest.mark.usefixtures("clock")
async def test_the_answers_of_a_batch_begin_one_after_the_other_too() -> None:
    begun = Begun()
    results = await CHECKER.abatch([ROW] * 12, {"callbacks": [begun]})
    assert {result.verdict for result in results} == {"grounded"}
    assert len(begun.began) == 12
    assert min(apart(begun.began)) >= STEPS


@pytest.mark.usefixtures("clock")
async def test_who_is_alone_does_not_wait() -> None:
    begun = Begun()
    for _ in range(3):
        before = begun.passes
        await begun.check()
        assert begun.began[-1] - before < STEPS


async def test_what_else_keeps_the_event_loop_busy_delays_nobody_for_long(
    clock: LoopClock,
) -> None:
    async def busy() -> None:
        while True:
            asyncio.get_running_loop().call_soon(clock.advance, 0.005)
            await asyncio.sleep(0)

    other, begun = asyncio.create_task(busy()), Begun()
    await asyncio.gather(*(begun.check() for _ in range(10)))
    other.cancel()
    assert max(apart(begun.began)) < STEPS


@pytest.mark.usefixtures("clock")
async def test_they_begin_in_the_order_they_came_and_one_that_is_cancelled_holds_up_nobody() -> (
    None
):
    begun = Begun()
    tasks = [asyncio.create_task(begun.check(number)) for number in range(6)]
    await begun.first.wait()
    tasks[2].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert begun.names == [f"check {number}" for number in (0, 1, 3, 4, 5)]
    assert await begun.check() == "grounded"


def test_nothing_is_kept_of_an_event_loop_that_has_ended() -> None:
    with asyncio.Runner() as runner:
        runner.run(CHECKER.ainvoke(ROW))
        loop = weakref.ref(runner.get_loop())
    del runner
    gc.collect()
    assert loop() is None
