"""A cache by object identity: entries live as long as their object. Chat models have no hash."""

import weakref
from collections.abc import Callable
from typing import Any, TypeVar

from langchain_core.runnables import Runnable

__all__ = ["memoized", "recall", "remember"]

ValueT = TypeVar("ValueT")

_ENTRIES: dict[int, dict[object, Any]] = {}


def _entries_of(owner: object) -> dict[object, Any]:
    """Return the entries of an object; they are dropped with it."""
    if id(owner) not in _ENTRIES:
        weakref.finalize(owner, _ENTRIES.pop, id(owner), None).atexit = False
    return _ENTRIES.setdefault(id(owner), {})


def recall(model: Runnable[Any, Any], subject: str) -> int | None:
    """Return a remembered value of a model, or `None`."""
    return _ENTRIES.get(id(model), {}).get(subject)


def remember(model: Runnable[Any, Any], subject: str, value: int) -> None:
    """Remember a value of a model."""
    _entries_of(model)[subject] = value


def memoized(owner: object, make: Callable[[], ValueT]) -> ValueT:
    """Create a value once per object, outside its fields, so that copies and pickles omit it."""
    known = _ENTRIES.get(id(owner), {})
    if _MADE not in known:
        made = make()
        known = _entries_of(owner)
        known.setdefault(_MADE, made)
    found: ValueT = known[_MADE]
    return found


_MADE = "made"
