"""The scores of other libraries, computed from existing verdicts. Copy this file into your project.

Tests compare it with recorded numbers of the libraries.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from langchain_groundedness import ConfigurationError, GroundednessResult
from langchain_groundedness.evals import EvaluationResult, RowScore

__all__ = ["Convention", "ConventionMetric", "as_score"]

Convention: TypeAlias = Literal["haystack", "ragas", "deepeval"]
"""The library whose formula is used."""

ConventionMetric: TypeAlias = Literal[
    "faithfulness",
    "context_relevance",
    "context_precision",
    "context_recall",
    "factual_correctness",
    "answer_correctness",
]
"""A metric of one of these libraries."""

Judged: TypeAlias = GroundednessResult | RowScore


def as_score(
    given: Judged | EvaluationResult | Iterable[Judged],
    *,
    convention: Convention = "haystack",
    metric: ConventionMetric = "faithfulness",
    unchecked: Literal["refuse", "leave_out"] = "refuse",
    penalize_ambiguous_claims: bool = False,
) -> float | None:
    r"""Compute the score that another library would give for the same verdicts.

    The formulas come from the sources of haystack-ai 3.4.1, ragas 0.4.3
    (`ragas.metrics.collections`) and deepeval 4.3.1; `benchmarks/conventions.py` compares the
    numbers with theirs. S, C and U are the numbers of supported, contradicted and unverifiable
    claims, and n = S + C + U.

    - Faithfulness. haystack: S / n; 0 without claims. ragas: S / n; NaN without claims. deepeval:
      (S + U) / n, because claims that the documents do not mention pass; S / n with
      `penalize_ambiguous_claims`; 1 without claims.
    - Context relevance. haystack: 1 if the documents of the row contain a relevant statement,
      else 0. Ours is the share of documents that contain one. In ragas judges rate the documents,
      and deepeval counts all their statements, so their scores cannot be computed from verdicts.
    - Context precision. deepeval: average precision, as ours; 0 if nothing is relevant. ragas adds
      1e-10 to the number of relevant documents in the denominator. Without documents ragas raises
      an error and deepeval gives 0.
    - Context recall. ragas: share of supported claims of the reference; NaN without claims.
      deepeval: the same; 0 without claims. Both judge sentences; our claims may be parts of one.
    - Factual correctness. ragas: TP is the number of supported claims of the answer, FP that of its
      other claims, FN that of unsupported claims of the reference. The score is the F-score of
      TP / (TP + FP) and TP / (TP + FN), or one of the two with 1e-8 added to its denominator,
      rounded to two digits; 0 if everything is undefined. Our recall is the share of the claims of
      the *reference* that the answer supports; it never divides claims of one text by claims of
      the other.
    - Answer correctness. ragas: the weighted mean of that F-score, not rounded, and the cosine of
      the embeddings. If one text makes no claims, its F-score is 1 and ours is 0. (In the older
      ragas class of that name it is 1 if neither makes claims; ours skips the row.)

    Where a library gives NaN or raises an error, the score is `None`. Rows without a score do not
    count in the mean, as in haystack and ragas. If a reply cannot be read, ragas and deepeval leave
    it out of n, and haystack fails the row. Here a claim that was not checked fails the row; with
    `unchecked="leave_out"` it is left out, and a row without any other claim has no score
    (deepeval would give 1).

    Args:
        given: A result of the check, the score of a row by the evaluator of that metric, the
            result of its `run`, or several results or scores.
        convention: The library.
        metric: The metric. A result of the check contains the verdicts for faithfulness or, if the
            reference was checked, for context recall.
        unchecked: Whether a row with unchecked claims has no score (`refuse`), or these claims are
            left out.
        penalize_ambiguous_claims: The option of deepeval with this name.

    Returns:
        The score; for several rows, the mean of those that have one; `None` if none has.

    Raises:
        ConfigurationError: The library has no such metric, its score cannot be computed from
            verdicts, or the rows come from another evaluator.
    """
    formula = _FORMULAS.get((convention, metric))
    if formula is None:
        metrics = ", ".join(name for library, name in _FORMULAS if library == convention)
        known = ", ".join(dict.fromkeys(library for library, _ in _FORMULAS))
        msg = (
            f"the {metric!r} score of {convention} cannot be computed from verdicts; accepted "
            f"for {convention}: {metrics}"
            if metrics
            else f"convention must be one of {known}, got {convention!r}"
        )
        raise ConfigurationError(msg)
    if unchecked not in ("refuse", "leave_out"):
        msg = f"unchecked must be one of 'refuse', 'leave_out', got {unchecked!r}"
        raise ConfigurationError(msg)
    if isinstance(given, GroundednessResult | RowScore):
        given = [given]
    scores = []
    for row in given.rows if isinstance(given, EvaluationResult) else given:
        details = _details(row, metric)
        row_verdicts = _Details(details, unchecked == "leave_out", penalize_ambiguous_claims)
        try:
            score = formula(row_verdicts) if details else None
        except _NoScore:
            score = None
        if score is not None:
            scores.append(score)
    return sum(scores) / len(scores) if scores else None


class _NoScore(Exception):  # noqa: N818  (no error: there is no score)
    """The verdicts give no score."""


class _Details(NamedTuple):
    """The details that an evaluator recorded for a row."""

    parts: Mapping[str, Any]
    leave_out: bool
    penalize_ambiguous: bool

    def labels(self, name: str) -> list[str]:
        claims = self.parts.get(name, ())
        labels = [c if isinstance(c, str) else c["verdict"] for c in claims]
        checked = [label for label in labels if label != "unchecked"]
        if len(checked) < len(labels) and not (self.leave_out and checked):
            raise _NoScore
        return checked

    def share(self, name: str, *, empty: float | None, ambiguous: bool = False) -> float | None:
        labels = self.labels(name)
        passing = {"supported", "unverifiable"} if ambiguous else {"supported"}
        return sum(label in passing for label in labels) / len(labels) if labels else empty

    def precision(self, *, added: float, empty: float | None) -> float | None:
        relevant = self.parts["relevant"]
        if not relevant:
            return empty
        if None in relevant:
            raise _NoScore
        total = sum(sum(relevant[: n + 1]) / (n + 1) * hit for n, hit in enumerate(relevant))
        return total / (sum(relevant) + added) if any(relevant) else 0.0

    def counts(self) -> tuple[int, int, int]:
        """Count right and wrong claims of the answer, and missed ones of the reference."""
        said, reference = self.labels("claims"), self.labels("reference_claims")
        right = said.count("supported")
        return right, len(said) - right, len(reference) - reference.count("supported")


def _details(given: Judged, metric: str) -> Mapping[str, Any]:
    """Return the details that a formula reads; empty for a row that failed or was skipped."""
    names, evaluator = _NEEDED[metric]
    if isinstance(given, GroundednessResult):
        if metric not in ("faithfulness", "context_recall"):
            msg = f"{metric} is more than the check of one text: give the rows of {evaluator}"
            raise ConfigurationError(msg)
        return {names[0]: [v.verdict for v in given.claims]}
    if not isinstance(given, RowScore):
        msg = (
            f"results of the check or RowScores are needed, got {type(given).__name__}; of a "
            f"run, give [score for row in run.rows for score in row.scores if score.key == …]"
        )
        raise ConfigurationError(msg)
    lacking = [name for name in names if name not in given.details]
    if given.details and lacking:
        msg = (
            f"a row of {given.key!r} has no {' and no '.join(lacking)} to count {metric} from: "
            f"give the rows of {evaluator}"
        )
        raise ConfigurationError(msg)
    return given.details


def _ragas_factual(row: _Details) -> float:
    right, wrong, missed = row.counts()
    score = _ragas_f(row)
    if row.parts["mode"] != "f1":
        others = wrong if row.parts["mode"] == "precision" else missed
        score = right / (right + others + 1e-8)
    return float(np.round(score, 2))


def _ragas_f(row: _Details) -> float:
    right, wrong, missed = row.counts()
    if not right:
        return 0.0
    precision, recall, square = (
        right / (right + wrong),
        right / (right + missed),
        row.parts["beta"] ** 2,
    )
    return float((1 + square) * precision * recall / (square * precision + recall))


def _ragas_correctness(row: _Details) -> float:
    if "factual" not in row.parts:
        raise _NoScore
    both = row.parts["claims"] and row.parts["reference_claims"]
    parts = [_ragas_f(row) if both else 1.0, row.parts.get("similarity", 0.0)]
    return float(np.average(parts, weights=row.parts["weights"]))


_NEEDED: Mapping[str, tuple[tuple[str, ...], str]] = {
    "faithfulness": (("verdicts",), "FaithfulnessEvaluator"),
    "context_relevance": (("relevant_statements",), "ContextRelevanceEvaluator"),
    "context_precision": (("relevant",), "ContextPrecisionEvaluator"),
    "context_recall": (("reference_claims",), "ContextRecallEvaluator"),
    "factual_correctness": (
        ("claims", "mode", "beta"),
        "FactualCorrectnessEvaluator with mode='f1' or 'precision'",
    ),
    "answer_correctness": (
        ("claims", "reference_claims", "weights"),
        "AnswerCorrectnessEvaluator",
    ),
}
"""By metric: the details its formulas read, and the evaluator that records them."""

_FORMULAS: Mapping[tuple[str, str], Callable[[_Details], float | None]] = {
    ("haystack", "faithfulness"): lambda row: row.share("verdicts", empty=0.0),
    ("haystack", "context_relevance"): lambda row: float(bool(row.parts["relevant_statements"])),
    ("ragas", "faithfulness"): lambda row: row.share("verdicts", empty=None),
    ("ragas", "context_precision"): lambda row: row.precision(added=1e-10, empty=None),
    ("ragas", "context_recall"): lambda row: row.share("reference_claims", empty=None),
    ("ragas", "factual_correctness"): _ragas_factual,
    ("ragas", "answer_correctness"): _ragas_correctness,
    ("deepeval", "faithfulness"): lambda row: row.share(
        "verdicts", empty=1.0, ambiguous=not row.penalize_ambiguous
    ),
    ("deepeval", "context_precision"): lambda row: row.precision(added=0.0, empty=0.0),
    ("deepeval", "context_recall"): lambda row: row.share("reference_claims", empty=0.0),
}
