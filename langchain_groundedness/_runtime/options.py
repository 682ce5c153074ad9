"""Options that are checked when an object is made, with an error of this package."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Self

from langchain_core.runnables import Runnable
from langchain_core.runnables.base import coerce_to_runnable
from pydantic import BaseModel, BeforeValidator, ValidationError
from typing_extensions import override

from langchain_groundedness.exceptions import ConfigurationError, Fault

__all__ = ["AnyRunnable", "CheckedOptions", "OptionsAlone"]


_MADE = {
    "AuditLog": "JsonlAuditLog(path) or SQLAuditLog(url)",
    "DecisionPolicy": "DecisionPolicy.strict() or DecisionPolicy.load(path)",
}
"""How to make what is asked for, where a text came."""


def _runnable(value: object) -> object:
    if isinstance(value, str):
        msg = (
            "a str is no chat model: make one of its name first, for example with "
            "langchain.chat_models.init_chat_model('openai:gpt-4o-mini')"
        )
        raise ValueError(msg)  # noqa: TRY004  (pydantic reports a ValueError)
    return coerce_to_runnable(value) if callable(value) else value


AnyRunnable = Annotated[Runnable[Any, Any], BeforeValidator(_runnable)]
"""An option that takes a runnable, or a function to make one of."""


class CheckedOptions(BaseModel):
    """Base of everything with options: a bad one raises `ConfigurationError`.

    The message names the option, what is accepted and, if it is a number, what came; other values
    it does not repeat, since one of them may be a key or a document.
    """

    def __init__(self, *nameless: Any, **options: Any) -> None:
        """Check the options."""
        names = [name for name in type(self).model_fields if name != "name"]
        accepted = ", ".join(names)
        if nameless:
            kinds = ", ".join(type(value).__name__ for value in nameless)
            msg = (
                f"{type(self).__name__}: options are given by name, as in "
                f"{names[0]}=...; got {kinds} without a name; options "
                f"are: {accepted}"
            )
            raise ConfigurationError(msg)
        try:
            super().__init__(**options)
        except ValidationError as exc:
            faults = tuple(_faults(exc, accepted))
            problems = "; ".join(f"{_joined(fault.path)}{fault.problem}" for fault in faults)
            msg = f"{type(self).__name__}: {problems}"
            raise ConfigurationError(msg, faults=faults) from None


class OptionsAlone(CheckedOptions):
    """Base of what keeps, in private attributes, things that it made from its options.

    Those count neither in comparisons nor for a copy, which may have other options.
    """

    def __eq__(self, other: object) -> bool:
        """Compare the options: whether one of the two was used makes no difference."""
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, n) == getattr(other, n) for n in type(self).model_fields)

    def __hash__(self) -> int:
        """Give the same for equal options; options that have no hash do not count."""
        values = (getattr(self, name) for name in type(self).model_fields)
        plain = (v for v in values if isinstance(v, str | int | float | bool | None))
        return hash((type(self), *plain))

    @override
    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        copied = super().model_copy(update=update, deep=deep)
        for name, attribute in type(self).__private_attributes__.items():
            setattr(copied, name, attribute.get_default())
        return copied


def _faults(error: ValidationError, accepted: str) -> Iterator[Fault]:
    for detail in error.errors(include_url=False):
        path, inner = detail["loc"], detail.get("ctx", {}).get("error")
        if isinstance(inner, ConfigurationError) and inner.faults:
            yield from (fault._replace(path=(*path, *fault.path)) for fault in inner.faults)
            continue
        unknown = detail["type"] == "extra_forbidden"
        problem = detail["msg"].removeprefix("Value error, ")
        told = f"; options are: {accepted}" if unknown else _given(detail["input"])
        wanted = detail.get("ctx", {})
        made = _MADE.get(str(wanted.get("class", wanted.get("class_name"))))
        if made is not None and isinstance(detail["input"], str):
            told = f", got a str; make one, such as {made}"
        yield Fault(path, f"{problem}{told}", unknown)


def _joined(path: tuple[str | int, ...]) -> str:
    return "".join((".".join(map(str, path)), ": ")) if path else ""


def _given(value: object) -> str:
    return f", got {value!r}" if isinstance(value, bool | int | float | None) else ""
