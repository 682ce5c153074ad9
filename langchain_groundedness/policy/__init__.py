"""From the verdicts on an answer to a decision, with its reasons in words."""

from langchain_groundedness.policy._bounds import Amount, Range
from langchain_groundedness.policy._conditions import Conditions
from langchain_groundedness.policy._rules import DecisionRule
from langchain_groundedness.policy.decision import DecisionPolicy

__all__ = ["Amount", "Conditions", "DecisionPolicy", "DecisionRule", "Range"]
