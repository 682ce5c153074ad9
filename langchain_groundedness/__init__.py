"""Tells, while a RAG chain runs, which claims of an answer the retrieved documents support.

Put `GroundednessRunnable` behind a chain: `chain.pipe(GroundednessRunnable())`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from langchain_groundedness import verification
from langchain_groundedness._lazy_names import LOADED_LATER
from langchain_groundedness._runtime.lazy_imports import absent
from langchain_groundedness.claims.extractors import (
    ClaimExtractor,
    ExtractionExample,
    LLMClaimExtractor,
    SentenceClaimExtractor,
)
from langchain_groundedness.correction.corrector import Corrector
from langchain_groundedness.decision import DecisionPolicy, DecisionRule
from langchain_groundedness.evidence.packing import EvidencePacker
from langchain_groundedness.exceptions import (
    AuditError,
    ConfigurationError,
    EvaluationError,
    GroundednessError,
    InputFormatError,
    MissingDependencyError,
    ModelFileError,
    ModelTimeoutError,
    OutputParsingError,
    ReviewConflictError,
    VerificationError,
    require,
)
from langchain_groundedness.inputs.formats import CheckInput, read_input
from langchain_groundedness.runnable import GroundednessRunnable
from langchain_groundedness.serialization import load_arguments
from langchain_groundedness.streaming import GroundednessGuard
from langchain_groundedness.types import (
    Action,
    AnswerVerdict,
    Citation,
    Claim,
    ClaimVerdict,
    CorrectedAnswer,
    CorrectionTask,
    Decision,
    Edit,
    EvidenceBatch,
    ExtractionTask,
    GroundednessResult,
    GroundednessResultChunk,
    OnContradicted,
    OnUnverifiable,
    Passage,
    Usage,
    VerdictLabel,
    VerificationTask,
)
from langchain_groundedness.verification import (
    CachedVerifier,
    CascadeVerifier,
    LLMVerifier,
    Stage,
    Verifier,
)
from langchain_groundedness.verification.single_pass import SinglePassJudge

if TYPE_CHECKING:
    from langchain_groundedness.audit import (
        AuditedDocument,
        AuditEntry,
        AuditLog,
        AuditPage,
        AuditRecord,
        JsonlAuditLog,
        Review,
        SQLAuditLog,
        Versions,
    )
    from langchain_groundedness.calibration import (
        Calibration,
        CalibrationSample,
        CalibrationTarget,
        Reliability,
        ReliabilityBin,
        ScoredClaim,
        ThresholdChoice,
        ThresholdFigures,
        calibrate,
    )
    from langchain_groundedness.callbacks import (
        AsyncGroundednessCallbackHandler,
        GroundednessCallbackHandler,
        GroundednessEvent,
        collect_groundedness,
    )
    from langchain_groundedness.evals import (
        METRICS,
        AnswerCorrectnessEvaluator,
        AnswerQualityEvaluator,
        AnswerRelevancyEvaluator,
        AnswerValidator,
        BadRow,
        BleuEvaluator,
        ChrfEvaluator,
        CitationEvaluator,
        CompositeScore,
        ContextPrecisionEvaluator,
        ContextRecallEvaluator,
        ContextRelevanceEvaluator,
        DataSet,
        Estimate,
        EvaluatedRow,
        EvaluationInterrupted,
        EvaluationResult,
        EvaluationRow,
        EvaluationRun,
        Evaluator,
        FactualCorrectnessEvaluator,
        FaithfulnessEvaluator,
        LabelAgreement,
        PairedComparison,
        ResultCache,
        RougeEvaluator,
        RowScore,
        RowValidation,
        RubricEvaluator,
        RunHeader,
        ScoreChange,
        SemanticSimilarityEvaluator,
        Slice,
        SourceClaim,
        SweepLine,
        ValidatedRow,
        ValidationReason,
        ValidationSummary,
        aevaluate,
        as_score,
        avalidate,
        compare_runs,
        compare_scores,
        estimate_mean,
        evaluate,
        label_agreement,
        load_run,
        make_metric,
        open_dataset,
        run_agreement,
        save_run,
        slice_scores,
        validate,
    )
    from langchain_groundedness.evals.review_export import ReviewExport
    from langchain_groundedness.middleware import (
        GroundednessMiddleware,
        GroundednessState,
        groundedness_node,
    )
    from langchain_groundedness.middleware.resume import (
        aresume_reviewed,
        resume_reviewed,
        resume_value,
    )
    from langchain_groundedness.monitoring import AuditSummary, GroupFigures, summarize
    from langchain_groundedness.query import (
        QUERY_CLASSES,
        ClassFigures,
        EmbeddingQueryClassifier,
        GateCalibration,
        HashedNgramEmbeddings,
        LLMQueryClassifier,
        QueryClass,
        QueryClassifier,
        QueryLabel,
        QueryReport,
        QuerySample,
        QueryWeights,
        RetrievalGate,
        RetrievalStrength,
        RunnableQueryClassifier,
    )
    from langchain_groundedness.report import to_html, to_junit, to_markdown, write_report
    from langchain_groundedness.verification import (
        CrossEncoderVerifier,
        EmbeddedCrossEncoder,
        EmbeddedDecisionModel,
        EmbeddedVerifier,
        EmbeddingVerifier,
    )

__all__ = [
    "METRICS",
    "QUERY_CLASSES",
    "Action",
    "AnswerCorrectnessEvaluator",
    "AnswerQualityEvaluator",
    "AnswerRelevancyEvaluator",
    "AnswerValidator",
    "AnswerVerdict",
    "AsyncGroundednessCallbackHandler",
    "AuditEntry",
    "AuditError",
    "AuditLog",
    "AuditPage",
    "AuditRecord",
    "AuditSummary",
    "AuditedDocument",
    "BadRow",
    "BleuEvaluator",
    "CachedVerifier",
    "Calibration",
    "CalibrationSample",
    "CalibrationTarget",
    "CascadeVerifier",
    "CheckInput",
    "ChrfEvaluator",
    "Citation",
    "CitationEvaluator",
    "Claim",
    "ClaimExtractor",
    "ClaimVerdict",
    "ClassFigures",
    "CompositeScore",
    "ConfigurationError",
    "ContextPrecisionEvaluator",
    "ContextRecallEvaluator",
    "ContextRelevanceEvaluator",
    "CorrectedAnswer",
    "CorrectionTask",
    "Corrector",
    "CrossEncoderVerifier",
    "DataSet",
    "Decision",
    "DecisionPolicy",
    "DecisionRule",
    "Edit",
    "EmbeddedCrossEncoder",
    "EmbeddedDecisionModel",
    "EmbeddedVerifier",
    "EmbeddingQueryClassifier",
    "EmbeddingVerifier",
    "Estimate",
    "EvaluatedRow",
    "EvaluationError",
    "EvaluationInterrupted",
    "EvaluationResult",
    "EvaluationRow",
    "EvaluationRun",
    "Evaluator",
    "EvidenceBatch",
    "EvidencePacker",
    "ExtractionExample",
    "ExtractionTask",
    "FactualCorrectnessEvaluator",
    "FaithfulnessEvaluator",
    "GateCalibration",
    "GroundednessCallbackHandler",
    "GroundednessError",
    "GroundednessEvent",
    "GroundednessGuard",
    "GroundednessMiddleware",
    "GroundednessResult",
    "GroundednessResultChunk",
    "GroundednessRunnable",
    "GroundednessState",
    "GroupFigures",
    "HashedNgramEmbeddings",
    "InputFormatError",
    "JsonlAuditLog",
    "LLMClaimExtractor",
    "LLMQueryClassifier",
    "LLMVerifier",
    "LabelAgreement",
    "MissingDependencyError",
    "ModelFileError",
    "ModelTimeoutError",
    "OnContradicted",
    "OnUnverifiable",
    "OutputParsingError",
    "PairedComparison",
    "Passage",
    "QueryClass",
    "QueryClassifier",
    "QueryLabel",
    "QueryReport",
    "QuerySample",
    "QueryWeights",
    "Reliability",
    "ReliabilityBin",
    "ResultCache",
    "RetrievalGate",
    "RetrievalStrength",
    "Review",
    "ReviewConflictError",
    "ReviewExport",
    "RougeEvaluator",
    "RowScore",
    "RowValidation",
    "RubricEvaluator",
    "RunHeader",
    "RunnableQueryClassifier",
    "SQLAuditLog",
    "ScoreChange",
    "ScoredClaim",
    "SemanticSimilarityEvaluator",
    "SentenceClaimExtractor",
    "SinglePassJudge",
    "Slice",
    "SourceClaim",
    "Stage",
    "SweepLine",
    "ThresholdChoice",
    "ThresholdFigures",
    "Usage",
    "ValidatedRow",
    "ValidationReason",
    "ValidationSummary",
    "VerdictLabel",
    "VerificationError",
    "VerificationTask",
    "Verifier",
    "Versions",
    "aevaluate",
    "aresume_reviewed",
    "as_score",
    "avalidate",
    "calibrate",
    "collect_groundedness",
    "compare_runs",
    "compare_scores",
    "estimate_mean",
    "evaluate",
    "groundedness_node",
    "label_agreement",
    "load_arguments",
    "load_run",
    "make_metric",
    "open_dataset",
    "read_input",
    "resume_reviewed",
    "resume_value",
    "run_agreement",
    "save_run",
    "slice_scores",
    "summarize",
    "to_html",
    "to_junit",
    "to_markdown",
    "validate",
    "write_report",
]

_WITH_EXTRA_AGENTS = ("GroundednessMiddleware", "GroundednessState", "groundedness_node")
_WITH_NEWER_CORE = ("EmbeddedDecisionModel",)

if not TYPE_CHECKING:  # `from langchain_groundedness import *` brings what can be had
    _ABSENT = absent(
        {
            **dict.fromkeys(_WITH_EXTRA_AGENTS, "langchain.agents.middleware"),
            **dict.fromkeys(_WITH_NEWER_CORE, "langchain_core.decisions"),
        }
    )
    __all__ = [name for name in __all__ if name not in _ABSENT]


def __getattr__(name: str) -> Any:
    """Load what not every check needs, an extra has, or langchain-core 1.8, when asked for it."""
    if name in LOADED_LATER:
        found = getattr(import_module(f"{__name__}.{LOADED_LATER[name]}"), name)
        globals()[name] = found
        return found
    if name in _WITH_NEWER_CORE:
        return getattr(verification, name)
    if name not in _WITH_EXTRA_AGENTS:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    require("langchain.agents", extra="agents")
    return getattr(require(f"{__name__}.middleware", extra="agents"), name)


def __dir__() -> list[str]:
    """Name what is loaded when it is asked for, too."""
    return sorted({*globals(), *LOADED_LATER, *_WITH_EXTRA_AGENTS, *_WITH_NEWER_CORE})
