"""Metrics available by name, such as on the command line."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from langchain_groundedness.evals.citations import CitationEvaluator
from langchain_groundedness.evals.context_relevance import ContextRelevanceEvaluator
from langchain_groundedness.evals.correctness import (
    AnswerCorrectnessEvaluator,
    FactualCorrectnessEvaluator,
)
from langchain_groundedness.evals.evaluator import Evaluator
from langchain_groundedness.evals.faithfulness import FaithfulnessEvaluator
from langchain_groundedness.evals.judged import AnswerQualityEvaluator
from langchain_groundedness.evals.retrieval import ContextPrecisionEvaluator, ContextRecallEvaluator
from langchain_groundedness.evals.text_metrics import BleuEvaluator, ChrfEvaluator, RougeEvaluator
from langchain_groundedness.exceptions import ConfigurationError

__all__ = ["METRICS", "make_metric"]

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
        msg = f"the metric {name} needs {', '.join(missing)}"
        raise ConfigurationError(msg)
    return METRICS[name](**wanted)
