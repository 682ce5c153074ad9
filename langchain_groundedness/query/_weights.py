"""A logistic regression over vectors: fitted with scikit-learn, used with numpy, kept as JSON."""

import json
import os
import re
import secrets
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Annotated, Final, Literal, Self

import numpy as np
from langchain_core.embeddings import Embeddings
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError, model_validator

from langchain_groundedness._bounded import read_up_to
from langchain_groundedness._vectors import Vectors
from langchain_groundedness.exceptions import ConfigurationError, require

__all__ = [
    "EmbeddingsDescription",
    "QueryWeights",
    "SavedClassifier",
    "fitted_weights",
    "read_classifier",
    "write_classifier",
]

LARGEST_FILE = 256 << 20
"""Bytes of a classifier: many classes, long vectors."""
_FORMAT: Final = "langchain-groundedness query classifier"
_NAMED_BY = ("model_name", "model", "model_id", "deployment", "azure_deployment")
_MOST_ITERATIONS = 2000


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())


class EmbeddingsDescription(_Value):
    """Which embeddings weights belong to, as far as they tell."""

    kind: str
    """Name of the class."""
    model: str | None
    """Name of the model; of a path, its last part."""

    @classmethod
    def of(cls, embeddings: Embeddings) -> Self:
        """Describe embeddings, without anything that may be secret.

        Args:
            embeddings: The embeddings.

        Returns:
            The description.
        """
        names = (getattr(embeddings, attribute, None) for attribute in _NAMED_BY)
        model = next((name for name in names if isinstance(name, str) and name), None)
        last = re.split(r"[/\\]", model.rstrip("/\\"))[-1] if model else None
        return cls(kind=type(embeddings).__name__, model=last)

    def __str__(self) -> str:
        """Give the names on one line."""
        return f"{self.kind} ({self.model})" if self.model else self.kind


class QueryWeights(_Value):
    """What an `EmbeddingQueryClassifier` has learnt."""

    labels: tuple[str, ...] = Field(min_length=2)
    weights: tuple[tuple[FiniteFloat, ...], ...] = Field(repr=False)
    """One row per label, one column per number of a vector."""
    intercepts: tuple[FiniteFloat, ...] = Field(repr=False)
    """One per label."""
    embeddings: EmbeddingsDescription
    """What the vectors come from."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        count = len(self.labels)
        if len(set(self.labels)) < count:
            msg = "a label stands twice"
            raise ValueError(msg)
        if len(self.weights) != count or len(self.intercepts) != count:
            msg = f"{count} labels need as many rows of weights and intercepts"
            raise ValueError(msg)
        if len({len(row) for row in self.weights}) != 1 or not self.weights[0]:
            msg = "the rows of weights have different lengths, or none"
            raise ValueError(msg)
        return self

    @property
    def size(self) -> int:
        """Numbers in a vector."""
        return len(self.weights[0])

    @cached_property
    def _arrays(self) -> tuple[Vectors, Vectors]:
        return np.array(self.weights), np.array(self.intercepts)

    def probabilities(self, vector: Vectors) -> Vectors:
        """Tell how likely each label is.

        Args:
            vector: The embedding of one query, of length one.

        Returns:
            One number per label; they add up to 1.
        """
        weights, intercepts = self._arrays
        scores = weights @ vector + intercepts
        shares = np.exp(scores - scores.max())
        found: Vectors = shares / shares.sum()
        return found


def fitted_weights(
    vectors: Vectors,
    labels: Sequence[str],
    *,
    embeddings: EmbeddingsDescription,
    regularization: float,
) -> QueryWeights:
    """Fit a logistic regression.

    Args:
        vectors: One row per query, of length one.
        labels: One per query, at least two different ones.
        embeddings: What the vectors come from.
        regularization: Weight of the L2 penalty.

    Returns:
        The weights.

    Raises:
        MissingDependencyError: scikit-learn is not installed.
    """
    linear = require("sklearn.linear_model", extra="classify")
    regression = linear.LogisticRegression(
        C=1 / regularization, class_weight="balanced", max_iter=_MOST_ITERATIONS
    )
    regression.fit(vectors, list(labels))
    weights, intercepts = regression.coef_, regression.intercept_
    if len(weights) == 1:  # of two classes, only the second has weights
        weights = np.vstack([np.zeros_like(weights), weights])
        intercepts = np.concatenate([[0.0], intercepts])
    return QueryWeights(
        labels=tuple(map(str, regression.classes_)),
        weights=tuple(map(tuple, weights.tolist())),
        intercepts=tuple(intercepts.tolist()),
        embeddings=embeddings,
    )


class SavedClassifier(_Value):
    """What stands in a saved file."""

    format: Literal["langchain-groundedness query classifier"] = _FORMAT
    version: Literal[1] = 1
    min_probability: float = Field(ge=0.0, le=1.0)
    min_probability_of: dict[str, Annotated[float, Field(ge=0.0, le=1.0)]]
    regularization: FiniteFloat = Field(gt=0.0)
    fitted: QueryWeights


def write_classifier(path: Path, saved: SavedClassifier) -> None:
    """Write a classifier as JSON: the file is the old one or the new one at any moment, never half.

    Args:
        path: Where to.
        saved: What to write.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with temporary.open("x", encoding="utf-8") as file:
            file.write(saved.model_dump_json())
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def read_classifier(path: Path) -> SavedClassifier:
    """Read what `write_classifier` has written.

    Args:
        path: Where from.

    Returns:
        What stands there.

    Raises:
        ConfigurationError: The file is damaged, or something else.
        OSError: It cannot be read.
    """
    try:
        data = json.loads(read_up_to(path, LARGEST_FILE))
    except (ValueError, RecursionError):
        msg = f"{path.name} is no JSON, or is damaged: fit the classifier again and save it"
        raise ConfigurationError(msg) from None
    if not isinstance(data, dict) or data.get("format") != _FORMAT:
        msg = f"{path.name} is no query classifier: give a file that EmbeddingQueryClassifier saved"
        raise ConfigurationError(msg)
    if data.get("version") != 1:
        msg = f"{path.name} has a version that this release cannot read: fit and save it again"
        raise ConfigurationError(msg)
    try:
        return SavedClassifier.model_validate(data)
    except ValidationError as exc:
        fault = exc.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(map(str, fault["loc"]))
        msg = f"{path.name} is damaged ({where}: {fault['msg']}): fit and save it again"
        raise ConfigurationError(msg) from None
