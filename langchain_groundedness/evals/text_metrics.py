"""Text similarity metrics: BLEU, chrF, ROUGE, embeddings."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import RunnableLambda
from pydantic import Field
from typing_extensions import override

from langchain_groundedness._runtime.flow import Flow, ModelCall
from langchain_groundedness.evals.evaluator import Evaluator, RowFailedError
from langchain_groundedness.evals.values import EvaluationRow, RowScore
from langchain_groundedness.exceptions import require
from langchain_groundedness.llm.embeddings import embedding_of_documents, unit_rows

__all__ = ["BleuEvaluator", "ChrfEvaluator", "RougeEvaluator", "SemanticSimilarityEvaluator"]


class _WordingEvaluator(Evaluator, ABC):
    """Base of metrics computed from two texts, in a thread under an event loop."""

    needs = ("answer", "reference")

    @abstractmethod
    def _compare(self, answer: str, reference: str) -> dict[str, float]:
        """Return the score under `score`, and further details."""

    @override
    def _score(self, row: EvaluationRow) -> Flow[RowScore]:
        texts = (row.answer or "", row.reference or "")
        compare: Any = RunnableLambda(lambda pair: self._compare(*pair), name="compare_wording")
        found = yield ModelCall(compare, texts)
        score = min(1.0, found.pop("score"))
        return self._scored(score, details=found)


class BleuEvaluator(_WordingEvaluator):
    """BLEU of the whole answer against the whole reference, from 0 to 1, by sacrebleu.

    Papineni et al. 2002, as sacrebleu computes it for a sentence: smoothed, and without the orders
    that a text is too short for, so that equal texts of one word score 1. The mean over rows is
    not the BLEU of the corpus, which adds counts up before it divides. Needs the extra `metrics`.

    Example:
        >>> BleuEvaluator().invoke({"answer": "Paris", "reference": "Paris"}).score
        1.0
    """

    key: str = Field(default="bleu", min_length=1)
    tokenize: Literal["13a", "intl", "char", "zh", "none"] = "13a"
    """How sacrebleu finds words: `char` or `zh` for texts without spaces between them."""
    lowercase: bool = False
    """Whether case does not count."""

    @override
    def _compare(self, answer: str, reference: str) -> dict[str, float]:
        metrics = require("sacrebleu.metrics", extra="metrics")
        bleu = metrics.BLEU(tokenize=self.tokenize, lowercase=self.lowercase, effective_order=True)
        found = bleu.sentence_score(answer, [reference])
        return {"score": found.score / 100, "brevity_penalty": found.bp}


class ChrfEvaluator(_WordingEvaluator):
    """chrF of the whole answer against the whole reference, from 0 to 1, by sacrebleu.

    Popović 2015: the F-score of character n-grams, which needs no notion of a word; with
    `word_order=2` it is chrF++. Needs the extra `metrics`.

    Example:
        >>> ChrfEvaluator().invoke({"answer": "東京", "reference": "東京"}).score
        1.0
    """

    key: str = Field(default="chrf", min_length=1)
    char_order: int = Field(default=6, ge=1)
    """Longest n-gram of characters."""
    word_order: int = Field(default=0, ge=0)
    """Longest n-gram of words; 0 for none."""
    beta: float = Field(default=2.0, gt=0.0, allow_inf_nan=False)
    """Weight of recall relative to precision."""
    lowercase: bool = False
    """Whether case does not count."""

    @override
    def _compare(self, answer: str, reference: str) -> dict[str, float]:
        metrics = require("sacrebleu.metrics", extra="metrics")
        options = self.model_dump(include={"char_order", "word_order", "beta", "lowercase"})
        chrf = metrics.CHRF(**options)
        return {"score": chrf.sentence_score(answer, [reference]).score / 100}


class RougeEvaluator(_WordingEvaluator):
    """ROUGE of the whole answer against the whole reference, from 0 to 1, by rouge-score.

    Lin 2004: `rougeL` is the longest common subsequence of words, `rouge1`, `rouge2` … count
    n-grams. `details` has precision, recall and F1. rouge-score knows as words only runs of
    unaccented Latin letters and digits: for other languages give a `tokenizer`. Where it finds no
    word in the reference, the row fails. Needs the extra `metrics`.

    Example:
        >>> row = {"answer": "The cat sat.", "reference": "The cat sat on the mat."}
        >>> score = RougeEvaluator().invoke(row)
        >>> score.details["precision"], score.details["recall"]
        (1.0, 0.5)
    """

    key: str = Field(default="rouge", min_length=1)
    kind: Literal["rouge1", "rouge2", "rouge3", "rouge4", "rougeL"] = "rougeL"
    """Which ROUGE."""
    measure: Literal["f1", "precision", "recall"] = "f1"
    """What the score is."""
    stem: bool = True
    """Whether words are reduced to their stems (English, Porter); not with a tokenizer."""
    tokenizer: Callable[[str], Sequence[str]] | None = None
    """From a text to its words; by default rouge-score's own, for English."""

    @override
    def _compare(self, answer: str, reference: str) -> dict[str, float]:
        scorer = require("rouge_score.rouge_scorer", extra="metrics")
        words = SimpleNamespace(tokenize=self.tokenizer) if self.tokenizer else None
        rouge = scorer.RougeScorer([self.kind], use_stemmer=self.stem, tokenizer=words)
        if not rouge._tokenizer.tokenize(reference):  # noqa: SLF001  (there is no other way to ask)
            msg = "ROUGE finds no word in the reference: give tokenizer= for its language"
            raise RowFailedError(msg)
        found = rouge.score(reference, answer)[self.kind]
        measures = {"precision": found.precision, "recall": found.recall, "f1": found.fmeasure}
        return {"score": measures[self.measure], **measures}


