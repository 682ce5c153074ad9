"""Cancellation and Ctrl-C end a check, wherever they strike; they are never an outcome of it."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda

from langchain_groundedness import CascadeVerifier, EmbeddedVerifier, GroundednessRunnable
from langchain_groundedness.cli import run
from langchain_groundedness.types import Claim, ClaimVerdict, VerificationTask
from langchain_groundedness.verification.embedded import verifier as embedded

INPUT = ("Rome is in Italy.", ["Rome is in Italy."])
TASK = VerificationTask(
    claims=(Claim(id="c1", text="Rome is in Italy."),),
    documents=(Document(page_content="Rome is in Italy."),),
)
CHECKS: dict[str, Callable[[Any], Awaitable[Any]]] = {
    "one": lambda checker: checker.ainvoke(INPUT),
    "many": lambda checker: checker.abatch([INPUT, INPUT]),
    "many, errors returned": lambda checker: checker.abatch([INPUT] * 2, return_exceptions=True),
    "a stream": lambda checker: _last(checker.astream(INPUT)),
}


async def _last(stream: Any) -> None:
    async for _ in stream:
        pass


class Stuck:
    """A judge that hangs."""

    def __init__(self) -> None:
        self._begun, self._over = threading.Event(), threading.Event()

    def judge(self, claim: Claim, *_: Any, **__: Any) -> ClaimVerdict:
        self._begun.set()
        self._over.wait(300)
        return ClaimVerdict.unchecked(claim, "the test is over")

    async def begun(self) -> None:
        await asyncio.to_thread(self._begun.wait, 300)

    def let_go(self) -> None:
        self._over.set()


@pytest.fixture
def stuck(monkeypatch: pytest.MonkeyPatch) -> Stuck:
    """Let the embedded verifier hang once it has begun, until the test lets it go."""
    stuck = Stuck()
    monkeypatch.setattr(embedded, "gather_evidence", stuck.judge)
    return stuck


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
    batch = EmbeddedVerifier().abatch([TASK], return_exceptions=True)
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
        lambda checker: checker.invoke(INPUT),
        lambda checker: checker.batch([INPUT, INPUT]),
        lambda checker: checker.batch([INPUT, INPUT], return_exceptions=True),
        lambda checker: list(checker.stream(INPUT)),
    ],
)
@pytest.mark.parametrize("verifier", [None, "a function", "a cascade"])
def test_ctrl_c_ends_a_check(
    check: Callable[[Any], Any], verifier: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(embedded, "gather_evidence", interrupt)
    verifiers: dict[str | None, Any] = {
        "a function": interrupt,
        "a cascade": CascadeVerifier([EmbeddedVerifier()]),
    }
    with pytest.raises(KeyboardInterrupt):
        check(GroundednessRunnable(verifier=verifiers.get(verifier)))


def test_ctrl_c_ends_a_batch_of_the_embedded_verifier(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(embedded, "gather_evidence", interrupt)
    with pytest.raises(KeyboardInterrupt):
        EmbeddedVerifier().batch([TASK], return_exceptions=True)


def test_the_command_line_exits_with_130(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(embedded, "gather_evidence", interrupt)
    (tmp_path / "a.txt").write_text("Rome is in Italy.", encoding="utf-8")
    with pytest.raises(SystemExit) as end:
        run(["check", "--answer", "Rome is in Italy.", "--documents", str(tmp_path / "a.txt")])
    assert end.value.code == 130
    assert "Traceback" not in capsys.readouterr().err
