"""Chooses thresholds on labelled data, and makes checkers that use them."""

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
