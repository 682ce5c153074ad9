"""Denials, left-out words and bounds that the embedded verifier must read, and what is none."""

import pytest
from langchain_core.documents import Document

from langchain_groundedness import EmbeddedVerifier
from langchain_groundedness.types import Claim, ClaimVerdict, VerificationTask

BURN = (
    "Cool the burn under cool running water for 20 minutes. "
    "Never put ice, butter or toothpaste on it."
)
DATA = "We do not sell or share personal data for advertising."
DISHWASHER = "The filter can go into the dishwasher; the kettle itself cannot."
PRICES = "A new filter costs 6 pounds, a lid 12 pounds."
WARRANTY = "Kettles have a warranty of three years, grinders of two."
CHILDREN = "Children under 8 must not use it, older ones only while somebody watches."
ARGON_ONLY = "Passwords are hashed with Argon2id instead of bcrypt."

MISSED = pytest.mark.xfail(reason="the encoder misreads it: see the model card", strict=True)


def judged(claim: str, document: str) -> ClaimVerdict:
    task = VerificationTask(claims=(Claim(id="c1", text=claim),), documents=(Document(document),))
    return EmbeddedVerifier().invoke(task)[0]


@pytest.mark.parametrize(
    ("claim", "document"),
    [
        ("We share your data for advertising.", DATA),
        ("We sell personal data for advertising.", DATA),
        (
            "Clean the grinder while it is plugged in.",
            "Never open, clean or repair the grinder while it is plugged in.",
        ),
        ("The tent lets rain in.", "The tent lets neither wind nor rain in."),
        (
            "Guests may cook in the rooms.",
            "Guests may not smoke, cook or wash clothes in the rooms.",
        ),
        ("The pass is valid on night buses.", "The pass is not valid on ferries or night buses."),
        ("We store or sell your address.", "We neither store nor sell your address."),
    ],
)
def test_a_denial_reaches_all_that_is_joined_under_it(claim: str, document: str) -> None:
    assert judged(claim, document).verdict == "contradicted"


FAQ = """\
Q: Can I return sale items?
A: No, all sales are final.

Q: Do you ship to Norway?
A: Not at the moment.
"""


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        ("Sale items cannot be returned.", "supported"),
        ("Sale items can be returned.", "contradicted"),
        ("They do not ship to Norway.", "supported"),
    ],
)
def test_a_question_does_not_say_the_opposite_of_its_answer(claim: str, verdict: str) -> None:
    found = judged(claim, FAQ)
    assert found.verdict == verdict
    assert not (found.correction or "").endswith("?")


@pytest.mark.parametrize(
    ("claim", "document"),
    [
        ("Put ice on the burn.", BURN),
        (
            "Put ice on the burn.",
            (
                "Cool the burn under running water. Take off clothes near it. "
                "Cover it with film. Never put ice or butter on it."
            ),
        ),
        pytest.param("You should put butter on the burn.", BURN, marks=MISSED),
        ("Open the lid while the water boils.", "Avoid opening the lid while the water boils."),
        (
            "Store the battery in the freezer.",
            "Charge the battery fully. Do not store it in the freezer.",
        ),
        ("Wash the pan with soap.", "The pan is made of cast iron. Never wash it with soap."),
        (
            "Use bleach on the filters.",
            "Rinse the filters weekly. Please do not use bleach on them.",
        ),
    ],
)
def test_an_order_not_to_do_it_contradicts_even_if_a_pronoun_names_the_thing(
    claim: str, document: str
) -> None:
    assert judged(claim, document).verdict == "contradicted"


