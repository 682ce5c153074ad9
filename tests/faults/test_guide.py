"""The page on faults: what it shows runs, and its table has all faults and nothing wrong."""

import re
from pathlib import Path
from typing import Any

import pytest
from entries import ENTRIES

from langchain_groundedness import LLMVerifier
from langchain_groundedness.testing import FAULTS, ScriptedChatModel

PAGE = (Path(__file__).parents[2] / "docs" / "guide" / "faults.md").read_text(encoding="utf-8")
SNIPPETS = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
ROWS = re.findall(
    r"^\| (\w+) \| .*? \| (\d+)% \| (\d+) \|.*\| (\d+) \| [\d.]+ \|$", PAGE, re.MULTILINE
)


@pytest.mark.parametrize("snippet", SNIPPETS)
def test_what_the_page_shows_prints_what_it_says(
    snippet: str, capsys: pytest.CaptureFixture[str]
) -> None:
    names: dict[str, Any] = {}
    exec(compile(snippet, "faults.md", "exec"), names)  # noqa: S102  (the page is ours)
    told = re.findall(r"^print\(.*  # (.*)$", snippet, re.MULTILINE)
    assert capsys.readouterr().out.splitlines() == told


def test_the_page_names_the_timeout_that_there_is() -> None:
    timeout = LLMVerifier(model=ScriptedChatModel(replies=[])).timeout
    assert f"{timeout:g} unless you say otherwise" in PAGE


def test_the_table_has_every_fault_at_every_rate_and_entry_point_and_nothing_wrong() -> None:
    found = {(name, rate) for name, rate, _, _ in ROWS}
    assert found == {("none", "0")} | {(name, rate) for name in FAULTS for rate in ("30", "100")}
    assert {int(checks) for _, _, checks, _ in ROWS} == {len(ENTRIES)}
    assert {int(wrong) for _, _, _, wrong in ROWS} == {0}
