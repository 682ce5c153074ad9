"""Cancellation and Ctrl-C end a check, wherever they strike; they are never an outcome of it."""

import asyncio
import signal
import threading
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from onnxruntime import InferenceSession

from langchain_groundedness import CascadeVerifier, EmbeddedVerifier, GroundednessRunnable
from langchain_groundedness.cli import run
from langchain_groundedness.types import Claim, ClaimVerdict, VerificationTask

NUMBERS = count(1)


def new_input() -> tuple[str, list[str]]:
    """Give what no test has checked yet: scores of the encoder are kept for a while."""
    number = next(NUMBERS)
    return f"Hall {number} has a roof.", [f"There is a new roof on hall {number}."]


def new_task() -> VerificationTask:
    claim, [document] = new_input()
    return VerificationTask(claims=(Claim(id="c1", text=claim),), documents=(Document(document),))


CHECKS: dict[str, Callable[[Any], Awaitable[Any]]] = {
    "one": lambda checker: checker.ainvoke(new_input()),
    "many": lambda checker: checker.abatch([new_input(), new_input()]),
    "many, errors returned": lambda checker: checker.abatch(
        [new_input()] * 2, return_exceptions=True
    ),
    "a stream": lambda checker: _last(checker.astream(new_input())),
}


async def _last(stream: Any) -> None:
    async for _ in stream:
        pass


class Stuck:
    """An encoder that hangs."""

    def __init__(self) -> None:
        self._begun, self._over = threading.Event(), threading.Event()

    def run(self, *_: Any) -> Any:
        self._begun.set()
        self._over.wait(300)
        raise AssertionError

    async def begun(self) -> None:
        await asyncio.to_thread(self._begun.wait, 300)

    def let_go(self) -> None:
        self._over.set()


@pytest.fixture
def stuck(monkeypatch: pytest.MonkeyPatch) -> Stuck:
    """Let the embedded verifier hang once it has begun, until the test lets it go."""
    stuck = Stuck()
    monkeypatch.setattr("onnxruntime.InferenceSession.run", stuck.run)
    return stuck


@pytest.fixture
def ctrl_c_at_the_encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Press Ctrl-C when the encoder, in a thread of its own, has begun."""
    run = InferenceSession.run

    def interrupting(*args: Any) -> Any:
        signal.pthread_kill(int(threading.main_thread().ident or 0), signal.SIGINT)
        return run(*args)

    monkeypatch.setattr(InferenceSession, "run", interrupting)


async def cancelled(work: Awaitable[Any], begun: Callable[[], Awaitable[Any]]) -> None:
    run = asyncio.ensure_future(work)
    await begun()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
async def test_cancelling_ends_a_check_by_the_embedded_verifier(
    check: Callable[[Any], Awaitable[Any]], stuck: Stuck
) -> None:
    try:
        await cancelled(check(GroundednessRunnable()), stuck.begun)
    finally:
        stuck.let_go()


async def test_cancelling_ends_a_batch_of_the_embedded_verifier(stuck: Stuck) -> None:
    batch = EmbeddedVerifier().abatch([new_task()], return_exceptions=True)
    try:
        await cancelled(batch, stuck.begun)
    finally:
        stuck.let_go()


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
@pytest.mark.parametrize("in_sequence", [False, True])
async def test_cancelling_ends_a_check_whose_verifier_hangs(
    check: Callable[[Any], Awaitable[Any]], *, in_sequence: bool
) -> None:
    begun = asyncio.Event()

    async def hang(_: VerificationTask) -> list[ClaimVerdict]:
        begun.set()
        await asyncio.Event().wait()
        return []

    def same(value: Any) -> Any:
        return value

    verifier: Any = RunnableLambda(hang)
    if in_sequence:
        verifier = RunnableLambda(same) | verifier
    await cancelled(check(GroundednessRunnable(verifier=verifier)), begun.wait)


@pytest.mark.parametrize(
    "check",
    [
        lambda checker: checker.invoke(new_input()),
        lambda checker: checker.batch([new_input(), new_input()]),
        lambda checker: checker.batch([new_input()] * 2, return_exceptions=True),
        lambda checker: list(checker.stream(new_input())),
    ],
)
@pytest.mark.parametrize("verifier", [None, "a function", "a cascade"])
@pytest.mark.usefixtures("ctrl_c_at_the_encoder")
def test_ctrl_c_ends_a_check(check: Callable[[Any], Any], verifier: str | None) -> None:
    def interrupt(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    verifiers: dict[str | None, Any] = {
        "a function": interrupt,
        "a cascade": CascadeVerifier([EmbeddedVerifier()]),
    }
    with pytest.raises(KeyboardInterrupt):
        check(GroundednessRunnable(verifier=verifiers.get(verifier)))


@pytest.mark.usefixtures("ctrl_c_at_the_encoder")
def test_ctrl_c_ends_a_batch_of_the_embedded_verifier() -> None:
    with pytest.raises(KeyboardInterrupt):
        EmbeddedVerifier().batch([new_task()], return_exceptions=True)


@pytest.mark.usefixtures("ctrl_c_at_the_encoder")
def test_the_command_line_exits_with_130(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer, [document] = new_input()
    (tmp_path / "a.txt").write_text(document, encoding="utf-8")
    with pytest.raises(SystemExit) as end:
        run(["check", "--answer", answer, "--documents", str(tmp_path / "a.txt")])
    assert end.value.code == 130
    assert "Traceback" not in capsys.readouterr().err
