"""Chooses thresholds on labelled data, and makes checkers that use them."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self, TypeAlias, Unpack

import numpy as np
from numpy.typing import NDArray
from pydantic import AwareDatetime, Field

from langchain_groundedness._runtime.options import CheckedOptions, expand_options
from langchain_groundedness.calibration.threshold_choice import (
    ScoredSamples,
    Target,
    bootstrap_threshold,
    choose_threshold,
    fold_numbers,
    group_numbers,
    parse_target,
    precision_and_recall,
    wilson_interval,
)
from langchain_groundedness.calibration.values import (
    CalibrationSample,
    CalibrationTarget,
    Reliability,
    ReliabilityBin,
    ScoredClaim,
    ThresholdChoice,
    ThresholdFigures,
    ThresholdName,
    Unit,
    main_verifier,
)
from langchain_groundedness.decision import DecisionRule
from langchain_groundedness.decision.policy_files import load_from_file, write_text
from langchain_groundedness.display.counts import format_count
from langchain_groundedness.display.svg import Plot, document
from langchain_groundedness.exceptions import ConfigurationError, OptionFault
from langchain_groundedness.pipeline.recording import encoder_checksum
from langchain_groundedness.runnable import GroundednessRunnable, RunnableOptions
from langchain_groundedness.verification import EmbeddedVerifier

__all__ = [
    "FEWEST",
    "Calibration",
    "calibrate",
    "calibration_plot",
    "reliability",
    "reliability_plot",
    "require_installed_encoder",
]

FEWEST = 20
"""Samples of each kind, right and wrong, below which no threshold is chosen."""
_FEWEST_GROUPS = _FEWEST_PASSING = 10
_AT_A_HUNDRED_PERCENT = 100
_BINS = 10

Flags = NDArray[np.bool_]


_VERSION = 1
_EMBEDDED = "embedded"
_REVIEW_REASON = "a claim is less certain than the calibration requires"


class Calibration(CheckedOptions):
    """Thresholds that reach a precision or recall on labelled data, with their figures.

    `calibrate` makes one, `langchain-groundedness calibrate` a file with one. `checker` gives a
    `GroundednessRunnable` that works with it; `threshold` gives single thresholds, for
    `EmbeddedVerifier(threshold=...)`, `RetrievalGate(threshold=...)` and
    `Stage(settle_supported=..., settle_unsupported=...)`.

    Example:
        >>> from langchain_groundedness.calibration import CalibrationSample, ScoredClaim, calibrate
        >>> def claim(probability, is_right):
        ...     said = ScoredClaim("supported", probability, "embedded")
        ...     return CalibrationSample(unit="claim", is_right=is_right, claims=(said,))
        >>> samples = [claim(0.6 + i / 100, i >= 12 or i % 2 == 0) for i in range(40)]
        >>> samples += [claim(i / 100, False) for i in range(40)]
        >>> calibration = calibrate(samples, precision=0.9)
        >>> round(calibration.threshold("support"), 2)
        0.66
        >>> print(calibration.not_chosen["gate"])
        no samples for it: it needs samples with a retrieval score
    """

    version: Literal[1] = 1
    """Version of the file format."""
    made: AwareDatetime
    target: CalibrationTarget
    verifier: str | None = None
    """The verifier whose probabilities the samples have; `embedded` for the embedded one."""
    encoder: str | None = None
    """SHA-256 of the encoder of the embedded verifier."""
    chosen: dict[ThresholdName, ThresholdChoice]
    """`support`: least probability of a supported claim. `trust`: least share of supported claims
    of a trusted answer. `review`: an answer with a supported claim below this probability goes to a
    reviewer. `gate`: least similarity of a retrieval. `settle_supported`, `settle_unsupported`: the
    band of a stage of a cascade. Each threshold is chosen with the earlier ones applied."""
    not_chosen: dict[ThresholdName, str] = Field(default_factory=dict)
    """Why the other thresholds were not chosen."""
    reliability: Reliability | None = None

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a calibration from a file.

        Args:
            path: A file that `save` wrote.

        Returns:
            The calibration.

        Raises:
            ConfigurationError: There is no such file, or no calibration in it; the message names
                the file, and where in it what is wrong.
        """
        return load_from_file(cls._of_this_version, Path(path), form="json")

    def save(self, path: str | Path) -> None:
        """Write the calibration into a file that `load` reads.

        Args:
            path: The file.

        Raises:
            ConfigurationError: It cannot be written.
        """
        write_text(Path(path), self.model_dump_json(indent=2, exclude_none=True))

    def threshold(self, name: ThresholdName) -> float:
        """Give a threshold.

        Args:
            name: Which one.

        Returns:
            The threshold.

        Raises:
            ConfigurationError: It was not chosen; the message says why.
        """
        if name not in self.chosen:
            why = self.not_chosen.get(name, "it is not part of it")
            msg = f"the calibration holds no threshold {name!r}: {why}"
            raise ConfigurationError(msg)
        return self.chosen[name].threshold

    def checker(self, **options: Unpack[RunnableOptions]) -> GroundednessRunnable:
        """Make a checker that works with the thresholds `support`, `trust` and `review`.

        Args:
            **options: Options of `GroundednessRunnable`. `trust_threshold` wins over that of the
                calibration; `policy` gets one more rule if `review` was chosen.

        Returns:
            The checker.

        Raises:
            ConfigurationError: The thresholds were chosen for another verifier than it would have,
                or for another encoder than is installed.

        Example:
            >>> from datetime import UTC, datetime
            >>> calibration = Calibration(
            ...     made=datetime.now(UTC), target={"kind": "recall", "value": 0.9}, chosen={}
            ... )
            >>> calibration.checker(max_claims=5).max_claims
            5
        """
        given: dict[str, Any] = {**options}
        if "support" in self.chosen:
            given["verifier"] = self._verifier(given)
        if "trust" in self.chosen:
            given.setdefault("trust_threshold", self.chosen["trust"].threshold)
        checker = GroundednessRunnable(**given)
        if "review" not in self.chosen:
            return checker
        when = {"lowest_supported_probability": {"below": self.chosen["review"].threshold}}
        rule = DecisionRule(when=when, action="review", reason=_REVIEW_REASON)
        rules = (*checker.policy.rules, rule)
        given["policy"] = checker.policy.model_copy(update={"rules": rules})
        return GroundednessRunnable(**given)

    def _repr_svg_(self) -> str | None:
        """Draw the reliability for notebooks."""
        if self.reliability is None:
            return None
        return calibration_plot(self.reliability, self.chosen.get("support"))

    @classmethod
    def _of_this_version(cls, **fields: Any) -> Self:
        version = fields.get("version")
        if isinstance(version, int) and version > _VERSION:
            msg = f"{version} is of a newer version of langchain-groundedness; upgrade it"
            raise ConfigurationError(msg, faults=[OptionFault(("version",), msg)])
        return cls(**fields)

    def _verifier(self, options: dict[str, Any]) -> EmbeddedVerifier:
        taken = [name for name in ("model", "verifier") if options.get(name) is not None]
        if self.verifier != _EMBEDDED or taken:
            theirs = "the embedded verifier" if self.verifier == _EMBEDDED else repr(self.verifier)
            what = f"{taken[0]}= is another one" if taken else "the checker would have another one"
            msg = (
                f"the threshold 'support' was chosen for {theirs}, and {what}: make the checker "
                "with GroundednessRunnable(...), and give it the thresholds that fit"
            )
            raise ConfigurationError(msg)
        require_installed_encoder(self)
        return EmbeddedVerifier(threshold=self.chosen["support"].threshold)


