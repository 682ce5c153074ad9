"""Offline evaluation: metrics over data sets, with the verifiers of the run-time check."""

from langchain_groundedness.evals.cache import ResultCache
from langchain_groundedness.evals.citations import CitationEvaluator
from langchain_groundedness.evals.composite import CompositeScore
from langchain_groundedness.evals.context_relevance import ContextRelevanceEvaluator
from langchain_groundedness.evals.conventions import as_score
from langchain_groundedness.evals.correctness import (
    AnswerCorrectnessEvaluator,
    FactualCorrectnessEvaluator,
)
from langchain_groundedness.evals.datasets import DataSet, open_dataset
from langchain_groundedness.evals.display import run_html
from langchain_groundedness.evals.evaluator import EvaluationResult, Evaluator
from langchain_groundedness.evals.faithfulness import FaithfulnessEvaluator
from langchain_groundedness.evals.judged import (
    AnswerQualityEvaluator,
    AnswerRelevancyEvaluator,
    RubricEvaluator,
)
from langchain_groundedness.evals.metrics_by_name import METRICS, make_metric
from langchain_groundedness.evals.retrieval import ContextPrecisionEvaluator, ContextRecallEvaluator
from langchain_groundedness.evals.review_export import ReviewExport
from langchain_groundedness.evals.run_files import load_run, save_run
from langchain_groundedness.evals.runner import EvaluationInterrupted, aevaluate, evaluate
from langchain_groundedness.evals.summary import summarize, to_pandas
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
)

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
    "ResultCache",
    "ReviewExport",
    "RougeEvaluator",
    "RowScore",
    "RubricEvaluator",
    "RunHeader",
    "SemanticSimilarityEvaluator",
    "aevaluate",
    "as_score",
    "evaluate",
    "load_run",
    "make_metric",
    "open_dataset",
    "run_html",
    "save_run",
    "summarize",
    "to_pandas",
]
