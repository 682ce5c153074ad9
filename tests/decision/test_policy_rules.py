"""Ordered rules on top of the findings: what holds, what wins, what is said about it."""

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from any_policy import SEVERITY, policies, questions, rules, trust_score, verdict, verdicts
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.load import dumpd, load

from langchain_groundedness import (
    ConfigurationError,
    DecisionPolicy,
    DecisionRule,
    GroundednessRunnable,
    load_arguments,
)
from langchain_groundedness.decision.conditions import DecisionContext, TruthValue
from langchain_groundedness.types import Decision


def decide(policy: DecisionPolicy, verdicts: Sequence[Any], **question: Any) -> Decision:
    known = [verdict(each) if isinstance(each, str) else each for each in verdicts]
    options = {"answer": "One.", **question}
    return policy.decide(known, trust_score=trust_score(known), **options)


def holds(when: dict[str, Any], verdicts: Sequence[Any], **question: Any) -> bool:
    """Tell whether a rule with these conditions holds."""
    rule = {"when": when, "action": "block", "reason": "it holds"}
    return "it holds" in decide(DecisionPolicy(rules=[rule]), verdicts, **question).reasons


# --- conditions ---


@pytest.mark.parametrize(
    ("when", "verdicts", "expected"),
    [
        ({}, ["supported"], True),
        ({"verdict": "grounded"}, ["supported"], True),
        ({"verdict": ["ungrounded", "unchecked"]}, ["supported"], False),
        ({"verdict": "no_claims"}, [], True),
        ({"trust_score": {"below": 0.5}}, ["supported", "unverifiable"], False),
        ({"trust_score": {"at_least": 0.5}}, ["supported", "unverifiable"], True),
        ({"trust_score": {"at_least": 0.4, "below": 0.6}}, ["supported", "unverifiable"], True),
        ({"trust_score": {"below": 0.5}}, ["unchecked"], False),
        ({"trust_score": {"below": 0.5, "unknown": True}}, ["unchecked"], True),
        ({"trust_score": {"unknown": True}}, ["supported"], False),
        ({"contradicted": {"at_least": 1}}, ["supported", "contradicted"], True),
        ({"contradicted": {"at_least": 2}}, ["supported", "contradicted"], False),
        ({"contradicted": {"at_most": 0}}, ["supported"], True),
        ({"contradicted": {"at_most": 0}}, ["contradicted"], False),
        ({"unverifiable": {"share_at_least": 0.5}}, ["supported", "unverifiable"], True),
        ({"unverifiable": {"share_below": 0.5}}, ["supported", "unverifiable"], False),
        ({"unverifiable": {"share_below": 0.5}}, [], False),
        ({"unchecked": {"at_least": 1}}, ["supported", "unchecked"], True),
        ({"supported": {"at_least": 0}}, ["unchecked"], True),
        ({"conflicting": {"at_least": 1}}, [verdict("supported", conflicting=True)], True),
        ({"lowest_supported_probability": {"below": 0.6}}, [verdict("supported", 0.5)], True),
        ({"lowest_supported_probability": {"below": 0.6}}, [verdict("supported", 0.6)], False),
        ({"lowest_supported_probability": {"below": 0.6}}, [verdict("unverifiable", 0.1)], False),
        ({"lowest_supported_probability": {"below": 0.6}}, ["supported"], False),
        ({"lowest_supported_probability": {"below": 0.6, "unknown": True}}, ["supported"], True),
        (
            {"lowest_supported_probability": {"below": 0.6}},
            ["supported", verdict("supported", 0.5)],
            True,
        ),
        (
            {"lowest_supported_probability": {"at_least": 0.6}},
            ["supported", verdict("supported", 0.9)],
            False,
        ),
        (
            {"lowest_supported_probability": {"at_least": 0.6, "unknown": True}},
            ["supported", verdict("supported", 0.9)],
            True,
        ),
        ({"lowest_supported_probability": {"unknown": True}}, [verdict("supported", 0.9)], False),
        ({"lowest_supported_probability": {"unknown": True}}, ["supported"], True),
        ({"lowest_supported_probability": {"unknown": True}}, ["unverifiable"], True),
        (
            {"highest_unsupported_probability": {"at_least": 0.4}},
            [verdict("contradicted", 0.1), verdict("unverifiable", 0.45)],
            True,
        ),
        (
            {"highest_unsupported_probability": {"below": 0.4}},
            [verdict("contradicted", 0.1), verdict("unverifiable", 0.45)],
            False,
        ),
        ({"contradicted": {"at_least": 1}, "verdict": "grounded"}, ["contradicted"], False),
    ],
)
def test_a_rule_holds_where_all_its_conditions_do(
    when: dict[str, Any], verdicts: list[Any], *, expected: bool
) -> None:
    assert holds(when, verdicts) is expected


