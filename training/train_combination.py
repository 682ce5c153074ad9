"""Weigh signals and encoder against each other and choose thresholds; the last step of training.

A logistic regression over three log odds: of support by the signals, of support and of opposition
by the encoder. It is fitted on what the encoder did not see: claims about documents that were held
back, and pairs that were held back of what is made by rule and of NLI. Claim sets count together
as much as sets in which true and false claims differ by little; among them every set of a hundred
claims or more counts the same, and so do both classes within a set. Writes `combined` into
`signals.json`.
"""

import argparse
import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from claim_sets import CLAIM_SETS, CONTRAST_SETS, Example, is_held, read_set
from measure_signals import Measured, measure_cached
from numpy.typing import NDArray
from score_encoder import score
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from train_encoder import read_pairs
from train_signals import Calibrated, calibrated, calibration_error, load_sets

from langchain_groundedness.verification.embedded.encoder import Encoder, Pair, encoder
from langchain_groundedness.verification.embedded.judgement import SURE_CONTRADICTION
from langchain_groundedness.verification.embedded.support_model import (
    SupportModel,
    opposition_log_odds,
    support_log_odds,
)

__all__ = ["HeldOut", "balancing_threshold", "combine", "held_out", "without"]

_OURS = (
    "frames",
    "facts",
    "records",
    "passages",
    "contrast_pairs",
    "document_claims",
    "left_out",
)
_MADE = ("snli", "nli_contrast", *_OURS)
_MOST_MADE = 900
_MODEL = Path(__file__).parents[1] / "langchain_groundedness" / "model" / "signals.json"
_MOST_PASSING = 0.1
"""Share of the claims that are not supported, of any set, that may pass the strict threshold."""
_WRITTEN = ("facts", "passages", "contrast_pairs", "document_claims")
_NLI = ("snli", "nli_contrast", "factscore", "factcheckgpt", *_WRITTEN)
"""Sets with three labels."""
_OTHER = ("contradicted", "unverifiable")
_FEWEST = 10
"""Claims of either kind that a threshold is chosen on."""
_FULL = 100
"""Claims from which a set counts in full."""

Floats = NDArray[np.float64]


class HeldOut(NamedTuple):
    """What is said of the documents of a set that the encoder did not see."""

    examples: list[Example]
    measured: Measured
    signals: Floats
    """Log odds by the model of the signals."""
    logits: Floats
    """Of the encoder, a row per claim; nan where it had nothing to read."""

    @property
    def encoder(self) -> Floats:
        """Its log odds of support."""
        with np.errstate(invalid="ignore"):  # of what it did not read
            return support_log_odds(self.logits)

    @property
    def features(self) -> Floats:
        """What the combination weighs."""
        return np.column_stack([self.signals, self.encoder, opposition_log_odds(self.logits)])

    @property
    def read(self) -> NDArray[np.bool_]:
        """Which claims the encoder read."""
        return self.measured.found & ~np.isnan(self.encoder)

    @property
    def supported(self) -> NDArray[np.bool_]:
        """What people said."""
        return self.measured.supported


class Combined(NamedTuple):
    """A logistic regression over the features of `HeldOut`."""

    bias: float
    weights: Floats

    def probability(self, found: HeldOut) -> Floats:
        """Estimate how likely claims are supported."""
        both = self.bias + found.features @ self.weights
        odds = np.where(np.isnan(both), found.signals, both)
        return np.where(found.measured.found, 1 / (1 + np.exp(-odds)), 0.0)


