"""What validation finds in a row: the claims, the scores, and what they decide."""

from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from langchain_groundedness.types import ClaimVerdict, Usage

__all__ = [
    "Band",
    "Outcome",
    "ReasonCode",
    "RowValidation",
    "SourceClaim",
    "ValidatedRow",
    "ValidationReason",
]

Outcome: TypeAlias = Literal["passed", "rejected", "unchecked"]
"""`unchecked`: it could not be told. Such a row never passes."""

Band: TypeAlias = Literal["accept", "judge", "reject"]
"""What the similarity of a claim to the documents says: that it is supported, that the judge is to
be asked, that it is not supported."""

ReasonCode: TypeAlias = Literal[
    "contradicted",
    "source",
    "minimum",
    "composite",
    "no_answer",
    "no_documents",
    "no_claims",
    "not_cited",
    "claims_unchecked",
    "quality_unchecked",
    "failed",
]


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ValidationReason(_Value):
    """Why a row has not passed."""

    code: ReasonCode
    """`contradicted`: the documents say otherwise; `source`: too small a share of the claims is
    supported; `minimum`: one score is below its minimum; `composite`: all scores together are too
    low. The others say why a row could not be checked."""
    text: str
    """The same, for a reader."""


class SourceClaim(_Value):
    """A claim of the answer, and how it was settled."""

    verdict: ClaimVerdict
    """The last word on it."""
    similarity: float | None = None
    """How close it lies to the documents: with embeddings a cosine, rounded to two digits, without
    them the probability of support that the embedded verifier gives; `None` if not known."""
    band: Band | None = None
    """Where that lies."""
    differs: bool = False
    """Whether the documents have other numbers, names or negations, which similarity alone never
    settles: the judge was asked."""


class RowValidation(_Value):
    """What validation found in one row."""

    outcome: Outcome
    stage: Literal["source", "quality"]
    """How far the row came: `source`, if it never came to the second stage."""
    reasons: tuple[ValidationReason, ...] = ()
    """Why it has not passed; empty exactly if it has."""
    composite: float | None = Field(default=None, ge=0, le=1, allow_inf_nan=False)
    """Weighted mean of the scores; `None` if the row was rejected before all of them were known."""
    scores: dict[str, float] = Field(default_factory=dict)
    """`source`: the share of claims that is supported; with a chat model `relevance`,
    `correctness` and `completeness`."""
    claims: tuple[SourceClaim, ...] = ()
    quality: dict[str, Any] = Field(default_factory=dict)
    """What the second stage has said besides its scores, such as its reasoning."""
    citations: dict[str, tuple[int, ...]] = Field(default_factory=dict)
    """What the answer cites by path, number or name, and which of the documents that is, counted
    from 0; empty where it is none of them."""
    usage: Usage = Usage()


class ValidatedRow(RowValidation):
    """What stands beside a row in `passed.jsonl` and `rejected.jsonl`, under `validation`."""

    id: str
    """Of the row: its own, or its line."""
    label: str | bool | float | None = None
    """What a person has said of the row."""
    digest: str = ""
    """Of question, answer and documents: whether it is the same row when a run is resumed."""
    group: str = ""
    """Of the documents: rows with the same ones are no independent evidence."""
