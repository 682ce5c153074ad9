"""Weigh signals and encoder against each other and choose the threshold; the last step of training.

A logistic regression over two log odds, those of the signals and those of the encoder, each by a
model that did not see the set of the claim; every set counts the same. Writes `combined` into
`signals.json`.

The encoder alone calls a claim contradicted from log odds that hardly any claim reaches of which
people said that the documents speak of something else.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from claim_sets import CLAIM_SETS, read_set
from measure_signals import Measured
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from train_signals import Calibrated, Threshold, calibrated, choose_threshold, load_sets, pool

from langchain_groundedness.verification.embedded.support_model import SupportModel, read_logits

__all__ = ["Combined", "combine", "load_readings", "readings_of"]

_MODEL = Path(__file__).parents[1] / "langchain_groundedness" / "model" / "signals.json"
_READINGS = Path(__file__).parents[1] / "benchmarks" / "left_out"
_FALSE_ALARMS = 0.02
"""Share of the claims beside which people found only irrelevant texts that may be contradicted."""

Floats = NDArray[np.float64]


class Combined(NamedTuple):
    """Weights of the two log odds, and the threshold that goes with them."""

    bias: float
    signals: float
    encoder: float
    chosen: Threshold

    def logit(self, signals: Floats, readings: Floats) -> Floats:
        """Combine log odds; where the encoder was not asked, the signals alone count."""
        both = self.bias + self.signals * signals + self.encoder * readings
        return np.where(np.isnan(readings), signals, both)


def main() -> None:
    """Fit on all sets and write the weights."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder that holds train/")
    parser.add_argument("--readings", type=Path, default=_READINGS, help="of score_left_out.py")
    parser.add_argument("--cache", type=Path, help="folder to keep measured signals in")
    parser.add_argument("--out", type=Path, default=_MODEL)
    options = parser.parse_args()
    sets = load_sets(options.data, cache=options.cache)
    readings = load_readings(options.readings, CLAIM_SETS)
    combined = combine(calibrated(sets, CLAIM_SETS), sets, readings, CLAIM_SETS)
    opposition = _opposition(options.data, options.readings)
    document = json.loads(options.out.read_text(encoding="utf-8"))
    document["combined"] = {
        "bias": round(combined.bias, 4),
        "signals": round(combined.signals, 4),
        "encoder": round(combined.encoder, 4),
        **combined.chosen._asdict(),
        "opposition": round(opposition, 4),
    }
    SupportModel(**document)
    options.out.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(document["combined"], indent=2))


def _opposition(data: Path, folder: Path) -> float:
    """Choose the log odds of contradicted against unverifiable; print what they find."""
    name = "factcheckgpt"
    fine = np.array([example.fine for example in read_set(data, name)])
    asked = [
        read_logits(row[None, :]) if not np.isnan(row).any() else None
        for row in np.load(folder / f"{name}.npy")
    ]
    odds = np.array([r.opposition if r and r.support < 0 else -np.inf for r in asked])
    chosen = float(np.quantile(odds[fine == "irrelevant"], 1 - _FALSE_ALARMS, method="higher"))
    if not np.isfinite(chosen):
        msg = f"too few irrelevant claims in {name} that the encoder denies to choose opposition on"
        raise SystemExit(msg)
    found = odds >= chosen
    shares = {str(kind): round(float(found[fine == kind].mean()), 3) for kind in set(fine)}
    print(f"contradicted by the encoder alone from log odds of {chosen:.2f}: {shares} of {name}")
    return chosen


def load_readings(folder: Path, names: Sequence[str]) -> dict[str, Floats]:
    """Read what the encoder said of claim sets.

    Args:
        folder: Holds `SET.npy` for each.
        names: The sets.

    Returns:
        Log odds of support by name of the set; nan where the encoder had nothing to read.
    """
    return {name: readings_of(np.load(folder / f"{name}.npy")) for name in names}


def readings_of(logits: NDArray[np.float32]) -> Floats:
    """Make log odds of support of logits.

    Args:
        logits: A row per claim, nan where there is none.

    Returns:
        The log odds.
    """
    odds = np.full(len(logits), np.nan)
    for place in np.flatnonzero(~np.isnan(logits).any(axis=1)):
        reading = read_logits(logits[place : place + 1])
        odds[place] = np.nan if reading is None else reading.support
    return odds


def combine(
    signals: Calibrated,
    sets: dict[str, Measured],
    readings: dict[str, Floats],
    claims: Sequence[str],
) -> Combined:
    """Fit the combination.

    Args:
        signals: The model of the signals.
        sets: Measured sets.
        readings: Log odds of the encoder, by name of the set.
        claims: The sets to fit on.

    Returns:
        The combination.
    """
    both = {name: np.column_stack([signals.left_out[name], readings[name]]) for name in claims}
    pooled, labels, counts = pool(sets, both, claims)
    read = ~np.isnan(pooled[:, 1])
    fitted = LogisticRegression(C=1e6).fit(pooled[read], labels[read], sample_weight=counts[read])
    combined = Combined(
        float(fitted.intercept_[0]),
        float(fitted.coef_[0, 0]),
        float(fitted.coef_[0, 1]),
        signals.chosen,
    )
    logits = {n: combined.logit(signals.left_out[n], readings[n]) for n in claims}
    return combined._replace(chosen=choose_threshold(sets, logits, claims))


if __name__ == "__main__":
    main()
