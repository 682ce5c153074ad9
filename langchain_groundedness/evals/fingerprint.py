"""Describes what an evaluator's scores depend on, as plain data without texts or keys."""

import hashlib
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from langchain_core.language_models import BaseLanguageModel
from langchain_core.prompts import BasePromptTemplate
from langchain_core.runnables import RunnableLambda, RunnableSequence, RunnableWithFallbacks
from langchain_core.runnables.base import RunnableBindingBase
from pydantic import BaseModel

from langchain_groundedness._runtime.options import CheckedOptions
from langchain_groundedness.llm.chat_models import MODEL_NAMES, model_name

__all__ = ["describe", "digest"]

_SAMPLING = ("temperature", "top_p", "seed", "max_tokens", "reasoning_effort")
_NEUTRAL_OPTIONS = frozenset(
    """
    name raise_on_failure progress_bar max_concurrency threads timeout model_timeout retry_budget
    """.split()  # noqa: SIM905  (a word list reads better as words)
)
_IGNORED_NAMES = re.compile(
    r"_key\b|apikey|secret|passw|credential|auth|cookie|headers?\b|(access|api|bearer|hf)_?token"
    r"|url\b|host\b|_base\b|endpoint|retries|timeout|stream|verbose|callbacks|cache|batch|chunk",
    re.IGNORECASE,
)
"""Options that hold keys or do not affect scores."""

_LONGEST_TEXT = 80
"""Longest text kept verbatim; a longer one becomes a digest."""


def describe(value: Any) -> Any:
    """Describe an option."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return value if len(value) <= _LONGEST_TEXT else digest(value)
    if isinstance(value, Mapping):
        return {str(key): describe(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [describe(inner) for inner in value]
    if isinstance(value, set | frozenset):
        return sorted(map(describe, value), key=repr)
    return _object(value)


def digest(text: str) -> str:
    """Give a short digest of a text."""
    return f"sha256:{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def _object(value: Any) -> Any:
    if isinstance(value, BasePromptTemplate):
        return digest(value.model_dump_json(serialize_as_any=True, fallback=repr))
    if isinstance(value, RunnableBindingBase):
        bound = describe(value.bound)
        if not isinstance(bound, dict):
            return bound
        given = {key: value.kwargs[key] for key in _SAMPLING if key in value.kwargs}
        return bound | given | _options_digest("bound", value.kwargs)
    named = value if hasattr(value, "__qualname__") else type(value)
    described: dict[str, Any] = {"class": f"{named.__module__}.{named.__qualname__}"}
    is_ours = type(value).__module__.startswith("langchain_groundedness")
    if isinstance(value, CheckedOptions) or (isinstance(value, BaseModel) and is_ours):
        fields = (name for name in type(value).model_fields if name not in _NEUTRAL_OPTIONS)
        return described | {name: describe(getattr(value, name)) for name in fields}
    if parts := _parts(value):
        return described | {"parts": [describe(part) for part in parts]}
    model = model_name(value)
    described |= {"model": model} if model else {}
    sampling = {key: getattr(value, key, None) for key in _SAMPLING}
    described |= {k: v for k, v in sampling.items() if isinstance(v, str | int | float)}
    return described | _options_digest("options", _options(value))


def _parts(value: Any) -> list[Any]:
    """Return the parts of a runnable."""
    if isinstance(value, RunnableWithFallbacks):
        return [value.runnable, *value.fallbacks]
    if isinstance(value, RunnableLambda):
        return [getattr(value, "func", None) or value.afunc]
    return list(value.steps) if isinstance(value, RunnableSequence) else []


def _options(value: Any) -> Mapping[str, Any]:
    """Return the options of a model that affect its replies; of other parts, those set."""
    if isinstance(value, BaseLanguageModel):
        with suppress(Exception):  # a model may raise anything
            return dict(value._identifying_params)  # noqa: SLF001  (what caches of langchain-core go by)
        return {}
    if isinstance(value, BaseModel):
        return {name: getattr(value, name) for name in value.model_fields_set}
    return {}


def _options_digest(name: str, options: Mapping[str, Any]) -> dict[str, str]:
    """Return a digest of the options, without keys and connection settings."""
    known = {*MODEL_NAMES, *_SAMPLING}
    kept = {k: v for k, v in _without_keys(options).items() if k not in known and v is not None}
    return {name: digest(json.dumps(kept, sort_keys=True, default=str))} if kept else {}


def _without_keys(options: Any) -> Any:
    if isinstance(options, Mapping):
        return {
            str(name): _without_keys(each)
            for name, each in options.items()
            if not _IGNORED_NAMES.search(str(name))
        }
    if isinstance(options, list | tuple):
        return [_without_keys(each) for each in options]
    return describe(options)
