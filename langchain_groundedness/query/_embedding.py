"""A classifier of queries that learns from labelled ones, by any LangChain embeddings."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Self, cast

import numpy as np
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import RunnableConfig
from pydantic import ConfigDict, Field
from typing_extensions import override

from langchain_groundedness._flow import Flow, adrive, drive
from langchain_groundedness._interruptions import exceptions_at_most
from langchain_groundedness._vectors import (
    Vectors,
    VectorsError,
    embedding_of_documents,
    unit_rows,
)
from langchain_groundedness.exceptions import (
    ConfigurationError,
    InputFormatError,
    VerificationError,
)
from langchain_groundedness.query._base import ClosedSetClassifier
from langchain_groundedness.query._ngrams import HashedNgramEmbeddings
from langchain_groundedness.query._values import (
    EMPTY_QUERY,
    UNKNOWN,
    QueryClass,
    Samples,
    read_query,
    read_samples,
)
from langchain_groundedness.query._weights import (
    EmbeddingsDescription,
    QueryWeights,
    SavedClassifier,
    fitted_weights,
    read_classifier,
    write_classifier,
)

__all__ = ["EmbeddingQueryClassifier"]


class EmbeddingQueryClassifier(ClosedSetClassifier):
    """Sorts queries by a logistic regression over their embeddings, fitted on queries of yours.

    `fit` needs scikit-learn (extra `classify`); a classifier that was saved and loaded needs
    numpy only. Queries are embedded with `embed_documents`, in `fit` as in use, so that models
    that embed queries and documents differently do it the same way both times.

    The classes are those of the samples: the eight shipped ones or any others. Give a hundred
    queries or more, written by people like those who will ask, and measure with `evaluate` on
    others.

    Example:
        >>> samples = [
        ...     ("Is the S2 waterproof?", "product"),
        ...     ("How heavy is the S2?", "product"),
        ...     ("Where is my order?", "service"),
        ...     ("Cancel my order, please", "service"),
        ... ]
        >>> classifier = EmbeddingQueryClassifier(min_probability=0.6).fit(samples)
        >>> classifier.invoke("Has my order left?").label
        'service'
        >>> classifier.invoke("Qui vive?").label
        'unknown'
    """

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    embeddings: Embeddings = Field(default_factory=HashedNgramEmbeddings)
    """Any LangChain embeddings; by default letters are counted, which needs no download."""
    min_probability: float = Field(default=0.3, ge=0.0, le=1.0)
    """A class less likely than this is `unknown`."""
    min_probability_of: Mapping[str, Annotated[float, Field(ge=0.0, le=1.0)]] = Field(
        default_factory=lambda: {"generic": 0.6}
    )
    """Counts where it is higher than `min_probability`, by class. By default for `generic`, whose
    queries routers may answer without a check. Queries of other classes taken for `generic` at 0.3
    and at 0.6: with counted letters 5.4 and 1.7 %, with MiniLM 1.7 and 1.0 % (cross-validated on
    the training half of `benchmarks/queries.jsonl`)."""
    regularization: float = Field(default=0.1, gt=0.0)
    """Weight of the penalty on large weights in `fit`; more makes all probabilities more equal."""
    batch_size: int = Field(default=1024, ge=1)
    """Most texts in one call of the embeddings."""
    fitted: QueryWeights | None = Field(default=None, repr=False)
    """What was learnt; `fit` and `load` set it."""

    def fit(self, samples: Samples) -> Self:
        """Learn from labelled queries; what was learnt before is kept until this has succeeded.

        Args:
            samples: `QuerySample`s, pairs `(query, label)`, or mappings with `query` and `label`;
                at least two labels.

        Returns:
            The classifier itself.

        Raises:
            ConfigurationError: The samples cannot be learnt from.
            MissingDependencyError: scikit-learn is not installed.
        """
        rows = read_samples(samples)
        labels = sorted({row.label for row in rows})
        if len(labels) < 2 or UNKNOWN in labels:  # noqa: PLR2004  (one class sorts nothing)
            msg = (
                f"samples must have at least 2 different labels, none of them {UNKNOWN!r}; got "
                f"{len(labels)} different ones"
            )
            raise ConfigurationError(msg)
        self.fitted = fitted_weights(
            self._vectors([row.query for row in rows]),
            [row.label for row in rows],
            embeddings=EmbeddingsDescription.of(self.embeddings),
            regularization=self.regularization,
        )
        return self

    def save(self, path: str | Path) -> None:
        """Write what was learnt, and the options, as JSON.

        Args:
            path: Where to; a file that is there is replaced as a whole.

        Raises:
            ConfigurationError: Nothing was learnt yet.
            OSError: The file cannot be written.
        """
        saved = SavedClassifier(
            min_probability=self.min_probability,
            min_probability_of=dict(self.min_probability_of),
            regularization=self.regularization,
            fitted=self._learnt(),
        )
        write_classifier(Path(path), saved)

    @classmethod
    def load(cls, path: str | Path, **options: Any) -> Self:
        """Make a classifier of a saved file; it needs no scikit-learn.

        Args:
            path: A file that `save` wrote. It holds numbers and names; nothing in it is executed.
            **options: Options of the class, in the place of the saved ones; `embeddings` must be
                given if other than the default ones were fitted with.

        Returns:
            The classifier.

        Raises:
            ConfigurationError: The file is damaged or something else, or the embeddings are not
                those that it was fitted with, as far as their names tell.
            OSError: The file cannot be read.
        """
        saved = dict(read_classifier(Path(path)))
        kept = {name: saved[name] for name in cls.model_fields if name in saved}
        made, fitted = cls(**(kept | options)), kept["fitted"]
        given = EmbeddingsDescription.of(made.embeddings)
        if given != fitted.embeddings:
            msg = (
                f"{Path(path).name} was fitted with {fitted.embeddings}, not with {given}: give "
                "those as embeddings=, or fit again"
            )
            raise ConfigurationError(msg)
        return made

    @override
    def batch(
        self,
        inputs: list[Any],
        config: RunnableConfig | list[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **kwargs: Any,
    ) -> list[QueryClass]:
        def run(values: list[Any], config: list[RunnableConfig]) -> list[Exception | QueryClass]:
            return drive(self._flow_of_all(values), config[0])

        return exceptions_at_most(
            self._batch_with_config(
                cast("Any", run), inputs, config, return_exceptions=return_exceptions, **kwargs
            )
        )

    @override
    async def abatch(
        self,
        inputs: list[Any],
        config: RunnableConfig | list[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **kwargs: Any,
    ) -> list[QueryClass]:
        async def run(
            values: list[Any], config: list[RunnableConfig]
        ) -> list[Exception | QueryClass]:
            return await adrive(self._flow_of_all(values), config[0])

        return exceptions_at_most(
            await self._abatch_with_config(
                cast("Any", run), inputs, config, return_exceptions=return_exceptions, **kwargs
            )
        )

    @override
    def _classify(self, query: str) -> Flow[QueryClass]:
        return self._only(self._outcomes(self._learnt(), [query]))

    def _only(self, flow: Flow[list[Exception | QueryClass]]) -> Flow[QueryClass]:
        [outcome] = yield from flow
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def _flow_of_all(self, values: Sequence[Any]) -> Flow[list[Exception | QueryClass]]:
        """Sort many queries with as few calls as possible; each has an outcome of its own."""
        fitted, queries = self._learnt(), [_read(value) for value in values]
        texts = list(dict.fromkeys(q for q in queries if isinstance(q, str) and q.strip()))
        outcomes = yield from self._outcomes(fitted, texts)
        found = dict(zip(texts, map(self._settled, outcomes), strict=True))
        return [
            query if isinstance(query, Exception) else found.get(query, EMPTY_QUERY)
            for query in queries
        ]

    def _settled(self, outcome: Exception | QueryClass) -> Exception | QueryClass:
        if isinstance(outcome, QueryClass):
            return outcome
        try:
            return self._failure(outcome)
        except VerificationError as exc:
            return exc

    def _outcomes(
        self, fitted: QueryWeights, queries: Sequence[str]
    ) -> Flow[list[Exception | QueryClass]]:
        outcomes: list[Exception | QueryClass] = []
        for first in range(0, len(queries), self.batch_size):
            chunk = queries[first : first + self.batch_size]
            try:
                reply = yield embedding_of_documents(self.embeddings, chunk)
                vectors = _of_size(fitted.size, unit_rows(reply, texts=len(chunk)))
            except Exception as exc:  # noqa: BLE001  (a service may fail in any way)
                outcomes += [exc] * len(chunk)
            else:
                # Row by row: a sum over many rows at once may differ in its last digit.
                outcomes += map(partial(self._class, fitted), vectors)
        return outcomes

    def _class(self, fitted: QueryWeights, vector: Vectors) -> Exception | QueryClass:
        if np.isnan(vector).any():
            msg = "the embedding of the query is zero or not a number"
            return VectorsError(msg)
        shares = fitted.probabilities(vector)
        best = int(shares.argmax())
        label, probability = fitted.labels[best], min(float(shares[best]), 1.0)
        least = max(self.min_probability, self.min_probability_of.get(label, 0.0))
        if probability < least:
            return QueryClass.unknown(
                f"the likeliest class, {label}, has a probability of {probability:.2f}, below "
                f"{least:.2f}"
            )
        return QueryClass(label=label, probability=probability)

    def _vectors(self, texts: Sequence[str]) -> Vectors:
        """Embed samples; that one of them has no vector is an error."""
        size = self.batch_size
        chunks = [list(texts[first : first + size]) for first in range(0, len(texts), size)]
        replies = [(self.embeddings.embed_documents(chunk), len(chunk)) for chunk in chunks]
        try:
            vectors = _joined([unit_rows(reply, texts=count) for reply, count in replies])
        except VectorsError as exc:
            msg = f"{exc}: give other embeddings="
            raise ConfigurationError(msg) from None
        if np.isnan(vectors).any():
            place = int(np.isnan(vectors).any(axis=1).argmax())
            msg = (
                f"the embedding of sample {place} is zero or not a number: leave the sample out, "
                "or give other embeddings="
            )
            raise ConfigurationError(msg)
        return vectors

    def _learnt(self) -> QueryWeights:
        if self.fitted is None:
            msg = (
                f"{type(self).__name__} has not learnt anything yet: call fit(samples), or make "
                "it with load(path)"
            )
            raise ConfigurationError(msg)
        return self.fitted


def _read(value: Any) -> str | InputFormatError:
    try:
        return read_query(value)
    except InputFormatError as exc:
        return exc


def _joined(parts: Sequence[Vectors]) -> Vectors:
    sizes = sorted({part.shape[1] for part in parts})
    if len(sizes) > 1:
        msg = f"the embeddings come in sizes {sizes}"
        raise VectorsError(msg)
    return np.concatenate(parts)


def _of_size(size: int, vectors: Vectors) -> Vectors:
    if vectors.shape[1] != size:
        msg = (
            f"the embeddings have {vectors.shape[1]} numbers, the classifier was fitted with "
            f"{size}: give the same embeddings=, or fit again"
        )
        raise VectorsError(msg)
    return vectors
