"""Which packages are installed: this one's version, and the optional ones that are missing."""

from collections.abc import Mapping
from importlib.machinery import PathFinder
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Final

__all__ = ["PACKAGE_VERSION", "absent"]


def _installed() -> str:
    try:
        return version("langchain-groundedness")
    except PackageNotFoundError:  # run from a copy of the source
        return ""


PACKAGE_VERSION: Final = _installed()
"""Empty if the package is not installed. Read once, because event loops ask for it."""


def absent(needs: Mapping[str, str]) -> frozenset[str]:
    """Give the names whose package is missing, without importing anything."""
    there = {module: _is_there(module) for module in set(needs.values())}
    return frozenset(name for name, module in needs.items() if not there[module])


def _is_there(module: str) -> bool:
    """Look a module up, part by part: `find_spec` alone would import the packages it is in."""
    top, *inner = module.split(".")
    try:
        spec = find_spec(top)
    except (ImportError, ValueError):  # hidden by whoever runs this
        return False
    name = top
    for part in inner:
        if spec is None or spec.submodule_search_locations is None:
            return False
        name = f"{name}.{part}"
        spec = PathFinder.find_spec(name, spec.submodule_search_locations)
    return spec is not None
