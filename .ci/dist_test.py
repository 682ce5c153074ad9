"""Test wheel and sdist in dist/ as users get them: `make dist-test`.

Both hold what they should and no more. Each is installed into an environment of its own, where
every module can be imported without an extra, README's first example prints what it says, and the
program checks two files.
"""

import re
import subprocess
import sys
import tarfile
import venv
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

__all__ = ["contents", "problems_in"]

PACKAGE = "langchain_groundedness"
PROGRAM = "langchain-groundedness"
_MOST_BYTES = 25_000_000
_JUNK = re.compile(
    r"(^|/)(__pycache__|\.git|\.venv|\.cache|site|dist|build|node_modules)/|\.(pyc|ipynb|log|db|gguf)$"
)
_MODEL = (
    "encoder.onnx", "encoder.json", "tokenizer.json", "signals.json", "words.json",
    "function_words.json",
    "checkworthiness.json",
)  # fmt: skip
_NEEDED = (f"{PACKAGE}/py.typed", *(f"{PACKAGE}/model/{name}" for name in _MODEL))
_ONLY_IN_SDIST = ("README.md", "CHANGELOG.md", "SECURITY.md", "LICENSE", "CITATION.cff")
_IMPORT_ALL = f"""
import importlib, pkgutil, sys
import {PACKAGE}
from {PACKAGE} import *
from {PACKAGE}.exceptions import MissingDependencyError
loaded = 0
for found in pkgutil.walk_packages({PACKAGE}.__path__, "{PACKAGE}."):
    if found.name.endswith("__main__"):
        continue
    try:
        importlib.import_module(found.name)
        loaded += 1
    except MissingDependencyError:
        pass  # says which extra to install
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("{PACKAGE}"):
            raise
print(loaded)
"""
_FEWEST_MODULES = 150
_NOT_TRUSTED = 1


def contents(path: Path) -> dict[str, int]:
    """List what is in a wheel or sdist.

    Args:
        path: The file.

    Returns:
        The size of each member in bytes, by its name; of an sdist without the folder at its top.
    """
    if path.suffix == ".whl":
        with ZipFile(path) as wheel:
            return {each.filename: each.file_size for each in wheel.infolist()}
    with tarfile.open(path) as sdist:
        members = [each for each in sdist.getmembers() if each.isfile()]
        return {each.name.partition("/")[2]: each.size for each in members}


def problems_in(path: Path) -> Iterator[str]:
    """Look for what is missing in a wheel or sdist, or does not belong there.

    Args:
        path: The file.

    Yields:
        One line per problem.
    """
    names = contents(path)
    needed = _NEEDED if path.suffix == ".whl" else (*_NEEDED, *_ONLY_IN_SDIST)
    yield from (f"{path.name} lacks {name}" for name in needed if name not in names)
    yield from (f"{path.name} has {name}" for name in names if _JUNK.search(name))
    if path.suffix == ".whl":
        ours = (f"{PACKAGE}/", f"{PACKAGE}-")
        yield from (f"{path.name} has {name}" for name in names if not name.startswith(ours))
    if path.stat().st_size > _MOST_BYTES:
        yield f"{path.name} has {path.stat().st_size:,} bytes, more than {_MOST_BYTES:,}"


def _try_out(path: Path, folder: Path) -> None:
    print(f"{path.name}: {path.stat().st_size:,} bytes, {len(contents(path))} files", flush=True)
    venv.create(folder, with_pip=True)
    python, program = folder / "bin" / "python", folder / "bin" / PROGRAM
    _run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", path)
    loaded = int(_run(python, "-W", "error::SyntaxWarning", "-c", _IMPORT_ALL, at=folder))
    _demand(loaded > _FEWEST_MODULES, f"only {loaded} modules could be imported")
    readme = Path("README.md").read_text(encoding="utf-8")
    blocks = r"^```python\n(.*?)^```\n\n```text\n(.*?)^```"
    [(example, output)] = re.findall(blocks, readme, re.MULTILINE | re.DOTALL)
    shown = _run(python, "-c", example, at=folder)
    _demand(shown == output, f"README's first example prints\n{shown}")
    (folder / "answer.txt").write_text("Revenue was $2.4B in Q3.", encoding="utf-8")
    (folder / "report.md").write_text("Revenue was $2.1B in Q3.", encoding="utf-8")
    checked = subprocess.run(
        [program, "check", "answer.txt", "report.md"],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    _demand(checked.returncode == _NOT_TRUSTED, f"check ends {checked.returncode}")
    _demand("contradicted" in checked.stdout, f"check prints {checked.stdout}{checked.stderr}")
    print(_run(program, "--version", at=folder).strip(), f"imports {loaded} modules", flush=True)


def _demand(so: bool, otherwise: str) -> None:  # noqa: FBT001  (it reads like an assertion)
    if not so:
        sys.exit(otherwise)


def _run(*command: str | Path, at: Path | None = None) -> str:
    done = subprocess.run(command, cwd=at, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{done.stdout}\n{done.stderr}\n{command[:4]} ended with {done.returncode}")
    return done.stdout


if __name__ == "__main__":
    files = [*Path("dist").resolve().glob("*.whl"), *Path("dist").resolve().glob("*.tar.gz")]
    if len(files) != 2:  # noqa: PLR2004  (one of each)
        sys.exit(f"dist/ should hold a wheel and an sdist, not {[each.name for each in files]}")
    if found := [line for each in files for line in problems_in(each)]:
        sys.exit("\n".join(found))
    for each in files:
        with TemporaryDirectory() as folder:
            _try_out(each, Path(folder))
