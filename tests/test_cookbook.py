"""The notebooks: made from their scripts, executed, the same on every machine."""

import re
from pathlib import Path
from typing import Any

import nbformat
import pytest

from cookbook.build import cells_of, executed

FOLDER = Path(__file__).parent.parent / "cookbook"
SCRIPTS = sorted(path for path in FOLDER.glob("*.py") if path.name != "build.py")


def stored(script: Path) -> Any:
    read: Any = nbformat.read
    return read(script.with_suffix(".ipynb"), as_version=4)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_notebook_is_made_from_its_script(script: Path) -> None:
    cells = [(cell.cell_type, cell.source) for cell in stored(script).cells]
    assert cells == cells_of(script.read_text(encoding="utf-8"))


@pytest.mark.timeout(180)
@pytest.mark.filterwarnings("ignore::DeprecationWarning:(jupyter_client|zmq|nbclient|traitlets)")
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_notebook_runs_offline_and_gives_the_outputs_that_are_stored(
    script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(FOLDER.parent))
    fresh = executed(script.read_text(encoding="utf-8"))
    outputs = [cell.outputs for cell in stored(script).cells if cell.cell_type == "code"]
    assert [cell.outputs for cell in fresh.cells if cell.cell_type == "code"] == outputs
    assert sum(map(len, outputs)) > 3


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_notebook_knows_nothing_of_the_machine_it_was_made_on(script: Path) -> None:
    text = script.with_suffix(".ipynb").read_text(encoding="utf-8")
    assert not re.search(r"/(tmp|home|root|work|usr|Users)\b|\.venv|Traceback|Warning", text)
