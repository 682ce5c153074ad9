"""Decisions and their reasons."""

import pytest
from any_policy import trust_score

from langchain_groundedness import DecisionPolicy
from langchain_groundedness.exceptions import ConfigurationError
from langchain_groundedness.types import Claim, ClaimVerdict, Decision

CLAIM = Claim(id="c1", text="One.")
VERDICTS = {
    "supported": ClaimVerdict(claim=CLAIM, verdict="supported"),
    "conflicting": ClaimVerdict(claim=CLAIM, verdict="supported", conflicting=True),
    "contradicted": ClaimVerdict(claim=CLAIM, verdict="contradicted"),
    "unverifiable": ClaimVerdict(claim=CLAIM, verdict="unverifiable"),
    "unchecked": ClaimVerdict.unchecked(CLAIM, "TimeoutError"),
}


def decide(
    *names: str, policy: DecisionPolicy | None = None, answer: str = "One.", threshold: float = 1.0
) -> tuple[Decision, bool]:
    verdicts = [VERDICTS[name] for name in names]
    policy, score = policy or DecisionPolicy(), trust_score(verdicts)
    return (
        policy.decide(verdicts, answer=answer, trust_score=score, trust_threshold=threshold),
        policy.is_trusted(verdicts, answer=answer, trust_score=score, trust_threshold=threshold),
    )


def test_an_unknown_action_is_a_configuration_error() -> None:
    with pytest.raises(ConfigurationError, match="DecisionPolicy: contradicted"):
        DecisionPolicy(contradicted="explode")


@pytest.mark.parametrize(
    ("names", "action", "trusted"),
    [
        (("supported", "supported"), "pass", True),
        (("supported", "unverifiable"), "flag", False),
        (("supported", "contradicted"), "flag", False),
        (("conflicting",), "flag", True),
        (("supported", "unchecked"), "review", False),
        (("unchecked",), "review", False),
        ((), "review", False),
    ],
)
def test_defaults(names: tuple[str, ...], action: str, *, trusted: bool) -> None:
    decision, is_trusted = decide(*names)
    assert (decision.action, is_trusted) == (action, trusted)
    assert decision.reasons


def test_the_default_blocks_nothing_and_passes_nothing_unchecked() -> None:
    for names in [(name,) for name in VERDICTS]:
        action = decide(*names)[0].action
        assert action != "block"
        assert (action == "pass") == (names == ("supported",))


def test_the_most_severe_action_wins_and_every_reason_is_given() -> None:
    decision, _ = decide("contradicted", "unchecked", policy=DecisionPolicy(contradicted="block"))
    assert decision.action == "block"
    assert decision.reasons == (
        "the documents contradict 1 of 2 claims",
        "trust score 0.00 is below the threshold 1.00",
        "1 of 2 claims could not be checked: TimeoutError",
    )


def test_a_lower_threshold_trusts_an_answer_that_is_partly_supported() -> None:
    decision, is_trusted = decide("supported", "unverifiable", threshold=0.5)
    assert (decision.action, is_trusted) == ("pass", True)


def test_a_low_threshold_does_not_excuse_a_contradiction() -> None:
    assert not decide("supported", "contradicted", threshold=0.0)[1]


def test_an_empty_answer_is_never_a_pass_by_default() -> None:
    decision, is_trusted = decide(answer="  \n")
    assert (decision.action, is_trusted) == ("flag", False)
    assert decision.reasons == ("the answer is empty",)


def test_an_answer_without_claims_is_what_the_policy_says() -> None:
    refusal = "The documents do not say."
    decision, is_trusted = decide(answer=refusal, policy=DecisionPolicy(no_claims="block"))
    assert (decision.action, is_trusted) == ("block", False)


@pytest.mark.parametrize(
    "answer",
    [
        "The documents do not say.",
        "Hello! I don't know. Can you clarify which year you mean?",
        "Unfortunately, the documents do not mention it. Let me know if you need more!",
        "# Answer\n\nThe documents do not say.",
        "**Answer**\n\nI don't know.",
        "Sure, I don't know.",
    ],
)
def test_refusals_and_courtesy_pass(answer: str) -> None:
    decision, is_trusted = decide(answer=answer)
    assert (decision.action, is_trusted) == ("pass", True)
    assert decision.reasons == ("the answer makes no checkable claim",)


@pytest.mark.parametrize(
    "answer",
    [
        "Revenue was $9 billion in Q3.",
        "```\nRevenue was $9 billion in Q3.\n```",
        "I don't know.\n```\nRevenue was $9 billion in Q3.\n```",
        "| Revenue | $9 billion |\n|---|---|",
        "# The drug is safe\n\nI don't know more.",
        "# Revenue 2020\n\nI don't know.",
        "Key points of it:",
        "Is the drug safe for children?",
        "...",
        "\U0001f44d",
    ],
)
def test_an_answer_of_which_nothing_was_a_claim_is_not_trusted(answer: str) -> None:
    decision, is_trusted = decide(answer=answer)
    assert (decision.action, is_trusted) == ("review", False)
    assert decision.reasons == (
        "no claim was found in the answer, which is neither a refusal nor courtesy",
    )
    lenient = DecisionPolicy(nothing_checkable="pass")
    assert decide(answer=answer, policy=lenient)[1]


@pytest.mark.parametrize(
    ("answer", "action"),
    [
        ("Hello! How can I help?", "pass"),
        ("Which quarter do you mean?", "pass"),
        ("Did you know the CEO is John Smith?", "review"),
    ],
)
def test_an_answer_that_only_asks_makes_no_claim(answer: str, action: str) -> None:
    decision = DecisionPolicy().decide([], answer=answer, trust_score=None)
    assert decision.action == action
