"""Names that a package imports on first use, so that importing the package costs little."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from langchain_groundedness._runtime.installed import missing_names

__all__ = ["lazy_names"]


def lazy_names(
    package: str, names_by_module: Mapping[str, str], needs: Mapping[str, str] | None = None
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Make `__all__`, `__getattr__` and `__dir__` from the names that each module has.

    `__all__` lacks names whose module needs another one that is not installed.
    """
    module_of = {
        name: module for module, names in names_by_module.items() for name in names.split()
    }
    missing = missing_names(needs or {})
    space = vars(sys.modules[package])

    def load(name: str) -> Any:
        if name not in module_of:
            msg = f"module {package!r} has no attribute {name!r}"
            raise AttributeError(msg)
        found = space[name] = getattr(import_module(f"{package}.{module_of[name]}"), name)
        return found

    def known() -> list[str]:
        return sorted({*space, *module_of})

    return [name for name, module in module_of.items() if module not in missing], load, known
