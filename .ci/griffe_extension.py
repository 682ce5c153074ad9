"""What griffe is told about our docstrings for the reference: see `zensical.toml`."""

import inspect
import pydoc
import re
from types import UnionType
from typing import Any, Union, get_args, get_origin

from griffe import Class, Extension, Function, Object, Parameter, ParameterKind, Parameters
from pydantic import BaseModel

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
        """List the options behind `**options`, with their types and defaults.

        Args:
            func: A function or method.
        """
        if any(each.kind is ParameterKind.var_keyword for each in func.parameters):
            func.parameters = _parameters(pydoc.locate(func.path)) or func.parameters

    def on_class_members(self, *, cls: Class, **_: Any) -> None:
        """Drop methods without a docstring, and list the fields that a model is made with.

        The methods override what is documented elsewhere.

        Args:
            cls: A class with its members.
        """
        for name, member in list(cls.members.items()):
            if member.is_function and not member.docstring:
                cls.del_member(name)
        found = pydoc.locate(cls.path)
        if isinstance(found, type) and issubclass(found, BaseModel):
            options = _parameters(found) or ()
            myself = Parameter("self", kind=ParameterKind.positional_or_keyword)
            cls.set_member(
                "__init__", Function("__init__", parameters=Parameters(myself, *options))
            )


def _parameters(found: Any) -> Parameters | None:
    """Parameters as Python itself shows them; nothing if it does not know them all either."""
    known = inspect.signature(found).parameters.values() if callable(found) else ()
    if any(each.kind is each.VAR_KEYWORD for each in known):
        return None
    return Parameters(*map(_parameter, known))


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
