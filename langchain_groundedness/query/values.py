"""What classifiers of queries say, and what they are told: values without logic."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
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
from langchain_groundedness.inputs.formats import read_input

__all__ = [
    "EMPTY_QUERY",
    "QUERY_CLASSES",
    "UNKNOWN",
    "ClassFigures",
    "QueryClass",
    "QueryClassifier",
    "QueryLabel",
    "QueryReport",
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
    """Read the query out of what stands at the head of a chain."""
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
    """Read labelled queries in any accepted form."""
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


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ClassFigures(_Value):
    """How well queries of one class are found."""

    label: str
    samples: int
    """Queries that have this class."""
    precision: float | None
    """Share of the queries given this class that have it; `None` if no query was given it."""
    recall: float | None
    """Share of the queries that have this class that were given it; `None` if none has it."""
    f1: float
    """Harmonic mean of the two: 2 x right / (given + had); 0 if none is right."""


class QueryReport(_Value):
    """What `evaluate` found; `print` shows it as a table.

    Example:
        >>> said = [QueryClass(label="product"), QueryClass.unknown("unclear")]
        >>> report = QueryReport.of(["product", "service"], said)
        >>> report.accuracy, report.confusion[report.labels.index("service")]
        (0.5, (0, 0, 1))
    """

    samples: int
    accuracy: float
    """Share of all queries that were given their class."""
    macro_precision: float
    """Mean over the classes that queries have; a class that was never given counts as 0."""
    macro_recall: float
    """Mean over the classes that queries have."""
    macro_f1: float
    """Mean over the classes that queries have."""
    unknown: int
    """Queries that were given no class."""
    failed: int
    """Those of them on which the classifier failed."""
    labels: tuple[str, ...]
    """Names of the rows and columns of `confusion`: all labels that were had or given."""
    confusion: tuple[tuple[int, ...], ...]
    """`confusion[i][j]`: how many queries of class `labels[i]` were given `labels[j]`."""
    per_class: tuple[ClassFigures, ...]
    """In the order of `labels`."""

    @classmethod
    def of(cls, truth: Sequence[str], said: Sequence[QueryClass]) -> Self:
        """Compare what a classifier said with what is true.

        Args:
            truth: The class of each query.
            said: What was said of each, in the same order.

        Returns:
            The report.
        """
        labels = tuple(dict.fromkeys([*truth, *(found.label for found in said)]))
        pairs = Counter(zip(truth, (found.label for found in said), strict=True))
        confusion = tuple(tuple(pairs[row, column] for column in labels) for row in labels)
        figures = tuple(_figures(label, place, confusion) for place, label in enumerate(labels))
        had = [found for found in figures if found.samples]
        return cls(
            samples=len(truth),
            accuracy=_mean(float(t == s.label) for t, s in zip(truth, said, strict=True)),
            macro_precision=_mean(found.precision or 0.0 for found in had),
            macro_recall=_mean(found.recall or 0.0 for found in had),
            macro_f1=_mean(found.f1 for found in had),
            unknown=sum(found.label == "unknown" for found in said),
            failed=sum(found.failed for found in said),
            labels=labels,
            confusion=confusion,
            per_class=figures,
        )

    def __str__(self) -> str:
        """Give the figures as a table, with the confusion matrix below it."""
        wide = max(len(label) for label in (*self.labels, "macro mean")) + 1
        lines = [f"{'':{wide}}{'precision':>10}{'recall':>8}{'F1':>7}{'samples':>9}"]
        lines += [
            f"{c.label:{wide}}{_shown(c.precision):>10}{_shown(c.recall):>8}{c.f1:7.2f}"
            f"{c.samples:9}"
            for c in self.per_class
        ]
        lines.append(
            f"{'macro mean':{wide}}{self.macro_precision:10.2f}{self.macro_recall:8.2f}"
            f"{self.macro_f1:7.2f}{self.samples:9}"
        )
        counts = f"accuracy {self.accuracy:.3f}, unknown {self.unknown}, failed {self.failed}"
        numbers = "".join(f"{number:5}" for number in range(1, len(self.labels) + 1))
        matrix = [f"{'was / was called':{wide + 3}}{numbers}"] + [
            f"{place:2} {label:{wide}}" + "".join(f"{count or '.':>5}" for count in row)
            for place, (label, row) in enumerate(zip(self.labels, self.confusion, strict=True), 1)
        ]
        return "\n".join([*lines, "", counts, "", *matrix])


def _figures(label: str, place: int, confusion: Sequence[Sequence[int]]) -> ClassFigures:
    right, had = confusion[place][place], sum(confusion[place])
    given = sum(row[place] for row in confusion)
    return ClassFigures(
        label=label,
        samples=had,
        precision=right / given if given else None,
        recall=right / had if had else None,
        f1=2 * right / (given + had),
    )


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return sum(listed) / len(listed)


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
