"""What a calibration says: thresholds, what each does, and how probabilities compare to shares."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from langchain_groundedness._options import CheckedOptions
from langchain_groundedness.calibration._knobs import Unit

__all__ = [
    "CalibrationTarget",
    "Reliability",
    "ReliabilityBin",
    "ThresholdChoice",
    "ThresholdFigures",
]

Share = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]
Interval = tuple[Share, Share]
Whole = Annotated[int, Field(ge=0)]


class _Part(CheckedOptions):
    model_config = ConfigDict(frozen=True, extra="forbid")


class CalibrationTarget(_Part):
    """What thresholds were to reach."""

    kind: Literal["precision", "recall"]
    """`precision`: of what passes, this share is right. `recall`: of what is right, this share
    passes."""
    value: Annotated[float, Field(gt=0.0, le=1.0, allow_inf_nan=False)]


class ThresholdFigures(_Part):
    """What a threshold does on some samples, each share with its 95 % interval."""

    samples: Whole
    passed: Whole
    precision: Share | None = None
    """Share of what passes that is right; `None` if nothing passes."""
    precision_interval: Interval | None = None
    recall: Share | None = None
    """Share of what is right that passes."""
    recall_interval: Interval | None = None


class ThresholdChoice(_Part):
    """A threshold, what it was chosen on, and what it does there."""

    threshold: Annotated[float, Field(ge=-1.0, le=1.0, allow_inf_nan=False)]
    interval: tuple[float, float] | None = None
    """Within which the threshold lies in 95 % of the draws of a bootstrap by groups."""
    missed: Share = 0.0
    """Share of these draws in which no threshold reaches the target."""
    unit: Unit
    """What one sample is."""
    samples: Whole
    good: Whole
    """How many of them should pass."""
    groups: Whole
    """How many are independent of each other."""
    before: ThresholdFigures
    """With the thresholds that were in force when the samples were checked."""
    fitted: ThresholdFigures
    """On the samples that the threshold was chosen on: too good."""
    expected: ThresholdFigures
    """Cross-validated: on samples that the threshold was not chosen on."""


class ReliabilityBin(_Part):
    """Samples with similar probabilities."""

    low: Share
    high: Share
    count: Annotated[int, Field(ge=1)]
    mean: Share
    """Mean probability."""
    right: Share
    """Share that is right."""
    interval: Interval


class Reliability(_Part):
    """How the probabilities that a verifier gives compare to how often it is right."""

    unit: Unit
    samples: Whole
    brier: Share
    """Mean square of the difference between probability and truth (Brier 1950); less is better."""
    error: Share
    """Mean difference between the two columns of the bins, weighted by their counts: the expected
    calibration error (Naeini et al. 2015)."""
    bins: tuple[ReliabilityBin, ...]
