"""What griffe is told about our docstrings for the reference: see `zensical.toml`."""

import re
from typing import Any

from griffe import Class, Extension, Object

__all__ = ["Ours"]


class Ours(Extension):
    """Shows examples as code, and no method that only fills in what LangChain has defined."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Rename `Example:` to `Examples:`, which is what griffe reads.

        Args:
            obj: Whatever may have a docstring.
        """
        if obj.docstring is not None:
            text = obj.docstring.value
            obj.docstring.value = re.sub(r"^Example:$", "Examples:", text, flags=re.MULTILINE)

    def on_class_members(self, *, cls: Class, **_: Any) -> None:
        """Drop methods without a docstring: they override what is documented elsewhere.

        Args:
            cls: A class with its members.
        """
        for name, member in list(cls.members.items()):
            if member.is_function and not member.docstring:
                cls.del_member(name)
