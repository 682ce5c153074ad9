"""The notebooks: each runs offline, top to bottom, and shows what it gave when it was saved."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "cookbook").glob("*.ipynb"))
EXECUTE = """
import sys
import nbformat
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient

source, target = sys.argv[1:]
notebook = nbformat.read(source, as_version=4)
kernel = AsyncKernelManager(transport="ipc", kernel_name="python3")
NotebookClient(notebook, km=kernel, timeout=100).execute()
nbformat.write(notebook, target)
"""


def shown(path: Path) -> list[str]:
    """Give what each cell prints or returns."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [
        "".join(
            text
            for output in cell.get("outputs", ())
            for text in output.get("text") or output["data"]["text/plain"]
        )
        for cell in cells
    ]


@pytest.mark.timeout(180)
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_shows_what_it_gives(path: Path, tmp_path: Path) -> None:
    target = tmp_path / path.name
    subprocess.run(
        [sys.executable, "-W", "ignore", "-c", EXECUTE, path, target], cwd=ROOT, check=True
    )
    assert any(shown(path))
    assert shown(target) == shown(path)


def test_there_is_a_notebook_about_streams() -> None:
    assert "streaming" in {path.stem for path in NOTEBOOKS}
