"""Before the answer: which kind of query it is, and whether retrieval found anything close.

Classifiers of queries are runnables that give a `QueryClass`; LangChain's `RunnableBranch` routes
by it. `LLMQueryClassifier` asks a chat model, `EmbeddingQueryClassifier` learns from labelled
queries, `RunnableQueryClassifier` takes any runnable of yours. One that fails gives the label
`unknown`, which a router must check as strictly as it can, never skip:

    RunnableBranch(
        (lambda x: x["query_class"].label == "harmful", refuse),
        (lambda x: x["query_class"].label == "generic", answer_unchecked),
        (lambda x: x["query_class"].label in ("sensitive", "unknown"), check_strictly),
        check,
    )
"""

from langchain_groundedness.query.classifiers import (
    QUERY_CLASSES,
    ClassFigures,
    LLMQueryClassifier,
    QueryClass,
    QueryClassifier,
    QueryLabel,
    QueryReport,
    QuerySample,
    RunnableQueryClassifier,
)
from langchain_groundedness.query.embedding import (
    EmbeddingQueryClassifier,
    HashedNgramEmbeddings,
    QueryWeights,
)
from langchain_groundedness.query.retrieval_gate import (
    GateCalibration,
    RetrievalGate,
    RetrievalStrength,
)

__all__ = [
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
]
