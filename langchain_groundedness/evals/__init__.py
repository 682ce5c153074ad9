"""Evaluation offline: metrics over rows, on the same verifiers as the check at run time."""

from langchain_groundedness.evals.evaluator import EvaluationResult, Evaluator
from langchain_groundedness.evals.faithfulness import FaithfulnessEvaluator
from langchain_groundedness.evals.run_files import load_run, save_run
from langchain_groundedness.evals.values import (
    BadRow,
    EvaluatedRow,
    EvaluationRow,
    EvaluationRun,
    RowScore,
    RunHeader,
)

__all__ = [
    "BadRow",
    "EvaluatedRow",
    "EvaluationResult",
    "EvaluationRow",
    "EvaluationRun",
    "Evaluator",
    "FaithfulnessEvaluator",
    "RowScore",
    "RunHeader",
    "load_run",
    "save_run",
]
