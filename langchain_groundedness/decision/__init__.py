"""Policies that turn verdicts into a decision with reasons."""

from langchain_groundedness.decision.conditions import Amount, Conditions, Range
from langchain_groundedness.decision.policy import DecisionPolicy, DecisionRule

__all__ = ["Amount", "Conditions", "DecisionPolicy", "DecisionRule", "Range"]
