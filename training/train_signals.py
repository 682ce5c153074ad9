"""Train the support model on measured signals and write it as JSON.

A logistic regression whose weights cannot be negative, since recall can only speak for a claim:
that keeps what one data set happens to do from being learnt. Every set counts the same, and so do
both classes within a set. Scale, threshold and calibration come from leave-set-out predictions.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, get_args

import numpy as np
from claim_sets import CLAIM_SETS, read_set
from measure_signals import Measured, measure_cached
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score

from langchain_groundedness.verification.embedded.contradictions import DifferenceKind

__all__ = [
    "Calibrated",
    "Fitted",
    "Threshold",
    "calibrated",
    "calibration_error",
    "choose_threshold",
    "fit",
    "load_sets",
    "out_of_set",
    "pool",
    "support_despite",
]

LEARNT_BESIDE = ("halueval_qa", "fool_me_twice")
_PENALTY = 0.6
_PRIOR_CLAIMS = 2
_OUT = Path(__file__).parents[1] / "langchain_groundedness" / "model" / "signals.json"

Floats = NDArray[np.float64]


class Fitted(NamedTuple):
    """A fitted model: `bias + values @ weights` is the logit."""

    bias: float
    weights: Floats

    def logit(self, measured: Measured) -> Floats:
        """Score a set; claims of which nothing was found get the lowest score."""
        values = np.nan_to_num(measured.values)
        return np.where(measured.found, self.bias + values @ self.weights, -20.0)


class Threshold(NamedTuple):
    """A threshold, and what leave-set-out prediction says of the probabilities."""

    threshold: float
    balanced_accuracy_leave_set_out: float
    calibration_error_leave_set_out: float


class Calibrated(NamedTuple):
    """A model whose logits are honest log odds."""

    model: Fitted
    left_out: dict[str, Floats]
    """Log odds of the claims of each set, by a model that did not see the set."""
    chosen: Threshold


def main() -> None:
    """Train on all sets but those left out, and write the model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder that holds train/")
    parser.add_argument("--leave-out", action="append", default=[], choices=CLAIM_SETS)
    parser.add_argument("--cache", type=Path, help="folder to keep measured signals in")
    parser.add_argument("--out", type=Path, default=_OUT)
    options = parser.parse_args()
    sets = load_sets(options.data, cache=options.cache, leave_out=options.leave_out)
    claims = [name for name in CLAIM_SETS if name in sets]
    model, _, chosen = calibrated(sets, claims)
    names = next(iter(sets.values())).names
    weights = {n: round(float(w), 5) for n, w in zip(names, model.weights, strict=True) if w}
    kept = json.loads(options.out.read_text("utf-8")) if options.out.exists() else {}
    document = {
        "bias": round(model.bias, 5),
        "weights": dict(sorted(weights.items())),
        **chosen._asdict(),
        "support_despite": support_despite(list(sets.values())),
        "trained_on": sorted(sets),
        "combined": kept.get("combined"),  # of train_combination.py, which comes next
    }
    options.out.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(document, indent=2))


def load_sets(
    data: Path, *, cache: Path | None = None, leave_out: Sequence[str] = ()
) -> dict[str, Measured]:
    """Read and measure the sets that the model learns from.

    Args:
        data: The data folder.
        cache: Where measured signals are kept between runs.
        leave_out: Sets to leave out.

    Returns:
        Measured sets by name.
    """
    names = [name for name in (*CLAIM_SETS, *LEARNT_BESIDE) if name not in leave_out]
    return {name: measure_cached(read_set(data, name), cache, name) for name in names}


def fit(sets: Sequence[Measured]) -> Fitted:
    """Fit the model, every set and both classes within a set counting the same.

    Args:
        sets: What to learn from.

    Returns:
        The model.
    """
    values = np.concatenate([s.values[s.found] for s in sets])
    labels = np.concatenate([s.supported[s.found] for s in sets])
    counts = np.concatenate([_balance(s.supported[s.found]) for s in sets])
    counts /= counts.sum()
    mean = counts @ values
    scale = np.sqrt(counts @ (values - mean) ** 2) + 1e-6
    scaled = (values - mean) / scale
    target = np.where(labels, 1.0, -1.0)

    def loss(parameters: Floats) -> tuple[float, Floats]:
        weights = parameters[1:]
        margin = target * (scaled @ weights + parameters[0])
        slope = -counts * target / (1 + np.exp(margin))
        value = counts @ np.logaddexp(0, -margin) + _PENALTY / 2 * weights @ weights
        return float(value), np.concatenate(([slope.sum()], scaled.T @ slope + _PENALTY * weights))

    bounds = [(None, None), *[(0, None)] * values.shape[1]]
    best = minimize(
        loss, np.zeros(values.shape[1] + 1), jac=True, method="L-BFGS-B", bounds=bounds
    ).x
    weights = best[1:] / scale
    return Fitted(float(best[0] - mean @ weights), weights)


