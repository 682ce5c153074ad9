"""The values of a calibration."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Annotated, Literal, Self, TypeAlias, get_args

import numpy as np
from pydantic import Field

from langchain_groundedness._runtime.options import CheckedOptions, require_one_of
from langchain_groundedness.audit import AuditRecord
from langchain_groundedness.exceptions import ConfigurationError
from langchain_groundedness.types import ClaimVerdict, VerdictLabel

__all__ = [
    "CalibrationSample",
    "CalibrationTarget",
    "Reliability",
    "ReliabilityBin",
    "ScoredClaim",
    "ThresholdChoice",
    "ThresholdFigures",
    "ThresholdName",
    "Unit",
    "group_of",
    "main_verifier",
]

Share = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]

Interval = tuple[Share, Share]

Whole = Annotated[int, Field(ge=0)]


class CalibrationTarget(CheckedOptions):
    """The target of the thresholds."""

    kind: Literal["precision", "recall"]
    """`precision`: of what passes, this share is right. `recall`: of what is right, this share
    passes."""
    value: Annotated[float, Field(gt=0.0, le=1.0, allow_inf_nan=False)]


class ThresholdFigures(CheckedOptions):
    """What a threshold does on some samples, each share with its 95 % interval."""

    samples: Whole
    passed: Whole
    precision: Share | None = None
    """Share of what passes that is right; `None` if nothing passes."""
    precision_interval: Interval | None = None
    recall: Share | None = None
    """Share of what is right that passes."""
    recall_interval: Interval | None = None


Unit: TypeAlias = Literal["claim", "answer"]

ThresholdName: TypeAlias = Literal[
    "support", "trust", "review", "gate", "settle_supported", "settle_unsupported"
]


class ThresholdChoice(CheckedOptions):
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
    """With the thresholds that applied when the samples were checked."""
    fitted: ThresholdFigures
    """On the samples that the threshold was chosen on: too optimistic."""
    expected: ThresholdFigures
    """Cross-validated: on samples that the threshold was not chosen on."""


class ReliabilityBin(CheckedOptions):
    """Samples with similar probabilities."""

    low: Share
    high: Share
    count: Annotated[int, Field(ge=1)]
    mean: Share
    """Mean probability."""
    right: Share
    """Share that is right."""
    interval: Interval


class Reliability(CheckedOptions):
    """How the probabilities that a verifier gives compare to how often it is right."""

    unit: Unit
    samples: Whole
    brier: Share
    """Mean square of the difference between probability and truth (Brier 1950); less is better."""
    error: Share
    """Mean difference between the two columns of the bins, weighted by their counts: the expected
    calibration error (Naeini et al. 2015)."""
    bins: tuple[ReliabilityBin, ...]


@dataclass(frozen=True, slots=True)
class ScoredClaim:
    """A verifier's result for a claim, without the claim's text."""

    verdict: VerdictLabel
    probability: float | None = None
    """Of support."""
    verifier: str = ""

    def __post_init__(self) -> None:
        """Check the values."""
        require_one_of("verdict", self.verdict, get_args(VerdictLabel))
        _require_number("probability", self.probability, 0.0)

    @classmethod
    def of(cls, verdict: ClaimVerdict) -> Self:
        """Make one from a verdict.

        Args:
            verdict: The verdict.

        Returns:
            The scored claim.
        """
        return cls(verdict.verdict, verdict.support_probability, verdict.verifier)


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationSample:
    """A claim, or a whole answer, that was checked, and whether it is right.

    Example:
        >>> claim = ScoredClaim("supported", 0.8, "embedded")
        >>> CalibrationSample(unit="claim", is_right=True, claims=(claim,)).score
        0.8
    """

    unit: Literal["claim", "answer"]
    is_right: bool
    """Of a claim: the documents support it. Of an answer: it may be shown as it is."""
    claims: tuple[ScoredClaim, ...]
    """The claim, or all claims of the answer."""
    retrieval_score: float | None = None
    """How close the best document is to the question, if that was measured."""
    group: str = ""
    """Samples of one group, such as claims on the same documents, are not independent. A sample
    without a group is independent of all others."""

    def __post_init__(self) -> None:
        """Check the values."""
        require_one_of("unit", self.unit, get_args(Unit))
        if not isinstance(self.is_right, bool | np.bool_):  # any text, even "no", is truthy
            msg = f"is_right must be True or False, got {self.is_right!r:.60}"
            raise ConfigurationError(msg)
        if not isinstance(self.claims, tuple | list) or not all(
            isinstance(claim, ScoredClaim) for claim in self.claims
        ):
            msg = f"claims must be a tuple of ScoredClaims, got {type(self.claims).__name__}"
            raise ConfigurationError(msg)
        _require_number("retrieval_score", self.retrieval_score, -1.0)

    @property
    def score(self) -> float | None:
        """The lowest probability of support of a claim; `None` if one has none."""
        known = [c.probability for c in self.claims if c.probability is not None]
        return min(known) if known and len(known) == len(self.claims) else None

    @classmethod
    def of_record(cls, record: AuditRecord) -> Self | None:
        """Make a sample from a reviewer's decision about an answer.

        Args:
            record: An audit record; its texts are not needed.

        Returns:
            The sample: an answer that was approved is right, one that was edited or rejected is
            not. `None` if nobody has decided.
        """
        if record.review.status != "decided" or record.review.action is None:
            return None
        return cls(
            unit="answer",
            is_right=record.review.action == "approve",
            claims=tuple(map(ScoredClaim.of, record.claims)),
            retrieval_score=record.retrieval_score,
            group=record.thread_id or record.id,
        )

    @classmethod
    def of_marks(cls, record: AuditRecord) -> list[Self]:
        """Make samples from a reviewer's marks of single claims.

        Args:
            record: An audit record; its texts are not needed.

        Returns:
            A sample for each claim that the reviewer has marked right or wrong.
        """
        marks = record.review.marks if record.review.status == "decided" else {}
        return [
            cls(
                unit="claim",
                is_right=marks[found.claim.id],
                claims=(ScoredClaim.of(found),),
                retrieval_score=record.retrieval_score,
                group=record.thread_id or record.id,
            )
            for found in record.claims
            if found.claim.id in marks
        ]


def _require_number(name: str, value: object, least: float) -> None:
    known = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if value is not None and not (known and least <= value <= 1):  # type: ignore[operator]  # a number
        msg = f"{name} must be a number from {least:g} to 1, or None, got {value!r:.60}"
        raise ConfigurationError(msg)


def group_of(texts: Iterable[str]) -> str:
    """Name the group of what was checked against the same texts."""
    digest = blake2b(digest_size=12)
    for text in texts:
        data = text.encode("utf-8", errors="surrogatepass")
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)
    return digest.hexdigest()


def main_verifier(samples: Sequence[CalibrationSample]) -> str | None:
    """Name the verifier that has given most probabilities."""
    claims = (claim for sample in samples for claim in sample.claims)
    counts = Counter(claim.verifier for claim in claims if claim.probability is not None)
    return next((name for name, _ in counts.most_common(1)), None)
