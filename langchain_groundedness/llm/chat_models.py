"""Chat models: the type of `model=` options, their names, and what is remembered of them."""

import weakref
from collections.abc import Callable
from typing import Annotated, Any, TypeAlias, TypeVar

from langchain_core.runnables import Runnable
from pydantic import BeforeValidator

from langchain_groundedness._runtime.options import as_runnable
from langchain_groundedness.exceptions import MissingDependencyError, require
from langchain_groundedness.types import AcceptedTypes

__all__ = [
    "MODEL_NAMES",
    "ChatModel",
    "GivenModel",
    "cache_value",
    "cached_value",
    "memoized",
    "model_name",
]


MODEL_NAMES = ("model_name", "model", "model_id", "deployment_name", "repo_id")
"""Where chat models keep the name of the model that they call."""


def _chat_model(value: object) -> object:
    if isinstance(value, str):
        if not value.strip():
            msg = "got an empty name; give provider:name, such as openai:gpt-4o-mini, or an object"
            raise ValueError(msg)
        init_chat_model = require("langchain.chat_models", extra="agents").init_chat_model
        try:
            return init_chat_model(value)
        except ValueError:  # LangChain says which names it takes
            raise
        except ImportError as exc:  # LangChain says what to install
            msg = f"model {value!r}: {exc}"
            raise MissingDependencyError(msg) from exc
        except Exception as exc:
            msg = f"{value!r} cannot be used ({type(exc).__name__}): {exc}"
            raise ValueError(msg) from exc
    return as_runnable(value)


GivenModel: TypeAlias = Runnable[Any, Any] | Callable[..., Any] | str
"""A chat model, a function that becomes a runnable, or `provider:name` for LangChain's
`init_chat_model` (extra `agents`)."""

ChatModel = Annotated[Runnable[Any, Any], BeforeValidator(_chat_model), AcceptedTypes(GivenModel)]
"""An option that takes a `GivenModel`."""


def model_name(model: object) -> str | None:
    """Give the name of the model that a chat model calls, if it says it."""
    found = (getattr(model, name, None) for name in MODEL_NAMES)
    return next((name for name in found if isinstance(name, str) and name), None)


ValueT = TypeVar("ValueT")

_ENTRIES: dict[int, dict[object, Any]] = {}
"""By the id of an object, as chat models have no hash; entries live as long as their object."""


def _entries_of(owner: object) -> dict[object, Any]:
    """Return the entries of an object; they are dropped with it."""
    if id(owner) not in _ENTRIES:
        weakref.finalize(owner, _ENTRIES.pop, id(owner), None).atexit = False
    return _ENTRIES.setdefault(id(owner), {})


def cached_value(model: Runnable[Any, Any], subject: str) -> int | None:
    """Return a remembered value of a model, or `None`."""
    return _ENTRIES.get(id(model), {}).get(subject)


def cache_value(model: Runnable[Any, Any], subject: str, value: int) -> None:
    """Remember a value of a model."""
    _entries_of(model)[subject] = value


def memoized(owner: object, make: Callable[[], ValueT]) -> ValueT:
    """Create a value once per object, outside its fields, so that copies and pickles omit it."""
    entries = _entries_of(owner)
    if _MADE not in entries:
        entries.setdefault(_MADE, make())
    found: ValueT = entries[_MADE]
    return found


_MADE = "made"