expand_options(Calibration.checker, GroundednessRunnable)


def require_installed_encoder(calibration: Calibration) -> None:
    """Refuse a calibration of another encoder than the one installed."""
    if calibration.encoder not in (None, encoder_checksum()):
        msg = (
            "the calibration was made with another encoder than the one installed, whose "
            "probabilities differ: calibrate again"
        )
        raise ConfigurationError(msg)


def calibrate(  # noqa: PLR0913  (options by keyword)
    samples: Iterable[CalibrationSample],
    *,
    precision: float | None = None,
    recall: float | None = None,
    encoder: str | None = None,
    resamples: int = 1000,
    folds: int = 5,
    seed: int = 0,
) -> Calibration:
    """Choose thresholds on samples that are known to be right or wrong.

    Args:
        samples: Checked claims and answers: at least 20 right and 20 wrong ones, and enough right
            ones to measure the target, such as 20 for a precision of 0.95 and 100 for 0.99.
        precision: Least share of right samples among those that pass a threshold, above 0 and at
            most 1; of these, the highest threshold of the highest recall is chosen.
        recall: Least share of passing samples among the right ones; the highest such threshold is
            chosen. Give either this or `precision`.
        encoder: SHA-256 of the encoder of the embedded verifier, if that gave the probabilities.
        resamples: Number of bootstrap samples for the intervals.
        folds: Number of folds for cross-validation.
        seed: Random seed; the same samples give the same calibration.

    Returns:
        The calibration.

    Raises:
        ConfigurationError: An option has an invalid value, or no threshold can be chosen;
            the message says how many more samples are needed.
    """
    target = parse_target(precision, recall)
    listed = list(samples)
    wrong = next((each for each in listed if not isinstance(each, CalibrationSample)), None)
    if wrong is not None:
        msg = f"samples must be CalibrationSamples, got {type(wrong).__name__}"
        raise ConfigurationError(msg)
    verifier = main_verifier(listed)
    chosen, refused = _ThresholdChooser(listed, target, verifier, resamples, folds, seed).outcome()
    if not chosen:
        raise ConfigurationError(_reason_for_no_threshold(len(listed), refused.values()))
    return Calibration(
        made=datetime.now(UTC),
        target=CalibrationTarget(kind=target.kind, value=target.value),
        verifier=verifier,
        encoder=encoder,
        chosen=chosen,
        not_chosen=refused,
        reliability=reliability(listed, verifier),
    )


