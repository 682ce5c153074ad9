"""Names that a package imports on first use, so that importing the package costs little."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from langchain_groundedness._runtime.installed import absent

__all__ = ["lazy_names"]


def lazy_names(
    package: str, homes: Mapping[str, str], needs: Mapping[str, str] | None = None
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Make `__all__`, `__getattr__` and `__dir__` from the names that each module has.

    `__all__` lacks names whose module needs another one that is not installed.
    """
    home_of = {name: home for home, names in homes.items() for name in names.split()}
    missing = absent(needs or {})
    space = vars(sys.modules[package])

    def load(name: str) -> Any:
        if name not in home_of:
            msg = f"module {package!r} has no attribute {name!r}"
            raise AttributeError(msg)
        found = space[name] = getattr(import_module(f"{package}.{home_of[name]}"), name)
        return found

    def known() -> list[str]:
        return sorted({*space, *home_of})

    return [name for name, home in home_of.items() if home not in missing], load, known
