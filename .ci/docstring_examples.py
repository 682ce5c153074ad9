"""Lets griffe read `Example:` as `Examples:`, so that the examples of docstrings show as code."""

import re
from typing import Any

from griffe import Extension, Object

__all__ = ["Examples"]


class Examples(Extension):
    """Renames the heading before docstrings are parsed."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Rename it in one docstring.

        Args:
            obj: Whatever may have one.
        """
        if obj.docstring is not None:
            obj.docstring.value = re.sub(
                r"^Example:$", "Examples:", obj.docstring.value, flags=re.MULTILINE
            )
