"""A gate after the retriever: is any document close to the question?"""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, TypeAlias

import numpy as np
from langchain_core.embeddings import Embeddings
from pydantic import BaseModel, Field
from typing_extensions import override

from langchain_groundedness._runtime.flow import Flow, FlowRunnable, drive
from langchain_groundedness._runtime.options import CheckedOptions
from langchain_groundedness.calibration.threshold_choice import (
    ScoredSamples,
    choose_threshold,
    highest_share,
    parse_target,
)
from langchain_groundedness.exceptions import (
    ConfigurationError,
    GroundednessError,
    InputFormatError,
    VerificationError,
    cause,
)
from langchain_groundedness.inputs.formats import CheckInput, no_documents, read_input
from langchain_groundedness.llm.embeddings import (
    Vectors,
    VectorsError,
    embedding_of_documents,
    embedding_of_query,
    unit_rows,
)
from langchain_groundedness.query.classifiers import missing_query_error
from langchain_groundedness.types import FrozenModel

__all__ = ["GateCalibration", "RetrievalGate", "RetrievalStrength"]

RetrievalSample: TypeAlias = tuple[Any, bool]


class RetrievalStrength(FrozenModel):
    """How close the retrieved documents come to the question."""

    is_weak: bool
    """Whether no document is close enough, or the similarity could not be measured."""
    best_similarity: Annotated[float, Field(ge=-1.0, le=1.0)] | None = None
    """Highest cosine similarity of a document to the question; `None` if none was measured."""
    best_document: Annotated[int, Field(ge=0)] | None = None
    """Index of that document."""
    threshold: float
    """Least similarity that is close enough."""
    reason: str
    """Why it is weak, or strong, in words."""
    failed: bool = False
    """Whether it counts as weak because the embeddings failed."""

    @property
    def score(self) -> float | None:
        """The best similarity, by the name that retrievers give to such figures."""
        return self.best_similarity


class RetrievalGate(CheckedOptions, FlowRunnable[Any, dict[str, Any]]):
    """Tells, before a model is called, whether the retrieved documents are close to the question.

    Put it between a retriever and the model. It reads the question and the documents as
    `GroundednessRunnable` does, and passes its input on with a `RetrievalStrength` added under
    `key`, by which a `RunnableBranch` can decide. Retrieval is weak if the highest cosine
    similarity of a document to the question is below `threshold`, if there are no documents, and
    if the embeddings fail: a retrieval that was not measured is never called strong.

    Similarities mean different things for different embeddings. The default threshold, 0.5, is
    usual for models that were trained to embed sentences; `calibrate` finds one for yours. A
    document is embedded whole: give chunks no longer than the model reads. That a document is
    close does not mean that it answers the question; that is for the check of the answer.

    Example:
        >>> from langchain_core.embeddings import DeterministicFakeEmbedding
        >>> gate = RetrievalGate(embeddings=DeterministicFakeEmbedding(size=64))
        >>> found = gate.invoke({"question": "Rome?", "documents": ["Oslo.", "Rome?"]})
        >>> found["question"], found["retrieval_score"].is_weak
        ('Rome?', False)
        >>> gate.invoke({"question": "Rome?", "documents": []})["retrieval_score"].reason
        'no documents to check against'
    """

    embeddings: Embeddings
    """Any LangChain embeddings; preferably those of the retriever, so that both measure the same
    similarity."""
    threshold: float = Field(default=0.5, ge=-1.0, le=1.0)
    """Least cosine similarity that is close enough."""
    key: str = Field(default="retrieval_score", min_length=1)
    """Key of the strength in the output; by default the one that policies read."""
    raise_on_failure: bool = False
    """Raise `VerificationError` if the embeddings fail, instead of calling the retrieval weak."""

    def calibrate(
        self,
        samples: Iterable[RetrievalSample],
        *,
        target_precision: float | None = None,
        target_recall: float | None = None,
    ) -> "GateCalibration":
        """Find the threshold that reaches a target on your own retrievals.

        Args:
            samples: Pairs of an input, as for `invoke`, and whether its documents hold what the
                question asks for. A hundred or more, both kinds among them.
            target_precision: Of the retrievals that the gate lets through, at least this share must
                hold the answer, 0 to 1; of these, the highest of the highest recall is chosen.
            target_recall: Of the retrievals that hold the answer, at least this share must be let
                through, 0 to 1; the highest such threshold is chosen.

        Returns:
            A new gate with that threshold, and its figures on the samples, which are better than
            they will be on others.

        Raises:
            ConfigurationError: Not exactly one target is given, there are not both kinds of
                samples, or no threshold reaches the target.
            InputFormatError: A sample cannot be read.
            VerificationError: The embeddings failed.
        """
        target = parse_target(target_precision, target_recall, prefix="target_")
        found, good = [], []
        for place, sample in enumerate(samples):
            value, is_good = _pair(sample, place)
            strength = drive(self._strength(_read(value)[1]), {})
            if strength.failed:
                msg = f"sample {place}: {strength.reason}"
                raise VerificationError(msg)
            found.append(-np.inf if (s := strength.best_similarity) is None else s)
            good.append(bool(is_good))
        if len(set(good)) < 2:  # noqa: PLR2004  (yes and no)
            msg = (
                "samples must be of both kinds, with documents that hold the answer and without; "
                f"got {sum(good)} with and {len(good) - sum(good)} without"
            )
            raise ConfigurationError(msg)
        scored = ScoredSamples(np.array(found), np.array(good), np.arange(len(good)))
        threshold = choose_threshold(scored, target)
        if threshold is None:
            highest = highest_share(scored, target.kind)
            msg = (
                f"no threshold reaches a {target.kind} of {target.value:.2f} on these samples; the "
                f"highest is {highest:.2f}: lower the target, or use other embeddings"
            )
            raise ConfigurationError(msg)
        passed = [is_good for score, is_good in zip(found, good, strict=True) if score >= threshold]
        return GateCalibration(
            gate=self.model_copy(update={"threshold": threshold}),
            threshold=threshold,
            precision=sum(passed) / len(passed) if passed else None,
            recall=sum(passed) / sum(good),
            samples=len(good),
            answerable=sum(good),
            passed=len(passed),
        )

    @override
    def _flow(self, value: Any, /, **_: Any) -> Flow[dict[str, Any]]:
        parts, source = _read(value)
        return {**parts, self.key: (yield from self._strength(source))}

    def _strength(self, source: CheckInput) -> Flow[RetrievalStrength]:
        places = [n for n, found in enumerate(source.documents) if found.page_content.strip()]
        if not places:
            return self._weak(no_documents(source))
        question = source.question or ""
        if not question.strip():
            return self._weak("the question is empty")
        try:
            reply = yield embedding_of_query(self.embeddings, question)
            [asked] = unit_rows([reply], texts=1)
            texts = [source.documents[place].page_content for place in places]
            reply = yield embedding_of_documents(self.embeddings, texts)
            similarities = _similarities(asked, unit_rows(reply, texts=len(texts)))
        except Exception as exc:
            why = str(exc) if isinstance(exc, GroundednessError) else cause(exc)
            what = "the similarity of the documents could not be measured"
            if self.raise_on_failure:
                msg = f"{what} ({why})"
                raise VerificationError(msg) from exc
            return self._weak(f"{what}: {why}", failed=True)
        best = int(np.nanargmax(similarities))
        return self._judged(places[best], similarities[best], similarities)

    def _judged(self, best: int, similarity: float, similarities: Vectors) -> RetrievalStrength:
        closest = min(max(float(similarity), -1.0), 1.0)
        is_weak = closest < self.threshold
        unmeasured = int(np.isnan(similarities).sum())
        gap = f"{unmeasured} of {len(similarities)} embeddings: zero or not a number"
        if is_weak and unmeasured and self.raise_on_failure:
            raise VerificationError(gap)
        how = f"below the threshold {self.threshold:.2f}" if is_weak else "close enough"
        reason = f"the closest document has a cosine similarity of {closest:.2f}, {how}"
        return RetrievalStrength(
            is_weak=is_weak,
            best_similarity=closest,
            best_document=best,
            threshold=self.threshold,
            reason=f"{reason}; {gap}" if unmeasured else reason,
            failed=is_weak and unmeasured > 0,
        )

    def _weak(self, reason: str, *, failed: bool = False) -> RetrievalStrength:
        return RetrievalStrength(
            is_weak=True, threshold=self.threshold, reason=reason, failed=failed
        )


