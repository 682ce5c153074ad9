"""Metrics for which a chat model judges the answer in one call: quality, relevancy, rubrics."""

import math
from abc import ABC
from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

from langchain_core.embeddings import Embeddings
from langchain_core.prompts.chat import BaseChatPromptTemplate
from pydantic import BaseModel, Field, StringConstraints, model_validator
from typing_extensions import override

from langchain_groundedness._runtime.flow import Flow, ModelCall
from langchain_groundedness.evals import prompts
from langchain_groundedness.evals.evaluator import Evaluator, RowFailedError
from langchain_groundedness.evals.text_metrics import cosines
from langchain_groundedness.evals.values import EvaluationRow, RowScore
from langchain_groundedness.evidence.packing import approximate_tokens
from langchain_groundedness.llm.chat_models import ChatModel
from langchain_groundedness.llm.prompts import check_prompt, fence, on_one_line, question_part
from langchain_groundedness.llm.structured import StructuredModel

__all__ = ["AnswerQualityEvaluator", "AnswerRelevancyEvaluator", "RubricEvaluator"]

QUALITY_DIMENSIONS = ("relevance", "correctness", "completeness")
"""What an answer is judged by, each from 0 to 1."""

Shown = Literal["question", "documents", "reference"]
ReplyT = TypeVar("ReplyT", bound=BaseModel)


class _JudgingEvaluator(Evaluator, ABC):
    """Base of evaluators that ask a chat model once per row."""

    default_prompt: ClassVar[BaseChatPromptTemplate]
    required_variables: ClassVar[frozenset[str]]
    """Those that a prompt must have; it may have the others of the default."""

    model: ChatModel
    """A chat model, or its name as `provider:name`; better not the one that wrote the answers."""
    prompt: BaseChatPromptTemplate | None = None
    """Instead of the one in `evals.prompts`, with the same variables."""

    @model_validator(mode="after")
    def _usable_prompt(self) -> Self:
        known = set(self.default_prompt.input_variables)
        check_prompt(self._prompt, required=self.required_variables, optional=known)
        return self

    def _ask(
        self,
        name: str,
        reply_schema: type[ReplyT],
        values: Mapping[str, str],
        why_unusable: Callable[[ReplyT], str | None],
    ) -> Flow[ReplyT]:
        judge = StructuredModel[ReplyT](
            model=self.model,
            prompt=self._prompt,
            reply_schema=reply_schema,
            name=name,
            timeout=self.model_timeout,
            why_unusable=why_unusable,
        )
        reply: ReplyT = yield ModelCall(judge, values)
        return reply

    @property
    def _prompt(self) -> BaseChatPromptTemplate:
        return self.prompt or self.default_prompt

    @override
    def _defaults(self) -> Mapping[str, Any]:
        return {"prompt": self._prompt}


