"""`collect_groundedness` watches what runs in a block, wherever its context goes."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain_core.callbacks import get_usage_metadata_callback
from langchain_core.runnables import RunnableLambda
from langchain_core.tracers import context
from watched_chains import answer, lcel_chain, question, retrieval_chain

from langchain_groundedness import GroundednessRunnable, collect_groundedness
from langchain_groundedness.testing import ScriptedVerifier

QUICK = GroundednessRunnable(verifier=ScriptedVerifier(lambda _: "supported"))


def answers(collected: Any) -> list[str]:
    return sorted(result.answer for result in collected.results.values())


def test_runs_in_the_block_are_watched_and_no_others() -> None:
    chain = lcel_chain()
    chain.invoke(question("Land0"))
    with collect_groundedness(QUICK) as collected:
        chain.invoke(question("Land1"))
        chain.batch([question("Land2"), question("Land3")])
        list(chain.stream(question("Land4")))
    chain.invoke(question("Land5"))
    assert answers(collected) == [answer(f"Land{number}") for number in (1, 2, 3, 4)]
    assert [event.kind for event in collected.events()].count("result") == 4


async def test_awaited_runs_in_the_block_are_watched() -> None:
    async with collect_groundedness(QUICK) as collected:
        await asyncio.gather(*(lcel_chain().ainvoke(question(f"Land{n}")) for n in range(3)))
    with collect_groundedness(QUICK) as other:
        await lcel_chain().abatch([question(f"Land{n}") for n in range(3)])
    assert answers(collected) == answers(other) == [answer(f"Land{n}") for n in range(3)]


async def test_blocks_of_tasks_that_run_at_once_do_not_mix() -> None:
    async def work(country: str) -> list[str]:
        async with collect_groundedness(QUICK) as collected:
            async for _ in retrieval_chain().astream({"input": question(country)}):
                pass
        return answers(collected)

    countries = [f"Land{number}" for number in range(20)]
    assert await asyncio.gather(*map(work, countries)) == [[answer(each)] for each in countries]


def test_a_chain_inside_another_is_part_of_its_run() -> None:
    outer: Any = RunnableLambda(lambda text: lcel_chain().invoke(text))
    with collect_groundedness(QUICK) as collected:
        outer.invoke(question("Land1"))
    assert answers(collected) == [answer("Land1")]


def test_an_error_in_the_block_ends_it() -> None:
    with pytest.raises(KeyError), collect_groundedness(QUICK) as collected:
        raise KeyError
    lcel_chain().invoke(question("Land1"))
    assert not collected.results


def test_of_nested_blocks_the_inner_one_counts() -> None:
    with collect_groundedness(QUICK) as outer:
        with collect_groundedness(QUICK) as inner:
            lcel_chain().invoke(question("Land1"))
        lcel_chain().invoke(question("Land2"))
    assert (answers(inner), answers(outer)) == ([answer("Land1")], [answer("Land2")])


def test_blocks_leave_nothing_behind_in_langchain() -> None:
    hooks = context._configure_hooks  # noqa: SLF001  (LangChain shows them in no other way)
    before = len(hooks)
    for _ in range(3):
        with collect_groundedness(QUICK), get_usage_metadata_callback():
            pass
    # LangChain's own leaves one each.
    assert len(hooks) == before + 3


def test_a_pool_that_copies_no_context_is_not_watched() -> None:
    with collect_groundedness(QUICK) as collected, ThreadPoolExecutor() as pool:
        pool.submit(lcel_chain().invoke, question("Land1")).result()
    assert not collected.results


def test_the_end_of_the_block_waits_for_the_background() -> None:
    with collect_groundedness(QUICK, background=True) as collected:
        lcel_chain().invoke(question("Land1"))
    assert answers(collected) == [answer("Land1")]


async def test_the_end_of_an_awaited_block_waits_for_the_background() -> None:
    async with collect_groundedness(QUICK, background=True) as collected:
        await lcel_chain().ainvoke(question("Land1"))
    assert answers(collected) == [answer("Land1")]
