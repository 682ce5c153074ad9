"""Answer relevancy: whether the questions that an answer answers are the one that was asked."""

import math
from collections.abc import Mapping
from typing import Any, Literal, Self

import numpy as np
from langchain_core.embeddings import Embeddings
from langchain_core.prompts.chat import BaseChatPromptTemplate
from pydantic import Field, model_validator
from typing_extensions import override

from langchain_groundedness._runtime.flow import Flow, ModelCall
from langchain_groundedness.evals.evaluator import Evaluator
from langchain_groundedness.evals.prompts import ANSWER_RELEVANCY_PROMPT, AnsweredQuestions
from langchain_groundedness.evals.values import EvaluationRow, RowScore
from langchain_groundedness.llm.chat_models import ChatModel
from langchain_groundedness.llm.embeddings import VectorsError, embedding_of_documents, unit_rows
from langchain_groundedness.llm.prompts import check_prompt, fence
from langchain_groundedness.llm.structured import StructuredModel

__all__ = ["AnswerRelevancyEvaluator"]


class AnswerRelevancyEvaluator(Evaluator):
    """Mean similarity between the question and the questions that the answer would answer.

    The definition of ragas: a model generates questions from the answer, here all in one call, and
    the score is the mean of their cosines with the question; a noncommittal answer scores 0. A
    cosine below 0 counts as 0, so that the score stays in 0 .. 1. `details` has
    `generated_questions`, `similarities` (as measured) and `noncommittal`.

    Example:
        >>> from langchain_core.embeddings import DeterministicFakeEmbedding
        >>> from langchain_core.language_models import FakeListChatModel
        >>> reply = '{"commits": true, "questions": ["What is the capital of Italy?"]}'
        >>> evaluator = AnswerRelevancyEvaluator(
        ...     model=FakeListChatModel(responses=[reply]),
        ...     embeddings=DeterministicFakeEmbedding(size=64),
        ... )
        >>> row = {"question": "What is the capital of Italy?", "answer": "Rome."}
        >>> round(evaluator.invoke(row).score, 6)
        1.0
    """

    needs = ("question", "answer")

    key: str = Field(default="answer_relevancy", min_length=1)
    model: ChatModel
    """The chat model that generates the questions."""
    embeddings: Embeddings
    """Measure how close the questions are."""
    questions: int = Field(default=3, ge=1, le=20)
    """How many questions to generate; of fewer the mean is taken all the same."""
    noncommittal: Literal["zero", "skip"] = "zero"
    """What becomes of an answer that evades: the score 0, or no score."""
    prompt: BaseChatPromptTemplate | None = None
    """Instead of `evals.prompts.ANSWER_RELEVANCY_PROMPT`, with the same variables."""

    @model_validator(mode="after")
    def _usable_prompt(self) -> Self:
        check_prompt(self._prompt, required={"answer"}, optional={"count"})
        return self

    @override
    def _score(self, row: EvaluationRow) -> Flow[RowScore]:
        if not (row.answer or "").strip():
            return self._blank_answer()
        ask = StructuredModel[AnsweredQuestions](
            model=self.model,
            prompt=self._prompt,
            reply_schema=AnsweredQuestions,
            name="generate_questions",
            timeout=self.model_timeout,
            why_unusable=_asks_nothing,
        )
        values = {"count": str(self.questions), "answer": fence("answer", row.answer or "")}
        reply: AnsweredQuestions = yield ModelCall(ask, values)
        generated = _asked(reply)[: self.questions]
        details: dict[str, Any] = {
            "generated_questions": generated,
            "similarities": [],
            "noncommittal": not reply.commits,
        }
        if not reply.commits:
            return self._noncommittal(details)
        texts = [row.question or "", *generated]
        vectors = yield embedding_of_documents(self.embeddings, texts)
        rows = unit_rows(vectors, texts=len(texts))
        if np.isnan(rows).any():
            msg = "the embedding of a question is zero or not a number"
            raise VectorsError(msg)
        # Rounding errors may lead a little beyond 1.
        details["similarities"] = [max(-1.0, min(1.0, c)) for c in (rows[1:] @ rows[0]).tolist()]
        mean = math.fsum(max(0.0, c) for c in details["similarities"]) / len(generated)
        comment = f"mean similarity of {len(generated)} generated questions"
        return self._scored(mean, comment=comment, details=details)

    def _blank_answer(self) -> RowScore:
        details = {"generated_questions": [], "similarities": [], "noncommittal": True}
        return self._noncommittal(details)

    def _noncommittal(self, details: dict[str, Any]) -> RowScore:
        if self.noncommittal == "skip":
            return self._skipped("the answer is noncommittal", details=details)
        return self._scored(0.0, comment="the answer is noncommittal", details=details)

    @property
    def _prompt(self) -> BaseChatPromptTemplate:
        return self.prompt or ANSWER_RELEVANCY_PROMPT

    @override
    def _defaults(self) -> Mapping[str, Any]:
        return {"prompt": self._prompt}


def _asks_nothing(reply: AnsweredQuestions) -> str | None:
    return "there is no question in it" if reply.commits and not _asked(reply) else None


def _asked(reply: AnsweredQuestions) -> list[str]:
    return [question.strip() for question in reply.questions if question.strip()]
