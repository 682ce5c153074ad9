"""Thresholds chosen on labelled data, and the checker that works with them."""

from langchain_groundedness.calibration._samples import CalibrationSample, ScoredClaim
from langchain_groundedness.calibration._values import (
    CalibrationTarget,
    Reliability,
    ReliabilityBin,
    ThresholdChoice,
    ThresholdFigures,
)
from langchain_groundedness.calibration.thresholds import Calibration, calibrate

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
