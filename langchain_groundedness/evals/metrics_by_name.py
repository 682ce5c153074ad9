"""The metrics that can be asked for by name, such as on the command line."""

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any

from langchain_groundedness.evals.evaluator import Evaluator
from langchain_groundedness.exceptions import ConfigurationError

__all__ = ["METRICS", "make_metric"]

METRICS: Mapping[str, str] = MappingProxyType(
    {
        "faithfulness": "faithfulness:FaithfulnessEvaluator",
        "context_relevance": "context_relevance:ContextRelevanceEvaluator",
        "answer_quality": "answer_quality:AnswerQualityEvaluator",
        "factual_correctness": "correctness:FactualCorrectnessEvaluator",
        "answer_correctness": "correctness:AnswerCorrectnessEvaluator",
        "context_recall": "retrieval:ContextRecallEvaluator",
        "context_precision": "retrieval:ContextPrecisionEvaluator",
        "citations": "citations:CitationEvaluator",
        "bleu": "text_metrics:BleuEvaluator",
        "chrf": "text_metrics:ChrfEvaluator",
        "rouge": "text_metrics:RougeEvaluator",
    }
)
"""By name of the metric, where its evaluator is. Those that need embeddings or criteria of yours
are made in Python."""


def make_metric(name: str, **parts: Any) -> Evaluator:
    """Make the evaluator of a metric.

    Args:
        name: One of `METRICS`.
        **parts: What it is to work with, such as `model=`, `verifier=`, `extractor=`,
            `embeddings=`; parts that it has no use for, and `None`, are left out.

    Returns:
        The evaluator.

    Raises:
        ConfigurationError: There is no such metric, or it cannot do without something.

    Example:
        >>> make_metric("faithfulness").needs
        ('answer', 'documents')
    """
    place = METRICS.get(name)
    if place is None:
        msg = f"there is no metric {name!r}; accepted: {', '.join(METRICS)}"
        raise ConfigurationError(msg)
    module, _, kind = place.partition(":")
    evaluator: type[Evaluator] = getattr(import_module(f"{__package__}.{module}"), kind)
    fields = evaluator.model_fields
    wanted = {key: part for key, part in parts.items() if part is not None and key in fields}
    missing = [key for key, each in fields.items() if each.is_required() and key not in wanted]
    if missing:
        msg = f"the metric {name} needs {', '.join(missing)}"
        raise ConfigurationError(msg)
    return evaluator(**wanted)
