"""Computing off the event loop, in few threads."""

import asyncio
import contextvars
import os
import subprocess
import sys
import threading
from collections.abc import Callable

import pytest
from langchain_core.documents import Document

from langchain_groundedness import Claim, EmbeddedVerifier, LLMVerifier, VerificationTask
from langchain_groundedness.evidence import EvidencePacker
from langchain_groundedness.exceptions import GroundednessError
from langchain_groundedness.testing import ScriptedChatModel

NOTE: contextvars.ContextVar[str] = contextvars.ContextVar("NOTE", default="none")
LONG = "Rome is in Italy. " * 20_000


async def judged(count_tokens: Callable[[str], int], document: str = "Rome is in Italy.") -> str:
    """Judge a claim; tokens are counted where documents are read."""
    verifier = LLMVerifier(
        model=ScriptedChatModel(replies=lambda _: "{tag} C1: [1] supported"),
        packer=EvidencePacker(max_tokens=1_000, count_tokens=count_tokens),
    )
    claims = (Claim(id="1", text="Rome is in Italy."),)
    task = VerificationTask(claims=claims, documents=(Document(document),))
    return (await verifier.ainvoke(task))[0].verdict


async def test_documents_of_many_checks_at_once_are_read_in_one_thread() -> None:
    threads: set[threading.Thread] = set()

    def count(_: str) -> int:
        threads.add(threading.current_thread())
        return 1

    assert set(await asyncio.gather(*(judged(count) for _ in range(50)))) == {"supported"}
    assert len(threads) == 1
    assert threading.current_thread() not in threads


async def test_a_short_text_does_not_wait_for_a_long_one() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def wait(_: str) -> int:
        begun.set()
        assert go_on.wait(300)
        return 1

    long = asyncio.create_task(judged(wait, LONG))
    await asyncio.to_thread(begun.wait, 300)
    assert await judged(len) == "supported"
    assert not long.done()
    go_on.set()
    assert await long == "supported"


async def test_what_is_computed_sees_the_context_and_raises_as_it_would_here() -> None:
    NOTE.set("mine")
    seen: set[str] = set()

    def count(_: str) -> int:
        seen.add(NOTE.get())
        return 1

    await judged(count)
    assert seen == {"mine"}
    with pytest.raises(ZeroDivisionError):
        await judged(lambda _: 1 // 0)


async def test_what_is_cancelled_before_its_turn_is_not_computed() -> None:
    begun, go_on = threading.Event(), threading.Event()
    read: list[str] = []

    def wait(_: str) -> int:
        begun.set()
        assert go_on.wait(300)
        return 1

    def note(text: str) -> int:
        read.append(text)
        return 1

    first = asyncio.create_task(judged(wait))
    await asyncio.to_thread(begun.wait, 300)
    second = asyncio.create_task(judged(note))
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)
    go_on.set()
    await first
    await judged(len)
    assert not read


async def test_it_is_said_when_python_shuts_down(monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(*_: object) -> None:
        raise RuntimeError

    monkeypatch.setattr("concurrent.futures.ThreadPoolExecutor.submit", closed)
    with pytest.raises(GroundednessError, match="finish all checks"):
        await judged(len)


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


async def test_an_iterator_that_has_ended_is_an_error_and_not_a_wait_for_ever() -> None:
    with pytest.raises(RuntimeError):
        await asyncio.wait_for(judged(lambda _: next(iter(()))), 300)


FIRST_USE = """
import asyncio
from blockbuster import blockbuster_ctx
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.runnables import RunnableLambda
from langchain_groundedness import *

answer = {{"answer": "Rome is in Italy. It is old.", "documents": [Document("Rome is in Italy.")]}}
reply = "The statement is supported by the evidence"


async def main():
    model = FakeListChatModel(responses=[reply])
    checker = {checker}
    with blockbuster_ctx("langchain_groundedness"):
        said = repr([piece async for piece in checker.astream(answer)])
    assert "BlockingError" not in said and "UNCHECKED" not in said, said


asyncio.run(main())
"""


@pytest.mark.parametrize(
    "checker",
    [
        "GroundednessRunnable()",
        "GroundednessRunnable(model=model)",
        "GroundednessRunnable(verifier=LLMVerifier(model=model, strategy='per_claim'))",
        "RunnableLambda(lambda v: v['answer']) | GroundednessGuard().bind(documents=['Rome.'])",
    ],
)
def test_the_first_check_of_a_process_does_not_read_files_on_the_event_loop(checker: str) -> None:
    code = FIRST_USE.format(checker=checker)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
