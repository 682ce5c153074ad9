"""Query classifiers, their results and their evaluation."""

import logging
import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from functools import lru_cache
from statistics import fmean
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, Self, TypeAlias

from langchain_core.messages import BaseMessage
from langchain_core.prompts.chat import BaseChatPromptTemplate
from langchain_core.runnables import Runnable, RunnableConfig
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    create_model,
    model_validator,
)
from typing_extensions import override

from langchain_groundedness._runtime.flow import Flow, FlowRunnable, ModelCall
from langchain_groundedness._runtime.options import AnyRunnable, CheckedOptions
from langchain_groundedness._runtime.timeouts import DEFAULT_TIMEOUT, Seconds
from langchain_groundedness.exceptions import (
    ConfigurationError,
    GroundednessError,
    InputFormatError,
    VerificationError,
    cause,
)
from langchain_groundedness.inputs.formats import read_input
from langchain_groundedness.llm.chat_models import ChatModel
from langchain_groundedness.llm.prompts import QUERY_PROMPT, check_prompt, fence, on_one_line
from langchain_groundedness.llm.structured import StructuredModel
from langchain_groundedness.types import FrozenModel

__all__ = [
    "EMPTY_QUERY",
    "QUERY_CLASSES",
    "UNKNOWN",
    "ClassFigures",
    "ClosedSetClassifier",
    "LLMQueryClassifier",
    "QueryClass",
    "QueryClassifier",
    "QueryLabel",
    "QueryReport",
    "QuerySample",
    "RunnableQueryClassifier",
    "Samples",
    "missing_query_error",
    "read_query",
    "read_samples",
]

UNKNOWN: Final = "unknown"

QueryLabel = Literal[
    "product", "service", "harmful", "irrelevant", "generic", "sensitive", "ambiguous",
    "unanswerable", "unknown",
]  # fmt: skip
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

_QUERY_KEYS = ("question", "input", "query", "messages")


class QueryClass(FrozenModel):
    """A classifier's result for one query.

    Example:
        >>> found = QueryClass(label="product", probability=0.9)
        >>> str(found), found.failed
        ('product', False)
    """

    label: str
    """Name of the class; `unknown` if none fits or the classifier failed. Treat `unknown` with the
    strictest check you have."""
    probability: Annotated[float, Field(ge=0.0, le=1.0)] | None = None
    """Probability that the label is right, if the classifier gives one."""
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


class QuerySample(FrozenModel):
    """A query, and its class according to a person."""

    query: Annotated[str, StringConstraints(pattern=r"\S")]
    label: Annotated[str, StringConstraints(pattern=r"\S")]


QueryClassifier: TypeAlias = Runnable[Any, QueryClass]
"""Anything that sorts a query into a class: ours, or `RunnableQueryClassifier` around yours."""

Samples: TypeAlias = Iterable[QuerySample | tuple[str, str] | Mapping[str, str]]
"""Labelled queries: samples, pairs `(query, label)`, or mappings with `query` and `label`."""