@pytest.mark.parametrize(
    ("when", "question", "expected"),
    [
        ({"query_class": "sensitive"}, {"query_class": "Sensitive "}, True),
        ({"query_class": ["generic", "sensitive"]}, {"query_class": "sensitive"}, True),
        ({"query_class": "sensitive"}, {"query_class": "generic"}, False),
        ({"query_class": "sensitive"}, {}, False),
        ({"query_class": ["sensitive", None]}, {}, True),
        ({"query_class": ["sensitive", None]}, {"query_class": "unknown"}, False),
        ({"risk_tier": "high"}, {"risk_tier": "high"}, True),
        ({"risk_tier": "high", "query_class": "generic"}, {"risk_tier": "high"}, False),
        ({"retrieval_score": {"below": 0.5}}, {"retrieval_score": 0.4}, True),
        ({"retrieval_score": {"below": 0.5}}, {"retrieval_score": 0.5}, False),
        ({"retrieval_score": {"below": 0.5}}, {}, False),
        ({"retrieval_score": {"below": 0.5, "unknown": True}}, {}, True),
    ],
)
def test_a_rule_may_ask_what_is_known_about_the_question(
    when: dict[str, Any], question: dict[str, Any], *, expected: bool
) -> None:
    assert holds(when, ["supported"], **question) is expected


