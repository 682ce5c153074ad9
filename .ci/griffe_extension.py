"""What griffe is told about our docstrings for the reference: see `zensical.toml`."""

import inspect
import pydoc
import re
from types import UnionType
from typing import Any, Union, get_args, get_origin

from griffe import Class, Extension, Function, Object, Parameter, ParameterKind, Parameters

__all__ = ["Ours"]


class Ours(Extension):
    """Shows examples as code, options by name, and no method that only overrides LangChain's."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Rename `Example:` to `Examples:`, which is what griffe reads.

        Args:
            obj: Whatever may have a docstring.
        """
        if obj.docstring is not None:
            text = obj.docstring.value
            obj.docstring.value = re.sub(r"^Example:$", "Examples:", text, flags=re.MULTILINE)

    def on_function(self, *, func: Function, **_: Any) -> None:
        """List the options behind `**options: Unpack[...]`, with their types and defaults.

        Args:
            func: A function or method.
        """
        if "Unpack[" in " ".join(str(each.annotation) for each in func.parameters):
            function: Any = pydoc.locate(func.path)
            found = inspect.signature(function).parameters.values()
            func.parameters = Parameters(*map(_parameter, found))

    def on_class_members(self, *, cls: Class, **_: Any) -> None:
        """Drop methods without a docstring: they override what is documented elsewhere.

        Args:
            cls: A class with its members.
        """
        for name, member in list(cls.members.items()):
            if member.is_function and not member.docstring:
                cls.del_member(name)


def _parameter(found: inspect.Parameter) -> Parameter:
    return Parameter(
        found.name,
        annotation=None if found.annotation is found.empty else _plain(found.annotation),
        kind=ParameterKind(found.kind.description),
        default=None if found.default is found.empty else repr(found.default),
    )


def _plain(annotation: Any) -> str:
    if get_origin(annotation) in {Union, UnionType}:
        return " | ".join(map(_plain, get_args(annotation)))
    written = inspect.formatannotation(annotation).replace("NoneType", "None")
    return re.sub(r"\b[A-Za-z_][\w.]*\.(?=[A-Za-z])", "", written)
