"""Which samples speak about which threshold, and how; pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from langchain_groundedness.calibration._samples import CalibrationSample, ScoredClaim

__all__ = ["KNOBS", "Knob", "Row", "ThresholdName", "Unit", "main_verifier"]

ThresholdName: TypeAlias = Literal[
    "support", "trust", "review", "gate", "settle_supported", "settle_unsupported"
]
Unit: TypeAlias = Literal["claim", "answer"]
Chosen: TypeAlias = Mapping[ThresholdName, float]
_NEVER = float("-inf")
_DIGITS = 12
_FLIPPED: frozenset[ThresholdName] = frozenset({"settle_unsupported"})


class Row(NamedTuple):
    """One sample as one threshold sees it."""

    score: float
    is_good: bool
    group: str
    passed: bool
    """Whether it passed before, with the thresholds in force when it was checked."""


@dataclass(frozen=True, kw_only=True)
class Knob:
    """One threshold."""

    name: ThresholdName
    units: tuple[Unit, ...]
    """What it can be chosen on; the first of which there is enough."""
    what: str
    """What it needs, for a reader whose samples have none."""

    def row(self, sample: CalibrationSample, verifier: str | None, chosen: Chosen) -> Row | None:
        """Look at a sample.

        Args:
            sample: The sample, of a unit that counts.
            verifier: Whose probabilities count.
            chosen: The thresholds that were chosen before this one.

        Returns:
            The row; `None` if it says nothing about this threshold.
        """
        found = _VIEWS[self.name](_Seen(sample, verifier, chosen))
        if found is None:
            return None
        score, good, passed = found
        return Row(score, good, sample.group, passed)

    def threshold(self, cut: float) -> float:
        """Turn a cut of the scores into the threshold, as options name it."""
        return round(1 - cut, _DIGITS) if self.name in _FLIPPED else cut


def main_verifier(samples: Sequence[CalibrationSample]) -> str | None:
    """Name the verifier that has given most probabilities.

    Args:
        samples: The samples.

    Returns:
        Its name, if any has.
    """
    counts: dict[str, int] = {}
    for sample in samples:
        for claim in sample.claims:
            if claim.probability is not None:
                counts[claim.verifier] = counts.get(claim.verifier, 0) + 1
    return max(counts, key=lambda name: counts[name], default=None)


class _Seen(NamedTuple):
    sample: CalibrationSample
    verifier: str | None
    chosen: Chosen


_View = tuple[float, bool, bool] | None


def _support(seen: _Seen) -> _View:
    score = seen.sample.score
    if score is None or any(_unsure(claim, seen.verifier) for claim in seen.sample.claims):
        return None
    return score, seen.sample.is_right, all(c.verdict == "supported" for c in seen.sample.claims)


def _trust(seen: _Seen) -> _View:
    if not seen.sample.claims or any(claim.verdict == "unchecked" for claim in seen.sample.claims):
        return None
    verdicts = _verdicts(seen)
    share = verdicts.count("supported") / len(verdicts)
    score = _NEVER if "contradicted" in verdicts or not share else share
    return score, seen.sample.is_right, all(c.verdict == "supported" for c in seen.sample.claims)


def _review(seen: _Seen) -> _View:
    trusted = _trust(seen)
    if trusted is None:
        return None
    passes = trusted[0] >= seen.chosen.get("trust", 1.0)
    verdicts = _verdicts(seen)
    lowest = [
        claim.probability
        for claim, verdict in zip(seen.sample.claims, verdicts, strict=True)
        if verdict == "supported"
    ]
    known = [p for p in lowest if p is not None]
    if len(known) < len(lowest):
        return None
    return (min(known) if passes and known else _NEVER), seen.sample.is_right, passes


def _gate(seen: _Seen) -> _View:
    score = seen.sample.retrieval_score
    return None if score is None else (score, seen.sample.is_right, True)


def _settle_supported(seen: _Seen) -> _View:
    [claim] = seen.sample.claims
    if _unsure(claim, seen.verifier) or claim.probability is None:
        return None
    score = claim.probability if claim.verdict == "supported" else _NEVER
    return score, seen.sample.is_right, score >= _SETTLE_SUPPORTED


def _settle_unsupported(seen: _Seen) -> _View:
    [claim] = seen.sample.claims
    if _unsure(claim, seen.verifier) or claim.probability is None:
        return None
    score = _NEVER if claim.verdict == "supported" else 1 - claim.probability
    return score, not seen.sample.is_right, score >= 1 - _SETTLE_UNSUPPORTED


_SETTLE_SUPPORTED, _SETTLE_UNSUPPORTED = 0.9, 0.1
"""The defaults of `Stage`."""


def _unsure(claim: ScoredClaim, verifier: str | None) -> bool:
    return claim.verdict == "unchecked" or claim.verifier != verifier


def _verdicts(seen: _Seen) -> list[str]:
    """Give the verdicts as they would be with the chosen threshold of the verifier."""
    threshold = seen.chosen.get("support")
    verdicts = []
    for claim in seen.sample.claims:
        known = threshold is not None and claim.verifier == seen.verifier
        if not known or threshold is None or claim.probability is None:
            verdicts.append(str(claim.verdict))
        elif claim.probability >= threshold:
            verdicts.append("supported")
        else:
            verdicts.append("unverifiable" if claim.verdict == "supported" else str(claim.verdict))
    return verdicts


_VIEWS = {
    "support": _support,
    "trust": _trust,
    "review": _review,
    "gate": _gate,
    "settle_supported": _settle_supported,
    "settle_unsupported": _settle_unsupported,
}

KNOBS = (
    Knob(
        name="support",
        units=("claim", "answer"),
        what="claims, or answers, with support probabilities of one verifier",
    ),
    Knob(name="trust", units=("answer",), what="answers of which every claim was checked"),
    Knob(
        name="review",
        units=("answer",),
        what="answers whose supported claims have probabilities",
    ),
    Knob(name="gate", units=("answer", "claim"), what="samples with a retrieval score"),
    Knob(
        name="settle_supported",
        units=("claim",),
        what="single claims with support probabilities of one verifier",
    ),
    Knob(
        name="settle_unsupported",
        units=("claim",),
        what="single claims with support probabilities of one verifier",
    ),
)
"""In the order in which they are chosen: a later one counts on the earlier ones."""
