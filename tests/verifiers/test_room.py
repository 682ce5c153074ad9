"""Only so many answers are examined at a time; none is lost, and who leaves makes room."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any

from langchain_core.documents import Document
from typing_extensions import override

from langchain_groundedness.types import Claim, VerificationTask
from langchain_groundedness.verifiers import EmbeddedVerifier
from langchain_groundedness.verifiers._pooled import Judging

AT_MOST = 32
MANY = 80


class Counting(EmbeddedVerifier):
    """Knows how many tasks it examines."""

    @override
    def _judging(self, tasks: Sequence[VerificationTask]) -> Judging:
        now.append(1)
        most[0] = max(most[0], len(now))
        try:
            yield from super()._judging(tasks)
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


async def test_streams_that_are_left_and_checks_that_are_cancelled_make_room() -> None:
    async def left(number: int) -> None:
        stream: Any = Counting().astream(task(number))
        async with aclosing(stream):
            async for _ in stream:
                break

    cancelled = [asyncio.create_task(Counting().ainvoke(task(n))) for n in range(MANY)]
    await asyncio.sleep(0)
    for each in cancelled[::2]:
        each.cancel()
    await asyncio.gather(*cancelled, *map(left, range(MANY)), return_exceptions=True)
    found = await asyncio.wait_for(
        asyncio.gather(*(Counting().ainvoke(task(number)) for number in range(MANY))), 50
    )
    assert {v.verdict for verdicts in found for v in verdicts} == {"supported"}
