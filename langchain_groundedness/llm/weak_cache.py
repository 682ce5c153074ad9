"""What is remembered for as long as an object lives, by `id`: chat models are not hashable."""

import weakref
from collections.abc import Callable
from typing import Any, TypeVar

from langchain_core.runnables import Runnable

__all__ = ["kept", "learn", "recall"]

ValueT = TypeVar("ValueT")

# An entry goes when its object does, so there are never more entries than objects alive times
# subjects.
_LEARNT: dict[tuple[int, str], int] = {}
_KEPT: dict[int, Any] = {}


def recall(model: Runnable[Any, Any], subject: str) -> int | None:
    """Give what was found out about a model."""
    return _LEARNT.get((id(model), subject))


def learn(model: Runnable[Any, Any], subject: str, value: int) -> None:
    """Remember something about a model for as long as it lives."""
    key = (id(model), subject)
    if key not in _LEARNT:
        weakref.finalize(model, _LEARNT.pop, key, None).atexit = False
    _LEARNT[key] = value


def kept(owner: object, make: Callable[[], ValueT]) -> ValueT:
    """Make something once for an object, outside of what is compared, copied and pickled of it."""
    if id(owner) not in _KEPT:
        made = make()
        weakref.finalize(owner, _KEPT.pop, id(owner), None).atexit = False
        _KEPT.setdefault(id(owner), made)
    found: ValueT = _KEPT[id(owner)]
    return found