class SemanticSimilarityEvaluator(Evaluator):
    """Cosine of the embeddings of answer and reference, each embedded whole, in one call.

    From -1 to 1; which cosine is close depends on the embeddings. Many models silently cut what
    is longer than they read. A blank answer scores 0.

    Example:
        >>> from langchain_core.embeddings import DeterministicFakeEmbedding
        >>> evaluator = SemanticSimilarityEvaluator(embeddings=DeterministicFakeEmbedding(size=64))
        >>> round(evaluator.invoke({"answer": "Yes.", "reference": "Yes."}).score, 6)
        1.0
    """

    needs = ("answer", "reference")

    key: str = Field(default="semantic_similarity", min_length=1)
    embeddings: Embeddings
    """Any LangChain embeddings."""
    threshold: float | None = Field(default=None, ge=-1.0, le=1.0)
    """With it, the score is 1 for a cosine from there on, and 0 below."""

    @override
    def _score(self, row: EvaluationRow) -> Flow[RowScore]:
        cosine = yield from cosine_of(self.embeddings, row.answer or "", row.reference or "")
        score = cosine if self.threshold is None else float(cosine >= self.threshold)
        return self._scored(score, comment=f"cosine {cosine:.3f}", details={"cosine": cosine})


def cosine_of(embeddings: Embeddings, one: str, other: str) -> Flow[float]:
    """Give the cosine of the angle between the embeddings of two whole texts."""
    if not one.strip() or not other.strip():
        return 0.0
    [cosine] = yield from cosines(embeddings, one, [other], of="the answer or of the reference")
    return cosine


def cosines(
    embeddings: Embeddings, one: str, others: Sequence[str], *, of: str
) -> Flow[list[float]]:
    """Give the cosines of the angles between the embedding of a text and those of others."""
    vectors = yield embedding_of_documents(embeddings, [one, *others])
    rows = unit_rows(vectors, texts=1 + len(others))
    if np.isnan(rows).any():
        msg = f"the embedding of {of} is zero or not a number"
        raise RowFailedError(msg)
    # Rounding errors may exceed 1.
    return [min(1.0, max(-1.0, cosine)) for cosine in (rows[1:] @ rows[0]).tolist()]
