"""The small model that turns signals into a calibrated probability: JSON and arithmetic."""

import json
import math
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from pydantic import BaseModel, ConfigDict

__all__ = ["SupportModel", "support_model"]


class SupportModel(BaseModel):
    """A logistic regression over signals, with what was measured of it in training."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    bias: float
    weights: dict[str, float]
    """Per signal, in its own unit. No weight speaks against what its signal means."""
    threshold: float
    """The probability from which a claim counts as supported."""
    support_despite: dict[str, float]
    """How often people called a claim supported although the evidence was found to differ from it
    in a value, by kind of difference."""

    def probability(self, signals: Mapping[str, float]) -> float:
        """Estimate how likely the evidence supports the claim.

        Args:
            signals: The signals of the claim; those the model does not use are ignored.

        Returns:
            A probability in 0 .. 1.
        """
        score = self.bias + sum(w * signals[name] for name, w in self.weights.items())
        return 1 / (1 + math.exp(-max(min(score, 30.0), -30.0)))


@cache
def support_model() -> SupportModel:
    """Load the model that is shipped with the package, once.

    Returns:
        The model.
    """
    source = files("langchain_groundedness") / "model" / "signals.json"
    return SupportModel(**json.loads(source.read_text(encoding="utf-8")))