class AnswerQualityEvaluator(_JudgingEvaluator):
    """How well an answer addresses its question, is right by its sources, and says enough.

    One call of the model, which writes its reasoning before the scores. It is a separate call,
    because a judge that checks claims at the same time does both less well. The score is the mean
    of the three; `details` has `relevance`, `correctness`, `completeness`, each in 0 .. 1, and
    `reasoning`. A score outside 0 .. 1 is requested once more, then the row fails: nothing is
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
    default_prompt = prompts.ANSWER_QUALITY_PROMPT
    required_variables = frozenset({"question", "answer"})

    key: str = Field(default="answer_quality", min_length=1)
    max_tokens: int = Field(default=100_000, ge=1)
    """Most tokens of documents; a row with more fails, since nothing is cut off."""

    @override
    def _score(self, row: EvaluationRow) -> Flow[RowScore]:
        parts = _row_parts(row, max_tokens=self.max_tokens)
        if not parts["evidence"] and not parts["reference"]:
            return self._skipped("the row has no documents or reference to judge correctness by")
        reply = yield from self._ask(
            "judge_answer_quality", prompts.QualityScores, parts, _out_of_range
        )
        scores = {name: getattr(reply, name) for name in QUALITY_DIMENSIONS}
        comment = ", ".join(f"{name} {value:.2f}" for name, value in scores.items())
        mean = math.fsum(scores.values()) / len(scores)
        return self._scored(mean, comment=comment, details={**scores, "reasoning": reply.reasoning})


def _out_of_range(reply: prompts.QualityScores) -> str | None:
    names = [name for name in QUALITY_DIMENSIONS if not 0.0 <= getattr(reply, name) <= 1.0]
    return f"{names[0]} is not from 0 to 1" if names else None


class AnswerRelevancyEvaluator(_JudgingEvaluator):
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
    default_prompt = prompts.ANSWER_RELEVANCY_PROMPT
    required_variables = frozenset({"answer"})

    key: str = Field(default="answer_relevancy", min_length=1)
    embeddings: Embeddings
    """Measure how close the questions are."""
    questions: int = Field(default=3, ge=1, le=20)
    """How many questions to generate; if there are fewer, the mean is taken of those."""
    noncommittal: Literal["zero", "skip"] = "zero"
    """How an evasive answer is scored: 0, or no score."""

    @override
    def _score(self, row: EvaluationRow) -> Flow[RowScore]:
        answer, commits, generated = row.answer or "", False, list[str]()
        if answer.strip():
            values = {"count": str(self.questions), "answer": fence("answer", answer)}
            reply = yield from self._ask(
                "generate_questions", prompts.AnsweredQuestions, values, _asks_nothing
            )
            commits, generated = reply.commits, _questions(reply)[: self.questions]
        details: dict[str, Any] = {
            "generated_questions": generated,
            "similarities": [],
            "noncommittal": not commits,
        }
        if not commits:
            if self.noncommittal == "skip":
                return self._skipped("the answer is noncommittal", details=details)
            return self._scored(0.0, comment="the answer is noncommittal", details=details)
        asked = row.question or ""
        found = yield from cosines(self.embeddings, asked, generated, of="a question")
        details["similarities"] = found
        mean = math.fsum(max(0.0, c) for c in found) / len(generated)
        comment = f"mean similarity of {len(generated)} generated questions"
        return self._scored(mean, comment=comment, details=details)


def _asks_nothing(reply: prompts.AnsweredQuestions) -> str | None:
    return "it contains no question" if reply.commits and not _questions(reply) else None


def _questions(reply: prompts.AnsweredQuestions) -> list[str]:
    return [question.strip() for question in reply.questions if question.strip()]


class RubricEvaluator(_JudgingEvaluator):
    """The level of a rubric that an answer reaches, as a chat model judges it.

    The score is (level - lowest) / (highest - lowest), so 0 .. 1; `details` has the `level` as it
    was given, and the `reasoning`, which the model writes first. A number that is not a level is
    requested once more, then the row fails.

    Example:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> evaluator = RubricEvaluator(
        ...     key="tone",
        ...     rubric={1: "rude", 2: "neutral", 3: "friendly"},
        ...     model=FakeListChatModel(responses=['{"reasoning": "Plain.", "score": 2}']),
        ... )
        >>> score = evaluator.invoke({"question": "Open today?", "answer": "Yes, until six."})
        >>> score.score, score.details["level"]
        (0.5, 2)
    """

    needs = ("answer",)
    default_prompt = prompts.RUBRIC_PROMPT
    required_variables = frozenset({"rubric", "answer"})

    key: str = Field(default="rubric", min_length=1)
    rubric: dict[int, Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]] = (
        Field(min_length=2)
    )
    """What each level means; the texts go into the prompt unchanged, so they must be your own."""
    shows: tuple[Shown, ...] = ("question", "documents", "reference")
    """What the model sees beside the answer, where the row has it."""
    max_tokens: int = Field(default=100_000, ge=1)
    """Most tokens of documents; a row with more fails, since nothing is cut off."""

    @override
    def _score(self, row: EvaluationRow) -> Flow[RowScore]:
        hidden = {"question", "documents", "reference"} - set(self.shows)
        seen = row.model_copy(update=dict.fromkeys(hidden))
        levels = (f"{level}: {on_one_line(self.rubric[level])}" for level in sorted(self.rubric))
        parts = {"rubric": "\n".join(levels), **_row_parts(seen, max_tokens=self.max_tokens)}
        reply = yield from self._ask("grade_by_rubric", prompts.RubricScore, parts, self._no_level)
        lowest, highest = min(self.rubric), max(self.rubric)
        return self._scored(
            (reply.score - lowest) / (highest - lowest),
            comment=f"level {reply.score} of {lowest} to {highest}",
            details={"level": reply.score, "reasoning": reply.reasoning},
        )

    def _no_level(self, reply: prompts.RubricScore) -> str | None:
        return None if reply.score in self.rubric else "its score is not a level of the rubric"


def _row_parts(row: EvaluationRow, *, max_tokens: int) -> dict[str, str]:
    """Give the variables of a prompt that shows a whole row."""
    texts = [each.page_content for each in row.documents or () if each.page_content.strip()]
    tokens = sum(map(approximate_tokens, texts))
    if tokens > max_tokens:
        msg = f"the documents have about {tokens} tokens, all for one call: raise max_tokens"
        raise RowFailedError(msg)
    joined = "\n\n".join(texts)
    return {
        "evidence": f"{fence('evidence', joined)}\n" if texts else "",
        "reference": f"{fence('reference', row.reference)}\n" if row.reference else "",
        "question": question_part(row.question),
        "answer": fence("answer", row.answer or ""),
    }
