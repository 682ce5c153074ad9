"""From the verdicts on an answer to a decision, with its reasons in words."""

from langchain_groundedness.decision.conditions import Amount, Conditions, Range
from langchain_groundedness.decision.policy import DecisionPolicy, DecisionRule

__all__ = ["Amount", "Conditions", "DecisionPolicy", "DecisionRule", "Range"]
