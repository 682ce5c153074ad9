"""Which module of the package imports which, read from the source without running it.

`tests/test_architecture.py` and `.ci/size.py` use it.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

PACKAGE = "langchain_groundedness"
_OURS = re.compile(rf"{PACKAGE}(\.\w+)+")


def modules(root: Path) -> dict[str, Path]:
    """Files of the package in a folder, by their names without that of the package."""
    found = {}
    for path in sorted(root.joinpath(PACKAGE).rglob("*.py")):
        parts = path.relative_to(root / PACKAGE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(path: Path, *, at_load_only: bool = False) -> Iterator[str]:
    """Everything a file imports: in functions, for type checkers and by name in a string, too."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    by_variable = any(map(_loads_by_variable, ast.walk(tree)))
    for node in _at_load(tree.body) if at_load_only else ast.walk(tree):
        match node:
            case ast.Import():
                yield from (alias.name for alias in node.names)
            case ast.ImportFrom(module=str(module)):
                yield from (f"{module}.{alias.name}" for alias in node.names)
            case ast.Call(args=[ast.Constant(value=str(name)), *_]) if _loads(node):
                yield name
            case ast.Constant(value=str(name)) if by_variable and _OURS.fullmatch(name):
                yield name


def _loads(node: ast.Call) -> bool:
    return ast.unparse(node.func).split(".")[-1] in {"import_module", "require"}


def _loads_by_variable(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call) and _loads(node) and not isinstance(node.args[0], ast.Constant)
    )


def _at_load(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            continue
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for name in ("body", "orelse", "finalbody"):
                yield from _at_load(getattr(node, name, []))


def graph(root: Path) -> dict[str, set[str]]:
    """The modules of the package that each of its modules imports, or loads by a table of names."""
    known = modules(root)
    return {
        name: {target for each in imports(path) if (target := _module(each, known)) is not None}
        | (
            {f"{name}.{key}".lstrip(".") for keys in _tables(path).values() for key in keys}
            & {*known}
        )
        - {name}
        for name, path in known.items()
    }


def _tables(path: Path) -> dict[str, set[str]]:
    """The keys of each table of a package, as names of modules: what it loads on first use."""
    if path.name != "__init__.py":
        return {}
    found = {}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Dict() as table):
                dicts = [each for each in ast.walk(table) if isinstance(each, ast.Dict)]
                keys = [
                    key.value
                    for each in dicts
                    for key in each.keys
                    if isinstance(key, ast.Constant)
                ]
                found[name] = {str(key).replace("-", "_") for key in keys}
    return found


def _module(imported: str, known: Mapping[str, Path]) -> str | None:
    """The module that holds what is imported."""
    if imported.split(".", 1)[0] != PACKAGE:
        return None
    inner = imported.removeprefix(PACKAGE).removeprefix(".")
    while inner not in known:
        inner = inner.rpartition(".")[0]
    return inner


def circles(edges: Mapping[str, set[str]]) -> list[list[str]]:
    """Groups of modules that import each other, directly or through others."""
    reached = {start: _reachable(start, edges) for start in edges}
    groups = {
        frozenset(other for other in reached[name] if name in reached[other])
        for name in edges
        if name in reached[name]
    }
    return sorted(map(sorted, groups))


def _reachable(start: str, edges: Mapping[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    left = list(edges[start])
    while left:
        if (name := left.pop()) not in seen:
            seen.add(name)
            left.extend(edges[name])
    return seen


def single_importers(root: Path) -> dict[str, str]:
    """Inner modules with exactly one importer, and which that is.

    A module is not inner if its importer is its package and hands out one of its names: in
    `__all__`, or as a key of a table that is in `__all__`, as the command line does.
    """
    known, edges = modules(root), graph(root)
    importers: dict[str, list[str]] = {}
    for name, targets in edges.items():
        for target in targets:
            importers.setdefault(target, []).append(name)
    return {
        name: by[0]
        for name, by in sorted(importers.items())
        if len(by) == 1
        and known[name].name != "__init__.py"
        and not _handed_out(known[by[0]]) & {*public_names(known[name])}
    }


def _handed_out(path: Path) -> set[str]:
    """The names that a package hands out; none for a module that is no package."""
    if path.name != "__init__.py":
        return set()
    public, tables = public_names(path), _tables(path)
    return {*public}.union(*(tables[name] for name in public if name in tables))


def public_names(path: Path) -> list[str]:
    """What a file lists in `__all__`, or in the table that its `__all__` is made from."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        match node:
            case ast.Assign(targets=[ast.Name(id="__all__")], value=names):
                return list(ast.literal_eval(names))
            case ast.Assign(targets=[ast.Name(id="_NAMES_BY_MODULE")], value=homes):
                return " ".join(ast.literal_eval(homes).values()).split()
    return []


def imported_for_checkers(path: Path) -> set[tuple[str, str, str | None]]:
    """Module, name and alias of each import under `if TYPE_CHECKING:`."""
    return {
        (str(node.module), alias.name, alias.asname)
        for block in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
