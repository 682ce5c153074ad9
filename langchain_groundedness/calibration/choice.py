"""From labelled samples to thresholds with their figures; pure."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from langchain_groundedness.calibration.threshold_choice import (
    Scored,
    Target,
    choose,
    numbered,
    parted,
    resampled,
    shares,
    wilson,
)
from langchain_groundedness.calibration.values import (
    KNOBS,
    CalibrationSample,
    Knob,
    Reliability,
    ReliabilityBin,
    Row,
    ThresholdChoice,
    ThresholdFigures,
    ThresholdName,
    Unit,
)

__all__ = ["FEWEST", "Calibrating", "reliability"]

FEWEST = 20
"""Samples of each kind, right and wrong, below which no threshold is chosen."""
_FEWEST_GROUPS = _FEWEST_PASSING = 10
_AT_A_HUNDRED_PERCENT = 100
_BINS = 10

Flags = NDArray[np.bool_]
Cuts = dict[ThresholdName, float]


@dataclass(frozen=True, kw_only=True)
class Calibrating:
    """Samples, and what is wanted of thresholds on them."""

    samples: Sequence[CalibrationSample]
    target: Target
    verifier: str | None
    """Whose probabilities count."""
    resamples: int
    folds: int
    seed: int

    def outcome(self) -> tuple[dict[ThresholdName, ThresholdChoice], dict[ThresholdName, str]]:
        """Choose all thresholds that the samples allow."""
        units, refused = self._units()
        groups = numbered([sample.group for sample in self.samples])
        everywhere = np.ones(len(self.samples), dtype=np.bool_)
        cuts = self._chain(units, everywhere)
        parts = parted(groups, folds=self.folds, seed=self.seed)
        passes = self._held_out(units, parts)
        choices: dict[ThresholdName, ThresholdChoice] = {}
        for knob in KNOBS:
            if knob.name not in units:
                continue
            rows = self._rows(knob, units, cuts, everywhere)
            if knob.name not in cuts:
                refused[knob.name] = _unreached(self.target)
                continue
            places = np.array([place for place, _ in rows])
            table = [row for _, row in rows]
            cut = cuts[knob.name]
            now = np.array([row.score >= cut for row in table])
            before = np.array([row.passed for row in table])
            if knob.name == "review" and bool((now == before).all()):
                refused[knob.name] = "not needed: the thresholds above reach the target"
                continue
            expected = passes[knob.name][places]
            choices[knob.name] = self._choice(
                knob,
                unit=units[knob.name],
                table=table,
                groups=groups[places],
                passing=(before, now, expected),
                cut=cut,
            )
        told = {knob.name: refused[knob.name] for knob in KNOBS if knob.name in refused}
        return _in_order(choices), told

    def _units(self) -> tuple[dict[ThresholdName, Unit], dict[ThresholdName, str]]:
        """Say on what each threshold is chosen, or why it cannot be."""
        units: dict[ThresholdName, Unit] = {}
        refused: dict[ThresholdName, str] = {}
        everywhere = np.ones(len(self.samples), dtype=np.bool_)
        for knob in KNOBS:
            for unit in knob.units:
                rows = [row for _, row in self._rows(knob, {knob.name: unit}, {}, everywhere)]
                lacking = _shortage(knob, unit, rows, self.target)
                if lacking is None:
                    units[knob.name] = unit
                    refused.pop(knob.name, None)
                    break
                if rows or knob.name not in refused:
                    refused[knob.name] = lacking
        return units, refused

    def _chain(self, units: Mapping[ThresholdName, Unit], within: Flags) -> Cuts:
        """Choose one threshold after the other on some of the samples."""
        cuts: Cuts = {}
        for knob in KNOBS:
            if knob.name in units:
                table = [row for _, row in self._rows(knob, units, cuts, within)]
                cut = choose(_scored(table), self.target)
                passing = 0 if cut is None else sum(row.score >= cut for row in table)
                if cut is not None and passing >= _fewest_passing(self.target):
                    cuts[knob.name] = cut
        return cuts

    def _held_out(
        self, units: Mapping[ThresholdName, Unit], parts: NDArray[np.int64]
    ) -> dict[ThresholdName, Flags]:
        """Tell which samples pass the thresholds that were chosen without them."""
        passes = {name: np.zeros(len(self.samples), dtype=np.bool_) for name in units}
        for part in range(self.folds):
            out = parts == part
            cuts = self._chain(units, ~out)
            for knob in KNOBS:
                if knob.name in cuts:
                    for place, row in self._rows(knob, units, cuts, out):
                        passes[knob.name][place] = row.score >= cuts[knob.name]
        return passes

    def _rows(
        self,
        knob: Knob,
        units: Mapping[ThresholdName, Unit],
        cuts: Cuts,
        within: Flags,
    ) -> list[tuple[int, Row]]:
        return [
            (place, row)
            for place, sample in enumerate(self.samples)
            if within[place]
            and sample.unit == units[knob.name]
            and (row := knob.row(sample, self.verifier, cuts)) is not None
        ]

    def _choice(  # noqa: PLR0913  (all that is known of a choice)
        self,
        knob: Knob,
        *,
        unit: Unit,
        table: Sequence[Row],
        groups: NDArray[np.int64],
        passing: tuple[Flags, Flags, Flags],
        cut: float,
    ) -> ThresholdChoice:
        scored = _scored(table)._replace(groups=_renumbered(groups))
        drawing: Any = {"times": self.resamples, "seed": self.seed}
        interval, missed = resampled(scored, self.target, **drawing)
        if interval is not None:
            low, high = sorted(map(knob.threshold, interval))
            interval = (low, high)
        before, fitted, expected = (_figures(passes, scored, **drawing) for passes in passing)
        return ThresholdChoice(
            threshold=knob.threshold(cut),
            interval=interval,
            missed=missed,
            unit=unit,
            samples=len(table),
            good=int(scored.good.sum()),
            groups=len(set(groups.tolist())),
            before=before,
            fitted=fitted,
            expected=expected,
        )


def reliability(samples: Iterable[CalibrationSample], verifier: str | None) -> Reliability | None:
    """Compare probabilities to how often they are right: of claims, or else of answers."""
    knob, listed = KNOBS[0], list(samples)
    for unit in knob.units:
        rows = [knob.row(s, verifier, {}) for s in listed if s.unit == unit]
        pairs = [(row.score, row.is_good) for row in rows if row is not None]
        if pairs:
            return _compared(unit, pairs)
    return None


def _in_order(
    choices: dict[ThresholdName, ThresholdChoice],
) -> dict[ThresholdName, ThresholdChoice]:
    """Keep the band of a stage in order, where a verifier has more than one threshold."""
    low, high = choices.get("settle_unsupported"), choices.get("settle_supported")
    if low is None or high is None or low.threshold <= high.threshold:
        return choices
    lowered = low.model_copy(update={"threshold": high.threshold})
    return {**choices, "settle_unsupported": lowered}


def _compared(unit: Unit, pairs: Sequence[tuple[float, bool]]) -> Reliability:
    bins = []
    for place in range(_BINS):
        inside = [p for p in pairs if min(int(p[0] * _BINS), _BINS - 1) == place]
        if inside:
            right = sum(good for _, good in inside)
            bins.append(
                ReliabilityBin(
                    low=place / _BINS,
                    high=(place + 1) / _BINS,
                    count=len(inside),
                    mean=min(math.fsum(score for score, _ in inside) / len(inside), 1.0),
                    right=right / len(inside),
                    interval=wilson(right, len(inside)),
                )
            )
    off = math.fsum(each.count * abs(each.mean - each.right) for each in bins)
    square = math.fsum((score - good) ** 2 for score, good in pairs)
    return Reliability(
        unit=unit,
        samples=len(pairs),
        brier=square / len(pairs),
        error=off / len(pairs),
        bins=tuple(bins),
    )


def _shortage(knob: Knob, unit: Unit, rows: Sequence[Row], target: Target) -> str | None:
    """Say how many more samples are needed, if any are."""
    if not rows:
        return f"no samples for it: it needs {knob.what}"
    good = sum(row.is_good for row in rows)
    bad = len(rows) - good
    needed = (max(FEWEST, _one_in(target.value)), FEWEST)
    words = ("wrong", "right") if knob.name == "settle_unsupported" else ("right", "wrong")
    missing = [
        f"{need - have} more {unit}s that are {word}"
        for need, have, word in zip(needed, (good, bad), words, strict=True)
        if have < need
    ]
    groups = int(numbered([row.group for row in rows]).max(initial=-1)) + 1
    if not missing and groups < _FEWEST_GROUPS:
        missing = [f"{unit}s of {_FEWEST_GROUPS - groups} more documents or threads"]
    if not missing:
        return None
    return (
        f"too few samples: {good} {unit}s are {words[0]} and {bad} {words[1]}, and at least "
        f"{needed[0]} and {needed[1]} are needed: label {' and '.join(missing)}"
    )


def _one_in(share: float) -> int:
    """Say among how many the share of those that fail would be one."""
    return _AT_A_HUNDRED_PERCENT if share == 1 else math.ceil(round(1 / (1 - share), 6))


def _unreached(target: Target) -> str:
    fewest = _fewest_passing(target)
    enough = f" with {fewest} or more of them above it" if fewest > 1 else ""
    return f"no threshold reaches a {target.kind} of {target.value:g} on these samples{enough}"


def _fewest_passing(target: Target) -> int:
    """Say how many have to pass before a precision among them means anything."""
    return 1 if target.kind == "recall" else max(_FEWEST_PASSING, _one_in(target.value))


def _scored(table: Sequence[Row]) -> Scored:
    return Scored(
        np.array([row.score for row in table], dtype=np.float64),
        np.array([row.is_good for row in table], dtype=np.bool_),
        numbered([row.group for row in table]),
    )


def _renumbered(groups: NDArray[np.int64]) -> NDArray[np.int64]:
    found: NDArray[np.int64] = np.unique(groups, return_inverse=True)[1]
    return found


def _figures(passes: Flags, scored: Scored, **drawing: int) -> ThresholdFigures:
    precision, recall = shares(passes, scored.good, scored.groups, **drawing)
    return ThresholdFigures(
        samples=len(passes),
        passed=int(passes.sum()),
        precision=precision[0],
        precision_interval=precision[1],
        recall=recall[0],
        recall_interval=recall[1],
    )
