"""The notebooks: made from their scripts, executed, the same on every machine."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest

from cookbook.build import cells_of

FOLDER = Path(__file__).parent.parent / "cookbook"
SCRIPTS = sorted(path for path in FOLDER.glob("*.py") if path.name != "build.py")


def cells(notebook: Path) -> Any:
    read: Any = nbformat.read
    return read(notebook, as_version=4).cells


def outputs(notebook: Path) -> list[Any]:
    return [cell.outputs for cell in cells(notebook) if cell.cell_type == "code"]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_notebook_is_made_from_its_script(script: Path) -> None:
    found = [(cell.cell_type, cell.source) for cell in cells(script.with_suffix(".ipynb"))]
    assert found == cells_of(script.read_text(encoding="utf-8"))


@pytest.mark.timeout(180)
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_notebook_runs_offline_and_gives_the_outputs_that_are_stored(
    script: Path, tmp_path: Path
) -> None:
    # In a process of its own: a kernel's client leaves sockets open.
    build: list[Any] = [sys.executable, FOLDER / "build.py", script.stem, "--into", tmp_path]
    subprocess.run(build, check=True, env={**os.environ, "PYTHONPATH": str(FOLDER.parent)})
    fresh = outputs(tmp_path / script.with_suffix(".ipynb").name)
    assert fresh == outputs(script.with_suffix(".ipynb"))
    assert sum(map(len, fresh)) > 3


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_notebook_knows_nothing_of_the_machine_it_was_made_on(script: Path) -> None:
    text = script.with_suffix(".ipynb").read_text(encoding="utf-8")
    assert not re.search(r"/(tmp|home|root|work|usr|Users)\b|\.venv|Traceback|Warning", text)
