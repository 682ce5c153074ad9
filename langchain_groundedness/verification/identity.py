"""What the verdicts of a verifier depend on, as plain data; and which of its parts do not tell."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, NamedTuple, TypeGuard

from langchain_core.cross_encoders import BaseCrossEncoder
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel, BaseLanguageModel
from langchain_core.prompts import BasePromptTemplate
from langchain_core.runnables import (
    Runnable,
    RunnableSequence,
    RunnableWithFallbacks,
)
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.runnables.configurable import DynamicRunnable
from pydantic import BaseModel, SecretBytes, SecretStr

from langchain_groundedness._runtime.version import PACKAGE_VERSION
from langchain_groundedness.verification.cached import ALL_READ, Reads
from langchain_groundedness.verification.cascade import CascadeVerifier
from langchain_groundedness.verification.cross_encoder import CrossEncoderVerifier
from langchain_groundedness.verification.embedded.cross_encoder import EmbeddedCrossEncoder
from langchain_groundedness.verification.embedded.model_files import model_folder, read_model_file
from langchain_groundedness.verification.embedded.verifier import EmbeddedVerifier
from langchain_groundedness.verification.embedding import EmbeddingVerifier
from langchain_groundedness.verification.llm import LLMVerifier

__all__ = ["Identity", "identify", "reads_of"]

_PACKAGE = "langchain_groundedness"
_TESTING = f"{_PACKAGE}.testing"
_UNCOUNTED = frozenset(
    {
        "threads",
        "max_concurrency",
        "timeout",
        "retry_budget",
        "store",
        "store_timeout",
        "secret",
    }
)
"""Options that change how long a verdict takes, and no verdict."""
_MODEL_NAMES = ("model_name", "model", "model_id", "deployment_name", "repo_id")
_MODEL_FILES = ("encoder.json", "signals.json", "words.json")
"""The first holds the checksums of the large ones, which are compared when they are loaded."""
_READS: dict[type, frozenset[Reads]] = {
    EmbeddedVerifier: frozenset({"question"}),
    LLMVerifier: frozenset({"question"}),
    CrossEncoderVerifier: frozenset(),
    EmbeddingVerifier: frozenset(),
}


class Identity(NamedTuple):
    """What is known of a verifier."""

    digest: str
    """Equal for verifiers that give the same verdicts."""
    untold: tuple[str, ...]
    """Parts of which it is not known by what their verdicts differ: `path: class`."""
    dynamic: tuple[str, ...]
    """Parts that are other ones in each run, as its config says."""
    reads: frozenset[Reads]
    """What the verifier reads of a task, as `reads_of` says."""


def identify(verifier: Runnable[Any, Any], *, given: str | None) -> Identity:
    """Find out what the verdicts of a verifier depend on."""
    walk = _Walk()
    told = walk.of(verifier, "verifier")
    plain = json.dumps([PACKAGE_VERSION, given, told], sort_keys=True, default=repr)
    digest = hashlib.sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()
    return Identity(digest, tuple(walk.untold), tuple(walk.dynamic), reads_of(verifier))


def reads_of(verifier: object) -> frozenset[Reads]:
    """Tell what a verifier reads of a task beside claim and documents' texts."""
    if type(verifier) is CascadeVerifier:
        return _joined(stage.verifier for stage in verifier.stages)
    if _is_binding(verifier):
        return reads_of(verifier.bound)
    if type(verifier) is RunnableWithFallbacks:
        return _joined(verifier.runnables)
    return _READS.get(type(verifier), ALL_READ)


def _joined(verifiers: Iterable[object]) -> frozenset[Reads]:
    return frozenset[Reads]().union(*map(reads_of, verifiers))


