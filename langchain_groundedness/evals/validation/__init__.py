"""Validation of data sets: separates rows good enough to train or test on."""

from langchain_groundedness.evals.validation.pipeline import avalidate, validate
from langchain_groundedness.evals.validation.summary import SweepLine, ValidationSummary
from langchain_groundedness.evals.validation.validator import (
    AnswerValidator,
    RowValidation,
    SourceClaim,
    ValidatedRow,
    ValidationReason,
)

__all__ = [
    "AnswerValidator",
    "RowValidation",
    "SourceClaim",
    "SweepLine",
    "ValidatedRow",
    "ValidationReason",
    "ValidationSummary",
    "avalidate",
    "validate",
]
