"""Policies of every kind, and answers for them to decide on."""

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from langchain_groundedness import DecisionPolicy, DecisionRule
from langchain_groundedness.types import Action, Claim, ClaimVerdict

__all__ = ["SEVERITY", "policies", "questions", "rules", "trust_score", "verdict", "verdicts"]

SEVERITY: list[Action] = ["pass", "flag", "review", "block"]
LABELS = ["supported", "contradicted", "unverifiable", "unchecked"]
KEYWORDS = [
    *("contradicted", "untrusted", "conflicting", "unchecked"),
    *("no_claims", "nothing_checkable", "empty_answer"),
]


def trust_score(verdicts: Sequence[ClaimVerdict]) -> float | None:
    """Give the share of the checked claims that are supported."""
    checked = [found.verdict for found in verdicts if found.verdict != "unchecked"]
    return checked.count("supported") / len(checked) if checked else None


def verdict(label: Any, probability: float | None = None, *, conflicting: bool = False) -> Any:
    return ClaimVerdict(
        claim=Claim(id="c", text="One."),
        verdict=label,
        support_probability=probability,
        conflicting=conflicting,
        reason="TimeoutError" if label == "unchecked" else None,
    )


def actions() -> st.SearchStrategy[Any]:
    return st.sampled_from(SEVERITY)


def amounts() -> st.SearchStrategy[dict[str, Any]]:
    count = st.integers(0, 3)
    share = st.sampled_from([0.0, 0.3, 0.5, 1.0])
    return st.one_of(
        st.fixed_dictionaries({"at_least": count}),
        st.fixed_dictionaries({"at_most": count}),
        st.fixed_dictionaries({"share_at_least": share}),
        st.fixed_dictionaries({"share_below": share}),
    )


def ranges() -> st.SearchStrategy[dict[str, Any]]:
    bound = st.sampled_from([0.0, 0.3, 0.5, 0.7, 1.0])
    unknown = {"unknown": st.booleans()}
    return st.one_of(
        st.fixed_dictionaries({"at_least": bound}, optional=unknown),
        st.fixed_dictionaries({"below": bound}, optional=unknown),
        st.just({"unknown": True}),
        st.just({"at_least": 0.3, "below": 0.7}),
    )


def labels() -> st.SearchStrategy[Any]:
    return st.lists(st.sampled_from(["a", "b", None]), min_size=1, max_size=2)


VERDICTS = ["grounded", "has_contradictions", "partially_grounded", "ungrounded", "no_claims"]


def conditions() -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {},
        optional={
            "verdict": st.lists(st.sampled_from([*VERDICTS, "unchecked"]), min_size=1),
            "trust_score": ranges(),
            **{name: amounts() for name in (*LABELS, "conflicting")},
            "lowest_supported_probability": ranges(),
            "highest_unsupported_probability": ranges(),
            "query_class": labels(),
            "risk_tier": labels(),
            "retrieval_score": ranges(),
        },
    )


def rules(**fixed: Any) -> st.SearchStrategy[Any]:
    few = st.dictionaries(st.nothing(), st.nothing()) | conditions()
    return st.builds(
        DecisionRule,
        when=few,
        **{
            "action": actions(),
            "reason": st.none() | st.just("a reason"),
            "excuses": st.lists(st.sampled_from(KEYWORDS), max_size=2),
            "final": st.booleans(),
            **fixed,
        },
    )


def policies() -> st.SearchStrategy[DecisionPolicy]:
    return st.builds(
        DecisionPolicy,
        **{name: actions() for name in KEYWORDS},
        rules=st.lists(rules(), max_size=4),
        at_most=st.sampled_from(SEVERITY[1:]),
    )


def verdicts() -> st.SearchStrategy[list[Any]]:
    probability = st.none() | st.sampled_from([0.0, 0.3, 0.5, 0.7, 1.0])
    return st.lists(
        st.builds(verdict, st.sampled_from(LABELS), probability, conflicting=st.booleans()),
        max_size=5,
    )


def questions() -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {
            "query_class": st.sampled_from(["a", "b", None]),
            "risk_tier": st.sampled_from(["a", "b", None]),
            "retrieval_score": st.none() | st.sampled_from([0.1, 0.5, 0.9]),
            "answer": st.sampled_from(["", "I don't know.", "One.", "```\ncode\n```"]),
            "trust_threshold": st.sampled_from([0.0, 0.5, 1.0]),
        }
    )