class _Walk:
    """Describes a verifier part by part."""

    def __init__(self) -> None:
        self.untold: list[str] = []
        self.dynamic: list[str] = []

    def of(self, value: Any, path: str) -> Any:
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, Mapping):
            return {str(key): self.of(each, f"{path}.{key}") for key, each in value.items()}
        if isinstance(value, list | tuple):
            return [self.of(each, f"{path}[{place}]") for place, each in enumerate(value)]
        if isinstance(value, set | frozenset):
            return sorted((self.of(each, path) for each in value), key=repr)
        if isinstance(value, SecretStr | SecretBytes):
            return None
        named = value if callable(value) and hasattr(value, "__qualname__") else type(value)
        return [f"{named.__module__}.{named.__qualname__}", self._object(value, path)]

    def _object(self, value: Any, path: str) -> Any:  # noqa: PLR0911  (one per kind)
        if isinstance(value, DynamicRunnable) or type(value).__name__ == "_ConfigurableModel":
            self.dynamic.append(path)
            return None
        if isinstance(value, BaseLanguageModel):
            return self._model(value, path)
        if isinstance(value, BasePromptTemplate):
            return self._prompt(value, path)
        if _is_binding(value):
            configured = value.config.get("configurable")
            return self.of([value.bound, value.kwargs, configured], f"{path}.bound")
        if type(value) is RunnableWithFallbacks:
            return self.of(list(value.runnables), f"{path}.runnables")
        if type(value) is RunnableSequence:
            return self.of(value.steps, f"{path}.steps")
        if _is_ours(value):
            return self._ours(value, path)
        if isinstance(value, BaseModel) and isinstance(value, Embeddings | BaseCrossEncoder):
            return self._served(value, path)
        if isinstance(value, type) and issubclass(value, BaseModel):
            return value.model_json_schema()
        return self._not_told(value, path)

    def _ours(self, value: Any, path: str) -> Any:
        if not isinstance(value, BaseModel):
            return None  # a function: another version of the package has another one
        told = {
            name: self.of(getattr(value, name), f"{path}.{name}")
            for name in type(value).model_fields
            if name not in _UNCOUNTED
        }
        if isinstance(value, LLMVerifier):
            told["prompt"] = self.of(value._prompt, f"{path}.prompt")  # noqa: SLF001  (the one in force)
        if isinstance(value, EmbeddedVerifier | EmbeddedCrossEncoder):
            told["model"] = _embedded_model()
        return told

    def _model(self, value: BaseLanguageModel[Any], path: str) -> Any:
        """Describe a chat model as LangChain's own caches do."""
        silent = type(value)._identifying_params is BaseLanguageModel._identifying_params  # noqa: SLF001
        if not isinstance(value, BaseChatModel) or (silent and not value.is_lc_serializable()):
            return self._not_told(value, path)
        try:
            # LangChain remembers the former, so that alone would not tell of a later change.
            return [value._get_llm_string(), _as_json(value._identifying_params)]  # noqa: SLF001
        except Exception:  # noqa: BLE001  (of whoever wrote the model)
            return self._not_told(value, path)

    def _prompt(self, value: BasePromptTemplate[Any], path: str) -> Any:
        if any(map(callable, value.partial_variables.values())):
            self._not_told(value, f"{path}.partial_variables")
        return value.model_dump_json(serialize_as_any=True, fallback=_class_name)

    def _served(self, value: BaseModel, path: str) -> Any:
        """Describe embeddings or a cross-encoder by the model's name and what else was given."""
        names = (getattr(value, name, None) for name in _MODEL_NAMES)
        name = next((name for name in names if isinstance(name, str) and name), None)
        if name is None:
            return self._not_told(value, path)
        fields = {
            key: field for key, field in type(value).model_fields.items() if not field.exclude
        }
        given = {key: getattr(value, key) for key in fields if key in value.model_fields_set}
        return [name, self.of(given, path)]

    def _not_told(self, value: object, path: str) -> None:
        self.untold.append(f"{path}: {_class_name(value)}")


def _is_binding(value: Any) -> TypeGuard[RunnableBindingBase[Any, Any]]:
    """Tell whether something is what `bind`, `with_config` or `with_retry` give."""
    return isinstance(value, RunnableBindingBase) and type(value).__module__.startswith(
        "langchain_core."
    )


def _is_ours(value: Any) -> bool:
    """Tell whether a class or a function is of this package: its version then speaks for it."""
    named = value if hasattr(value, "__qualname__") else type(value)
    module = named.__module__ or ""
    return (
        (module == _PACKAGE or module.startswith(f"{_PACKAGE}."))
        and not module.startswith(_TESTING)
        and "<" not in named.__qualname__
        and (isinstance(value, BaseModel) or callable(value))
    )


def _as_json(params: Mapping[str, Any]) -> str:
    return json.dumps(dict(params), sort_keys=True, default=_class_name)


def _class_name(value: object) -> str:
    return type(value).__qualname__


@cache
def _embedded_model() -> str:
    digest = hashlib.sha256()
    for name in _MODEL_FILES:
        digest.update(read_model_file(model_folder(), name))
    return digest.hexdigest()