def _balance(labels: NDArray[np.bool_]) -> Floats:
    return np.where(labels, 0.5 / max(labels.sum(), 1), 0.5 / max((~labels).sum(), 1))


def out_of_set(sets: dict[str, Measured], claims: Sequence[str]) -> dict[str, Floats]:
    """Score each claim set by a model that never saw it.

    Args:
        sets: All measured sets.
        claims: Which of them to score.

    Returns:
        Logits by name of the set.
    """
    return {
        name: fit([other for key, other in sets.items() if key != name]).logit(sets[name])
        for name in claims
    }


def calibrated(sets: dict[str, Measured], claims: Sequence[str]) -> Calibrated:
    """Fit on all sets; scale the logit so that leave-set-out probabilities are honest.

    Args:
        sets: All measured sets.
        claims: Those that threshold and calibration are chosen on, each counting the same.

    Returns:
        The scaled model, and what leave-set-out prediction says of it.
    """
    logits = out_of_set(sets, claims)
    pooled, labels, counts = pool(sets, logits, claims)
    platt = LogisticRegression(C=1e6).fit(pooled[:, None], labels, sample_weight=counts)
    slope, shift = float(platt.coef_[0, 0]), float(platt.intercept_[0])
    model = fit(list(sets.values()))
    scaled = {name: slope * logits[name] + shift for name in claims}
    return Calibrated(
        Fitted(slope * model.bias + shift, slope * model.weights),
        scaled,
        choose_threshold(sets, scaled, claims),
    )


def pool(
    sets: dict[str, Measured], logits: dict[str, Floats], claims: Sequence[str]
) -> tuple[Floats, NDArray[np.bool_], Floats]:
    """Put the claims of several sets together, of which something was found.

    Args:
        sets: Measured sets.
        logits: A number, or a row of numbers, per claim, by name of the set.
        claims: Which sets.

    Returns:
        Logits, labels, and weights by which every set counts the same.
    """
    found = [sets[name].found for name in claims]
    pooled = np.concatenate([logits[name][f] for name, f in zip(claims, found, strict=True)])
    labels = np.concatenate([sets[n].supported[f] for n, f in zip(claims, found, strict=True)])
    counts = np.concatenate([np.full(int(f.sum()), 1 / f.sum()) for f in found])
    return pooled, labels, counts


def choose_threshold(
    sets: dict[str, Measured], logits: dict[str, Floats], claims: Sequence[str]
) -> Threshold:
    """Choose the threshold of best mean balanced accuracy.

    Args:
        sets: Measured sets.
        logits: Log odds per claim, by name of the set.
        claims: The sets to choose on, each counting the same.

    Returns:
        The threshold, and how good and how honest the probabilities are there.
    """
    chances = {name: 1 / (1 + np.exp(-logits[name])) for name in claims}
    grid = np.arange(0.2, 0.8, 0.01)
    accuracy = [
        np.mean([balanced_accuracy_score(sets[n].supported, chances[n] >= t) for n in claims])
        for t in grid
    ]
    pooled, labels, counts = pool(sets, chances, claims)
    return Threshold(
        round(float(grid[int(np.argmax(accuracy))]), 2),
        round(float(max(accuracy)), 4),
        round(calibration_error(pooled, labels, counts), 4),
    )


def calibration_error(chances: Floats, labels: NDArray[np.bool_], counts: Floats) -> float:
    """Measure the expected calibration error over ten bins of equal width (Naeini et al. 2015).

    Args:
        chances: Probabilities.
        labels: What was true.
        counts: Weights.

    Returns:
        The mean distance between the probabilities of a bin and the share that was true.
    """
    bins = np.minimum((chances * 10).astype(int), 9)
    gaps = [abs(counts[bins == b] @ (chances[bins == b] - labels[bins == b])) for b in range(10)]
    return float(sum(gaps) / counts.sum())


def support_despite(sets: Sequence[Measured]) -> dict[str, float]:
    """Count how often people called a claim supported despite a decisive difference.

    Of a kind that the sets hardly have, the share over all kinds is the best guess (empirical
    Bayes: each share is drawn towards it as by two claims).

    Args:
        sets: What to count in.

    Returns:
        The share of such claims, by kind of difference.
    """
    kinds = np.concatenate([s.differences for s in sets])
    supported = np.concatenate([s.supported for s in sets])
    shares: dict[str, float] = {}
    overall = float(supported[np.isin(kinds, get_args(DifferenceKind))].mean())
    for kind in get_args(DifferenceKind):
        of_kind = supported[kinds == kind]
        shares[kind] = round(
            float((of_kind.sum() + _PRIOR_CLAIMS * overall) / (len(of_kind) + _PRIOR_CLAIMS)), 3
        )
    return shares


if __name__ == "__main__":
    main()
