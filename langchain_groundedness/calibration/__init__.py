"""Thresholds chosen on labelled data, and the checker that works with them."""

from langchain_groundedness.calibration.thresholds import Calibration, calibrate
from langchain_groundedness.calibration.values import (
    CalibrationSample,
    CalibrationTarget,
    Reliability,
    ReliabilityBin,
    ScoredClaim,
    ThresholdChoice,
    ThresholdFigures,
)

__all__ = [
    "Calibration",
    "CalibrationSample",
    "CalibrationTarget",
    "Reliability",
    "ReliabilityBin",
    "ScoredClaim",
    "ThresholdChoice",
    "ThresholdFigures",
    "calibrate",
]
