"""Processes that write to one audit log, driven step by step."""

import subprocess
import sys
from pathlib import Path
from typing import Self

SCRIPT = Path(__file__).with_name("audit_process.py")
ROOT = Path(__file__).parents[2]


class Writer:
    """One process."""

    def __init__(self, place: str, spool: Path, name: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(SCRIPT), place, str(spool), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
            cwd=ROOT,
            env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.kill()

    def tell(self, command: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{command}\n")

    def said(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def ask(self, command: str) -> str:
        self.tell(command)
        return self.said()

    def kill(self) -> None:
        """End it as `kill -9` does, at whatever place it is."""
        self._process.kill()
        self._close()

    def end(self) -> int:
        self.tell("end")
        code = self._process.wait(300)
        self._close()
        return code

    def _close(self) -> None:
        self._process.wait(300)
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()


def all_at_once(writers: list[Writer], command: str) -> list[str]:
    for writer in writers:
        writer.tell(command)
    return [writer.said() for writer in writers]
