"""Fail unless the wheel in dist/ holds every tracked file of the package."""

import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

tracked = subprocess.run(
    ["git", "ls-files", "langchain_groundedness"],  # noqa: S607  (git as the user has it)
    capture_output=True,
    text=True,
    check=True,
).stdout.splitlines()
newest = max(Path("dist").glob("*.whl"), key=lambda path: path.stat().st_mtime)
with ZipFile(newest) as wheel:
    missing = set(tracked) - set(wheel.namelist())
sys.exit(f"{newest.name} lacks {sorted(missing)}" if missing else 0)
