"""The thresholds of similarity: as given, or from a calibration that fits."""

from pathlib import Path
from typing import Any, NamedTuple

from langchain_groundedness._recording import encoder_checksum
from langchain_groundedness.calibration import Calibration
from langchain_groundedness.exceptions import ConfigurationError

__all__ = ["Bands", "calibrated"]

_EMBEDDED = "embedded"


class Bands(NamedTuple):
    """Where similarity settles a claim."""

    accept: float
    """From there on it is supported."""
    reject: float
    """Below that, it is not."""
    support: float | None = None
    """Without a judge, the probability from which a claim between the two is supported; `None` for
    all of them."""

    @property
    def middle(self) -> float:
        """The probability from which a claim is supported where there is no judge."""
        return (
            self.reject
            if self.support is None
            else min(max(self.support, self.reject), self.accept)
        )


def calibrated(given: Any, bands: Bands, *, with_embeddings: bool) -> Bands:
    """Take thresholds from a calibration.

    Args:
        given: A `Calibration`, the path of its file, or `None`.
        bands: What holds for thresholds that it does not have.
        with_embeddings: Whether embeddings give the similarity.

    Returns:
        The thresholds.

    Raises:
        ConfigurationError: It was made for something else, or the thresholds do not go together.
    """
    if given is not None:
        calibration = given if isinstance(given, Calibration) else _loaded(given)
        _require_fit(calibration, with_embeddings=with_embeddings)
        chosen = {name: choice.threshold for name, choice in calibration.chosen.items()}
        bands = Bands(
            accept=chosen.get("settle_supported", bands.accept),
            reject=chosen.get("settle_unsupported", bands.reject),
            support=None if with_embeddings else chosen.get("support"),
        )
    if bands.reject > bands.accept:
        msg = f"reject must not be above accept, got {bands.reject:g} and {bands.accept:g}"
        raise ConfigurationError(msg)
    if not with_embeddings and bands.reject < 0:
        msg = f"reject must be from 0 to 1 without embeddings, got {bands.reject:g}"
        raise ConfigurationError(msg)
    return bands


def _loaded(given: Any) -> Calibration:
    if not isinstance(given, str | Path):
        kind = type(given).__name__
        msg = f"calibration must be a Calibration or the path of its file, got {kind}"
        raise ConfigurationError(msg)
    return Calibration.load(given)


def _require_fit(calibration: Calibration, *, with_embeddings: bool) -> None:
    usable = {"settle_supported", "settle_unsupported", "support"} & calibration.chosen.keys()
    if not usable:
        msg = (
            "the calibration holds none of the thresholds settle_supported, settle_unsupported and "
            "support: " + "; ".join(f"{n}: {why}" for n, why in calibration.not_chosen.items())
        )
        raise ConfigurationError(msg)
    if with_embeddings == (calibration.verifier == _EMBEDDED):
        theirs = "the embedded verifier" if with_embeddings else repr(calibration.verifier)
        ours = "embeddings give" if with_embeddings else "the embedded verifier gives"
        msg = f"the calibration was made for {theirs}, and here {ours} the similarity: make another"
        raise ConfigurationError(msg)
    encoder = calibration.encoder
    if not with_embeddings and encoder is not None and encoder != encoder_checksum():
        msg = (
            "the calibration was made with another encoder than the one installed, whose "
            "probabilities differ: calibrate again"
        )
        raise ConfigurationError(msg)