@pytest.mark.parametrize(
    ("claim", "document"),
    [
        ("The kettle can go into the dishwasher.", DISHWASHER),
        ("The filter cannot go into the dishwasher.", DISHWASHER),
        (
            "The kettle can go into the dishwasher.",
            (
                "The filter comes out with a quarter turn and can go into the dishwasher; "
                "the kettle itself cannot."
            ),
        ),
        ("A lid costs 6 pounds.", PRICES),
        ("A new filter costs 12 pounds.", PRICES),
        ("The grinder has a warranty of three years.", WARRANTY),
        ("Kettles have a warranty of two years.", WARRANTY),
        ("The grinder has a timer.", "The kettle has a timer, the grinder does not."),
        ("The kettle has no timer.", "The kettle has a timer, the grinder does not."),
        ("Students pay a deposit.", "Visitors pay a deposit, whereas students do not."),
        ("Single rooms have a bath.", "All rooms have a bath except the single ones."),
        ("The policy covers flooding.", "The policy covers theft but not flooding."),
        ("The policy does not cover theft.", "The policy covers theft but not flooding."),
        ("Lyon is in Spain.", "Malaga is in Spain, Lyon in France."),
        (
            "The shop in Leeds opened in 2011.",
            "The shop in York opened in 2011, the one in Leeds in 2016.",
        ),
        ("The small tent weighs 3 kg.", "The large tent weighs 3 kg and the small one 2 kg."),
        ("The grinder cannot be repaired.", "The kettle cannot be repaired, but the grinder can."),
        ("The grinder has a filter.", "Unlike the grinder, the kettle has a filter."),
    ],
)
def test_what_a_shortened_clause_says_of_its_own_subject_counts(claim: str, document: str) -> None:
    assert judged(claim, document).verdict == "contradicted"


@pytest.mark.parametrize(
    ("claim", "document"),
    [
        ("Children under 9 must not use it.", CHILDREN),
        ("Orders over 40 pounds ship free.", "Orders over 50 pounds ship free."),
        ("People over 60 travel free.", "People over 65 travel free."),
        ("Entry is free for children under 12.", "Entry is free for children under 6."),
    ],
)
def test_a_bound_on_who_is_meant_is_not_another_bound(claim: str, document: str) -> None:
    assert judged(claim, document).verdict == "contradicted"


@pytest.mark.parametrize(
    ("claim", "document"),
    [
        ("Never put ice on it.", BURN),
        ("Never put ice on the burn.", BURN),
        ("Cool the burn under running water.", BURN),
        pytest.param("We do not share personal data.", DATA, marks=MISSED),
        ("The filter can go into the dishwasher.", DISHWASHER),
        ("The kettle cannot go into the dishwasher.", DISHWASHER),
        ("A new filter costs 6 pounds.", PRICES),
        ("A lid costs 12 pounds.", PRICES),
        ("Kettles have a warranty of three years.", WARRANTY),
        ("The grinder has a warranty of two years.", WARRANTY),
        ("Children under 8 must not use it.", CHILDREN),
        ("Attendance was under 9,000.", "Attendance was under 8,000."),
        ("The tower is over 100 metres high.", "The tower is over 120 metres high."),
        ("More than 40 orders were lost.", "More than 50 orders were lost."),
        ("The kettle has a timer.", "The kettle has a timer, the grinder does not."),
        ("The grinder does not have a timer.", "The kettle has a timer, the grinder does not."),
        ("The policy covers theft.", "The policy covers theft but not flooding."),
        ("The policy does not cover flooding.", "The policy covers theft but not flooding."),
        pytest.param("Lyon is in France.", "Malaga is in Spain, Lyon in France.", marks=MISSED),
        ("The small tent weighs 2 kg.", "The large tent weighs 3 kg and the small one 2 kg."),
        ("Orders over 50 pounds ship free.", "Orders over 50 pounds ship free."),
    ],
)
def test_what_is_said_stays_supported(claim: str, document: str) -> None:
    assert judged(claim, document).verdict == "supported"