_Seen: TypeAlias = tuple[float, bool, bool] | None
"""Score, whether it should pass, whether it passed with the thresholds of its check; `None` if the
sample says nothing about the threshold."""

_Cuts: TypeAlias = dict[ThresholdName, float]


def _support(sample: CalibrationSample, verifier: str | None, _: _Cuts) -> _Seen:
    if sample.score is None or any(_says_nothing(claim, verifier) for claim in sample.claims):
        return None
    return sample.score, sample.is_right, all(c.verdict == "supported" for c in sample.claims)


def _trust(sample: CalibrationSample, verifier: str | None, cuts: _Cuts) -> _Seen:
    if not sample.claims or any(claim.verdict == "unchecked" for claim in sample.claims):
        return None
    verdicts = _verdicts(sample, verifier, cuts)
    share = verdicts.count("supported") / len(verdicts)
    score = _NEVER if "contradicted" in verdicts or not share else share
    return score, sample.is_right, all(c.verdict == "supported" for c in sample.claims)


def _review(sample: CalibrationSample, verifier: str | None, cuts: _Cuts) -> _Seen:
    trusted = _trust(sample, verifier, cuts)
    if trusted is None:
        return None
    passes = trusted[0] >= cuts.get("trust", 1.0)
    verdicts = zip(sample.claims, _verdicts(sample, verifier, cuts), strict=True)
    lowest = [claim.probability for claim, verdict in verdicts if verdict == "supported"]
    known = [p for p in lowest if p is not None]
    if len(known) < len(lowest):
        return None
    return (min(known) if passes and known else _NEVER), sample.is_right, passes


def _gate(sample: CalibrationSample, _: str | None, __: _Cuts) -> _Seen:
    score = sample.retrieval_score
    return None if score is None else (score, sample.is_right, True)


def _settled_by(*, supported: bool) -> Callable[[CalibrationSample, str | None, _Cuts], _Seen]:
    """Make the view of the threshold above which `supported`, or its opposite, is final."""

    def seen(sample: CalibrationSample, verifier: str | None, _: _Cuts) -> _Seen:
        [claim] = sample.claims
        if _says_nothing(claim, verifier) or claim.probability is None:
            return None
        sure = claim.probability if supported else 1 - claim.probability
        score = sure if (claim.verdict == "supported") == supported else _NEVER
        return score, sample.is_right == supported, score >= _SETTLED

    return seen


def _says_nothing(claim: ScoredClaim, verifier: str | None) -> bool:
    return claim.verdict == "unchecked" or claim.verifier != verifier


def _verdicts(sample: CalibrationSample, verifier: str | None, cuts: _Cuts) -> list[str]:
    """Give the verdicts as they would be with the chosen threshold of the verifier."""
    threshold = cuts.get("support")
    verdicts = []
    for claim in sample.claims:
        verdict = str(claim.verdict)
        if threshold is not None and claim.verifier == verifier and claim.probability is not None:
            if claim.probability >= threshold:
                verdict = "supported"
            elif verdict == "supported":
                verdict = "unverifiable"
        verdicts.append(verdict)
    return verdicts