def main() -> None:
    """Fit, and write the weights."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder that holds train/")
    parser.add_argument("--work", type=Path, required=True, help="folder of make_pairs.py")
    parser.add_argument("--cache", type=Path, help="folder to keep measured signals in")
    parser.add_argument("--out", type=Path, default=_MODEL)
    options = parser.parse_args()
    signals = calibrated(load_sets(options.data, cache=options.cache), CLAIM_SETS)
    sets = held_out(options.data, options.work, signals, encoder(), cache=options.cache)
    combined = combine(sets)
    chances = {
        name: combine(without(sets, name)).probability(found) for name, found in sets.items()
    }
    threshold = balancing_threshold({n: found.supported for n, found in sets.items()}, chances)
    scale, shift = _opposition(options.work / "pairs", encoder())
    document = json.loads(options.out.read_text(encoding="utf-8"))
    document["combined"] = {
        "bias": round(combined.bias, 4),
        "signals": round(float(combined.weights[0]), 4),
        "support": round(float(combined.weights[1]), 4),
        "opposition": round(float(combined.weights[2]), 4),
        "threshold": round(threshold, 3),
        "strict_threshold": _strict(sets, chances),
        "opposition_scale": round(scale, 4),
        "opposition_shift": round(shift, 4),
    }
    SupportModel(**document)
    options.out.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(document["combined"], indent=2))
    for name, found in sets.items():
        labels, said = found.supported, chances[name]
        honest = calibration_error(said, labels, _balance(labels))
        print(
            f"{name}: {len(labels)} claims, balanced accuracy "
            f"{balanced_accuracy_score(labels, said >= threshold):.3f}, calibration error "
            f"{honest:.3f}{_contradictions(found, said, threshold, scale, shift)}"
        )


def _contradictions(
    found: HeldOut, said: Floats, threshold: float, scale: float, shift: float
) -> str:
    """Say how many of the claims that the encoder alone calls contradicted are contradicted."""
    if not any(each.fine == _OTHER[0] for each in found.examples):
        return ""
    opposition = 1 / (1 + np.exp(-shift - scale * opposition_log_odds(found.logits)))
    called = (said < threshold) & ((1 - said) * opposition >= SURE_CONTRADICTION)
    right = [found.examples[place].fine == _OTHER[0] for place in np.flatnonzero(called)]
    return f", called contradicted {len(right)}, rightly {np.mean(right or [np.nan]):.2f}"


def held_out(
    data: Path, work: Path | None, signals: Calibrated, model: Encoder, *, cache: Path | None
) -> dict[str, HeldOut]:
    """Measure signals and encoder on what the encoder did not see.

    Args:
        data: The data folder.
        work: The folder of `make_pairs.py`; `None` to leave out what is made by rule.
        signals: The model of the signals.
        model: The encoder.
        cache: Folder for what was measured; `None` to keep nothing.

    Returns:
        By name of the set.
    """
    found = {}
    rest = {
        name: [each for each in read_set(data, name) if is_held(each.documents[0])]
        for name in (*CLAIM_SETS, *CONTRAST_SETS)
    }
    if work is not None:
        rest |= {name: list(_made(work / "pairs", name)) for name in _MADE}
    for name, mine in rest.items():
        measured = measure_cached(mine, cache, f"{name}_held")
        found[name] = HeldOut(mine, measured, signals.model.logit(measured), score(mine, model))
    return found


def _made(folder: Path, name: str) -> Iterator[Example]:
    """Give held pairs as claims about a document, whole groups of them."""
    rows = [row for row in read_pairs(folder, name) if row.get("held")]
    groups = list(dict.fromkeys(row["group"] for row in rows))
    random.Random(0).shuffle(groups)
    for row in sorted(rows, key=lambda row: groups.index(row["group"]))[:_MOST_MADE]:
        supported, part = row["label"] == "supported", row.get("part", "")
        document, fine = row["evidence"], row["label"]
        yield Example(row["claim"], (document,), supported, None, part, row["group"], fine=fine)


def combine(sets: Mapping[str, HeldOut]) -> Combined:
    """Fit the combination.

    Args:
        sets: What to fit on, by name.

    Returns:
        The combination.
    """
    features = np.concatenate([found.features[found.read] for found in sets.values()])
    labels = np.concatenate([found.supported[found.read] for found in sets.values()])
    shares = {name: min(1, len(found.examples) / _FULL) for name, found in sets.items()}
    totals = Counter[bool]()
    for name, share in shares.items():
        totals[name in CLAIM_SETS] += share
    counts = np.concatenate(
        [
            _balance(found.supported[found.read]) * shares[name] / totals[name in CLAIM_SETS]
            for name, found in sets.items()
        ]
    )
    fitted = LogisticRegression(C=1e6).fit(features, labels, sample_weight=counts * len(sets))
    return Combined(float(fitted.intercept_[0]), fitted.coef_[0])


def without(sets: Mapping[str, HeldOut], name: str) -> dict[str, HeldOut]:
    """Give all sets but one.

    Args:
        sets: Of `held_out`.
        name: The one.

    Returns:
        The others.
    """
    return {key: found for key, found in sets.items() if key != name}


def _balance(labels: NDArray[np.bool_]) -> Floats:
    return np.where(labels, 0.5 / max(labels.sum(), 1), 0.5 / max((~labels).sum(), 1))


def balancing_threshold(
    labels: Mapping[str, NDArray[np.bool_]], scores: Mapping[str, Floats]
) -> float:
    """Choose the threshold of best mean balanced accuracy.

    Args:
        labels: Which claims are supported, by name of the set.
        scores: Of the same claims.

    Returns:
        The threshold, one of 199 quantiles of all scores, claim sets and the others counting the
        same; sets with few claims of either kind do not count.
    """
    large = [n for n, mine in labels.items() if min(mine.sum(), (~mine).sum()) >= _FEWEST]
    families = [[n for n in large if (n in CLAIM_SETS) == each] for each in (True, False)]
    grid = np.mean([np.quantile(scores[n], np.arange(0.005, 1, 0.005)) for n in large], 0)
    means = [
        np.mean(
            [
                np.mean([balanced_accuracy_score(labels[n], scores[n] >= cut) for n in family])
                for family in families
            ]
        )
        for cut in grid
    ]
    return float(grid[int(np.argmax(means))])


def _strict(sets: Mapping[str, HeldOut], chances: Mapping[str, Floats]) -> float:
    """Choose the threshold that few unsupported claims of any set that people judged pass."""
    others = [chances[name][~found.supported] for name, found in sets.items() if name not in _OURS]
    least = max(np.quantile(some, 1 - _MOST_PASSING) for some in others if len(some) >= _FEWEST)
    return float(np.ceil(least * 100) / 100)


def _opposition(folder: Path, model: Encoder) -> tuple[float, float]:
    """Calibrate contradicted against unverifiable on pairs with three labels."""
    odds, opposed, counts = [], [], []
    for name in _NLI:
        rows = [r for r in read_pairs(folder, name) if r.get("held") and r["label"] in _OTHER]
        found = opposition_log_odds(model.logits([Pair(r["evidence"], r["claim"]) for r in rows]))
        labels = np.array([row["label"] == _OTHER[0] for row in rows])
        odds.append(found)
        opposed.append(labels)
        counts.append(_balance(labels))
    pooled, labels = np.concatenate(odds)[:, None], np.concatenate(opposed)
    fitted = LogisticRegression(C=1e6).fit(pooled, labels, sample_weight=np.concatenate(counts))
    return float(fitted.coef_[0, 0]), float(fitted.intercept_[0])


if __name__ == "__main__":
    main()
