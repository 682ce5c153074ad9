"""Offline evaluation: metrics over data sets, with the verifiers of the run-time check."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypedDict, Unpack

from langchain_core.cross_encoders import BaseCrossEncoder
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import Runnable

from langchain_groundedness._runtime.flow import Flow, ModelCall
from langchain_groundedness._runtime.options import expand_options
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
from langchain_groundedness.llm.chat_models import GivenModel

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


class MetricParts(TypedDict, total=False):
    """What evaluators work with."""

    model: GivenModel | None
    model_timeout: float | None
    verifier: Runnable[Any, Any] | Callable[..., Any] | str | None
    extractor: Runnable[Any, Any] | Callable[..., Any] | None
    embeddings: Embeddings | None
    cross_encoder: BaseCrossEncoder | None
    max_claims: int | None
    max_concurrency: int | None


def make_metric(name: str, **parts: Unpack[MetricParts]) -> Evaluator:
    """Make the evaluator of a metric.

    Parts that it does not use, and those that are `None`, are left out. Options of one evaluator
    alone can be given too; `METRICS[name]` is its class.

    Args:
        name: One of `METRICS`.
        model: A chat model, or its name as `provider:name`, or a function.
        model_timeout: Timeout of one model call in seconds.
        verifier: Judges claims; or its name.
        extractor: Finds claims.
        embeddings: Any LangChain embeddings.
        cross_encoder: Any LangChain cross-encoder.
        max_claims: Maximum number of claims of an answer.
        max_concurrency: Most calls of the model or verifier at a time.

    Returns:
        The evaluator.

    Raises:
        ConfigurationError: There is no such metric or part, or a part that it needs is missing.

    Example:
        >>> make_metric("faithfulness").needs
        ('answer', 'documents')
    """
    if name not in METRICS:
        msg = f"there is no metric {name!r}; accepted: {', '.join(METRICS)}"
        raise ConfigurationError(msg)
    known = {part for each in METRICS.values() for part in each.model_fields}
    if unknown := sorted(parts.keys() - known):
        accepted = ", ".join(MetricParts.__annotations__)
        msg = f"no metric takes {', '.join(unknown)}; parts are: {accepted}"
        raise ConfigurationError(msg)
    fields = METRICS[name].model_fields
    wanted: dict[str, Any] = {
        key: part for key, part in parts.items() if part is not None and key in fields
    }
    missing = [key for key, each in fields.items() if each.is_required() and key not in wanted]
    if missing:
        needs = ", ".join(f"{each}=, or --{each} on the command line" for each in missing)
        msg = f"the metric {name} needs {needs}"
        raise ConfigurationError(msg)
    return METRICS[name](**wanted)


expand_options(make_metric)
