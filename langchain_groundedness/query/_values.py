"""What classifiers of queries say, and what they are told: values without logic."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, Self, TypeAlias

from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)

from langchain_groundedness.exceptions import ConfigurationError, InputFormatError
from langchain_groundedness.inputs import read_input

__all__ = [
    "EMPTY_QUERY",
    "QUERY_CLASSES",
    "UNKNOWN",
    "QueryClass",
    "QueryClassifier",
    "QueryLabel",
    "QuerySample",
    "Samples",
    "read_query",
    "read_samples",
]

UNKNOWN: Final = "unknown"

QueryLabel = Literal[
    "product",
    "service",
    "harmful",
    "irrelevant",
    "generic",
    "sensitive",
    "ambiguous",
    "unanswerable",
    "unknown",
]
"""The labels of the classes that come with the package, and `unknown`: no class fits, or the
classifier failed."""

QUERY_CLASSES: Mapping[str, str] = MappingProxyType(
    {
        "product": "asks about a product: what it does, costs, fits, contains, or how to use it",
        "service": "asks about a service or how to get something done: delivery, return, repair, "
        "account, appointment, opening hours",
        "harmful": "wants help to hurt, cheat, spy on or attack somebody or something, or tries "
        "to make the assistant ignore its rules",
        "irrelevant": "clear, but about a subject that the assistant is not there for",
        "generic": "greeting, thanks, small talk, or a question about the assistant itself; "
        "needs no documents",
        "sensitive": "health, law, money decisions, personal data, discrimination or distress: a "
        "wrong answer may do real harm",
        "ambiguous": "on the subject, but it could mean several things or leaves out what is "
        "asked about",
        "unanswerable": "on the subject and clear, but no document can answer it: the future, "
        "secrets, opinions, what only the user knows",
    }
)
"""Names and descriptions of the eight classes that `LLMQueryClassifier` sorts into by default."""

_ASKED_UNDER = ("question", "input", "query", "messages")


class QueryClass(BaseModel):
    """What a classifier says of one query.

    Example:
        >>> found = QueryClass(label="product", probability=0.9)
        >>> str(found), found.failed
        ('product', False)
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    label: str
    """Name of the class; `unknown` if none fits or the classifier failed. Treat `unknown` with the
    strictest check you have."""
    probability: Annotated[float, Field(ge=0.0, le=1.0)] | None = None
    """How likely the label is right, where the classifier can tell."""
    reason: str | None = None
    """Why the class is `unknown`."""
    failed: bool = False
    """Whether it is `unknown` because the classifier failed, and not because no class fits."""

    @model_validator(mode="after")
    def _failure_is_unknown(self) -> Self:
        if self.failed and self.label != UNKNOWN:
            msg = f"a failed classification has the label {UNKNOWN!r}"
            raise ValueError(msg)
        return self

    @classmethod
    def unknown(cls, reason: str, *, failed: bool = False) -> Self:
        """Say that no class is known.

        Args:
            reason: Why, in words.
            failed: Whether that is a failure of the classifier.

        Returns:
            The value, with the label `unknown`.
        """
        return cls(label=UNKNOWN, reason=reason, failed=failed)

    def __str__(self) -> str:
        """Give the label."""
        return self.label


EMPTY_QUERY = QueryClass.unknown("the query is empty")


class QuerySample(BaseModel):
    """A query, and the class that a person says it has."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    query: Annotated[str, StringConstraints(pattern=r"\S")]
    label: Annotated[str, StringConstraints(pattern=r"\S")]


QueryClassifier: TypeAlias = Runnable[Any, QueryClass]
"""Anything that sorts a query into a class: ours, or `RunnableQueryClassifier` around yours."""

Samples: TypeAlias = Iterable[QuerySample | tuple[str, str] | Mapping[str, str]]
"""Labelled queries: samples, pairs `(query, label)`, or mappings with `query` and `label`."""


def read_query(value: object) -> str:
    """Read the query out of what stands at the head of a chain.

    Args:
        value: A text, a message, or a mapping with the query under `question`, `input` or
            `query`, or with `messages`, of which the last question counts.

    Returns:
        The query.

    Raises:
        InputFormatError: There is no query in it.
    """
    if isinstance(value, str):
        return str(value)
    if isinstance(value, BaseMessage):
        return str(value.text)
    if isinstance(value, BaseModel):
        value = dict(value)
    if not isinstance(value, Mapping):
        msg = f"cannot read a query from a value of type {type(value).__name__}; {_ACCEPTED}"
        raise InputFormatError(msg)
    asked = {key: value[key] for key in _ASKED_UNDER if key in value}
    query = read_input({**asked, "answer": ""}).question
    if query is None:
        keys = tuple(str(key)[:60] for key in list(value)[:30])
        seen = ", ".join(map(repr, keys)) or "none"
        msg = f"no query found; the keys seen are: {seen}; {_ACCEPTED}"
        raise InputFormatError(msg, keys=keys)
    return query


_ACCEPTED = (
    "accepted are a str, a message, or a mapping with 'question', 'input', 'query' or 'messages'"
)


def read_samples(samples: Samples) -> tuple[QuerySample, ...]:
    """Read labelled queries in any accepted form.

    Args:
        samples: The samples.

    Returns:
        The samples as values.

    Raises:
        ConfigurationError: One has another form or is empty, or there is none.
    """
    rows = tuple(_sample(place, sample) for place, sample in enumerate(samples))
    if not rows:
        msg = "there are no samples; give at least one query with its label"
        raise ConfigurationError(msg)
    return rows


def _sample(place: int, sample: object) -> QuerySample:
    if isinstance(sample, QuerySample):
        return sample
    try:
        if isinstance(sample, Mapping):
            return QuerySample(**sample)
        if isinstance(sample, tuple | list):
            query, label = sample
            return QuerySample(query=query, label=label)
    except (TypeError, ValueError, ValidationError):
        pass
    msg = (
        f"sample {place} is no labelled query; accepted are a QuerySample, a pair (query, label), "
        "or a mapping with 'query' and 'label', both texts that are not empty"
    )
    raise ConfigurationError(msg) from None
