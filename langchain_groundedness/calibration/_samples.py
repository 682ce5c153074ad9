"""What thresholds are chosen on: claims and answers of which somebody knows whether they hold."""

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal, Self, get_args

import numpy as np

from langchain_groundedness.audit import AuditRecord
from langchain_groundedness.exceptions import ConfigurationError
from langchain_groundedness.types import ClaimVerdict, VerdictLabel

__all__ = ["CalibrationSample", "ScoredClaim", "group_of"]


@dataclass(frozen=True, slots=True)
class ScoredClaim:
    """What a verifier has said about a claim, without its text."""

    verdict: VerdictLabel
    probability: float | None = None
    """Of support."""
    verifier: str = ""

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            ConfigurationError: One of them cannot be.
        """
        accepted = get_args(VerdictLabel)
        if self.verdict not in accepted:
            msg = (
                f"verdict must be one of {', '.join(map(repr, accepted))}, got {self.verdict!r:.60}"
            )
            raise ConfigurationError(msg)
        _require_number("probability", self.probability, 0.0)

    @classmethod
    def of(cls, verdict: ClaimVerdict) -> Self:
        """Take what counts from a verdict.

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
    """Samples of one group are no independent evidence, such as claims on the same documents. An
    empty one stands alone."""

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            ConfigurationError: One of them cannot be.
        """
        if self.unit not in ("claim", "answer"):
            msg = f"unit must be 'claim' or 'answer', got {self.unit!r:.60}"
            raise ConfigurationError(msg)
        _require_label("is_right", self.is_right)
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
        """Take what a reviewer has said about an answer.

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


def _require_label(name: str, value: object) -> None:
    """Refuse a label that is neither true nor false: every text is true to Python, `"no"` as well.

    Args:
        name: What to call it in the error.
        value: The label.

    Raises:
        ConfigurationError: It is no bool.
    """
    if not isinstance(value, bool | np.bool_):
        msg = f"{name} must be True or False, got {value!r:.60}"
        raise ConfigurationError(msg)


def _require_number(name: str, value: object, least: float) -> None:
    known = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if value is not None and not (known and least <= value <= 1):  # type: ignore[operator]  # a number
        msg = f"{name} must be a number from {least:g} to 1, or None, got {value!r:.60}"
        raise ConfigurationError(msg)


def group_of(texts: Iterable[str]) -> str:
    """Name the group of what was checked against the same texts.

    Args:
        texts: The texts of the documents.

    Returns:
        A digest.
    """
    digest = blake2b(digest_size=12)
    for text in texts:
        data = text.encode("utf-8", errors="surrogatepass")
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)
    return digest.hexdigest()
