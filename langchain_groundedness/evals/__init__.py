"""Evaluation offline: metrics over rows, on the same verifiers as the check at run time."""

from langchain_groundedness.evals.answer_quality import AnswerQualityEvaluator
from langchain_groundedness.evals.answer_relevancy import AnswerRelevancyEvaluator
from langchain_groundedness.evals.composite import CompositeScore
from langchain_groundedness.evals.context_relevance import ContextRelevanceEvaluator
from langchain_groundedness.evals.evaluator import EvaluationResult, Evaluator
from langchain_groundedness.evals.faithfulness import FaithfulnessEvaluator
from langchain_groundedness.evals.rubric import RubricEvaluator
from langchain_groundedness.evals.values import (
    BadRow,
    EvaluatedRow,
    EvaluationRow,
    EvaluationRun,
    RowScore,
    RunHeader,
)

__all__ = [
    "AnswerQualityEvaluator",
    "AnswerRelevancyEvaluator",
    "BadRow",
    "CompositeScore",
    "ContextRelevanceEvaluator",
    "EvaluatedRow",
    "EvaluationResult",
    "EvaluationRow",
    "EvaluationRun",
    "Evaluator",
    "FaithfulnessEvaluator",
    "RowScore",
    "RubricEvaluator",
    "RunHeader",
]
