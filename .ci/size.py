"""Print how large the package is: `python .ci/size.py [--at REVISION]`.

Code lines are those that hold code: no docstrings, comments or blank lines.
"""

import ast
import io
import subprocess
import sys
import tarfile
import tokenize
from argparse import ArgumentParser
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from import_graph import (  # noqa: E402
    PACKAGE,
    circles,
    graph,
    modules,
    public_names,
    single_importers,
)

_NO_CODE = frozenset(
    (
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENDMARKER,
    )
)


def code_lines(source: str) -> int:
    """Count the lines of a file that hold code."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    lines = {
        line
        for token in tokens
        if token.type not in _NO_CODE
        for line in range(token.start[0], token.end[0] + 1)
    }
    docstrings = {
        line
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    return len(lines - docstrings)


def table(root: Path) -> str:
    """Lay out the figures of a working tree."""
    files: Counter[str] = Counter()
    lines: Counter[str] = Counter()
    single = single_importers(root)
    inner = Counter(map(_folder, single))
    for name, path in modules(root).items():
        files[_folder(name)] += 1
        lines[_folder(name)] += code_lines(path.read_text(encoding="utf-8"))
    rows = [(each, files[each], lines[each], inner[each]) for each in sorted(files)]
    rows.append(("total", files.total(), lines.total(), inner.total()))
    found = circles(graph(root))
    return "\n".join(
        (
            f"{'folder':<20}{'files':>7}{'code lines':>12}{'one importer':>14}",
            *(f"{name:<20}{n:>7,}{code:>12,}{one:>14,}" for name, n, code, one in rows),
            f"names at the root: {len(public_names(root / PACKAGE / '__init__.py'))}",
            f"circles: {len(found)}",
            *(f"  {' '.join(each)}" for each in found),
            "modules with one importer:",
            *(f"  {name} (by {by})" for name, by in single.items()),
        )
    )


def _folder(module: str) -> str:
    top = module.split(".", 1)[0]
    return f"{top}/" if (ROOT / PACKAGE / top).is_dir() and top else "(top)"


def _checked_out(revision: str, folder: Path) -> Path:
    packed = subprocess.run(
        ["git", "-C", str(ROOT), "archive", revision, PACKAGE],  # noqa: S607
        capture_output=True,
        check=True,
    )
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder


def main() -> None:
    """Print the table of the working tree, or of a revision."""
    parser = ArgumentParser(description="Print how large the package is.")
    parser.add_argument("--at", metavar="REVISION", help="a git revision instead of the files here")
    revision = parser.parse_args().at
    if revision is None:
        print(table(ROOT))
        return
    with TemporaryDirectory() as folder:
        print(table(_checked_out(revision, Path(folder))))


if __name__ == "__main__":
    main()
