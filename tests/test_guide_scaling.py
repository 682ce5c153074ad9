"""The page on load: its Python runs as it stands, and it names what there is."""

import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs/guide/scaling.md").read_text(encoding="utf-8")
SNIPPETS = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_its_python_runs_from_top_to_bottom(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gc.freeze", lambda: None)  # it would last for the tests that follow
    names: dict[str, Any] = {}
    for snippet in SNIPPETS:
        exec(snippet, names)  # noqa: S102  (text of ours)
    assert capsys.readouterr().out == "['has_contradictions', 'grounded', 'has_contradictions']\n"


def test_the_scenarios_and_targets_that_it_names_are_there() -> None:
    scenarios = (ROOT / "benchmarks/load_scenarios.py").read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for line in re.findall(r'make load ARGS="(?:--scale \S+ )?(.*?)"', PAGE):
        assert all(f'Scenario("{name}"' in scenarios for name in line.split())
    assert {"load", "soak"} <= set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
