"""Evaluation offline: metrics over rows, on the same verifiers as the check at run time."""

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
    "EvaluationRow",
    "EvaluationRun",
    "RowScore",
    "RunHeader",
    "load_run",
    "save_run",
]
