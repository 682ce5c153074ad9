"""Before the answer: which kind of query it is, and whether retrieval found anything close.

Classifiers of queries are runnables that give a `QueryClass`; LangChain's `RunnableBranch` routes
by it. `LLMQueryClassifier` asks a chat model, `EmbeddingQueryClassifier` learns from labelled
queries, `RunnableQueryClassifier` takes any runnable of yours. One that fails gives the label
`unknown`, which a router must check as strictly as it can, never skip:

    RunnableBranch(
        (lambda x: x["query_class"].label == "harmful", refuse),
        (lambda x: x["query_class"].label == "generic", answer_unchecked),
        (lambda x: x["query_class"].label in ("sensitive", "unknown"), check_strictly),
        check,
    )
"""

import logging
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from enum import Enum
from functools import lru_cache
from typing import Annotated, Any, Literal, Self

from langchain_core.callbacks import AsyncCallbackManagerForChainRun, CallbackManagerForChainRun
from langchain_core.prompts.chat import BaseChatPromptTemplate
from langchain_core.runnables import RunnableConfig, RunnableSerializable, patch_config
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    create_model,
    model_validator,
)
from typing_extensions import override

from langchain_groundedness._runtime.flow import Flow, ModelCall, adrive, drive
from langchain_groundedness._runtime.options import AnyRunnable, CheckedOptions
from langchain_groundedness.exceptions import GroundednessError, VerificationError, cause
from langchain_groundedness.llm.chat_models import ChatModel
from langchain_groundedness.llm.prompts import QUERY_PROMPT, check_prompt, fence, fold_space
from langchain_groundedness.llm.structured import StructuredModel
from langchain_groundedness.llm.timeouts import PATIENCE, Seconds
from langchain_groundedness.query.values import (
    EMPTY_QUERY,
    QUERY_CLASSES,
    UNKNOWN,
    QueryClass,
    QueryReport,
    Samples,
    read_query,
    read_samples,
)

__all__ = ["ClosedSetClassifier", "LLMQueryClassifier", "RunnableQueryClassifier"]

_NONE = "None"

_LEAD = re.compile(
    r"^\W*(?:(?:the|best|query)[ _]+)*(?:class|category|label|answer)(?: is)?\W*:", re.IGNORECASE
)

_NO_CLASS = "no class fits the query"


