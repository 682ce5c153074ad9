"""A query classifier trained on labelled queries, with any LangChain embeddings."""

import hashlib
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, TypedDict, Unpack

import numpy as np
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import RunnableConfig
from pydantic import ConfigDict, Field, FiniteFloat, ValidationError, model_validator
from typing_extensions import override

from langchain_groundedness._runtime.files import read_up_to, replace_file
from langchain_groundedness._runtime.flow import Flow, JointBatch, adrive, drive
from langchain_groundedness._runtime.options import CheckedOptions, expand_options
from langchain_groundedness.exceptions import (
    ConfigurationError,
    InputFormatError,
    VerificationError,
    require,
)
from langchain_groundedness.llm.embeddings import (
    Vectors,
    VectorsError,
    embedding_of_documents,
    unit_rows,
)
from langchain_groundedness.query.classifiers import (
    EMPTY_QUERY,
    UNKNOWN,
    ClosedSetClassifier,
    QueryClass,
    Samples,
    read_query,
    read_samples,
)
from langchain_groundedness.text.words import fold
from langchain_groundedness.types import FrozenModel

__all__ = ["EmbeddingQueryClassifier", "HashedNgramEmbeddings", "QueryWeights"]


class HashedNgramEmbeddings(CheckedOptions, Embeddings):
    """Embeds a text by the character n-grams of its words, with no model and no download.

    Each run of `shortest` to `longest` characters of a word, and each whole word, which counts
    three times, is hashed to a place in the vector and to a sign (feature hashing, Weinberger et
    al. 2009); the vector has length one, or is zero for a blank
    text. The same text has the same vector in every process and on every platform. Texts lie
    close together if they share words or parts of words; what they mean plays no part, so that a
    paraphrase without a common word is far away.

    Example:
        >>> a, b, c = HashedNgramEmbeddings().embed_documents(
        ...     ["Where is my order?", "My orders are late", "Sing a song"]
        ... )
        >>> dot = lambda x, y: sum(p * q for p, q in zip(x, y))
        >>> dot(a, b) > 2 * abs(dot(a, c))
        True
    """

    size: int = Field(default=2048, ge=16)
    """Size of a vector; the smaller it is, the more n-grams share a place."""
    shortest: int = Field(default=2, ge=1)
    """Fewest characters in a run; the edge of a word counts as one."""
    longest: int = Field(default=4, ge=1)
    """Most characters in a run."""

    @model_validator(mode="after")
    def _ordered(self) -> Any:
        if self.longest < self.shortest:
            msg = f"longest must not be below shortest, got {self.shortest} and {self.longest}"
            raise ValueError(msg)
        return self

    @property
    def model_name(self) -> str:
        """What the vectors depend on, as a name."""
        return f"hashed-ngrams-v1-{self.shortest}-{self.longest}-{self.size}"

    @override
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    @override
    def embed_query(self, text: str) -> list[float]:
        vector = np.zeros(self.size)
        for (kind, run), count in Counter(self._ngrams(text)).items():
            number = _hashed(kind + run)
            weight = 1 + math.log(count)
            if kind == _WHOLE:
                weight *= _WORD_WEIGHT
            vector[number % self.size] += weight if number >> 63 else -weight
        length = float(np.linalg.norm(vector))
        values: list[float] = (vector / length if length else vector).tolist()
        return values

    def _ngrams(self, text: str) -> Iterator[tuple[str, str]]:
        folded = fold(text)
        for word in _WORD.findall(folded) or folded.split():
            yield _WHOLE, word
            edged = f" {word} "
            for length in range(self.shortest, self.longest + 1):
                for start in range(len(edged) - length + 1):
                    yield "", edged[start : start + length]


class EmbeddingsDescription(FrozenModel):
    """Identifies the embeddings that weights belong to."""

    kind: str
    """Name of the class."""
    model: str | None
    """Name of the model; of a path, its last part."""

    @classmethod
    def of(cls, embeddings: Embeddings) -> Self:
        """Describe embeddings, without anything that may be secret."""
        names = (getattr(embeddings, attribute, None) for attribute in _MODEL_NAME_FIELDS)
        model = next((name for name in names if isinstance(name, str) and name), None)
        last = re.split(r"[/\\]", model.rstrip("/\\"))[-1] if model else None
        return cls(kind=type(embeddings).__name__, model=last)

    def __str__(self) -> str:
        """Give the names on one line."""
        return f"{self.kind} ({self.model})" if self.model else self.kind


