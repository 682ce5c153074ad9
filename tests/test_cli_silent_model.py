"""Commands whose model says nothing: they end when their time is up, and on the first Ctrl-C."""

import json
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from subprocess import PIPE, Popen, TimeoutExpired
from threading import Event

import pytest

from langchain_groundedness.testing import ScriptedRequest, ScriptedResponse, ScriptedServer

pytestmark = pytest.mark.enable_socket

ROW = {
    "question": "How was it?",
    "answer": "Revenue was 2.4 billion. Costs were 1 billion.",
    "contexts": ["Revenue was 2.4 billion."],
}
COMMANDS: dict[str, tuple[str, ...]] = {
    "check": ("check", "--answer", str(ROW["answer"]), "--documents", "rows.jsonl"),
    "evaluate": ("evaluate", "rows.jsonl", "--metric", "faithfulness", "--out", "run.jsonl"),
    "validate": ("validate", "rows.jsonl", "--passed", "good.jsonl", "--rejected", "bad.jsonl"),
}
CODES = {"check": 2, "evaluate": 0, "validate": 1}
"""What they exit with if the model did not reply in time."""
ASYNC = "from langchain_groundedness.__main__ import main; main()"
BLOCKING = """
from langchain_core.language_models import BaseChatModel
from langchain_openai import ChatOpenAI
ChatOpenAI._agenerate = BaseChatModel._agenerate
ChatOpenAI._astream = BaseChatModel._astream
from langchain_groundedness.__main__ import main
main()
"""
"""A model class without an asynchronous method of its own."""


class Silent:
    """A server that holds every response back."""

    def __init__(self, server: ScriptedServer, asked: Event) -> None:
        self.base_url = server.base_url
        self.asked = asked


@pytest.fixture
def silent() -> Iterator[Silent]:
    asked, over = Event(), Event()

    def answer(_: ScriptedRequest) -> ScriptedResponse:
        asked.set()
        return ScriptedResponse("late", after=over)

    with ScriptedServer(answer) as server:
        yield Silent(server, asked)
        over.set()


def begun(program: str, arguments: Sequence[str], silent: Silent, folder: Path) -> Popen[str]:
    rows = [json.dumps({**ROW, "id": str(number)}) for number in range(3)]
    (folder / "rows.jsonl").write_text("\n".join(rows), "utf-8")
    command = [sys.executable, "-X", "faulthandler", "-c", program, *arguments]
    command += ["--model", "any", "--base-url", silent.base_url]
    return Popen(command, cwd=folder, stdout=PIPE, stderr=PIPE, text=True)


def told_by(process: Popen[str]) -> str:
    """Wait for the end of a command; one that hangs shows where."""
    try:
        return process.communicate(timeout=250)[1]
    except TimeoutExpired:
        process.send_signal(signal.SIGABRT)
        pytest.fail(f"the command hangs:\n{process.communicate()[1]}")


@pytest.mark.parametrize("program", [ASYNC, BLOCKING], ids=["async", "blocking"])
@pytest.mark.parametrize("command", COMMANDS)
def test_the_first_ctrl_c_ends_a_command(
    command: str, program: str, silent: Silent, tmp_path: Path
) -> None:
    with begun(program, COMMANDS[command], silent, tmp_path) as process:
        try:
            assert silent.asked.wait(250)
            process.send_signal(signal.SIGINT)
            told = told_by(process)
        finally:
            process.kill()
    assert process.returncode == 130
    assert "Traceback" not in told


@pytest.mark.parametrize("program", [ASYNC, BLOCKING], ids=["async", "blocking"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_ends_when_the_time_of_the_model_is_up(
    command: str, program: str, silent: Silent, tmp_path: Path
) -> None:
    arguments = (*COMMANDS[command], "--model-timeout", "0.5")
    with begun(program, arguments, silent, tmp_path) as process:
        try:
            told = told_by(process)
        finally:
            process.kill()
    assert process.returncode == CODES[command], told
    assert "Traceback" not in told
