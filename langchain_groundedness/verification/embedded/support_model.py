"""The small model that weighs signals and encoder: JSON and arithmetic."""

import math
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, ValidationError

from langchain_groundedness.exceptions import ModelFileError
from langchain_groundedness.verification.embedded.encoder import CLASSES, Floats
from langchain_groundedness.verification.embedded.model_files import (
    damaged,
    read_model_json,
)

__all__ = [
    "EncoderLogOdds",
    "SupportModel",
    "opposition_log_odds",
    "read_logits",
    "support_log_odds",
    "support_model",
]

_SUPPORTED, _CONTRADICTED, _UNVERIFIABLE = map(
    CLASSES.index, ("supported", "contradicted", "unverifiable")
)
_STEEPEST = 30.0


class EncoderLogOdds(NamedTuple):
    """What the encoder says of a claim, as log odds."""

    support: float
    """Of supported against the rest."""
    opposition: float
    """Of contradicted against unverifiable."""


class CombinedModel(BaseModel):
    """A logistic regression over what signals and encoder say, both as log odds."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    bias: float
    signals: float
    support: float
    """Weight of the encoder's log odds of supported against the rest."""
    opposition: float
    """Weight of its log odds of contradicted against unverifiable."""
    threshold: float
    """The probability from which a claim counts as supported: that of the best mean balanced
    accuracy over claim sets and contrast sets, on documents that were held back."""
    strict_threshold: float
    """The probability that at most a tenth of the unsupported claims of any such set reach."""
    opposition_scale: float
    opposition_shift: float
    """Scale and shift that calibrate the log odds of contradicted against unverifiable."""


class SupportModel(BaseModel):
    """A logistic regression over signals, alone and combined with the encoder."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    bias: float
    weights: dict[str, float]
    """Per signal, in its own unit. No weight speaks against what its signal means."""
    threshold: float
    """The probability from which a claim counts as supported, by the signals alone."""
    support_despite: dict[str, float]
    """How often people called a claim supported although the evidence was found to differ from it
    in a value, by kind of difference."""
    combined: CombinedModel

    def probability(self, signals: Mapping[str, float], reading: EncoderLogOdds | None) -> float:
        """Estimate how likely the evidence supports the claim."""
        score = self.bias + sum(w * signals[name] for name, w in self.weights.items())
        if reading is not None:
            mix = self.combined
            read = mix.support * reading.support + mix.opposition * reading.opposition
            score = mix.bias + mix.signals * score + read
        return _sigmoid(score)

    def threshold_for(self, reading: EncoderLogOdds | None, *, strict: bool = False) -> float:
        """Return the probability from which a claim counts as supported."""
        if strict:
            return self.combined.strict_threshold
        return self.threshold if reading is None else self.combined.threshold

    def contradiction_probability(self, reading: EncoderLogOdds) -> float:
        """Estimate how likely the evidence contradicts a claim that it does not support."""
        mix = self.combined
        return _sigmoid(mix.opposition_shift + mix.opposition_scale * reading.opposition)


def _sigmoid(odds: float) -> float:
    return 1 / (1 + math.exp(-max(min(odds, _STEEPEST), -_STEEPEST)))


def read_logits(logits: Floats) -> EncoderLogOdds | None:
    """Make one reading of the logits of a claim."""
    if not len(logits):
        return None
    support = support_log_odds(logits)
    least = int(support.argmin())
    return EncoderLogOdds(float(support[least]), float(opposition_log_odds(logits)[least]))


def support_log_odds(logits: Floats) -> NDArray[np.float64]:
    """Return the log odds of supported against the rest."""
    rows = logits.astype(np.float64)
    odds: NDArray[np.float64] = rows[:, _SUPPORTED] - np.logaddexp(
        rows[:, _CONTRADICTED], rows[:, _UNVERIFIABLE]
    )
    return odds


def opposition_log_odds(logits: Floats) -> NDArray[np.float64]:
    """Return the log odds of contradicted against unverifiable."""
    rows = logits.astype(np.float64)
    odds: NDArray[np.float64] = rows[:, _CONTRADICTED] - rows[:, _UNVERIFIABLE]
    return odds


@cache
def support_model() -> SupportModel:
    """Load the model that is shipped with the package, once."""
    try:
        return SupportModel(**read_model_json("signals.json"))
    except ValidationError as exc:
        raise ModelFileError(damaged("signals.json")) from exc