_NEVER = float("-inf")

_SETTLED = 0.9
"""Of the thresholds that are the default of `Stage`."""

_DIGITS = 12


class ThresholdSpec(NamedTuple):
    """One threshold, and on what it is chosen."""

    name: ThresholdName
    units: tuple[Unit, ...]
    """What it can be chosen on; the first with enough samples."""
    needs: str
    """The samples it needs, for the error text."""
    seen: Callable[[CalibrationSample, str | None, _Cuts], _Seen]
    is_upper: bool = False
    """Whether what lies below it passes."""

    def threshold(self, cut: float) -> float:
        """Turn a cut of the scores into the threshold, as options name it."""
        return round(1 - cut, _DIGITS) if self.is_upper else cut


def _reason_for_no_threshold(samples: int, reasons: Iterable[str]) -> str:
    """Say why no threshold was chosen, with the first reason that is not a lack of samples."""
    shortage = next((why for why in reasons if not why.startswith(_NO_SAMPLES)), None)
    if shortage is not None:
        return f"no threshold can be chosen on {format_count(samples, 'sample')}: {shortage}"
    used = f"of {format_count(samples, 'sample')}, none can be used"
    why = used if samples else "there are no samples"
    return (
        f"no threshold can be chosen: {why}. Give claims or answers whose support probabilities "
        "come from one verifier."
    )


_NO_SAMPLES = "no samples for it"
_OF_ONE_VERIFIER = "with support probabilities of one verifier"
_SINGLE_CLAIMS = f"single claims {_OF_ONE_VERIFIER}"

_SPECS = (
    ThresholdSpec(
        "support", ("claim", "answer"), f"claims, or answers, {_OF_ONE_VERIFIER}", _support
    ),
    ThresholdSpec("trust", ("answer",), "answers with every claim checked", _trust),
    ThresholdSpec(
        "review", ("answer",), "answers whose supported claims have probabilities", _review
    ),
    ThresholdSpec("gate", ("answer", "claim"), "samples with a retrieval score", _gate),
    ThresholdSpec("settle_supported", ("claim",), _SINGLE_CLAIMS, _settled_by(supported=True)),
    ThresholdSpec(
        "settle_unsupported",
        ("claim",),
        _SINGLE_CLAIMS,
        _settled_by(supported=False),
        is_upper=True,
    ),
)
"""In the order in which they are chosen: later ones depend on earlier ones."""


class _ThresholdSamples(NamedTuple):
    """The samples that say something about one threshold."""

    places: NDArray[np.int64]
    """Index of each among all samples."""
    scored: ScoredSamples
    passed: Flags
    """Whether each passed when it was checked."""


