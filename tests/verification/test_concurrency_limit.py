"""Only so many answers are examined at a time; none is lost, and who leaves makes room."""

import asyncio
import gc
import weakref
from collections.abc import Sequence
from typing import Any

from langchain_core.documents import Document
from typing_extensions import override

from langchain_groundedness import EmbeddedVerifier
from langchain_groundedness.types import Claim, VerificationTask

AT_MOST = 32
MANY = 80


class Counting(EmbeddedVerifier):
    """Knows how many tasks it examines."""

    @override
    def _verdict_steps(self, tasks: Sequence[VerificationTask]) -> Any:
        now.append(1)
        most[0] = max(most[0], len(now))
        try:
            yield from super()._verdict_steps(tasks)
        finally:
            now.pop()


now: list[int] = []
most = [0]


def task(number: int) -> VerificationTask:
    text = f"Hall {number} has a roof of copper."
    claims = tuple(Claim(id=str(n), text=text) for n in range(2))
    return VerificationTask(claims=claims, documents=(Document(text),))


async def test_many_at_once_are_examined_some_at_a_time_and_all_are_judged() -> None:
    most[0] = 0
    found = await asyncio.gather(*(Counting().ainvoke(task(number)) for number in range(MANY)))
    assert 1 < most[0] <= AT_MOST
    assert [v.verdict for verdicts in found for v in verdicts] == ["supported"] * 2 * MANY


async def test_checks_that_are_cancelled_make_room() -> None:
    cancelled = [asyncio.create_task(Counting().ainvoke(task(n))) for n in range(MANY)]
    await asyncio.sleep(0)
    for each in cancelled[::2]:
        each.cancel()
    await asyncio.gather(*cancelled, return_exceptions=True)
    found = await asyncio.wait_for(
        asyncio.gather(*(Counting().ainvoke(task(number)) for number in range(MANY))), 300
    )
    assert {v.verdict for verdicts in found for v in verdicts} == {"supported"}


async def test_streams_that_pause_hold_nobody_up() -> None:
    paused: list[Any] = [EmbeddedVerifier().astream(task(number)) for number in range(AT_MOST)]
    for each in paused:
        await anext(each)
    (verdict, _) = await asyncio.wait_for(EmbeddedVerifier().ainvoke(task(0)), 300)
    assert verdict.verdict == "supported"
    for each in paused:
        await each.aclose()


def test_nothing_is_kept_of_an_event_loop_that_has_ended() -> None:
    async def crowd() -> None:
        await asyncio.gather(*(EmbeddedVerifier().ainvoke(task(number)) for number in range(MANY)))

    with asyncio.Runner() as runner:
        runner.run(crowd())
        loop = weakref.ref(runner.get_loop())
    del runner
    gc.collect()
    assert loop() is None
