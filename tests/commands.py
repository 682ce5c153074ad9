"""Runs the command line as a user would, in this process."""

from collections.abc import Callable
from typing import NamedTuple

import pytest

from langchain_groundedness import cli

__all__ = ["Outcome", "Run", "ran", "without_settings"]


class Outcome(NamedTuple):
    """What a command has left."""

    code: int
    out: str
    err: str


Run = Callable[..., Outcome]


def ran(capsys: pytest.CaptureFixture[str], *arguments: str) -> Outcome:
    """Run a command to its end; a traceback is never one."""
    with pytest.raises(SystemExit) as stopped:
        cli.run(arguments)
    captured = capsys.readouterr()
    assert isinstance(stopped.value.code, int)
    assert "Traceback" not in captured.err
    return Outcome(stopped.value.code, captured.out, captured.err)


def without_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take away what the shell of whoever runs the tests may say."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