@dataclass(frozen=True)
class _ThresholdChooser:
    """Samples, and the targets of their thresholds."""

    samples: Sequence[CalibrationSample]
    target: Target
    verifier: str | None
    """Whose probabilities count."""
    resamples: int
    folds: int
    seed: int

    def outcome(self) -> tuple[dict[ThresholdName, ThresholdChoice], dict[ThresholdName, str]]:
        """Choose all thresholds that the samples allow; say why the others were not."""
        units, refused = self._units()
        cuts, held_out = self._choose_cuts(units, None), self._held_out(units)
        drawing: Any = {"times": self.resamples, "seed": self.seed}
        choices: dict[ThresholdName, ThresholdChoice] = {}
        for spec in _SPECS:
            if spec.name not in units:
                continue
            if spec.name not in cuts:
                refused[spec.name] = _unreached_reason(self.target)
                continue
            places, scored, before = self._view(spec, units[spec.name], cuts)
            now = scored.scores >= cuts[spec.name]
            if spec.name == "review" and np.array_equal(now, before):
                refused[spec.name] = "not needed: the thresholds above reach the target"
                continue
            interval, missed = bootstrap_threshold(scored, self.target, **drawing)
            choices[spec.name] = ThresholdChoice(
                threshold=spec.threshold(cuts[spec.name]),
                interval=interval and tuple(sorted(map(spec.threshold, interval))),
                missed=missed,
                unit=units[spec.name],
                samples=len(now),
                good=int(scored.good.sum()),
                groups=len(np.unique(scored.groups)),
                before=_figures(before, scored, **drawing),
                fitted=_figures(now, scored, **drawing),
                expected=_figures(held_out[spec.name][places], scored, **drawing),
            )
        low, high = choices.get("settle_unsupported"), choices.get("settle_supported")
        if low and high and low.threshold > high.threshold:  # the band of a stage is in order
            lowered = low.model_copy(update={"threshold": high.threshold})
            choices["settle_unsupported"] = lowered
        return choices, {spec.name: refused[spec.name] for spec in _SPECS if spec.name in refused}

    def _units(self) -> tuple[dict[ThresholdName, Unit], dict[ThresholdName, str]]:
        """Say on what each threshold is chosen, or why it cannot be."""
        units: dict[ThresholdName, Unit] = {}
        refused: dict[ThresholdName, str] = {}
        for spec in _SPECS:
            for unit in spec.units:
                scored = self._view(spec, unit, {}).scored
                lacking = _sample_shortage(spec, unit, scored, self.target)
                if lacking is None:
                    units[spec.name] = unit
                    refused.pop(spec.name, None)
                    break
                if len(scored.scores) or spec.name not in refused:
                    refused[spec.name] = lacking
        return units, refused

    def _choose_cuts(self, units: Mapping[ThresholdName, Unit], within: Flags | None) -> _Cuts:
        """Choose one threshold after the other on some of the samples."""
        cuts: _Cuts = {}
        for spec in _SPECS:
            if spec.name in units:
                scored = self._view(spec, units[spec.name], cuts, within).scored
                cut = choose_threshold(scored, self.target)
                if cut is not None and (scored.scores >= cut).sum() >= _fewest_passing(self.target):
                    cuts[spec.name] = cut
        return cuts

    def _held_out(self, units: Mapping[ThresholdName, Unit]) -> dict[ThresholdName, Flags]:
        """Tell which samples pass the thresholds that were chosen without them."""
        groups = group_numbers([sample.group for sample in self.samples])
        parts = fold_numbers(groups, folds=self.folds, seed=self.seed)
        passes = {name: np.zeros(len(self.samples), dtype=np.bool_) for name in units}
        for part in range(self.folds):
            cuts = self._choose_cuts(units, parts != part)
            for spec in _SPECS:
                if spec.name in cuts:
                    view = self._view(spec, units[spec.name], cuts, parts == part)
                    passes[spec.name][view.places] = view.scored.scores >= cuts[spec.name]
        return passes

    def _view(
        self, spec: ThresholdSpec, unit: Unit, cuts: _Cuts, within: Flags | None = None
    ) -> _ThresholdSamples:
        found = [
            (place, *seen)
            for place, sample in enumerate(self.samples)
            if sample.unit == unit and (within is None or within[place])
            if (seen := spec.seen(sample, self.verifier, cuts)) is not None
        ]
        places, scores, good, passed = zip(*found, strict=True) if found else [()] * 4
        groups = group_numbers([self.samples[place].group for place in places])
        scored = ScoredSamples(np.array(scores, np.float64), np.array(good, np.bool_), groups)
        return _ThresholdSamples(np.array(places, np.int64), scored, np.array(passed, np.bool_))


def reliability(samples: Iterable[CalibrationSample], verifier: str | None) -> Reliability | None:
    """Compare probabilities to how often they are right: of claims, or else of answers."""
    pairs: dict[Unit, list[tuple[float, bool]]] = {"claim": [], "answer": []}
    for sample in samples:
        if (seen := _support(sample, verifier, {})) is not None:
            pairs[sample.unit].append(seen[:2])
    unit: Unit = "claim" if pairs["claim"] else "answer"
    if not (found := pairs[unit]):
        return None
    bins = []
    for place in range(_BINS):
        inside = [p for p in found if min(int(p[0] * _BINS), _BINS - 1) == place]
        if inside:
            right = sum(good for _, good in inside)
            bins.append(
                ReliabilityBin(
                    low=place / _BINS,
                    high=(place + 1) / _BINS,
                    count=len(inside),
                    mean=min(math.fsum(score for score, _ in inside) / len(inside), 1.0),
                    right=right / len(inside),
                    interval=wilson_interval(right, len(inside)),
                )
            )
    off = math.fsum(each.count * abs(each.mean - each.right) for each in bins)
    square = math.fsum((score - good) ** 2 for score, good in found)
    return Reliability(
        unit=unit,
        samples=len(found),
        brier=square / len(found),
        error=off / len(found),
        bins=tuple(bins),
    )


