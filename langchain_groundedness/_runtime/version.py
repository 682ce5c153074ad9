"""Which version of this package runs."""

from importlib.metadata import PackageNotFoundError, version
from typing import Final

__all__ = ["PACKAGE_VERSION"]


def _installed() -> str:
    try:
        return version("langchain-groundedness")
    except PackageNotFoundError:  # run from a copy of the source
        return ""


PACKAGE_VERSION: Final = _installed()
"""Empty if the package is not installed. Read once, because event loops ask for it."""