class QueryWeights(FrozenModel):
    """What an `EmbeddingQueryClassifier` has learned."""

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
            msg = "a label is given twice"
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


class _ClassifierOptions(TypedDict, total=False):
    name: str | None
    raise_on_failure: bool
    embeddings: Embeddings
    min_probability: float
    min_probability_of: Mapping[str, float]
    regularization: float
    batch_size: int


class EmbeddingQueryClassifier(ClosedSetClassifier, JointBatch[Any, QueryClass]):
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

    model_config = ConfigDict(frozen=False)  # `fit` changes it

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
    """What was learned; `fit` and `load` set it."""

    def fit(self, samples: Samples) -> Self:
        """Learn from labelled queries; what was learned before is kept until this succeeds.

        Args:
            samples: `QuerySample`s, pairs `(query, label)`, or mappings with `query` and `label`;
                at least two labels.

        Returns:
            The classifier itself.

        Raises:
            ConfigurationError: The samples cannot be learned from.
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
        linear = require("sklearn.linear_model", extra="classify")
        regression = linear.LogisticRegression(
            C=1 / self.regularization, class_weight="balanced", max_iter=_MOST_ITERATIONS
        )
        vectors = self._vectors([row.query for row in rows])
        regression.fit(vectors, [row.label for row in rows])
        weights, intercepts = regression.coef_, regression.intercept_
        if len(weights) == 1:  # of two classes, only the second has weights
            weights = np.vstack([np.zeros_like(weights), weights])
            intercepts = np.concatenate([[0.0], intercepts])
        self.fitted = QueryWeights(
            labels=tuple(map(str, regression.classes_)),
            weights=tuple(map(tuple, weights.tolist())),
            intercepts=tuple(intercepts.tolist()),
            embeddings=EmbeddingsDescription.of(self.embeddings),
        )
        return self

    def save(self, path: str | Path) -> None:
        """Write what was learned, and the options, as JSON.

        Args:
            path: Where to; a file that is there is replaced as a whole.

        Raises:
            ConfigurationError: Nothing was learned yet.
            OSError: The file cannot be written.
        """
        saved = _SavedClassifier(
            min_probability=self.min_probability,
            min_probability_of=dict(self.min_probability_of),
            regularization=self.regularization,
            fitted=self._require_fitted(),
        )
        replace_file(Path(path), [saved.model_dump_json().encode()], private=False)

    @classmethod
    def load(cls, path: str | Path, **options: Unpack[_ClassifierOptions]) -> Self:
        """Make a classifier of a saved file; it needs no scikit-learn.

        Args:
            path: A file that `save` wrote. It holds numbers and names; nothing in it is executed.
            **options: Options of the class, which replace the saved ones; `embeddings` must be
                given if other than the default ones were fitted with.

        Returns:
            The classifier.

        Raises:
            ConfigurationError: The file is damaged or of another kind, or the embeddings are not
                those that it was fitted with, as far as their names show.
            OSError: The file cannot be read.
        """
        saved = dict(_read_classifier(Path(path)))
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
    def _run(self, inputs: list[str], config: list[RunnableConfig]) -> Any:
        return drive(self._flow_of_all(inputs), config[0])

    @override
    async def _arun(self, inputs: list[str], config: list[RunnableConfig]) -> Any:
        return await adrive(self._flow_of_all(inputs), config[0])

    @override
    def _flow(self, value: Any, /, **_: Any) -> Flow[QueryClass]:
        [outcome] = yield from self._flow_of_all([value])
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def _flow_of_all(self, values: Sequence[Any]) -> Flow[list[Exception | QueryClass]]:
        """Sort many queries with as few calls as possible; each has its own outcome."""
        fitted, queries = self._require_fitted(), [_read(value) for value in values]
        texts = list(dict.fromkeys(q for q in queries if isinstance(q, str) and q.strip()))
        rows = yield from self._embedded(texts)
        # Row by row: a sum over many rows at once may differ in its last digit.
        found = {text: self._outcome(fitted, row) for text, row in zip(texts, rows, strict=True)}
        return [
            query if isinstance(query, Exception) else found.get(query, EMPTY_QUERY)
            for query in queries
        ]

    def _outcome(self, fitted: QueryWeights, row: Exception | Vectors) -> Exception | QueryClass:
        try:
            if isinstance(row, Exception):
                return self._failure(row)
            if len(row) == fitted.size:
                return self._class(fitted, row)
            msg = (
                f"the embeddings have {len(row)} numbers, the classifier was fitted with "
                f"{fitted.size}: give the same embeddings=, or fit again"
            )
            return self._failure(VectorsError(msg))
        except VerificationError as exc:
            return exc

    def _embedded(self, texts: Sequence[str]) -> Flow[list[Exception | Vectors]]:
        """Return the vector of each text, or the error."""
        rows: list[Exception | Vectors] = []
        for first in range(0, len(texts), self.batch_size):
            chunk = texts[first : first + self.batch_size]
            try:
                reply = yield embedding_of_documents(self.embeddings, chunk)
                rows.extend(unit_rows(reply, texts=len(chunk)))
            except Exception as exc:  # noqa: BLE001  (a service may fail in any way)
                rows += [exc] * len(chunk)
        no_direction = VectorsError("the embedding is zero or not a number")
        return [
            no_direction if isinstance(row, np.ndarray) and np.isnan(row).any() else row
            for row in rows
        ]

    def _class(self, fitted: QueryWeights, vector: Vectors) -> QueryClass:
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
        """Embed samples; a sample without a vector raises."""
        vectors: list[Vectors] = []
        for place, row in enumerate(drive(self._embedded(texts), {})):
            if isinstance(row, VectorsError):
                msg = f"sample {place}: {row}: leave the sample out, or give other embeddings="
                raise ConfigurationError(msg) from None
            if isinstance(row, Exception):
                raise row
            vectors.append(row)
        sizes = sorted(set(map(len, vectors)))
        if len(sizes) > 1:
            msg = f"the embeddings come in sizes {sizes}: give other embeddings="
            raise ConfigurationError(msg)
        return np.stack(vectors)

    def _require_fitted(self) -> QueryWeights:
        if self.fitted is None:
            msg = (
                f"{type(self).__name__} has not learned anything yet: call fit(samples), or make "
                "it with load(path)"
            )
            raise ConfigurationError(msg)
        return self.fitted


expand_options(EmbeddingQueryClassifier.load.__func__, EmbeddingQueryClassifier)  # type: ignore[attr-defined]


def _read(value: Any) -> str | InputFormatError:
    try:
        return read_query(value)
    except InputFormatError as exc:
        return exc


LARGEST_FILE = 256 << 20
"""Bytes of a classifier: many classes, long vectors."""

_FORMAT: Final = "langchain-groundedness query classifier"

_MODEL_NAME_FIELDS = ("model_name", "model", "model_id", "deployment", "azure_deployment")

_MOST_ITERATIONS = 2000


class _SavedClassifier(FrozenModel):
    """The content of a saved file."""

    format: Literal["langchain-groundedness query classifier"] = _FORMAT
    version: Literal[1] = 1
    min_probability: float = Field(ge=0.0, le=1.0)
    min_probability_of: dict[str, Annotated[float, Field(ge=0.0, le=1.0)]]
    regularization: FiniteFloat = Field(gt=0.0)
    fitted: QueryWeights


def _read_classifier(path: Path) -> _SavedClassifier:
    try:
        return _SavedClassifier.model_validate_json(read_up_to(path, LARGEST_FILE))
    except ValidationError as exc:
        fault = exc.errors(include_url=False, include_input=False, include_context=False)[0]
        where = "".join(f"{step}: " for step in fault["loc"][-1:])
        msg = (
            f"{path.name} is not a file that EmbeddingQueryClassifier of this version has saved, "
            f"or is damaged ({where}{fault['msg'][:80]}): fit the classifier again and save it"
        )
        raise ConfigurationError(msg) from None


_WORD = re.compile(r"\w+")

_WHOLE = "="

_WORD_WEIGHT = 3.0


@lru_cache(maxsize=1 << 15)
def _hashed(run: str) -> int:
    """Hash to 64 bits; Python's own hash differs from process to process."""
    data = run.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest())
