"""What is known about a question before it is answered, read from inputs and from metadata of runs.

Pure. Policies and records read it; the verdicts do not depend on it.
"""

from collections.abc import Mapping
from enum import Enum
from math import isfinite
from typing import Any, SupportsFloat

from langchain_groundedness.exceptions import InputFormatError

__all__ = ["LABELS", "read_labels"]

LABELS = ("query_class", "risk_tier", "retrieval_score")
"""The keys. A key that is absent says as much as `None`."""


def read_labels(parts: Mapping[Any, Any]) -> dict[str, Any]:
    """Read what is there.

    Args:
        parts: An input, or the metadata of a run; other keys do not count.

    Returns:
        `query_class` and `risk_tier` as texts, `retrieval_score` as a number, those that are known.

    Raises:
        InputFormatError: One of them is of a type that does not fit.
    """
    read = {"query_class": _text, "risk_tier": _text, "retrieval_score": _number}
    found = {name: read[name](name, parts.get(name)) for name in LABELS}
    return {name: value for name, value in found.items() if value is not None}


def _text(name: str, value: object) -> str | None:
    if isinstance(value, Enum):
        value = value.value
    label = getattr(value, "label", value)  # what classifiers give
    if label is None or isinstance(label, str):
        return (str(label).strip() or None) if label else None
    raise _unfit(name, value, "a text, something with a text as its `label`, or None")


def _number(name: str, value: object) -> float | None:
    score = getattr(value, "score", value)  # what gates give
    if score is None:
        return None
    if isinstance(score, SupportsFloat) and not isinstance(score, bool) and isfinite(score):
        return float(score)
    raise _unfit(name, value, "a finite number, something with one as its `score`, or None")


def _unfit(name: str, value: object, accepted: str) -> InputFormatError:
    return InputFormatError(
        f"{name!r} is of type {type(value).__name__}; accepted: {accepted}", keys=(name,)
    )
