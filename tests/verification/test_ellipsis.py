"""Clauses that leave words out; how far a denial reaches; whom a bound is about."""

import pytest
from embedded_checks import check, values_told


@pytest.mark.parametrize(
    ("sentence", "right", "wrong", "values"),
    [
        (
            "A filter costs £6, a lid £12.",
            "A lid costs £12.",
            "A lid costs £6.",
            ("£6", "£12"),
        ),
        (
            "A filter costs 6 pounds, a lid 12.",
            "A lid costs 12 pounds.",
            "A lid costs 6 pounds.",
            ("6 pounds", "12 pounds"),
        ),
        (
            "Sofas come with ten years, beds with five.",
            "Beds come with five years.",
            "Beds come with ten years.",
            ("ten years", "five years"),
        ),
        (
            "It opened in Vienna in 1805 and in Prague in 1814.",
            "It opened in Prague in 1814.",
            "It opened in Prague in 1805.",
            ("1805", "1814"),
        ),
    ],
)
def test_the_value_that_is_left_out_is_filled_in(
    sentence: str, right: str, wrong: str, values: tuple[str, str]
) -> None:
    assert check(right, sentence).verdict == "supported"
    verdict = check(wrong, sentence)
    assert verdict.verdict == "contradicted"
    assert values_told(verdict) == values


@pytest.mark.parametrize(
    ("sentence", "right", "wrong"),
    [
        (
            "Dogs can ride in the lift, but cats cannot.",
            "Cats cannot ride in the lift.",
            "Cats can ride in the lift.",
        ),
        (
            "The red train stops here; the blue one does not.",
            "The blue train does not stop here.",
            "The blue train stops here.",
        ),
        (
            "The policy covers theft but not flooding.",
            "The policy does not cover flooding.",
            "The policy covers flooding.",
        ),
        ("Unlike Tom, Ann studied law.", "Ann studied law.", "Tom studied law."),
    ],
)
def test_a_denial_that_is_left_out_is_filled_in(sentence: str, right: str, wrong: str) -> None:
    assert check(right, sentence).verdict == "supported"
    verdict = check(wrong, sentence)
    assert verdict.verdict == "contradicted"
    assert verdict.explanation.startswith("The documents say the opposite.")


@pytest.mark.parametrize(
    ("claim", "sentence"),
    [
        (
            "He died in Paris in 1990.",
            "He was born in Lyon, France, and died in Paris in 1990.",
        ),
        ("It has two baths.", "It has three rooms, a garden and two baths."),
        ("Anna lives in Texas.", "Anna lives in Texas, a state in the south."),
    ],
)
def test_a_sentence_that_leaves_nothing_out_is_read_as_it_stands(claim: str, sentence: str) -> None:
    assert check(claim, sentence).verdict == "supported"


def test_a_claim_about_both_subjects_is_about_no_single_clause() -> None:
    verdict = check("A filter and a lid are sold.", "A filter costs 6 pounds, a lid 12.")
    assert verdict.correction is None


@pytest.mark.parametrize(
    ("claim", "sentence", "values"),
    [
        (
            "Children under 12 must not use it.",
            "Children under 9 must not use it.",
            ("12", "9"),
        ),
        (
            "Entry is free for visitors over 60.",
            "Entry is free for visitors over 65.",
            ("60", "65"),
        ),
        (
            "Orders of 40 pounds ship free.",
            "Orders of more than 50 pounds ship free.",
            ("40 pounds", "50 pounds"),
        ),
        ("Attendance was 10,000.", "Attendance was under 9,000.", ("10,000", "9,000")),
        ("It weighs 40 kg.", "It weighs over 50 kg.", ("40 kg", "50 kg")),
        ("30 orders were lost.", "More than 40 orders were lost.", ("30", "40")),
    ],
)
def test_another_bound_and_a_value_beyond_one_are_told(
    claim: str, sentence: str, values: tuple[str, str]
) -> None:
    assert values_told(check(claim, sentence)) == values


@pytest.mark.parametrize(
    ("claim", "evidence", "denied"),
    [
        ("We share data.", "We do not sell or share data.", True),
        ("Store wine here.", "Avoid storing wine here.", True),
        ("Keep it shut to avoid burns.", "Keep it shut against burns.", False),
        ("It is open on Sunday.", "It is not open on Monday but on Sunday.", False),
        ("We do not share data.", "We do not sell or share data.", False),
    ],
)
def test_a_denial_reaches_what_is_joined_under_it(
    claim: str, evidence: str, *, denied: bool
) -> None:
    verdict = check(claim, evidence)
    assert (verdict.verdict == "contradicted") is denied
    assert verdict.explanation.startswith("The documents say the opposite.") is denied