def read_query(value: object) -> str:
    """Read the query from the input of a chain."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, BaseMessage):
        return str(value.text)
    if isinstance(value, BaseModel):
        value = dict(value)
    if not isinstance(value, Mapping):
        msg = f"cannot read a query from a value of type {type(value).__name__}; {_ACCEPTED}"
        raise InputFormatError(msg)
    asked = {key: value[key] for key in _QUERY_KEYS if key in value}
    query = read_input({**asked, "answer": ""}).question
    if query is None:
        raise missing_query_error(value, "query", _ACCEPTED)
    return query


def missing_query_error(value: Mapping[Any, Any], wanted: str, accepted: str) -> InputFormatError:
    """Make the error of an input without a question."""
    keys = tuple(str(key)[:60] for key in list(value)[:30])
    seen = ", ".join(map(repr, keys)) or "none"
    return InputFormatError(f"no {wanted} found; the keys seen are: {seen}; {accepted}", keys=keys)


_ACCEPTED = (
    "accepted are a str, a message, or a mapping with 'question', 'input', 'query' or 'messages'"
)


def read_samples(samples: Samples) -> tuple[QuerySample, ...]:
    """Read labelled queries in any accepted form."""
    rows: list[QuerySample] = []
    for place, sample in enumerate(samples):
        try:
            named: Any = sample
            if isinstance(sample, tuple | list):
                named = dict(zip(("query", "label"), sample, strict=True))
            rows.append(QuerySample.model_validate(named))
        except ValueError:
            msg = (
                f"sample {place} is not a labelled query; accepted are a QuerySample, a pair "
                "(query, label), or a mapping with 'query' and 'label', both texts that are not "
                "empty"
            )
            raise ConfigurationError(msg) from None
    if not rows:
        msg = "there are no samples; give at least one query with its label"
        raise ConfigurationError(msg)
    return tuple(rows)


class ClassFigures(FrozenModel):
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


class QueryReport(FrozenModel):
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
            said: The result for each query, in the same order.

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
            accuracy=sum(pairs[label, label] for label in labels) / len(truth),
            macro_precision=fmean(found.precision or 0.0 for found in had),
            macro_recall=fmean(found.recall or 0.0 for found in had),
            macro_f1=fmean(found.f1 for found in had),
            unknown=sum(found.label == UNKNOWN for found in said),
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


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


_NONE = "None"

_LEAD = re.compile(
    r"^\W*(?:(?:the|best|query)[ _]+)*(?:class|category|label|answer)(?: is)?\W*:", re.IGNORECASE
)

_NO_CLASS = "no class fits the query"


class ClosedSetClassifier(CheckedOptions, FlowRunnable[Any, QueryClass]):
    """Sorts queries into a closed set of classes; failures become `unknown`."""

    _is_quiet = False
    raise_on_failure: bool = False
    """Raise `VerificationError` where the class would be `unknown` because something failed."""

    def evaluate(self, samples: Samples, config: RunnableConfig | None = None) -> QueryReport:
        """Measure the classifier on queries whose class is known."""
        rows = read_samples(samples)
        found = self.batch([row.query for row in rows], config)
        return QueryReport.of([row.label for row in rows], found)

    def _failure(self, error: Exception) -> QueryClass:
        why = str(error) if isinstance(error, GroundednessError) else cause(error)
        if self.raise_on_failure:
            msg = f"the query could not be classified ({why})"
            raise VerificationError(msg) from error
        logger.warning("a query could not be classified: %s", type(error).__name__)
        return QueryClass.unknown(f"the classifier failed: {why}", failed=True)


class _SingleCallClassifier(ClosedSetClassifier):
    """Asks one model or function for the class of each query."""

    @abstractmethod
    def _classify(self, query: str) -> Flow[QueryClass]:
        """Sort one query that is not empty; what is raised is a failure of the classifier."""

    @override
    def _flow(self, value: Any, /, **_: Any) -> Flow[QueryClass]:
        query = read_query(value)
        if not query.strip():
            return EMPTY_QUERY
        try:
            return (yield from self._classify(query))
        except Exception as exc:  # noqa: BLE001  (a model may fail in any way)
            return self._failure(exc)


class LLMQueryClassifier(_SingleCallClassifier):
    """Sorts queries with a chat model, in one call, into classes that you describe.

    The input is a text, a message, or a mapping with `question`, `input` or `query`. The model
    must name one class of the list, or none; a reply that names no class is asked for once more.
    A model that fails, refuses or names nothing on the list gives `unknown` with `failed=True`.
    No probability is given: what a model says about its own certainty means little.

    Whoever writes the query can try to talk the model into a class. It is fenced as data, but do
    not give any class rights that a stranger should not have.

    Example:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> model = FakeListChatModel(responses=["product", "None"])
        >>> classifier = LLMQueryClassifier(model=model)
        >>> classifier.invoke("Is the S2 waterproof?")
        QueryClass(label='product', probability=None, reason=None, failed=False)
        >>> classifier.invoke({"input": "Blargh?"}).label
        'unknown'
    """

    _can_be_saved = True

    model: ChatModel
    """A chat model, or its name as `provider:name`."""
    classes: Mapping[str, str] = Field(default_factory=lambda: dict(QUERY_CLASSES))
    """Descriptions by name; both are put into the prompt unchanged, so never take them from
    outside. The shipped ones do not know what your assistant is for: name your subject in them."""
    prompt: BaseChatPromptTemplate | None = None
    """Instead of `prompts.QUERY_PROMPT`; it must have the same variables and ask for a name."""
    timeout: Seconds = DEFAULT_TIMEOUT
    """Seconds to wait for one reply of the model; `None` leaves it to the model's client."""

    @model_validator(mode="after")
    def _usable(self) -> Self:
        _check_names(tuple(self.classes))
        check_prompt(self.prompt or QUERY_PROMPT, required={"classes", "question"})
        return self

    @override
    def _classify(self, query: str) -> Flow[QueryClass]:
        names = tuple(self.classes)
        ask = StructuredModel[Any](
            model=self.model,
            prompt=self.prompt or QUERY_PROMPT,
            reply_schema=_reply_schema(names),
            name="classify_query",
            from_text=lambda text: _read_text(text, names),
            timeout=self.timeout,
        )
        lines = (f"{name}: {on_one_line(text)}" for name, text in self.classes.items())
        values = {"classes": "\n".join(lines), "question": fence("question", query)}
        reply = yield ModelCall(ask, values)
        if reply.query_class == _NONE:
            return QueryClass.unknown(_NO_CLASS)
        return QueryClass(label=reply.query_class)


