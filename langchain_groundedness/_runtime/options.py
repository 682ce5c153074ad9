"""Options that are validated at construction, with errors of this package."""

from collections.abc import Callable, Iterator, Mapping
from inspect import Parameter, signature
from typing import Annotated, Any, ClassVar, Self, TypeVar, get_args, get_type_hints

from langchain_core.runnables import Runnable
from langchain_core.runnables.base import coerce_to_runnable
from pydantic import BeforeValidator, ValidationError
from pydantic_core import ErrorDetails
from typing_extensions import override

from langchain_groundedness.exceptions import ConfigurationError, OptionFault
from langchain_groundedness.types import AcceptedTypes, FrozenModel

__all__ = [
    "AnyRunnable",
    "CheckedOptions",
    "EqualByOptions",
    "as_runnable",
    "expand_options",
    "require_bool",
    "require_one_of",
    "require_positive",
]

_FunctionT = TypeVar("_FunctionT", bound=Callable[..., Any])

_CONSTRUCTORS = {
    "AuditLog": "JsonlAuditLog(path) or SQLAuditLog(url)",
    "DecisionPolicy": "DecisionPolicy.strict() or DecisionPolicy.load(path)",
}
"""How to build an object, for an option that got a text instead."""

_LONGEST_SHOWN = 40


def as_runnable(value: object) -> object:
    """Turn a function into a runnable; a class is refused, since its instance is meant."""
    if isinstance(value, type) and issubclass(value, Runnable):
        raise ValueError(_got_class(value))  # noqa: TRY004  (pydantic reports it with the option)
    return coerce_to_runnable(value) if callable(value) else value


AnyRunnable = Annotated[
    Runnable[Any, Any],
    BeforeValidator(as_runnable),
    AcceptedTypes(Runnable[Any, Any] | Callable[..., Any]),
]
"""An option that takes a runnable, or a function that becomes one."""


class CheckedOptions(FrozenModel):
    """Base of classes with options; an invalid one raises `ConfigurationError`.

    The message names the option, what is accepted and, for a number, a class or one of a few words,
    the given value. Other values are not repeated, because they may be keys or documents.
    """

    _can_be_saved: ClassVar[bool] = False
    """Whether it can be saved with LangChain's `dumpd`, and loaded with `load`."""

    def __init__(self, **options: Any) -> None:
        """Validate the options."""
        try:
            super().__init__(**options)
        except ValidationError as exc:
            accepted = ", ".join(name for name in type(self).model_fields if name != "name")
            faults = tuple(_option_faults(exc, accepted))
            named = ((".".join(map(str, fault.path)), fault.problem) for fault in faults)
            problems = "; ".join(": ".join(filter(None, each)) for each in named)
            msg = f"{type(self).__name__}: {problems}"
            raise ConfigurationError(msg, faults=faults) from None

    @classmethod
    def is_lc_serializable(cls) -> bool:
        """Return whether this can be saved with `dumpd`."""
        return cls._can_be_saved


class EqualByOptions(CheckedOptions):
    """Base of classes that cache derived objects in private attributes.

    Comparisons and copies ignore these attributes: a copy may have other options.
    """

    def __init__(self, **options: Any) -> None:
        """Accept the options; without this, type checkers would accept none."""
        super().__init__(**options)

    def __eq__(self, other: object) -> bool:
        """Compare the options only."""
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, n) == getattr(other, n) for n in type(self).model_fields)

    def __hash__(self) -> int:
        """Hash the options that are plain values."""
        values = (getattr(self, name) for name in type(self).model_fields)
        plain = (v for v in values if isinstance(v, str | int | float | bool | None))
        return hash((type(self), *plain))

    @override
    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        copied = super().model_copy(update=update, deep=deep)
        for name, attribute in type(self).__private_attributes__.items():
            setattr(copied, name, attribute.get_default())
        return copied


def expand_options(function: _FunctionT, *sources: Callable[..., Any]) -> _FunctionT:
    """Expand `**options: Unpack[...]` in a signature, with defaults from classes or functions.

    An option that none of them has is `None` by default.
    """
    shown = signature(function)
    *given, rest = shown.parameters.values()
    options = get_type_hints(get_args(rest.annotation)[0])
    known: dict[str, Parameter] = {}
    for source in sources[::-1]:
        known |= signature(source).parameters
    defaults = {name: known[name].default if name in known else None for name in options}
    given += [
        Parameter(name, Parameter.KEYWORD_ONLY, annotation=hint, default=defaults[name])
        for name, hint in options.items()
    ]
    function.__signature__ = shown.replace(parameters=given)  # type: ignore[attr-defined]  # read by `help`
    return function


def require_one_of(name: str, value: object, accepted: tuple[str, ...]) -> None:
    """Refuse a value that is not in a closed set."""
    if value not in accepted:
        shown = value if isinstance(value, str) else type(value).__name__
        msg = f"{name} must be one of {', '.join(map(repr, accepted))}, got {shown!r:.60}"
        raise ConfigurationError(msg)


def require_bool(**options: object) -> None:
    """Raise `ConfigurationError` for options that are neither True nor False."""
    for name, value in options.items():
        if not isinstance(value, bool):
            msg = f"{name} must be True or False, got {value!r}"
            raise ConfigurationError(msg)


def require_positive(**options: Any) -> None:
    """Refuse values that are not whole numbers of at least 1."""
    for name, value in options.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            msg = f"{name} must be a whole number of at least 1, got {value!r}"
            raise ConfigurationError(msg)


def _option_faults(error: ValidationError, accepted: str) -> Iterator[OptionFault]:
    for detail in error.errors(include_url=False):
        path, inner = detail["loc"], detail.get("ctx", {}).get("error")
        if isinstance(inner, ConfigurationError) and inner.faults:
            yield from (fault._replace(path=(*path, *fault.path)) for fault in inner.faults)
            continue
        unknown = detail["type"] == "extra_forbidden"
        problem = "no such option" if unknown else detail["msg"].removeprefix("Value error, ")
        addition = f"; options are: {accepted}" if unknown else _given_value(detail)
        wanted = detail.get("ctx", {})
        constructor = _CONSTRUCTORS.get(str(wanted.get("class", wanted.get("class_name"))))
        if constructor is not None and isinstance(detail["input"], str):
            addition = f", got a str; build one with {constructor}"
        yield OptionFault(path, f"{problem}{addition}", unknown)


def _given_value(detail: ErrorDetails) -> str:
    value = detail["input"]
    if isinstance(value, bool | int | float | None):
        return f", got {value!r}"
    if detail["type"] == "literal_error":
        if not isinstance(value, str):
            return f", got a value of type {type(value).__name__}"
        short = len(value) <= _LONGEST_SHOWN
        return f", got {value!r}" if short else f", got a text of {len(value)} characters"
    if isinstance(value, type) and not {"class", "class_name"}.isdisjoint(detail.get("ctx", {})):
        return f", {_got_class(value)}"
    return ""


def _got_class(given: type) -> str:
    return f"got the class {given.__name__}; create an object of it: {given.__name__}(...)"
