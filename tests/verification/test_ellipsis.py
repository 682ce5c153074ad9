"""Clauses that leave words out, filled in; how far a denial reaches; whom a bound is about."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_groundedness.verification.embedded.contradictions import restricts
from langchain_groundedness.verification.embedded.ellipsis import clause_about, full_clauses
from langchain_groundedness.verification.embedded.polarity import denial_differs
from langchain_groundedness.verification.embedded.quantities import find_quantities


@pytest.mark.parametrize(
    ("sentence", "last"),
    [
        ("A filter costs 6 pounds, a lid 12.", "a lid costs 12 pounds"),
        ("A filter costs £6, a lid £12.", "a lid costs £12"),
        ("Sofas come with ten years, beds with five.", "beds come with five years"),
        ("It opened in Vienna in 1805 and in Prague in 1814.", "It opened in Prague in 1814"),
        ("Dogs can ride in the lift, but cats cannot.", "cats can not ride in the lift"),
        ("The red train stops here; the blue one does not.", "the blue train does not stops here"),
        ("The policy covers theft but not flooding.", "The policy covers theft not flooding"),
        ("Unlike Tom, Ann studied law.", "Tom not studied law"),
    ],
)
def test_what_is_left_out_is_filled_in(sentence: str, last: str) -> None:
    assert full_clauses(sentence)[-1].text == last


@pytest.mark.parametrize(
    "sentence",
    [
        "He was born in Lyon, France, and died in Paris in 1990.",
        "Cataloochee is a valley in the Smoky Mountains, located in the United States.",
        "It has three rooms, a garden and two baths.",
        "Anna lives in Texas, a state in the south.",
        "I know that they do.",
        "",
    ],
)
def test_a_sentence_that_leaves_nothing_out_has_no_other_clauses(sentence: str) -> None:
    assert full_clauses(sentence) == ()


def test_a_claim_about_both_subjects_is_about_no_single_clause() -> None:
    sentence = "A filter costs 6 pounds, a lid 12."
    assert clause_about("A filter and a lid are sold.", sentence) is None
    assert clause_about("Shipping costs 6 pounds.", sentence) is None


@given(st.text(max_size=120) | st.text(alphabet="ab ,;.not12 candoes", max_size=120))
def test_any_text_can_be_read(text: str) -> None:
    full_clauses(text)
    denial_differs(text, text[::-1])
    assert not denial_differs(text, text)
    for quantity in find_quantities(text):
        assert quantity.bound or not restricts(text, quantity)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Children under 9 must not use it.", True),
        ("Entry is free for visitors over 65.", True),
        ("Orders of more than 50 pounds ship free.", True),
        ("Attendance was under 9,000.", False),
        ("It weighs over 50 kg.", False),
        ("More than 40 orders were lost.", False),
        ("The room is over 20 metres long.", False),
    ],
)
def test_a_bound_behind_a_noun_says_who_is_meant(text: str, *, expected: bool) -> None:
    [quantity] = find_quantities(text)
    assert restricts(text, quantity) is expected


@pytest.mark.parametrize(
    ("claim", "evidence", "expected"),
    [
        ("We share data.", "We do not sell or share data.", True),
        ("Store wine here.", "Avoid storing wine here.", True),
        ("Keep it shut to avoid burns.", "Keep it shut against burns.", False),
        ("It is open on Sunday.", "It is not open on Monday but on Sunday.", False),
        ("We do not share data.", "We do not sell or share data.", False),
    ],
)
def test_a_denial_reaches_what_is_joined_under_it(
    claim: str, evidence: str, *, expected: bool
) -> None:
    assert denial_differs(claim, evidence) is expected
