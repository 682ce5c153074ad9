"""What is remembered of an object for as long as it lives, by `id`: chat models have no hash."""

import weakref
from collections.abc import Callable
from typing import Any, TypeVar

from langchain_core.runnables import Runnable

__all__ = ["memoized", "recall", "remember"]

ValueT = TypeVar("ValueT")

_REMEMBERED: dict[int, dict[object, Any]] = {}
_MADE = "made"


def recall(model: Runnable[Any, Any], subject: str) -> int | None:
    """Give what was found out about a model."""
    return _REMEMBERED.get(id(model), {}).get(subject)


def remember(model: Runnable[Any, Any], subject: str, value: int) -> None:
    """Remember something about a model."""
    _of(model)[subject] = value


def memoized(owner: object, make: Callable[[], ValueT]) -> ValueT:
    """Make something once for an object, outside of what is compared, copied and pickled of it."""
    known = _REMEMBERED.get(id(owner), {})
    if _MADE not in known:
        made = make()
        known = _of(owner)
        known.setdefault(_MADE, made)
    found: ValueT = known[_MADE]
    return found


def _of(owner: object) -> dict[object, Any]:
    """Give what is remembered of an object; it goes when the object does."""
    if id(owner) not in _REMEMBERED:
        weakref.finalize(owner, _REMEMBERED.pop, id(owner), None).atexit = False
    return _REMEMBERED.setdefault(id(owner), {})