class RunnableQueryClassifier(_SingleCallClassifier):
    """Makes a classifier of any runnable or function from a query to the name of its class.

    A runnable that returns names works in a chain without this; with it, a failure, or a name that
    is not on the list, becomes `unknown` with `failed=True`, so it is routed to the strictest
    check.

    Example:
        >>> def by_word(query: str) -> str:
        ...     return "service" if "order" in query else "prodct"
        >>> classifier = RunnableQueryClassifier(classifier=by_word)
        >>> classifier.invoke("Where is my order?").label
        'service'
        >>> classifier.invoke({"question": "Is it waterproof?"}).reason
        'the classifier failed: it named a class that is not among its classes='
    """

    _can_be_saved = True

    classifier: AnyRunnable
    """Gets the query as a text; gives a name, a member of an `Enum` of names, a `QueryClass`, or
    `None`, which like `"None"` and `"unknown"` means that no class fits."""
    classes: tuple[str, ...] = Field(default_factory=lambda: tuple(QUERY_CLASSES))
    """The names it may give, whatever their case."""

    @model_validator(mode="after")
    def _usable(self) -> Self:
        _check_names(self.classes)
        return self

    @override
    def _classify(self, query: str) -> Flow[QueryClass]:
        said = yield ModelCall(self.classifier, query)
        found = said if isinstance(said, QueryClass) else None
        label = said.value if isinstance(said, Enum) else said
        label = found.label if found else UNKNOWN if label is None else label
        if not isinstance(label, str):
            msg = f"it gave a {type(said).__name__}, which is neither a name nor a QueryClass"
            raise _NoClassError(msg)
        name = _canonical(label, self.classes)
        if name in (_NONE, UNKNOWN):
            return found if found and name == UNKNOWN else QueryClass.unknown(_NO_CLASS)
        if name not in self.classes:
            msg = "it named a class that is not among its classes="
            raise _NoClassError(msg)
        return QueryClass(label=name, probability=found.probability if found else None)


class _NoClassError(GroundednessError):
    """A classifier returned something other than a class."""


def _check_names(names: tuple[str, ...]) -> None:
    if len(names) < 2:  # noqa: PLR2004  (one class sorts nothing)
        msg = f"classes must name at least 2 classes, got {len(names)}"
        raise ValueError(msg)
    if any(name != on_one_line(name) or not name for name in names):
        msg = "the name of a class must be one line of text without spaces around it"
        raise ValueError(msg)
    folded = {_folded(name) for name in names}
    if len(folded) < len(names):
        msg = "two classes have the same name but for case and punctuation"
        raise ValueError(msg)
    if reserved := folded & {_folded(_NONE), UNKNOWN, ""}:
        msg = f"no class may be called {min(reserved)!r}: that label means that no class fits"
        raise ValueError(msg)


@lru_cache(maxsize=32)
def _reply_schema(names: tuple[str, ...]) -> type[BaseModel]:
    """Make a schema of the closed set, for models with structured output."""
    choice = Annotated[
        Literal[(*names, _NONE)],  # type: ignore[valid-type]  # made at run time
        BeforeValidator(lambda value: _canonical(value, names)),
    ]
    schema: type[BaseModel] = create_model(
        "QueryClassReply",
        __config__=ConfigDict(extra="forbid"),
        __doc__="The class that fits the question best.",
        query_class=(choice, ...),
    )
    return schema


def _read_text(text: str, names: tuple[str, ...]) -> BaseModel | None:
    """Read a plain reply: a name on its first line, alone or as in `Class: name`."""
    first = next((line for line in text.splitlines() if _folded(line)), "")
    name = _canonical(_LEAD.sub("", first), names)
    return _reply_schema(names)(query_class=name) if name in (*names, _NONE) else None


def _canonical(value: Any, names: tuple[str, ...]) -> Any:
    """Give the name on the list that a text means, or the value as it is."""
    if not isinstance(value, str):
        return value
    meant = {_folded(name): name for name in (*names, _NONE, UNKNOWN)}
    return meant.get(_folded(value), value)


def _folded(name: str) -> str:
    return name.strip(" \t\n\r\"'`*_.#-[](){}<>").casefold()


logger = logging.getLogger("langchain_groundedness")