def _sample_shortage(
    spec: ThresholdSpec, unit: Unit, scored: ScoredSamples, target: Target
) -> str | None:
    """Say how many more samples are needed, if any are."""
    if not len(scored.scores):
        return f"{_NO_SAMPLES}: it needs {spec.needs}"
    good = int(scored.good.sum())
    counts = [
        (good, max(FEWEST, _samples_per_failure(target.value))),
        (len(scored.good) - good, FEWEST),
    ]
    if spec.is_upper:
        counts.reverse()
    kinds = dict(zip((f"right {unit}", f"wrong {unit}"), counts, strict=True))
    missing = [
        format_count(need - have, f"more {kind}")
        for kind, (have, need) in kinds.items()
        if have < need
    ]
    if missing:
        there = " and ".join(format_count(have, kind) for kind, (have, _) in kinds.items())
        needed = " and ".join(str(need) for _, need in kinds.values())
        return (
            f"too few samples: {there}, and at least {needed} are needed: "
            f"label {' and '.join(missing)}"
        )
    groups = len(np.unique(scored.groups))
    if groups < _FEWEST_GROUPS:
        return (
            f"the {unit}s come from too few documents or threads: {groups}, and at least "
            f"{_FEWEST_GROUPS} are needed: label {unit}s of {_FEWEST_GROUPS - groups} more"
        )
    return None


def _samples_per_failure(share: float) -> int:
    """Return the sample size at which the allowed share of failures is one sample."""
    return _AT_A_HUNDRED_PERCENT if share == 1 else math.ceil(round(1 / (1 - share), 6))


def _unreached_reason(target: Target) -> str:
    fewest = _fewest_passing(target)
    which = f" that at least {fewest} samples pass" if fewest > 1 else ""
    return (
        f"no threshold{which} reaches a {target.kind} of {target.value:g}: label more samples, or "
        "ask for less"
    )


def _fewest_passing(target: Target) -> int:
    """Return how many samples must pass for the precision to be meaningful."""
    return (
        1 if target.kind == "recall" else max(_FEWEST_PASSING, _samples_per_failure(target.value))
    )


def _figures(passes: Flags, scored: ScoredSamples, **drawing: int) -> ThresholdFigures:
    precision, recall = precision_and_recall(passes, scored.good, scored.groups, **drawing)
    return ThresholdFigures(
        samples=len(passes),
        passed=int(passes.sum()),
        precision=precision[0],
        precision_interval=precision[1],
        recall=recall[0],
        recall_interval=recall[1],
    )


_TICKS = [(n / 5, f"{n / 5:g}") for n in range(6)]


def calibration_plot(reliability: Reliability, support: ThresholdChoice | None) -> str:
    """Draw how probabilities compare to shares."""
    above = reliability_plot(reliability)
    most = max((each.count for each in reliability.bins), default=1)
    below = Plot(
        title="Samples per bin",
        highest=float(most),
        x_label="support probability",
        y_label="samples",
        height=170,
    )
    below.ticks(_TICKS, [(0.0, "0"), (float(most), str(most))])
    for each in reliability.bins:
        below.bar(each.low + 0.005, 0.09, 0, each.count, "e", format_count(each.count, "sample"))
    words = [("e", f"calibration error {reliability.error:.3f}, Brier {reliability.brier:.3f}")]
    if support is not None:
        words.append(("d", f"threshold {support.threshold:.3g}"))
        for plot in (above, below):
            plot.mark(support.threshold, "d")
    above.legend(words)
    return document([above, below])


def reliability_plot(reliability: Reliability) -> Plot:
    """Draw the share that is right per bin of probability, beside the diagonal."""
    of = "claims" if reliability.unit == "claim" else "answers, by their least likely claim"
    above = Plot(
        title=f"Reliability on {reliability.samples} {of}",
        x_label=f"support probability, {reliability.samples} {of}",
        y_label="share that is right",
        height=380,
    )
    above.ticks(_TICKS, _TICKS)
    above.ideal()
    for each in reliability.bins:
        above.whisker(each.mean, *each.interval, "e")
        tooltip = f"{each.right:.0%} of {each.count} with {each.low:g} to {each.high:g} are right"
        above.dot(each.mean, each.right, "e", tooltip)
    return above
