"""The guide to extending the package: its patches apply as they are, and their tests pass."""

import inspect
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.runnables import Runnable
from snippets import ROOT

from langchain_groundedness.testing import RunnableContract

TEXT = (ROOT / "docs" / "guide" / "extending.md").read_text(encoding="utf-8")
CHANGES = re.findall(r"^```diff\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
PACKAGE = "langchain_groundedness"


def test_there_is_a_worked_change_for_each_thing_that_is_often_added() -> None:
    assert TEXT.count("\n## ") == len(CHANGES) == 4
    assert all(len(change.splitlines()) < 40 for change in CHANGES)


def test_the_class_shown_for_a_verifier_is_one_whose_tests_pytest_collects() -> None:
    class VerifierContract(RunnableContract):
        def inputs(self) -> Sequence[Any]:
            return []

    names = {"VerifierContract": VerifierContract, "Runnable": Runnable, "Any": Any}
    [shown] = re.findall(r"^```py\n(class Test.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    exec(shown, names)  # noqa: S102  (the page is ours)
    assert not inspect.isabstract(names["TestExactVerifier"])


def test_the_worked_changes_apply_to_the_tree_and_their_tests_pass(tmp_path: Path) -> None:
    shutil.copytree(
        ROOT / PACKAGE, tmp_path / PACKAGE, ignore=shutil.ignore_patterns("model", "__pycache__")
    )
    (tmp_path / PACKAGE / "model").symlink_to(ROOT / PACKAGE / "model")
    (tmp_path / "tests").mkdir()
    for name in ("pyproject.toml", "tests/conftest.py"):
        shutil.copy(ROOT / name, tmp_path / name)
    git = shutil.which("git") or pytest.skip("git is not here")
    for change in CHANGES:
        subprocess.run([git, "apply", "-"], cwd=tmp_path, input=change, text=True, check=True)
    tests = re.findall(r"^\+\+\+ b/(tests/\S+)$", "".join(CHANGES), re.MULTILINE)
    assert len(tests) == len(CHANGES)
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout
    assert "5 passed" in ran.stdout