@pytest.mark.parametrize(
    ("claim", "document"),
    [
        ("Ice must not be put on a burn.", BURN),
        ("Your data is not sold for advertising.", DATA),
        ("Only the filter is safe in the dishwasher.", DISHWASHER),
        ("Lids cost twice as much as filters.", PRICES),
        ("The warranty is two or three years.", WARRANTY),
        ("An eight-year-old may use it while somebody watches.", CHILDREN),
        ("The grinder lacks a timer.", "The kettle has a timer, the grinder does not."),
        (
            "The shop is open on Sunday.",
            "The shop is not open on Monday or Tuesday, but on Sunday.",
        ),
        ("He left the band in 1999.", "He did not leave or dissolve the band until 1999."),
        ("It sold 2 million copies.", "It sold 2 million copies in Italy and 3 million in Spain."),
        (
            "She moved to Rome, where she taught.",
            "She moved to Rome, not to Milan, and taught there.",
        ),
        ("Keep the lid shut to avoid burns.", "To avoid burns, keep the lid shut."),
        ("Double rooms have a bath.", "All rooms have a bath except the single ones."),
        ("Orders ship free.", "Orders over 50 pounds ship free."),
        ("Profit was over 40 million.", "Profit was over 50 million."),
    ],
)
def test_the_same_in_other_words_is_not_contradicted(claim: str, document: str) -> None:
    assert judged(claim, document).verdict != "contradicted"


@pytest.mark.parametrize(
    ("claim", "document"),
    [
        ("A page holds at most 1,000 items.", "A page holds at most 200 items. It was 1,000."),
        ("A night costs up to 160 pounds.", "A night costs up to 140 pounds."),
    ],
)
def test_of_two_upper_limits_only_one_is_the_limit(claim: str, document: str) -> None:
    assert judged(claim, document).verdict == "contradicted"


def test_what_a_looser_lower_bound_says_may_still_be_true() -> None:
    verdict = judged("More than 100 people came.", "More than 150 people came.").verdict
    assert verdict != "contradicted"


@pytest.mark.parametrize(
    ("claim", "verdict", "words"),
    [
        *(
            (claim, verdict, words)
            for words in ("in place of", "instead of", "rather than")
            for claim, verdict in (
                ("Passwords are hashed with bcrypt.", "contradicted"),
                ("Passwords are hashed with Argon2id.", "supported"),
            )
        ),
        pytest.param(ARGON_ONLY, "supported", "in place of", marks=MISSED),
        (ARGON_ONLY, "supported", "instead of"),
        (ARGON_ONLY, "supported", "rather than"),
    ],
)
def test_what_something_else_stands_in_place_of_is_denied(
    claim: str, verdict: str, words: str
) -> None:
    document = f"Passwords are hashed with Argon2id {words} bcrypt."
    assert judged(claim, document).verdict == verdict


AFFIRMED = [
    ("The drug was approved by the FDA in 2019.", "was", "wasn't"),
    ("The road is open to cyclists in winter.", "is", "isn\u2019t"),
    ("The lamps are made of recycled glass.", "are", "aren't"),
    ("The rooms were renovated in 2020.", "were", "weren't"),
    ("The team did win the cup in 2014.", "did", "didn\u2019t"),
    ("The plan does include dental care.", "does", "doesn't"),
    ("Members can cancel their contract at any time.", "can", "can't"),
    ("Refunds will be paid within ten days.", "will", "won't"),
    ("The company has paid a dividend since 2010.", "has", "hasn't"),
    ("Visitors should book a table in advance.", "should", "shouldn't"),
]


@pytest.mark.parametrize(("affirmed", "verb", "contraction"), AFFIRMED)
def test_a_contracted_negation_is_read_as_one_in_full(
    affirmed: str, verb: str, contraction: str
) -> None:
    denied = affirmed.replace(f" {verb} ", f" {contraction} ")
    in_full = affirmed.replace(f" {verb} ", f" {verb} not ")
    assert judged(denied, affirmed).verdict == "contradicted"
    assert judged(affirmed, denied).verdict == "contradicted"
    assert judged(denied, in_full).verdict == "supported"