@pytest.mark.parametrize(
    ("rule", "error"),
    [
        ({"when": {}}, "rules.0.action: Field required"),
        ({"action": "block"}, "rules.0.when: Field required"),
        ({"when": {}, "action": "stop"}, "rules.0.action: Input should be 'pass', 'flag', 'block'"),
        ({"when": {"verdict": []}, "action": "flag"}, "rules.0.when.verdict"),
        ({"when": {"verdict": "fine"}, "action": "flag"}, "rules.0.when.verdict.0"),
        ({"when": {"query_class": " "}, "action": "flag"}, "rules.0.when.query_class.0"),
        ({"when": {"query_class": 3}, "action": "flag"}, "rules.0.when.query_class"),
        ({"when": {"trust_score": {}}, "action": "flag"}, "give at_least, below, or both"),
        (
            {"when": {"trust_score": {"at_least": 0.5, "below": 0.5}}, "action": "flag"},
            "at_least must be less than below, got 0.5 and 0.5",
        ),
        ({"when": {"contradicted": {}}, "action": "flag"}, "give at_least, at_most, share_at"),
        (
            {"when": {"contradicted": {"at_least": 2, "at_most": 1}}, "action": "flag"},
            "at_least must not exceed at_most, got 2 and 1",
        ),
        ({"when": {"contradicted": {"at_least": True}}, "action": "flag"}, "at_least"),
        ({"when": {"contradicted": {"share_below": 2.0}}, "action": "flag"}, "share_below"),
        ({"when": {"contradicts": {}}, "action": "flag"}, "options are: verdict, trust_score"),
        ({"when": {}, "action": "flag", "excuses": ["all"]}, "rules.0.excuses.0"),
        ({"when": {}, "action": "flag", "final": "yes"}, "rules.0.final"),
    ],
)
def test_a_rule_that_cannot_work_is_a_configuration_error_that_names_the_place(
    rule: dict[str, Any], error: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        DecisionPolicy(rules=[rule])
    assert error in str(caught.value)


# --- combination ---


def test_a_rule_that_says_pass_hides_nothing() -> None:
    policy = DecisionPolicy(rules=[{"when": {}, "action": "pass", "reason": "all is well"}])
    decision = decide(policy, ["unchecked"])
    assert decision.action == "review"
    assert decision.reasons == ("all is well", "1 of 1 claim could not be checked: TimeoutError")


def test_a_later_rule_is_as_good_as_an_earlier_one() -> None:
    rules = [
        {"when": {"query_class": "generic"}, "action": "pass", "reason": "small talk"},
        {"when": {"contradicted": {"at_least": 1}}, "action": "block", "reason": "wrong"},
        {"when": {"contradicted": {"at_least": 1}}, "action": "flag", "reason": "noted"},
    ]
    decision = decide(DecisionPolicy(rules=rules), ["contradicted"], query_class="generic")
    assert decision.action == "block"
    assert decision.reasons[:3] == ("small talk", "wrong", "noted")


def test_a_final_rule_ends_the_rules_and_no_finding() -> None:
    rules = [
        {"when": {"risk_tier": "low"}, "action": "pass", "final": True, "reason": "low risk"},
        {"when": {"unverifiable": {"at_least": 1}}, "action": "block", "reason": "not found"},
    ]
    policy = DecisionPolicy(rules=rules)
    low = decide(policy, ["unverifiable", "unchecked"], risk_tier="low")
    assert low.action == "review"
    assert "not found" not in low.reasons
    assert decide(policy, ["unverifiable"], risk_tier="high").action == "block"


def test_only_a_rule_that_excuses_a_finding_by_name_hides_it_and_says_so() -> None:
    rule = {"when": {"query_class": "generic"}, "action": "pass", "excuses": ["unchecked"]}
    policy = DecisionPolicy(rules=[rule])
    decision = decide(policy, ["unchecked"], query_class="generic")
    assert decision.action == "pass"
    assert decision.reasons == (
        "rule 1: the query class is 'generic'",
        "1 of 1 claim could not be checked: TimeoutError (excused by rule 1)",
    )
    assert decide(policy, ["unchecked"], query_class="product").action == "review"
    mixed = decide(policy, ["unchecked", "contradicted"], query_class="generic")
    assert mixed.action == "flag"


def test_reasons_name_every_rule_and_finding_that_holds_in_words() -> None:
    when = {
        "verdict": "has_contradictions",
        "trust_score": {"below": 0.9},
        "contradicted": {"at_least": 1},
        "lowest_supported_probability": {"below": 0.9},
        "highest_unsupported_probability": {"below": 0.9, "unknown": True},
        "query_class": ["sensitive", None],
        "risk_tier": "high",
        "retrieval_score": {"below": 0.5},
    }
    policy = DecisionPolicy(rules=[{"when": when, "action": "review"}])
    known = {"risk_tier": "high", "retrieval_score": 0.25}
    decision = decide(policy, [verdict("supported", 0.75), "contradicted"], **known)
    held = (
        "rule 1: the verdict is has_contradictions and the trust score is 0.50 and 1 of 2 claims "
        "is contradicted and the lowest probability of a supported claim is 0.75 and the highest "
        "probability of an unsupported claim is not known and the query class is not known and "
        "the risk tier is 'high' and the retrieval score is 0.25"
    )
    assert decision.reasons == (
        held,
        "the documents contradict 1 of 2 claims",
        "trust score 0.50 is below the threshold 1.00",
    )


def test_a_decision_that_nothing_led_to_says_what_is_fine() -> None:
    assert decide(DecisionPolicy(), ["supported"]).reasons == ("every claim is supported",)
    low = decide(DecisionPolicy(), ["supported", "unverifiable"], trust_threshold=0.5)
    assert low.reasons == ("trust score 0.50 reaches the threshold 0.50",)


def severity(decision: Decision) -> int:
    return SEVERITY.index(decision.action)


@given(policies(), rules(), verdicts(), questions(), st.data())
def test_a_rule_that_is_more_severe_never_lowers_the_action(
    policy: DecisionPolicy, rule: DecisionRule, found: list[Any], asked: Any, data: Any
) -> None:
    before = decide(policy, found, **asked)
    harder = rule.model_copy(update={"action": data.draw(st.sampled_from(SEVERITY))})
    if SEVERITY.index(harder.action) < severity(before):
        harder = harder.model_copy(update={"excuses": (), "final": False})
    place = data.draw(st.integers(0, len(policy.rules)))
    longer = (*policy.rules[:place], harder, *policy.rules[place:])
    after = decide(policy.model_copy(update={"rules": longer}), found, **asked)
    assert severity(after) >= severity(before)


@given(policies(), verdicts(), questions())
def test_every_decision_has_reasons_and_stays_within_what_is_allowed(
    policy: DecisionPolicy, found: list[Any], asked: Any
) -> None:
    decision = decide(policy, found, **asked)
    assert decision.reasons
    assert all(reason.strip() for reason in decision.reasons)
    assert severity(decision) <= SEVERITY.index(policy.at_most)


@given(policies(), verdicts(), questions())
def test_what_is_unchecked_passes_only_where_the_policy_says_so_by_name(
    policy: DecisionPolicy, found: list[Any], asked: Any
) -> None:
    decision = decide(policy, [*found, "unchecked"], **asked)
    excused = any("unchecked" in rule.excuses for rule in policy.rules)
    if decision.action == "pass":
        assert policy.unchecked == "pass" or excused


@given(policies())
def test_policies_round_trip_through_yaml_json_and_langchain(policy: DecisionPolicy) -> None:
    assert DecisionPolicy.from_yaml(policy.to_yaml()) == policy
    assert DecisionPolicy.from_json(policy.model_dump_json()) == policy
    assert DecisionPolicy(**policy.model_dump()) == policy
    assert DecisionPolicy.from_yaml(policy.to_yaml()).version == policy.version


@given(policy=policies(), found=verdicts(), asked=questions(), late=st.booleans())
def test_what_is_said_of_a_growing_answer_holds_of_the_whole(
    policy: DecisionPolicy, found: list[Any], asked: Any, *, late: bool
) -> None:
    """The property that the guard rests on: what is sure stays, what is free needs a claim."""

    def blocking(number: int, **given: Any) -> TruthValue:
        known = found[:number]
        about: dict[str, Any] = {**asked, "trust_score": trust_score(known), **given}
        return policy.blocking(DecisionContext(verdicts=known, **about))

    nothing = dict.fromkeys(("query_class", "risk_tier", "retrieval_score")) if late else {}
    early = [
        blocking(number, complete=False, labelled=not late, **nothing)
        for number in range(len(found) + 1)
    ]
    growing = [blocking(number, complete=False) for number in range(len(found) + 1)]
    whole = blocking(len(found))
    assert (whole is TruthValue.YES) == (decide(policy, found, **asked).action == "block")
    for step, (before, after) in enumerate(pairwise(growing)):
        if before in (TruthValue.YES, TruthValue.NO):
            assert after is before, step
        if before is TruthValue.NOT_YET:
            assert after is not TruthValue.OPEN, step
    sure = {
        TruthValue.YES: TruthValue.YES,
        TruthValue.NO: TruthValue.NO,
        TruthValue.NOT_YET: TruthValue.NO,
    }
    assert whole is sure.get(growing[-1], whole)
    for before, after in zip(early, growing, strict=True):
        assert before in (after, TruthValue.OPEN)  # what is told later never changes what was sure


# --- presets, trial runs, saving ---


@pytest.mark.parametrize(
    ("found", "strict", "balanced", "default"),
    [
        (["supported"], "pass", "pass", "pass"),
        (["supported"] * 2 + ["unverifiable"], "block", "flag", "flag"),
        (["supported", "unverifiable", "unverifiable"], "block", "review", "flag"),
        (["supported", "contradicted"], "block", "block", "flag"),
        (["supported", "unchecked"], "block", "review", "review"),
        ([verdict("supported", conflicting=True)], "review", "flag", "flag"),
    ],
)
def test_presets(found: list[Any], strict: str, balanced: str, default: str) -> None:
    assert decide(DecisionPolicy.strict(), found).action == strict
    assert decide(DecisionPolicy.balanced(), found).action == balanced
    assert decide(DecisionPolicy(), found).action == default
    assert decide(DecisionPolicy.monitor_only(), found).action in {"pass", "flag"}


def test_strict_wants_every_claim_supported_whatever_the_threshold() -> None:
    found = ["supported", "unverifiable"]
    assert decide(DecisionPolicy.strict(), found, trust_threshold=0.0).action == "block"


def test_balanced_asks_a_person_where_much_depends_on_it() -> None:
    for question in ({"query_class": "sensitive"}, {"risk_tier": "high"}):
        assert decide(DecisionPolicy.balanced(), ["supported"], **question).action == "review"


def test_a_trial_run_says_what_would_have_been_done() -> None:
    policy = DecisionPolicy.monitor_only(DecisionPolicy.strict())
    decision = decide(policy, ["contradicted", "unchecked"])
    assert decision.action == "flag"
    assert decision.reasons == (
        "the documents contradict 1 of 2 claims (would block)",
        "trust score 0.00 is below the threshold 1.00 (would block)",
        "1 of 2 claims could not be checked: TimeoutError (would block)",
    )


def test_a_trial_run_cannot_block_contradictions_either() -> None:
    with pytest.raises(ConfigurationError, match=r"on_contradicted='block' .* at_most='flag'"):
        GroundednessRunnable(on_contradicted="block", policy=DecisionPolicy.monitor_only())


def test_the_version_tells_policies_apart_by_what_they_say() -> None:
    rule = {"when": {"query_class": "sensitive"}, "action": "review"}
    one, two = DecisionPolicy(rules=[rule]), DecisionPolicy(rules=[{**rule, "action": "block"}])
    assert one.version == DecisionPolicy(rules=[DecisionRule(**rule)]).version
    assert len({one.version, two.version, DecisionPolicy().version}) == 3
    assert len(one.version) == 12


@pytest.mark.filterwarnings("ignore:The function `load` is in beta")
@pytest.mark.parametrize(
    "policy", [DecisionPolicy(), DecisionPolicy.strict(), DecisionPolicy.monitor_only()]
)
def test_a_checker_with_a_policy_can_be_saved_and_loaded(policy: DecisionPolicy) -> None:
    checker = GroundednessRunnable(policy=policy)
    loaded = load(json.loads(json.dumps(dumpd(checker))), **load_arguments())
    assert loaded == checker
    assert loaded.policy.version == policy.version
