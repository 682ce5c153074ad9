"""A Redis server of the tests' own, on a unix socket in a folder of its own."""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_SOON = 300


class RedisServer:
    def __init__(self, program: str) -> None:
        self._program = program
        self._folder = Path(tempfile.mkdtemp(prefix="verdicts-"))  # paths of sockets are short
        self.socket = str(self._folder / "redis.sock")
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"unix://{self.socket}"

    def start(self) -> None:
        if self._process is not None:
            return
        nothing_kept = ("--save", "", "--appendonly", "no", "--dir", str(self._folder))
        self._process = subprocess.Popen(
            [self._program, "--port", "0", "--unixsocket", self.socket, *nothing_kept],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        ends = time.monotonic() + _SOON
        while not Path(self.socket).exists():
            assert self._process.poll() is None, "the Redis server did not start"
            assert time.monotonic() < ends, "the Redis server does not come up"
            time.sleep(0.01)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(_SOON)
            self._process = None
            Path(self.socket).unlink(missing_ok=True)

    def remove(self) -> None:
        self.kill()
        shutil.rmtree(self._folder)


@contextmanager
def running_redis() -> Iterator[RedisServer]:
    program = shutil.which("redis-server")
    if program is None:
        assert "GROUNDEDNESS_NEEDS_REDIS" not in os.environ, "CI must not skip these tests"
        pytest.skip("redis-server is not here (Debian: apt install redis-server)")
    server = RedisServer(program)
    try:
        yield server
    finally:
        server.remove()
