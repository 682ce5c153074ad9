"""Tells, while a RAG chain runs, which claims of an answer the retrieved documents support.

Put `GroundednessRunnable` behind a chain: `chain.pipe(GroundednessRunnable())`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from langchain_groundedness import verifiers
from langchain_groundedness.claims import (
    ClaimExtractor,
    ExtractionExample,
    LLMClaimExtractor,
    SentenceClaimExtractor,
)
from langchain_groundedness.correction import Corrector
from langchain_groundedness.evidence import EvidencePacker
from langchain_groundedness.exceptions import (
    AuditError,
    ConfigurationError,
    EvaluationError,
    GroundednessError,
    InputFormatError,
    MissingDependencyError,
    ModelFileError,
    OutputParsingError,
    ReviewConflictError,
    VerificationError,
    require,
)
from langchain_groundedness.inputs import CheckInput, read_input
from langchain_groundedness.policy import DecisionPolicy, DecisionRule
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
from langchain_groundedness.verifiers import (
    CascadeVerifier,
    CrossEncoderVerifier,
    EmbeddedCrossEncoder,
    EmbeddedVerifier,
    EmbeddingVerifier,
    LLMVerifier,
    Stage,
    Verifier,
)

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
        AnswerCorrectnessEvaluator,
        AnswerQualityEvaluator,
        AnswerRelevancyEvaluator,
        BadRow,
        BleuEvaluator,
        ChrfEvaluator,
        CitationEvaluator,
        CompositeScore,
        ContextPrecisionEvaluator,
        ContextRecallEvaluator,
        ContextRelevanceEvaluator,
        DataSet,
        EvaluatedRow,
        EvaluationInterrupted,
        EvaluationResult,
        EvaluationRow,
        EvaluationRun,
        Evaluator,
        FactualCorrectnessEvaluator,
        FaithfulnessEvaluator,
        ResultCache,
        RougeEvaluator,
        RowScore,
        RubricEvaluator,
        RunHeader,
        SemanticSimilarityEvaluator,
        aevaluate,
        as_score,
        evaluate,
        load_run,
        open_dataset,
        save_run,
    )
    from langchain_groundedness.feedback import ReviewExport
    from langchain_groundedness.middleware import (
        GroundednessMiddleware,
        GroundednessState,
        groundedness_node,
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
    from langchain_groundedness.resume import aresume_reviewed, resume_reviewed, resume_value
    from langchain_groundedness.verifiers import EmbeddedDecisionModel

__all__ = [
    "QUERY_CLASSES",
    "Action",
    "AnswerCorrectnessEvaluator",
    "AnswerQualityEvaluator",
    "AnswerRelevancyEvaluator",
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
    "MissingDependencyError",
    "ModelFileError",
    "OnContradicted",
    "OnUnverifiable",
    "OutputParsingError",
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
    "RubricEvaluator",
    "RunHeader",
    "RunnableQueryClassifier",
    "SQLAuditLog",
    "ScoredClaim",
    "SemanticSimilarityEvaluator",
    "SentenceClaimExtractor",
    "Stage",
    "ThresholdChoice",
    "ThresholdFigures",
    "Usage",
    "VerdictLabel",
    "VerificationError",
    "VerificationTask",
    "Verifier",
    "Versions",
    "aevaluate",
    "aresume_reviewed",
    "as_score",
    "calibrate",
    "collect_groundedness",
    "evaluate",
    "groundedness_node",
    "load_arguments",
    "load_run",
    "open_dataset",
    "read_input",
    "resume_reviewed",
    "resume_value",
    "save_run",
    "summarize",
]

_WITH_EXTRA_AGENTS = ("GroundednessMiddleware", "GroundednessState", "groundedness_node")
_WITH_NEWER_CORE = ("EmbeddedDecisionModel",)
_AROUND_THE_CHECK = {
    name: module
    for module, names in {
        "audit": (
            "AuditedDocument",
            "AuditEntry",
            "AuditLog",
            "AuditPage",
            "AuditRecord",
            "JsonlAuditLog",
            "Review",
            "SQLAuditLog",
            "Versions",
        ),
        "calibration": (
            "Calibration",
            "CalibrationSample",
            "CalibrationTarget",
            "Reliability",
            "ReliabilityBin",
            "ScoredClaim",
            "ThresholdChoice",
            "ThresholdFigures",
            "calibrate",
        ),
        "callbacks": (
            "AsyncGroundednessCallbackHandler",
            "GroundednessCallbackHandler",
            "GroundednessEvent",
            "collect_groundedness",
        ),
        "evals": (
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
            "RougeEvaluator",
            "RowScore",
            "RubricEvaluator",
            "RunHeader",
            "SemanticSimilarityEvaluator",
            "aevaluate",
            "as_score",
            "evaluate",
            "load_run",
            "open_dataset",
            "save_run",
        ),
        "feedback": ("ReviewExport",),
        "monitoring": ("AuditSummary", "GroupFigures", "summarize"),
        "query": (
            "QUERY_CLASSES",
            "ClassFigures",
            "EmbeddingQueryClassifier",
            "GateCalibration",
            "HashedNgramEmbeddings",
            "LLMQueryClassifier",
            "QueryClass",
            "QueryClassifier",
            "QueryLabel",
            "QueryReport",
            "QuerySample",
            "QueryWeights",
            "RetrievalGate",
            "RetrievalStrength",
            "RunnableQueryClassifier",
        ),
        "resume": ("aresume_reviewed", "resume_reviewed", "resume_value"),
    }.items()
    for name in names
}
"""Names that a check alone does not need, by the module that has them: loaded when asked for."""


def __getattr__(name: str) -> Any:
    """Load what is around the check, needs an extra, or langchain-core 1.8, when asked for it."""
    if name in _AROUND_THE_CHECK:
        found = getattr(import_module(f"{__name__}.{_AROUND_THE_CHECK[name]}"), name)
        globals()[name] = found
        return found
    if name in _WITH_NEWER_CORE:
        return getattr(verifiers, name)
    if name not in _WITH_EXTRA_AGENTS:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    require("langchain.agents", extra="agents")
    return getattr(require(f"{__name__}.middleware", extra="agents"), name)


def __dir__() -> list[str]:
    """Name what is loaded when it is asked for, too."""
    return sorted({*globals(), *_AROUND_THE_CHECK, *_WITH_EXTRA_AGENTS, *_WITH_NEWER_CORE})
