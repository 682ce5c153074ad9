"""Differences between a claim and a quote, with the exact places of both values."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_groundedness.text.words import find_words, stem
from langchain_groundedness.verification.embedded.contradictions import differing_value
from langchain_groundedness.verification.embedded.statement import blank_references


@pytest.mark.parametrize(
    ("claim", "quote", "kind", "claimed", "given_as"),
    [
        ("Revenue was $2.4B in Q3.", "Q3 revenue came in at $2.1B.", "quantity", "$2.4B", "$2.1B"),
        ("2. Revenue was $2.4B [1].", "Revenue was $2.1B.", "quantity", "$2.4B", "$2.1B"),
        ("Sales rose 12% in May.", "In May sales rose 9 percent.", "quantity", "12%", "9 percent"),
        ("$2.4B", "Revenue was $2.1B.", "quantity", "$2.4B", "$2.1B"),
        ("It counted 1990 visitors.", "It counted 2,500 visitors.", "date", "1990", "2,500"),
        ("The pump gave 1500 litres.", "The pump gave 3500 litres.", "date", "1500", "3500"),
        ("The bridge opened in 1932.", "The bridge opened in 1931.", "date", "1932", "1931"),
        (
            "Python was created by George Lucas.",
            "Python, created by Guido van Rossum in the late 1980s, is a language.",
            "name",
            "George Lucas",
            "Guido van Rossum",
        ),
    ],
)
def test_the_differing_values_are_found_where_they_stand(
    claim: str, quote: str, kind: str, claimed: str, given_as: str
) -> None:
    found = differing_value(claim, quote)
    assert found is not None
    assert (found.kind, found.claim_value, found.evidence_value) == (kind, claimed, given_as)
    assert claim[found.claim_start : found.claim_end] == claimed
    assert quote[found.evidence_start : found.evidence_end] == given_as


def test_of_several_values_the_one_in_the_same_place_is_taken() -> None:
    quote = "Revenue was $2.1B and net profit was $0.3B, up 12%."
    found = differing_value("Net profit was $0.4B.", quote)
    assert found is not None
    assert found.evidence_value == "$0.3B"


@pytest.mark.parametrize(
    ("claim", "quote", "claimed", "given_as"),
    [
        ("The warranty lasts 3 years.", "The warranty of section 3 lasts 5 years.", "3", "5"),
        ("The trail is 7 km long.", "Trail 7 is 9 km long.", "7", "9"),
        ("The film runs 90 minutes.", "Film 90 of the series runs 120 minutes.", "90", "120"),
        ("Stage 4 is 12 km long.", "Stage 12 is 18 km long and stage 4 is 15 km long.", "12", "15"),
        ("Section 3 lasts 5 years.", "The warranty of section 3 lasts 3 years.", "5", "3"),
    ],
)
def test_a_bare_number_does_not_give_a_value_whose_unit_stands_in_the_quote(
    claim: str, quote: str, claimed: str, given_as: str
) -> None:
    found = differing_value(claim, quote)
    assert found is not None
    assert (found.claim_value.split()[0], found.evidence_value.split()[0]) == (claimed, given_as)


@pytest.mark.parametrize(
    ("claim", "quote"),
    [
        ("The part measures 1001 mm.", "part | measures | 1001"),
        ("The plant opened in 2019 and closed in 2021.", "It opened in 2019, in 2019 it grew."),
        ("The house has 12 rooms and 3 floors.", "The house has 12 rooms, and 12 guests can stay."),
        ("Sales grew 5% in 2019 and 2021.", "Sales grew 5% in 2019, margins grew 3% in 2019."),
    ],
)
def test_a_value_that_is_repeated_is_not_held_against_another_one(claim: str, quote: str) -> None:
    assert differing_value(claim, quote) is None


@pytest.mark.parametrize(
    ("claim", "quote"),
    [
        ("Emissions were cut to 20% below 2005 levels.", "They were cut to 20% below 1990 levels."),
        ("Output exceeded 1990 levels.", "Output exceeded 2005 levels."),
        ("Fiscal 2019 sales were strong.", "Fiscal 2018 sales were strong."),
    ],
)
def test_years_before_what_could_be_counted_are_compared_as_years(claim: str, quote: str) -> None:
    found = differing_value(claim, quote)
    assert found is not None
    assert found.kind == "date"


@pytest.mark.parametrize(
    ("claim", "quote", "claimed"),
    [
        ("The level at station 3 was 1003 mm.", "The level at station 3 was 3 mm.", "1003 mm"),
        ("Station 3 counted 1,003 visitors.", "Station 3 counted 3 visitors.", "1,003"),
        ("Room 12 has 40 seats.", "Room 12 has 12 seats.", "40"),
        ("Ann has 3 apples and Bob has 4.", "Ann has 3 apples and Bob has 3.", "4"),
    ],
)
def test_a_value_that_the_claim_gives_elsewhere_is_not_given_twice(
    claim: str, quote: str, claimed: str
) -> None:
    found = differing_value(claim, quote)
    assert found is not None
    assert found.claim_value == claimed
    assert found.evidence_start == max(quote.rfind(" 3"), quote.rfind(" 12")) + 1


def test_a_value_and_its_label_are_compared_wherever_the_quote_has_the_value() -> None:
    found = differing_value("Warranty: five years", "The product has a three-year warranty.")
    assert found is not None
    assert (found.kind, found.evidence_value) == ("quantity", "three-year")


@pytest.mark.parametrize(
    ("claim", "quote"),
    [
        ("Rome is not the capital of Italy.", "Rome is the capital of Italy."),
        ("The museum is open on Mondays.", "The museum is never open on Mondays."),
    ],
)
def test_a_denial_differs_in_polarity(claim: str, quote: str) -> None:
    found = differing_value(claim, quote)
    assert found is not None
    assert (found.kind, found.evidence_value) == ("polarity", quote)


@pytest.mark.parametrize(
    ("claim", "quote"),
    [
        ("Revenue was $2.1B in Q3.", "Q3 revenue came in at 2,100 million dollars."),
        ("Rome is the capital of Italy.", "Rome is the capital of Italy."),
        ("Rome has 4 million inhabitants.", "The bakery sold 300 loaves."),
        ("He won in 1999.", "The soup was served at noon."),
        ("It is not only fast but cheap to run.", "It is fast and cheap to run."),
        ("Revenue was $2.1B [2].", "Revenue was $2.1B."),
        ("", ""),
    ],
)
def test_agreement_and_other_subjects_are_no_difference(claim: str, quote: str) -> None:
    assert differing_value(claim, quote) is None


@given(claim=st.text(max_size=80), quote=st.text(max_size=80))
def test_offsets_of_a_difference_hold_for_any_text(claim: str, quote: str) -> None:
    found = differing_value(claim, quote)
    if found is not None:
        assert claim[found.claim_start : found.claim_end] == found.claim_value
        assert quote[found.evidence_start : found.evidence_end] == found.evidence_value


@pytest.mark.parametrize(
    ("claim", "left"),
    [
        ("2. Rome is old [1].", "Rome is old    ."),
        ("- Rome is old (docs/rome.md#age).", "Rome is old                   ."),
        ("Based on the given passages, Rome is old.", "Rome is old."),
        ("Rome is old (Passage 3)", "Rome is old"),
        ("3.5 million people live here.", "3.5 million people live here."),
        ("[1]", "[1]"),
    ],
)
def test_references_are_blanked(claim: str, left: str) -> None:
    assert blank_references(claim).strip() == left


@given(st.text(max_size=100))
def test_blanking_keeps_the_length(claim: str) -> None:
    assert len(blank_references(claim)) == len(claim)


@pytest.mark.parametrize(
    ("one", "other"),
    [("cities", "city"), ("directed", "directing"), ("wrote", "written"), ("used", "uses")],
)
def test_forms_of_a_word_have_one_stem(one: str, other: str) -> None:
    assert stem(one) == stem(other)


@given(st.text(max_size=100))
def test_words_lie_in_order_inside_any_text(text: str) -> None:
    words = find_words(text)
    assert all(a.end <= b.start for a, b in pairwise(words))
    assert all(word.stem and word.start < word.end <= len(text) for word in words)
