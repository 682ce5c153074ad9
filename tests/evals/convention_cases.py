"""Cases in which every judge says the same, and what our evaluators make of them.

`benchmarks/conventions.py` has the rivals compute the same cases; what they gave is recorded in
`rival_scores.json`, with their versions.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from langchain_core.cross_encoders import BaseCrossEncoder
from langchain_core.embeddings import Embeddings
from typing_extensions import override

from cookbook.recipes.scores_of_other_libraries import ConventionMetric, as_score
from langchain_groundedness import Claim
from langchain_groundedness.evals import (
    AnswerCorrectnessEvaluator,
    ContextPrecisionEvaluator,
    ContextRecallEvaluator,
    ContextRelevanceEvaluator,
    Evaluator,
    FactualCorrectnessEvaluator,
    FaithfulnessEvaluator,
    RowScore,
)
from langchain_groundedness.testing import ScriptedClaimExtractor, ScriptedVerifier
from langchain_groundedness.types import VerdictLabel

LABELS: dict[str, VerdictLabel] = {
    "s": "supported",
    "c": "contradicted",
    "u": "unverifiable",
    "-": "unchecked",
}


class Case(NamedTuple):
    """What is scored, and what the judges say of it: one letter per claim or document."""

    metric: ConventionMetric
    claims: str = ""
    """Verdicts on the claims of the answer: `s`, `c`, `u`, or `-` for none."""
    reference: str = ""
    """The same of the reference."""
    documents: str = "1"
    """For each document 1 if it is relevant, else 0."""
    mode: str = "f1"
    beta: float = 1.0
    cosine: float = 0.5

    @property
    def name(self) -> str:
        told = [self.claims or "none", self.reference or "none", self.documents or "none"]
        return "/".join([self.metric, *told, self.mode, f"{self.beta:g}", f"{self.cosine:g}"])


CASES: tuple[Case, ...] = (
    *(
        Case("faithfulness", claims)
        for claims in ("ssss", "scu", "uuu", "ccc", "s", "u", "sscuucs", "", "ss-c", "--")
    ),
    *(Case("faithfulness", claims, mode="penalize") for claims in ("scu", "uuu", "ss")),
    *(Case("context_relevance", documents=documents) for documents in ("1", "0", "01", "000")),
    *(
        Case("context_precision", reference="s", documents=documents)
        for documents in ("1", "0", "111", "101", "011", "0001", "10010", "000")
    ),
    *(Case("context_recall", reference=claims) for claims in ("sss", "su", "ucs", "uu", "", "s-u")),
    *(
        Case("factual_correctness", claims, reference, mode=mode, beta=beta)
        for claims, reference in (
            ("sss", "ss"),
            ("su", "suu"),
            ("sucs", "sssss"),
            ("uu", "u"),
            ("sssssu", "u"),
            ("", "uu"),
            ("su", ""),
        )
        for mode, beta in (("f1", 1.0), ("f1", 0.5), ("f1", 2.0), ("precision", 1.0))
    ),
    *(
        Case("answer_correctness", claims, reference, beta=beta, cosine=cosine)
        for claims, reference in (("ss", "ss"), ("su", "suu"), ("uu", "cu"), ("", "su"), ("sc", ""))
        for beta, cosine in ((1.0, 0.5), (2.0, -0.25))
    ),
)


ON_PURPOSE = {("deepeval", "faithfulness", "--")}
"""Where we differ: a claim that nobody judged is not faithful; there, nothing judged scores 1."""


def statements(side: str, verdicts: str) -> list[str]:
    """Name the claims of one side; each says which it is, so that a script can find it."""
    return [f"The {side} says that fact {n} holds." for n in range(1, len(verdicts) + 1)]


def texts(case: Case) -> dict[str, Any]:
    """Give the row: texts that are never blank, for rivals refuse those."""
    return {
        "question": "Which facts hold?",
        "answer": " ".join(statements("answer", case.claims)) or "The answer says nothing.",
        "reference": " ".join(statements("reference", case.reference)) or "Nothing to say.",
        "contexts": [f"Document {n} tells of facts." for n in range(1, len(case.documents) + 1)],
    }


class FixedCosine(Embeddings):
    """Embeddings of two texts with a given cosine."""

    def __init__(self, cosine: float) -> None:
        self._vectors = [[1.0, 0.0], [cosine, (1 - cosine**2) ** 0.5]]

    @override
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return self._vectors[: len(texts)]

    @override
    def embed_query(self, text: str) -> list[float]:
        return self._vectors[0]


def evaluator(case: Case) -> Evaluator:
    """Make the evaluator of the metric, with a script for its judge."""
    row = texts(case)
    by_text = {
        text: LABELS[letter]
        for side, verdicts in (("answer", case.claims), ("reference", case.reference))
        for text, letter in zip(statements(side, verdicts), verdicts, strict=True)
    }
    found = {
        row["answer"]: statements("answer", case.claims),
        row["reference"]: statements("reference", case.reference),
    }
    parts: dict[str, Any] = {
        "extractor": ScriptedClaimExtractor(lambda task: found[task.answer]),
        "verifier": ScriptedVerifier(lambda claim: by_text[claim.text]),
    }
    match case.metric:
        case "context_relevance":
            return ContextRelevanceEvaluator(cross_encoder=_RelevantDocuments(case))
        case "context_precision":
            parts["verifier"] = _verifier_of_documents(case)
            return ContextPrecisionEvaluator(**parts)
        case "context_recall":
            return ContextRecallEvaluator(**parts)
        case "factual_correctness":
            return FactualCorrectnessEvaluator(**parts, mode=cast("Any", case.mode), beta=case.beta)
        case "answer_correctness":
            embeddings = FixedCosine(case.cosine)
            return AnswerCorrectnessEvaluator(**parts, beta=case.beta, embeddings=embeddings)
        case _:
            return FaithfulnessEvaluator(**parts)


class _VerifierOfDocuments(ScriptedVerifier):
    """Supports all claims by documents that are relevant, and none by others."""

    def __init__(self, relevant: Sequence[str]) -> None:
        super().__init__(self._of_document)
        self._relevant = relevant

    @override
    def _verify(self, task: Any) -> Any:
        hit = task.documents[0].page_content in self._relevant
        return ScriptedVerifier(lambda _: "supported" if hit else "unverifiable").invoke(task)

    def _of_document(self, claim: Claim) -> None:
        raise AssertionError(claim)


class _RelevantDocuments(BaseCrossEncoder):
    """Finds relevant what stands in documents that are relevant."""

    def __init__(self, case: Case) -> None:
        contexts = zip(texts(case)["contexts"], case.documents, strict=True)
        self._relevant = [text for text, letter in contexts if letter == "1"]

    @override
    def score(self, text_pairs: list[tuple[str, str]]) -> list[float]:
        return [float(text in self._relevant) for _, text in text_pairs]


def _verifier_of_documents(case: Case) -> ScriptedVerifier:
    contexts = zip(texts(case)["contexts"], case.documents, strict=True)
    return _VerifierOfDocuments([text for text, letter in contexts if letter == "1"])


def scored(case: Case) -> RowScore:
    """Score a case by our evaluator."""
    return evaluator(case).invoke(texts(case))


def derived(case: Case, convention: Any, score: RowScore) -> float | None:
    """Derive the rival's number; what its judge did not say it leaves out."""
    how: Any = "refuse" if convention == "haystack" else "leave_out"
    return as_score(
        score,
        convention=convention,
        metric=case.metric,
        unchecked=how,
        penalize_ambiguous_claims=case.mode == "penalize",
    )
