"""Describes an evaluator by what its scores depend on, as plain data without texts or keys."""

import hashlib
from collections.abc import Mapping
from typing import Any

from langchain_core.prompts import BasePromptTemplate
from langchain_core.runnables.base import RunnableBindingBase
from pydantic import BaseModel

from langchain_groundedness._options import CheckedOptions

__all__ = ["describe", "digest"]

_MODEL_NAMES = ("model_name", "model", "model_id", "deployment_name", "repo_id")
_SAMPLING = ("temperature", "top_p", "seed", "max_tokens", "reasoning_effort")
_OWN = "langchain_groundedness"
_UNCOUNTED = frozenset({"name", "raise_on_failure", "progress_bar", "max_concurrency", "threads"})
_LONGEST = 80


def describe(value: Any) -> Any:
    """Describe an option.

    Args:
        value: The option.

    Returns:
        Plain data, equal for options that give the same scores: of a model its class, name and
        sampling, of our own parts the class and all options, of texts beyond a name a digest.
    """
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return value if len(value) <= _LONGEST else digest(value)
    if isinstance(value, Mapping):
        return {str(key): describe(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [describe(inner) for inner in value]
    return _object(value)


def digest(text: str) -> str:
    """Give a short digest of a text.

    Args:
        text: The text.

    Returns:
        `sha256:` and 16 hexadecimal digits.
    """
    return f"sha256:{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def _object(value: Any) -> Any:
    if isinstance(value, BasePromptTemplate):
        return digest(value.model_dump_json(serialize_as_any=True, fallback=repr))
    if isinstance(value, RunnableBindingBase):
        bound = describe(value.bound)
        options = {key: value.kwargs[key] for key in _SAMPLING if key in value.kwargs}
        return {**bound, **options} if isinstance(bound, dict) else bound
    named = value if hasattr(value, "__qualname__") else type(value)
    told: dict[str, Any] = {"class": f"{named.__module__}.{named.__qualname__}"}
    if isinstance(value, CheckedOptions) or (
        isinstance(value, BaseModel) and type(value).__module__.startswith(_OWN)
    ):
        fields = (name for name in type(value).model_fields if name not in _UNCOUNTED)
        return told | {name: describe(getattr(value, name)) for name in fields}
    model = next((n for key in _MODEL_NAMES if isinstance(n := getattr(value, key, None), str)), "")
    told |= {"model": model} if model else {}
    sampling = {key: getattr(value, key, None) for key in _SAMPLING}
    return told | {k: v for k, v in sampling.items() if isinstance(v, str | int | float)}
