"""Validation of data sets: rows that may be learnt from, apart from those that may not."""

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
