"""Makes the notebooks from the scripts beside this file, executes them, and stores their outputs.

`python cookbook/build.py 04_agents` reads `04_agents.py` (cells begin with `# %%`) and writes
`04_agents.ipynb`. A warning is an error, unless a cell says that it is expected. A cell that begins
with `# %% tags=["varies"]` shows figures that differ a little between processors. Needs the
dependency group `test`.
"""

import argparse
import asyncio
import json
import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient

__all__ = ["cells_of", "executed"]

HERE = Path(__file__).parent
_STRICT = """
import warnings
warnings.simplefilter("error")
warnings.filterwarnings("ignore", module="ipykernel")  # at its end it warns about itself
del warnings
"""


def cells_of(script: str) -> list[tuple[str, str, list[str]]]:
    """Split a script into cells.

    Args:
        script: Its text.

    Returns:
        For each cell its kind, `code` or `markdown`, its text, and its tags.
    """
    cells: list[tuple[str, str, list[str]]] = []
    for part in re.split(r"^# %%", script, flags=re.MULTILINE)[1:]:
        head, _, body = part.partition("\n")
        if "[markdown]" in head:
            lines = (re.sub(r"^# ?", "", line) for line in body.strip().splitlines())
            cells.append(("markdown", "\n".join(lines), []))
        else:
            tags = json.loads(head.partition("tags=")[2] or "[]")
            cells.append(("code", body.strip(), tags))
    return cells


def executed(script: str) -> Any:
    """Make a notebook of a script and execute it.

    Args:
        script: Its text.

    Returns:
        The notebook with its outputs, and nothing in it that differs from run to run.
    """
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    made: Any = nbformat.v4
    notebook = made.new_notebook(metadata={"kernelspec": kernel})
    make = {"code": made.new_code_cell, "markdown": made.new_markdown_cell}
    for number, (kind, text, tags) in enumerate(cells_of(script)):
        cell = make[kind](text, metadata={"tags": tags} if tags else {})
        cell["id"] = f"cell-{number}"
        notebook.cells.append(cell)
    with TemporaryDirectory() as folder:
        # Unix sockets: nobody else on the machine can listen in or run code.
        sockets = {"transport": "ipc", "ip": str(Path(folder) / "kernel")}
        manager = AsyncKernelManager(kernel_name="python3", **sockets)
        client = NotebookClient(
            notebook, km=manager, timeout=240, record_timing=False, coalesce_streams=True
        )
        client.owns_km = True  # else the kernel outlives its notebook
        asyncio.run(_execute(client))
    notebook.metadata.pop("language_info", None)
    return notebook


async def _execute(client: Any) -> None:
    async with client.async_setup_kernel(cwd=str(HERE)):
        client.kc.execute(_STRICT, silent=True, store_history=False)
        for number, cell in enumerate(client.nb.cells):
            await client.async_execute_cell(cell, number)


def main(arguments: list[str]) -> None:
    """Build notebooks.

    Args:
        arguments: Names of scripts beside this file, without `.py`; `--into FOLDER` puts the
            notebooks there and not beside the scripts.
    """
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="+")
    parser.add_argument("--into", type=Path, default=HERE)
    options = parser.parse_args(arguments)
    for name in options.names:
        script = (HERE / f"{name}.py").read_text(encoding="utf-8")
        write: Any = nbformat.write
        write(executed(script), options.into / f"{name}.ipynb")


if __name__ == "__main__":
    main(sys.argv[1:])
