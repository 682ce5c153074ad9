"""Computing off the event loop, in few threads."""

import asyncio
import contextvars
import os
import threading

import pytest
from langchain_core.documents import Document

from langchain_groundedness import Claim, EmbeddedVerifier, VerificationTask
from langchain_groundedness._runtime.executors import computed, size_of
from langchain_groundedness.exceptions import GroundednessError

NOTE: contextvars.ContextVar[str] = contextvars.ContextVar("NOTE", default="none")


async def test_many_checks_at_once_are_examined_in_one_thread() -> None:
    names = await asyncio.gather(
        *(computed(10, lambda: threading.current_thread().name) for _ in range(50))
    )
    assert len(set(names)) == 1


async def test_a_short_text_does_not_wait_for_a_long_one() -> None:
    go_on = threading.Event()
    long = asyncio.create_task(computed(10_000_000, go_on.wait))
    assert await computed(10, lambda: "read") == "read"
    assert not long.done()
    go_on.set()
    assert await long


async def test_what_is_computed_sees_the_context_and_raises_as_it_would_here() -> None:
    NOTE.set("mine")
    assert await computed(0, NOTE.get) == "mine"
    with pytest.raises(ZeroDivisionError):
        await computed(0, lambda: 1 // 0)


async def test_what_is_cancelled_before_its_turn_is_not_computed() -> None:
    go_on = threading.Event()
    done: list[int] = []
    first = asyncio.create_task(computed(0, go_on.wait))
    second = asyncio.create_task(computed(0, done.append, 1))
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)
    go_on.set()
    await first
    await computed(0, int)
    assert not done


async def test_it_is_said_when_python_shuts_down(monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(*_: object) -> None:
        raise RuntimeError

    monkeypatch.setattr("concurrent.futures.ThreadPoolExecutor.submit", closed)
    with pytest.raises(GroundednessError, match="finish all checks"):
        await computed(0, int)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_child_checks_though_its_parent_did_before() -> None:
    task = VerificationTask(
        claims=(Claim(id="1", text="Rome is in Italy."),),
        documents=(Document("Rome is in Italy."),),
    )

    def checked() -> str:
        return asyncio.run(EmbeddedVerifier().ainvoke(task))[0].verdict

    assert checked() == "supported"
    child = os.fork()
    if not child:
        os._exit(0 if checked() == "supported" else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_the_size_of_documents_is_that_of_their_texts() -> None:
    assert size_of([Document("ab"), Document("c")]) == 3


async def test_an_iterator_that_has_ended_is_an_error_and_not_a_wait_for_ever() -> None:
    with pytest.raises(RuntimeError):
        await asyncio.wait_for(computed(0, next, iter(())), 300)
