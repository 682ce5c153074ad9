"""Puts metadata of any kind into what JSON can hold; pure."""

import math
from collections.abc import Mapping
from typing import Any

__all__ = ["plain_mapping"]

_DEEPEST = 8


def plain_mapping(value: Mapping[Any, Any]) -> dict[str, Any]:
    """Copy a mapping as JSON can hold it.

    Args:
        value: The mapping.

    Returns:
        Texts, finite numbers, truth values, `None`, and lists and dicts of these; what JSON
        cannot hold is put into words.
    """
    return {_key(key): _plain(item, _DEEPEST) for key, item in value.items()}


def _plain(value: Any, depth: int) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    for kind in (str, int, float):
        if isinstance(value, kind):
            return kind(value)  # drops subclasses, of which some cannot be written
    if depth and isinstance(value, Mapping):
        return {_key(key): _plain(item, depth - 1) for key, item in value.items()}
    if depth and isinstance(value, list | tuple | set | frozenset):
        return [_plain(item, depth - 1) for item in value]
    return _words(value)


def _key(value: Any) -> str:
    """Name a key; pydantic cannot write one that holds half a character."""
    return _words(value).encode("utf-8", errors="replace").decode()


def _words(value: Any) -> str:
    try:
        return str(value)
    except Exception:  # noqa: BLE001  (somebody else's object must not cost the record)
        return f"<{type(value).__name__}>"
