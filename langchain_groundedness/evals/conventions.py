"""What other libraries would have scored, from the verdicts that are already there."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from langchain_groundedness.evals.evaluator import EvaluationResult
from langchain_groundedness.evals.values import RowScore
from langchain_groundedness.exceptions import ConfigurationError
from langchain_groundedness.types import GroundednessResult, VerdictLabel

__all__ = ["Convention", "ConventionMetric", "as_score"]

Convention: TypeAlias = Literal["haystack", "ragas", "deepeval"]
"""Whose formula."""

ConventionMetric: TypeAlias = Literal[
    "faithfulness",
    "context_relevance",
    "context_precision",
    "context_recall",
    "factual_correctness",
    "answer_correctness",
]
"""Of which metric."""

Judged: TypeAlias = GroundednessResult | RowScore


def as_score(
    given: Judged | EvaluationResult | Iterable[Judged],
    *,
    convention: Convention = "haystack",
    metric: ConventionMetric = "faithfulness",
    unchecked: Literal["refuse", "leave_out"] = "refuse",
    penalize_ambiguous_claims: bool = False,
) -> float | None:
    r"""Give the score that another library gives for the same verdicts.

    The formulas are those of haystack-ai 3.4.1, ragas 0.4.3 (`ragas.metrics.collections`) and
    deepeval 4.3.1, read in their sources and compared number for number with what they compute
    (`benchmarks/conventions.py`). S, C and U are the numbers of supported, contradicted and
    unverifiable claims, n = S + C + U.

    - faithfulness. haystack: S / n, without claims 0. ragas: S / n, without claims NaN. deepeval:
      (S + U) / n, since what the documents do not mention passes there; S / n with
      `penalize_ambiguous_claims`; without claims 1.
    - context relevance. haystack: 1 if any relevant statement was found in the documents of the
      row, else 0; ours is the share of the documents that have one. ragas has judges rate the
      documents, and deepeval counts all their statements: neither follows from verdicts.
    - context precision. deepeval: average precision, 0 if nothing is relevant; ours is the same.
      ragas: 1e-10 is added to the number of relevant documents that it divides by. Without
      documents ragas raises, deepeval gives 0.
    - context recall. ragas: the share of supported claims of the reference, without claims NaN;
      deepeval: the same, without claims 0. Both judge sentences; our claims may be parts of one.
    - factual correctness. ragas: with TP supported and FP other claims of the answer, and FN
      unsupported claims of the reference: the F-score of TP / (TP + FP) and TP / (TP + FN), or
      one of them with 1e-8 added to what it divides by; rounded to two digits. Ours takes recall
      as the share of the claims of the *reference* that the answer supports, and does not divide
      claims of the one text by claims of the other. If all is undefined, ragas gives 0.
    - answer correctness. ragas: the weighted mean of that F-score, here not rounded, and the
      cosine of the embeddings. If one of the texts makes no claims, the F-score is 1, where ours
      is 0 (in ragas' older class of that name: if neither does, where ours is skipped).

    Where they give NaN or raise, this gives `None`. haystack and ragas leave rows without a
    number out of their mean, and so does this. A reply that a library cannot read it leaves out
    of n (ragas, deepeval) or has the row fail (haystack); here a claim that was not checked makes
    the row fail, or is left out with `unchecked="leave_out"`, and if nothing is left then there
    is no score (deepeval would give 1).

    Args:
        given: A result of the check, a row's score of the evaluator of that metric, all that
            `run` gave, or several results or rows.
        convention: Whose formula.
        metric: Of which metric. A result of the check has the verdicts for faithfulness, and, if
            it was the reference that was checked, for context recall.
        unchecked: What becomes of a row with claims that could not be checked.
        penalize_ambiguous_claims: deepeval's option of that name.

    Returns:
        The score, for several rows the mean of those that have one; `None` if there is none.

    Raises:
        ConfigurationError: The library has no such metric, it does not follow from verdicts, or
            the rows are of another evaluator.

    Example:
        >>> from langchain_groundedness import GroundednessRunnable
        >>> documents = ["Rome is the capital of Italy. It has 2.7 million inhabitants."]
        >>> answer = "Rome is the capital of Italy. Rome has 5 million inhabitants."
        >>> result = GroundednessRunnable().invoke({"answer": answer, "documents": documents})
        >>> [as_score(result, convention=name) for name in ("haystack", "ragas", "deepeval")]
        [0.5, 0.5, 0.5]
    """
    formula = _formula(convention, metric)
    if unchecked not in ("refuse", "leave_out"):
        msg = f"unchecked must be 'refuse' or 'leave_out', got {unchecked!r}"
        raise ConfigurationError(msg)
    how = _How(unchecked == "leave_out", penalize_ambiguous_claims)
    if isinstance(given, GroundednessResult | RowScore):
        return _one(given, metric, formula, how)
    rows = given.rows if isinstance(given, EvaluationResult) else given
    scores = [_one(row, metric, formula, how) for row in rows]
    known = [score for score in scores if score is not None]
    return sum(known) / len(known) if known else None


class _How(NamedTuple):
    """The options of one call."""

    leave_out: bool
    penalize_ambiguous: bool


class _Unknown(Exception):  # noqa: N818  (no error: there is no score)
    """The verdicts give no score."""


Parts: TypeAlias = Mapping[str, Any]
Formula: TypeAlias = Callable[[Parts, _How], float | None]


def _formula(convention: str, metric: str) -> Formula:
    if convention not in get_args(Convention):
        msg = f"convention must be one of {', '.join(get_args(Convention))}, got {convention!r}"
        raise ConfigurationError(msg)
    found = _FORMULAS.get((convention, metric))
    if found is None:
        metrics = ", ".join(name for library, name in _FORMULAS if library == convention)
        msg = (
            f"no score of {convention} for {metric!r} follows from verdicts; of {convention} "
            f"there are {metrics}"
        )
        raise ConfigurationError(msg)
    return found


def _one(given: Judged, metric: str, formula: Formula, how: _How) -> float | None:
    parts = _parts(given, metric)
    try:
        return None if parts is None else formula(parts, how)
    except _Unknown:
        return None


def _parts(given: Judged, metric: str) -> Parts | None:
    """Give what a formula reads; `None` for a row that failed or was skipped before all that."""
    names, evaluator = _READ[metric]
    if isinstance(given, GroundednessResult):
        if metric not in ("faithfulness", "context_recall"):
            msg = f"{metric} is more than the check of one text: give the rows of {evaluator}"
            raise ConfigurationError(msg)
        labels = [v.verdict for v in given.claims]
        return {names[0]: labels}
    parts = given.details
    if not parts:
        return None
    if lacking := [name for name in names if name not in parts]:
        msg = (
            f"a row of {given.key!r} has no {' and no '.join(lacking)} to count {metric} from: "
            f"give the rows of {evaluator}"
        )
        raise ConfigurationError(msg)
    return parts


def _labels(claims: Sequence[Any], how: _How) -> list[VerdictLabel]:
    labels: list[Any] = [c if isinstance(c, str) else c["verdict"] for c in claims]
    checked = [label for label in labels if label != "unchecked"]
    if len(checked) < len(labels) and not (how.leave_out and checked):
        raise _Unknown
    return checked


def _supported(labels: Sequence[VerdictLabel]) -> int:
    return sum(label == "supported" for label in labels)


def _share(name: str, *, empty: float | None) -> Formula:
    def formula(parts: Parts, how: _How) -> float | None:
        labels = _labels(parts[name], how)
        return _supported(labels) / len(labels) if labels else empty

    return formula


def _deepeval_faithfulness(parts: Parts, how: _How) -> float:
    labels = _labels(parts["verdicts"], how)
    passing = {"supported"} if how.penalize_ambiguous else {"supported", "unverifiable"}
    return sum(label in passing for label in labels) / len(labels) if labels else 1.0


def _haystack_relevance(parts: Parts, _: _How) -> float:
    return float(bool(parts["relevant_statements"]))


def _precision(*, added: float, empty: float | None) -> Formula:
    def formula(parts: Parts, _: _How) -> float | None:
        relevant = parts["relevant"]
        if not relevant:
            return empty
        if None in relevant:
            raise _Unknown
        places = enumerate(relevant)
        total = sum(sum(relevant[: n + 1]) / (n + 1) * hit for n, hit in places)
        found = sum(relevant)
        return total / (found + added) if found else 0.0

    return formula


def _ragas_factual(parts: Parts, how: _How) -> float:
    right, wrong, missed = _counts(parts, how)
    if parts["mode"] == "precision":
        score = right / (right + wrong + 1e-8)
    elif parts["mode"] == "recall":
        score = right / (right + missed + 1e-8)
    else:
        score = _ragas_f(right, wrong, missed, parts["beta"])
    return float(np.round(score, 2))


def _ragas_correctness(parts: Parts, how: _How) -> float:
    if "factual" not in parts:
        raise _Unknown
    factual = 1.0
    if parts["claims"] and parts["reference_claims"]:
        factual = _ragas_f(*_counts(parts, how), parts["beta"])
    similarity = parts.get("similarity", 0.0)
    return float(np.average([factual, similarity], weights=parts["weights"]))


def _counts(parts: Parts, how: _How) -> tuple[int, int, int]:
    """Count true positives and false positives in the answer, false negatives in the reference."""
    said = _labels(parts["claims"], how)
    right = _labels(parts.get("reference_claims", ()), how)
    return _supported(said), len(said) - _supported(said), len(right) - _supported(right)


def _ragas_f(right: int, wrong: int, missed: int, beta: float) -> float:
    precision = right / (right + wrong) if right else 0.0
    recall = right / (right + missed) if right else 0.0
    if not right:
        return 0.0
    return (1 + beta**2) * precision * recall / (beta**2 * precision + recall)


_READ: Mapping[str, tuple[tuple[str, ...], str]] = {
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
"""By metric: what its formulas read of a row's details, and which evaluator writes that."""

_FORMULAS: Mapping[tuple[str, str], Formula] = {
    ("haystack", "faithfulness"): _share("verdicts", empty=0.0),
    ("haystack", "context_relevance"): _haystack_relevance,
    ("ragas", "faithfulness"): _share("verdicts", empty=None),
    ("ragas", "context_precision"): _precision(added=1e-10, empty=None),
    ("ragas", "context_recall"): _share("reference_claims", empty=None),
    ("ragas", "factual_correctness"): _ragas_factual,
    ("ragas", "answer_correctness"): _ragas_correctness,
    ("deepeval", "faithfulness"): _deepeval_faithfulness,
    ("deepeval", "context_precision"): _precision(added=0.0, empty=0.0),
    ("deepeval", "context_recall"): _share("reference_claims", empty=0.0),
}
