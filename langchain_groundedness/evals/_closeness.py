"""How close texts are to a question, without a chat model."""

import math
from collections.abc import Sequence

from langchain_core.cross_encoders import BaseCrossEncoder
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import RunnableLambda

from langchain_groundedness._flow import Flow, ModelCall
from langchain_groundedness._vectors import embedding_of_documents, unit_rows
from langchain_groundedness.exceptions import GroundednessError
from langchain_groundedness.types import Claim, ClaimVerdict, VerificationTask
from langchain_groundedness.verifiers import EmbeddedVerifier

__all__ = ["closeness"]


class _NotMeasuredError(GroundednessError):
    """It cannot be told how close a text is."""


def closeness(
    question: str, texts: Sequence[str], measure: Embeddings | BaseCrossEncoder | None
) -> Flow[list[float]]:
    """Measure how close texts are to a question.

    Args:
        question: The question.
        texts: At least one text.
        measure: Gives the cosine of embeddings, or scores; `None` for the embedded verifier's
            probability that the text supports the question, read as if it were a statement.

    Returns:
        One number per text; higher is closer.

    Raises:
        GroundednessError: A text cannot be measured: that is not the same as to be far away.
    """
    if isinstance(measure, Embeddings):
        vectors = yield embedding_of_documents(measure, [question, *texts])
        rows = unit_rows(vectors, texts=len(texts) + 1)
        scores: list[float] = (rows[1:] @ rows[0]).tolist()
    elif measure is not None:
        score = RunnableLambda(measure.score, name="score_sentences")
        scores = yield ModelCall(score, [(question, text) for text in texts])
    else:
        return (yield from _embedded(question, texts))
    if len(scores) != len(texts) or any(map(math.isnan, scores)):
        msg = "a sentence or the question has no usable embedding or score"
        raise _NotMeasuredError(msg)
    return [float(score) for score in scores]


def _embedded(question: str, texts: Sequence[str]) -> Flow[list[float]]:
    asked = Claim(id="question", text=question)
    tasks = [VerificationTask(claims=(asked,), documents=(Document(text),)) for text in texts]
    replies: list[list[ClaimVerdict]] = yield ModelCall(EmbeddedVerifier().map(), tasks)
    scores = []
    for [verdict] in replies:
        if verdict.support_probability is None:
            raise _NotMeasuredError(verdict.reason or "the question has no word to look for")
        scores.append(verdict.support_probability)
    return scores
