"""Rubrics: an answer graded by levels that you describe."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal, Self

from langchain_core.documents import Document
from langchain_core.prompts.chat import BaseChatPromptTemplate
from pydantic import Field, model_validator
from typing_extensions import override

from langchain_groundedness._runtime.flow import Flow, ModelCall
from langchain_groundedness.evals.evaluator import Evaluator
from langchain_groundedness.evals.prompts import RUBRIC_PROMPT, RubricScore
from langchain_groundedness.evals.values import EvaluationRow, RowScore
from langchain_groundedness.evidence.packing import approximate_tokens
from langchain_groundedness.exceptions import GroundednessError
from langchain_groundedness.llm.chat_models import ChatModel
from langchain_groundedness.llm.prompts import check_prompt, fence, fold_space, question_part
from langchain_groundedness.llm.structured import StructuredModel

__all__ = ["RubricEvaluator", "row_parts"]

Shown = Literal["question", "documents", "reference"]


class RubricEvaluator(Evaluator):
    """The level of a rubric that an answer reaches, as a chat model judges it.

    The score is (level - lowest) / (highest - lowest), so 0 .. 1; `details` has the `level` as it
    was given, and the `reasoning`, which the model writes first. A number that is no level is
    asked for once more, then the row fails.

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

    key: str = Field(default="rubric", min_length=1)
    model: ChatModel
    """The chat model that judges."""
    rubric: dict[int, str]
    """What each level stands for; the texts stand in the prompt as they are, so they must be
    yours."""
    shows: tuple[Shown, ...] = ("question", "documents", "reference")
    """What the model sees beside the answer, where the row has it."""
    prompt: BaseChatPromptTemplate | None = None
    """Instead of `evals.prompts.RUBRIC_PROMPT`, with the same variables."""
    max_tokens: int = Field(default=100_000, ge=1)
    """Most tokens of documents; a row with more fails, since nothing is cut off."""

    @model_validator(mode="after")
    def _usable(self) -> Self:
        if len(self.rubric) < 2:  # noqa: PLR2004  (one level grades nothing)
            msg = f"rubric must describe at least 2 levels, got {len(self.rubric)}"
            raise ValueError(msg)
        if blank := sorted(level for level, text in self.rubric.items() if not text.strip()):
            msg = f"rubric must say what each level stands for; blank are {blank}"
            raise ValueError(msg)
        optional = {"evidence", "reference", "question"}
        check_prompt(self._prompt, required={"rubric", "answer"}, optional=optional)
        return self

    @override
    def _score(self, row: EvaluationRow) -> Flow[RowScore]:
        hidden = {"question", "documents", "reference"} - set(self.shows)
        seen = row.model_copy(update=dict.fromkeys(hidden))
        ask = StructuredModel[RubricScore](
            model=self.model,
            prompt=self._prompt,
            reply_schema=RubricScore,
            name="grade_by_rubric",
            timeout=self.model_timeout,
            why_unusable=partial(_no_level, self.rubric),
        )
        levels = (f"{level}: {fold_space(self.rubric[level])}" for level in sorted(self.rubric))
        parts = {"rubric": "\n".join(levels), **row_parts(seen, max_tokens=self.max_tokens)}
        reply: RubricScore = yield ModelCall(ask, parts)
        lowest, highest = min(self.rubric), max(self.rubric)
        return self._scored(
            (reply.score - lowest) / (highest - lowest),
            comment=f"level {reply.score} of {lowest} to {highest}",
            details={"level": reply.score, "reasoning": reply.reasoning},
        )

    @property
    def _prompt(self) -> BaseChatPromptTemplate:
        return self.prompt or RUBRIC_PROMPT

    @override
    def _defaults(self) -> Mapping[str, Any]:
        return {"prompt": self._prompt}


def _no_level(rubric: Mapping[int, str], reply: RubricScore) -> str | None:
    return None if reply.score in rubric else "its score is no level of the rubric"


class _TooLongError(GroundednessError):
    """The documents do not fit into one call."""


def row_parts(row: EvaluationRow, *, max_tokens: int) -> dict[str, str]:
    """Give the variables of a prompt that shows a whole row."""
    reference = f"{fence('reference', row.reference)}\n" if row.reference else ""
    return {
        "evidence": evidence_part(row.documents or (), max_tokens=max_tokens),
        "reference": reference,
        "question": question_part(row.question),
        "answer": fence("answer", row.answer or ""),
    }


def evidence_part(documents: Sequence[Document], *, max_tokens: int) -> str:
    """Give documents as prompts show them."""
    texts = [document.page_content for document in documents if document.page_content.strip()]
    tokens = sum(map(approximate_tokens, texts))
    if tokens > max_tokens:
        msg = (
            f"the documents have about {tokens} tokens and max_tokens is {max_tokens}: they are "
            "judged in one call, and nothing is cut off"
        )
        raise _TooLongError(msg)
    joined = "\n\n".join(texts)
    return f"{fence('evidence', joined)}\n" if texts else ""
