"""Answer quality: relevance, correctness and completeness, as a chat model judges them."""

import math
from collections.abc import Mapping
from typing import Any, Self

from langchain_core.prompts.chat import BaseChatPromptTemplate
from pydantic import Field, model_validator
from typing_extensions import override

from langchain_groundedness._runtime.flow import Flow, ModelCall
from langchain_groundedness.evals.evaluator import Evaluator
from langchain_groundedness.evals.prompts import ANSWER_QUALITY_PROMPT, QualityScores
from langchain_groundedness.evals.rubric import row_parts
from langchain_groundedness.evals.values import EvaluationRow, RowScore
from langchain_groundedness.llm.chat_models import ChatModel
from langchain_groundedness.llm.prompts import check_prompt
from langchain_groundedness.llm.structured import StructuredModel

__all__ = ["QUALITY_DIMENSIONS", "AnswerQualityEvaluator"]

QUALITY_DIMENSIONS = ("relevance", "correctness", "completeness")
"""What an answer is judged by, each from 0 to 1."""


class AnswerQualityEvaluator(Evaluator):
    """How well an answer addresses its question, is right by its sources, and says enough.

    One call of the model, which writes its reasoning before the scores; a call of its own, since
    a judge that checks claims at the same time does both less well. The score is the mean of the
    three; `details` has `relevance`, `correctness`, `completeness`, each in 0 .. 1, and
    `reasoning`. A score outside 0 .. 1 is asked for once more, then the row fails: nothing is
    clamped. Correctness is judged by the documents and the reference; a row that has neither is
    skipped. The prompt says that a short answer is complete if it says what was asked for.

    Example:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> reply = '{"reasoning": "Right.", "relevance": 1, "correctness": 1, "completeness": 0.7}'
        >>> evaluator = AnswerQualityEvaluator(model=FakeListChatModel(responses=[reply]))
        >>> score = evaluator.invoke(
        ...     {"question": "Capital of Italy?", "answer": "Rome.", "contexts": ["Rome is it."]}
        ... )
        >>> round(score.score, 3), score.details["completeness"]
        (0.9, 0.7)
    """

    needs = ("question", "answer")

    key: str = Field(default="answer_quality", min_length=1)
    model: ChatModel
    """The chat model that judges; better not the one that wrote the answers."""
    prompt: BaseChatPromptTemplate | None = None
    """Instead of `evals.prompts.ANSWER_QUALITY_PROMPT`, with the same variables."""
    max_tokens: int = Field(default=100_000, ge=1)
    """Most tokens of documents; a row with more fails, since nothing is cut off."""

    @model_validator(mode="after")
    def _usable_prompt(self) -> Self:
        optional = {"evidence", "reference"}
        check_prompt(self._prompt, required={"question", "answer"}, optional=optional)
        return self

    @override
    def _score(self, row: EvaluationRow) -> Flow[RowScore]:
        parts = row_parts(row, max_tokens=self.max_tokens)
        if not parts["evidence"] and not parts["reference"]:
            return self._skipped(
                "the row has no documents and no reference to judge correctness by"
            )
        ask = StructuredModel[QualityScores](
            model=self.model,
            prompt=self._prompt,
            reply_schema=QualityScores,
            name="judge_answer_quality",
            timeout=self.model_timeout,
            why_unusable=_out_of_range,
        )
        reply: QualityScores = yield ModelCall(ask, parts)
        scores = {name: getattr(reply, name) for name in QUALITY_DIMENSIONS}
        told = ", ".join(f"{name} {value:.2f}" for name, value in scores.items())
        mean = math.fsum(scores.values()) / len(scores)
        return self._scored(mean, comment=told, details={**scores, "reasoning": reply.reasoning})

    @property
    def _prompt(self) -> BaseChatPromptTemplate:
        return self.prompt or ANSWER_QUALITY_PROMPT

    @override
    def _defaults(self) -> Mapping[str, Any]:
        return {"prompt": self._prompt}


def _out_of_range(reply: QualityScores) -> str | None:
    names = [name for name in QUALITY_DIMENSIONS if not 0.0 <= getattr(reply, name) <= 1.0]
    return f"{names[0]} is not from 0 to 1" if names else None
