"""`langchain-groundedness serve`: what it prints, and what it refuses."""

import json
import re
import sys
from pathlib import Path

import pytest
from commands import Outcome, Run, ran, without_settings

from langchain_groundedness.review import server as serving


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """The command, without a server."""
    without_settings(monkeypatch)
    monkeypatch.setattr(serving, "serve", lambda _, taken: taken.close())

    def run(*arguments: str) -> Outcome:
        return ran(capsys, "serve", *arguments)

    return run


@pytest.mark.enable_socket
def test_without_a_folder_the_documents_of_the_demonstration_are_asked(serve: Run) -> None:
    code, out, err = serve("--port", "0")
    assert (code, err) == (0, "")
    assert re.match(r"6 documents\. Open http://127\.0\.0\.1:\d+/\n", out)


@pytest.mark.enable_socket
def test_a_file_and_a_folder_with_a_folder_that_is_named_as_one_are_asked(
    serve: Run, tmp_path: Path
) -> None:
    (tmp_path / "notes.md").mkdir()
    text = tmp_path / "notes.md" / "a.txt"
    text.write_text("The warranty is three years.")
    for place in (tmp_path, tmp_path / "notes.md", text):
        code, out, err = serve(str(place), "--port", "0", "--json")
        assert (code, err, json.loads(out)["documents"]) == (0, "", 1)


@pytest.mark.enable_socket
def test_json_has_the_address(serve: Run) -> None:
    code, out, _ = serve("--port", "0", "--json")
    assert code == 0
    found = json.loads(out)
    assert found["documents"] == 6
    assert found["address"].startswith("http://127.0.0.1:")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("none",), "cannot serve: there is no folder or file none"),
        (("empty",), "cannot serve: empty has no .txt or .md file"),
        (("blank",), "nothing to check against"),
        (("binary",), "binary data, not text"),
        (("--base-url", "http://localhost:1/v1"), "--base-url needs --model"),
        (("--verifier", "nobody"), "nobody"),
    ],
)
def test_what_cannot_be_served_is_told_in_one_line(
    serve: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, content in {"empty/a.pdf": b"", "blank/a.md": b" ", "binary/a.txt": b"\0"}.items():
        Path(name).parent.mkdir()
        Path(name).write_bytes(content)
    code, out, err = serve(*arguments, "--port", "0")
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_a_missing_extra_is_named(serve: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    code, _, err = serve()
    assert code == 2
    assert "pip install 'langchain-groundedness[review]'" in err