class ClosedSetClassifier(CheckedOptions, RunnableSerializable[Any, QueryClass], ABC):
    """Sorts queries into classes of a closed set; what goes wrong ends as `unknown`."""

    raise_on_failure: bool = False
    """Raise `VerificationError` where the class would be `unknown` because something failed."""

    @abstractmethod
    def _classify(self, query: str) -> Flow[QueryClass]:
        """Sort one query that is not empty.

        What is raised before the first call comes through to the caller; what is raised by a call
        or after it is a failure.
        """

    @override
    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> QueryClass:
        return self._call_with_config(self._run, input, config, **kwargs)

    @override
    async def ainvoke(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> QueryClass:
        return await self._acall_with_config(self._arun, input, config, **kwargs)

    def evaluate(self, samples: Samples, config: RunnableConfig | None = None) -> QueryReport:
        """Measure the classifier on queries whose class is known."""
        rows = read_samples(samples)
        found = self.batch([row.query for row in rows], config)
        return QueryReport.of([row.label for row in rows], found)

    def _run(
        self, value: Any, run_manager: CallbackManagerForChainRun, config: RunnableConfig
    ) -> QueryClass:
        return drive(self._flow(value), patch_config(config, callbacks=run_manager.get_child()))

    async def _arun(
        self, value: Any, run_manager: AsyncCallbackManagerForChainRun, config: RunnableConfig
    ) -> QueryClass:
        child = patch_config(config, callbacks=run_manager.get_child())
        return await adrive(self._flow(value), child)

    def _flow(self, value: Any) -> Flow[QueryClass]:
        query = read_query(value)
        if not query.strip():
            return EMPTY_QUERY
        flow = self._classify(query)
        try:
            return (yield from flow)
        except Exception as exc:  # noqa: BLE001  (a model may fail in any way)
            return self._failure(exc)

    def _failure(self, error: Exception) -> QueryClass:
        why = str(error) if isinstance(error, GroundednessError) else cause(error)
        if self.raise_on_failure:
            msg = f"the query could not be classified ({why})"
            raise VerificationError(msg) from error
        logger.warning("a query could not be classified: %s", type(error).__name__)
        return QueryClass.unknown(f"the classifier failed: {why}", failed=True)


class LLMQueryClassifier(ClosedSetClassifier):
    """Sorts queries with a chat model, in one call, into classes that you describe.

    The input is a text, a message, or a mapping with `question`, `input` or `query`. The model
    must name one class of the list, or none; a reply that names no class is asked for once more.
    A model that fails, refuses or names nothing on the list gives `unknown` with `failed=True`.
    No probability is given: what a model says of its own certainty means little.

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

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    model: ChatModel
    """The chat model, plain or bound."""
    classes: Mapping[str, str] = Field(default_factory=lambda: dict(QUERY_CLASSES))
    """Descriptions by name; both stand in the prompt as they are, so they must be yours. The
    shipped ones cannot say what your assistant is there for: name your subject in them."""
    prompt: BaseChatPromptTemplate | None = None
    """Instead of `prompts.QUERY_PROMPT`; it must have the same variables and ask for a name."""
    timeout: Seconds = PATIENCE
    """Seconds to wait for one reply of the model; `None` leaves it to the model's client."""

    @model_validator(mode="after")
    def _usable(self) -> Self:
        _check_names(tuple(self.classes))
        check_prompt(self.prompt or QUERY_PROMPT, required={"classes", "question"})
        return self

    @override
    @classmethod
    def is_lc_serializable(cls) -> bool:
        return True

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
        lines = (f"{name}: {fold_space(text)}" for name, text in self.classes.items())
        values = {"classes": "\n".join(lines), "question": fence("question", query)}
        reply = yield ModelCall(ask, values)
        if reply.query_class == _NONE:
            return QueryClass.unknown(_NO_CLASS)
        return QueryClass(label=reply.query_class)


class RunnableQueryClassifier(ClosedSetClassifier):
    """Makes a classifier of any runnable or function from a query to the name of its class.

    A runnable that gives names can stand in a chain without this; with it, a failure, and a name
    that is not on the list, end as `unknown` with `failed=True`, so that they are routed to the
    strictest check.

    Example:
        >>> def by_word(query: str) -> str:
        ...     return "service" if "order" in query else "prodct"
        >>> classifier = RunnableQueryClassifier(classifier=by_word)
        >>> classifier.invoke("Where is my order?").label
        'service'
        >>> classifier.invoke({"question": "Is it waterproof?"}).reason
        'the classifier failed: it named a class that is not among its classes='
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

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
    @classmethod
    def is_lc_serializable(cls) -> bool:
        return True

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
    """A classifier answered something that is no class."""


def _check_names(names: tuple[str, ...]) -> None:
    if len(names) < 2:  # noqa: PLR2004  (one class sorts nothing)
        msg = f"classes must name at least 2 classes, got {len(names)}"
        raise ValueError(msg)
    if any(name != fold_space(name) or not name for name in names):
        msg = "the name of a class must be one line of text without spaces around it"
        raise ValueError(msg)
    folded = {_folded(name) for name in names}
    if len(folded) < len(names):
        msg = "two classes have the same name but for case and punctuation"
        raise ValueError(msg)
    if reserved := folded & {_folded(_NONE), UNKNOWN, ""}:
        msg = f"no class may be called {min(reserved)!r}: that is what no class is called"
        raise ValueError(msg)


@lru_cache(maxsize=32)
def _reply_schema(names: tuple[str, ...]) -> type[BaseModel]:
    """Make the closed set a schema, to which some models can be held while they write."""
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
