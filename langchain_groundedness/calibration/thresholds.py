"""Thresholds chosen on labelled data, and the checker that works with them."""

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import AwareDatetime, ConfigDict, Field

from langchain_groundedness._runtime.options import CheckedOptions
from langchain_groundedness.calibration.choice import Calibrating, reliability
from langchain_groundedness.calibration.threshold_choice import target_of
from langchain_groundedness.calibration.values import (
    CalibrationSample,
    CalibrationTarget,
    Reliability,
    ThresholdChoice,
    ThresholdName,
    main_verifier,
)
from langchain_groundedness.decision import Conditions, DecisionPolicy, DecisionRule, Range
from langchain_groundedness.decision.policy_files import made_from_text, read_text
from langchain_groundedness.exceptions import ConfigurationError, Fault
from langchain_groundedness.pipeline.recording import encoder_checksum
from langchain_groundedness.runnable import GroundednessRunnable
from langchain_groundedness.verification import EmbeddedVerifier

__all__ = ["Calibration", "calibrate"]

_VERSION = 1
_EMBEDDED = "embedded"
_REVIEW_REASON = "a claim is less sure than the calibration asks for"


class Calibration(CheckedOptions):
    """Thresholds that reach a precision or recall on labelled data, with their figures.

    `calibrate` makes one, `langchain-groundedness calibrate` a file with one. `checker` gives a
    `GroundednessRunnable` that works with it; `threshold` gives single thresholds, for
    `EmbeddedVerifier(threshold=...)`, `RetrievalGate(threshold=...)` and
    `Stage(settle_supported=..., settle_unsupported=...)`.

    Example:
        >>> from langchain_groundedness.calibration import (
        ...     CalibrationSample,
        ...     ScoredClaim,
        ...     calibrate,
        ... )
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

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: Literal[1] = 1
    """Of the form of the file."""
    made: AwareDatetime
    target: CalibrationTarget
    verifier: str | None = None
    """Whose probabilities the samples have; the embedded verifier is called `embedded`."""
    encoder: str | None = None
    """SHA-256 of the encoder that the embedded verifier has read with."""
    chosen: dict[ThresholdName, ThresholdChoice]
    """`support`: the probability from which the verifier calls a claim supported. `trust`: the
    share of supported claims from which an answer is trusted. `review`: the probability of a
    supported claim below which an answer goes to a person. `gate`: the least similarity of a
    retrieval. `settle_supported`, `settle_unsupported`: the band of a stage of a cascade. Each is
    chosen with those before it in force."""
    not_chosen: dict[ThresholdName, str] = Field(default_factory=dict)
    """Why the other thresholds were not chosen."""
    reliability: Reliability | None = None

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a calibration from a file.

        Args:
            path: What `save` has written.

        Returns:
            The calibration.

        Raises:
            ConfigurationError: There is no such file, or no calibration in it; the message names
                the file, and where in it what is wrong.
        """
        text = read_text(Path(path))
        return made_from_text(cls._of_this_version, text, form="json", name=str(path))

    def save(self, path: str | Path) -> None:
        """Write the calibration into a file that `load` reads.

        Args:
            path: The file.

        Raises:
            ConfigurationError: It cannot be written.
        """
        text = self.model_dump_json(indent=2, exclude_none=True)
        try:
            Path(path).write_text(f"{text}\n", encoding="utf-8")
        except OSError as exc:
            msg = f"{path}: {exc.strerror or type(exc).__name__}"
            raise ConfigurationError(msg) from exc

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

    def checker(self, **options: Any) -> GroundednessRunnable:
        """Make a checker that works with the thresholds `support`, `trust` and `review`.

        Args:
            **options: Options of `GroundednessRunnable`. `trust_threshold` wins over that of the
                calibration; `policy` gets a rule more, if `review` was chosen.

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
        given = dict(options)
        if "support" in self.chosen:
            given["verifier"] = self._verifier(given)
        if "trust" in self.chosen:
            given.setdefault("trust_threshold", self.chosen["trust"].threshold)
        checker = GroundednessRunnable(**given)
        if "review" not in self.chosen:
            return checker
        return GroundednessRunnable(**{**given, "policy": self._policy(checker.policy)})

    @classmethod
    def _of_this_version(cls, **fields: Any) -> Self:
        version = fields.get("version")
        if isinstance(version, int) and version > _VERSION:
            msg = f"{version} is of a newer version of langchain-groundedness; upgrade it"
            raise ConfigurationError(msg, faults=[Fault(("version",), msg)])
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
        if self.encoder is not None and self.encoder != encoder_checksum():
            msg = (
                "the calibration was made with another encoder than the one installed, whose "
                "probabilities differ: calibrate again"
            )
            raise ConfigurationError(msg)
        return EmbeddedVerifier(threshold=self.chosen["support"].threshold)

    def _policy(self, policy: DecisionPolicy) -> DecisionPolicy:
        rule = DecisionRule(
            when=Conditions(
                lowest_supported_probability=Range(below=self.chosen["review"].threshold)
            ),
            action="review",
            reason=_REVIEW_REASON,
        )
        return policy.model_copy(update={"rules": (*policy.rules, rule)})


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
    """Choose thresholds on samples of which somebody knows whether they are right.

    Args:
        samples: Claims and answers that were checked, 20 of each kind (right, wrong) at least, and
            as many as it takes to tell the wanted share: for a precision of 0.95, 20 that are
            right, for 0.99, 100.
        precision: Of what passes a threshold, at least this share shall be right, above 0, at most
            1: the lowest such threshold is chosen.
        recall: Of what is right, at least this share shall pass: the highest such threshold is
            chosen. Give either this or `precision`.
        encoder: SHA-256 of the encoder that the embedded verifier has read with, if it has.
        resamples: How often groups of samples are drawn for the intervals.
        folds: In how many parts the samples are put to see what thresholds do on others.
        seed: Of draws and parts: the same samples give the same calibration.

    Returns:
        The calibration.

    Raises:
        ConfigurationError: An option has a value that cannot work, or no threshold can be chosen;
            the message says how many more samples are needed.
    """
    target = target_of(precision, recall)
    listed = list(samples)
    wrong = next((each for each in listed if not isinstance(each, CalibrationSample)), None)
    if wrong is not None:
        msg = f"samples must be CalibrationSamples, got {type(wrong).__name__}"
        raise ConfigurationError(msg)
    verifier = main_verifier(listed)
    chosen, refused = Calibrating(
        samples=listed,
        target=target,
        verifier=verifier,
        resamples=resamples,
        folds=folds,
        seed=seed,
    ).outcome()
    if not chosen:
        reasons = "; ".join(f"{name}: {why}" for name, why in refused.items())
        msg = f"no threshold can be chosen on {len(listed)} samples: {reasons}"
        raise ConfigurationError(msg)
    return Calibration(
        made=datetime.now(UTC),
        target=CalibrationTarget(kind=target.kind, value=target.value),
        verifier=verifier,
        encoder=encoder,
        chosen=chosen,
        not_chosen=refused,
        reliability=reliability(listed, verifier),
    )