class GateCalibration(FrozenModel):
    """A gate with a chosen threshold, and what that threshold does on the samples."""

    gate: RetrievalGate
    threshold: float
    precision: float | None
    """Share of the retrievals let through that hold the answer; `None` if none is let through."""
    recall: float
    """Share of the retrievals that hold the answer that are let through."""
    samples: int
    answerable: int
    """Retrievals that hold the answer."""
    passed: int
    """Retrievals let through."""


def _pair(sample: object, place: int) -> tuple[Any, bool]:
    """Read a sample; the label must be a bool, since any text, even `"no"`, is truthy."""
    if not isinstance(sample, tuple | list) or len(sample) != 2:  # noqa: PLR2004  (a pair)
        kind = type(sample).__name__
        msg = f"sample {place}: a pair (input, True or False) is needed, got {kind}"
        raise ConfigurationError(msg)
    if not isinstance(sample[1], bool | np.bool_):
        msg = f"sample {place}: the label must be True or False, got {sample[1]!r:.60}"
        raise ConfigurationError(msg)
    return sample[0], bool(sample[1])


def _read(value: Any) -> tuple[dict[Any, Any], CheckInput]:
    """Give the parts of an input, and the question and documents in them."""
    if not isinstance(value, Mapping | BaseModel):
        msg = (
            f"cannot read question and documents from a value of type {type(value).__name__}; "
            "accepted is a mapping such as {'question': ..., 'documents': ...}"
        )
        raise InputFormatError(msg)
    parts = dict(value)
    source = read_input({**parts, "answer": ""}, evidence="turn")
    if source.question is None:
        accepted = "accepted are 'question', 'input', 'query' and 'messages'"
        raise missing_query_error(parts, "question", accepted)
    return parts, source


def _similarities(asked: Vectors, rows: Vectors) -> Vectors:
    """Give the cosine of each row to the question; NaN for a row without direction."""
    if len(asked) != rows.shape[1]:
        msg = f"question and documents have {len(asked)} and {rows.shape[1]} numbers"
        raise VectorsError(msg)
    found: Vectors = rows @ asked
    if np.isnan(found).all():
        msg = "the embedding of the question, or of every document, is zero or not a number"
        raise VectorsError(msg)
    return found
