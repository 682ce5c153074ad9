"""The version of this package, and which optional packages are missing."""

from collections.abc import Mapping
from importlib.machinery import PathFinder
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Final

__all__ = ["PACKAGE_VERSION", "missing_names"]


def _installed() -> str:
    try:
        return version("langchain-groundedness")
    except PackageNotFoundError:  # run from a copy of the source
        return ""


PACKAGE_VERSION: Final = _installed()
"""Empty if the package is not installed. Read once, because reading it blocks."""


def missing_names(needs: Mapping[str, str]) -> frozenset[str]:
    """Return the names whose module is missing, without importing anything."""
    found = {module: _exists(module) for module in set(needs.values())}
    return frozenset(name for name, module in needs.items() if not found[module])


def _exists(module: str) -> bool:
    """Find a module part by part; `find_spec` alone would import its parents."""
    top, *inner = module.split(".")
    try:
        spec = find_spec(top)
    except (ImportError, ValueError):  # blocked in `sys.modules`
        return False
    name = top
    for part in inner:
        if spec is None or spec.submodule_search_locations is None:
            return False
        name = f"{name}.{part}"
        spec = PathFinder.find_spec(name, spec.submodule_search_locations)
    return spec is not None
