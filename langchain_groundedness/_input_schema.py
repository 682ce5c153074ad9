"""The schema that LangChain shows for the input of a check."""

from typing import Any

from pydantic import BaseModel, Field

__all__ = ["GroundednessInput"]


class GroundednessInput(BaseModel):
    """The plainest input; outputs of chains and agents are accepted as they are."""

    answer: str
    documents: list[Any] = Field(default_factory=list)
    """`Document`s or texts."""
    question: str | None = None
    query_class: str | None = None
    risk_tier: str | None = None
    retrieval_score: float | None = None
    """These three are for the policy."""
