"""Offline evaluation: metrics over data sets, with the verifiers of the run-time check."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from langchain_groundedness._runtime.flow import Flow, ModelCall
from langchain_groundedness.evals.citations import CitationEvaluator
from langchain_groundedness.evals.claim_metrics import (
    AnswerCorrectnessEvaluator,
    ContextPrecisionEvaluator,
    ContextRecallEvaluator,
    FactualCorrectnessEvaluator,
    FaithfulnessEvaluator,
)
from langchain_groundedness.evals.composite import CompositeScore
from langchain_groundedness.evals.context_relevance import ContextRelevanceEvaluator
from langchain_groundedness.evals.datasets import DataSet, open_dataset
from langchain_groundedness.evals.display import run_html
from langchain_groundedness.evals.evaluator import EvaluationResult, Evaluator
from langchain_groundedness.evals.judged import (
    AnswerQualityEvaluator,
    AnswerRelevancyEvaluator,
    RubricEvaluator,
)
from langchain_groundedness.evals.review_export import ReviewExport
from langchain_groundedness.evals.run_files import ResultCache, load_run, save_run
from langchain_groundedness.evals.runner import EvaluationInterrupted, aevaluate, evaluate
from langchain_groundedness.evals.text_metrics import (
    BleuEvaluator,
    ChrfEvaluator,
    RougeEvaluator,
    SemanticSimilarityEvaluator,
)
from langchain_groundedness.evals.values import (
    BadRow,
    EvaluatedRow,
    EvaluationRow,
    EvaluationRun,
    RowScore,
    RunHeader,
    summarize,
    to_pandas,
)
from langchain_groundedness.exceptions import ConfigurationError

__all__ = [
    "METRICS",
    "AnswerCorrectnessEvaluator",
    "AnswerQualityEvaluator",
    "AnswerRelevancyEvaluator",
    "BadRow",
    "BleuEvaluator",
    "ChrfEvaluator",
    "CitationEvaluator",
    "CompositeScore",
    "ContextPrecisionEvaluator",
    "ContextRecallEvaluator",
    "ContextRelevanceEvaluator",
    "DataSet",
    "EvaluatedRow",
    "EvaluationInterrupted",
    "EvaluationResult",
    "EvaluationRow",
    "EvaluationRun",
    "Evaluator",
    "FactualCorrectnessEvaluator",
    "FaithfulnessEvaluator",
    "Flow",
    "ModelCall",
    "ResultCache",
    "ReviewExport",
    "RougeEvaluator",
    "RowScore",
    "RubricEvaluator",
    "RunHeader",
    "SemanticSimilarityEvaluator",
    "aevaluate",
    "evaluate",
    "load_run",
    "make_metric",
    "open_dataset",
    "run_html",
    "save_run",
    "summarize",
    "to_pandas",
]

METRICS: Mapping[str, type[Evaluator]] = MappingProxyType(
    {
        "faithfulness": FaithfulnessEvaluator,
        "context_relevance": ContextRelevanceEvaluator,
        "answer_quality": AnswerQualityEvaluator,
        "factual_correctness": FactualCorrectnessEvaluator,
        "answer_correctness": AnswerCorrectnessEvaluator,
        "context_recall": ContextRecallEvaluator,
        "context_precision": ContextPrecisionEvaluator,
        "citations": CitationEvaluator,
        "bleu": BleuEvaluator,
        "chrf": ChrfEvaluator,
        "rouge": RougeEvaluator,
    }
)
"""Evaluators by name of the metric; those that need your own embeddings or criteria are made in
Python."""


def make_metric(name: str, **parts: Any) -> Evaluator:
    """Make the evaluator of a metric.

    Args:
        name: One of `METRICS`.
        **parts: What it works with, such as `model=`, `verifier=`, `extractor=`, `embeddings=`;
            parts that it does not use, and `None`, are left out.

    Returns:
        The evaluator.

    Raises:
        ConfigurationError: There is no such metric, or a part that it needs is missing.

    Example:
        >>> make_metric("faithfulness").needs
        ('answer', 'documents')
    """
    if name not in METRICS:
        msg = f"there is no metric {name!r}; accepted: {', '.join(METRICS)}"
        raise ConfigurationError(msg)
    fields = METRICS[name].model_fields
    wanted = {key: part for key, part in parts.items() if part is not None and key in fields}
    missing = [key for key, each in fields.items() if each.is_required() and key not in wanted]
    if missing:
        needs = ", ".join(f"{each}=, or --{each} on the command line" for each in missing)
        msg = f"the metric {name} needs {needs}"
        raise ConfigurationError(msg)
    return METRICS[name](**wanted)
