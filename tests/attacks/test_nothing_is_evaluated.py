"""No module of the package can run, unpickle or render what it is given."""

import ast
from pathlib import Path

import pytest

import langchain_groundedness

ROOT = Path(langchain_groundedness.__file__).parent
FILES = [path for path in ROOT.rglob("*.py") if "testing" not in path.parts]
RUNNING = {"eval", "exec", "__import__", "compile"}
MODULES = {"pickle", "marshal", "shelve", "subprocess", "code", "dill", "joblib"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_module_has_no_way_to_run_a_text(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in RUNNING
        if isinstance(node, ast.Import):
            assert not {name.name.partition(".")[0] for name in node.names} & MODULES
        if isinstance(node, ast.ImportFrom):
            assert (node.module or "").partition(".")[0] not in MODULES
