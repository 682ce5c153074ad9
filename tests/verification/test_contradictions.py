"""Differences between a claim and its evidence: which values are told, and when none is."""

import pytest
from embedded_checks import check, values_told


@pytest.mark.parametrize(
    ("claim", "quote", "claimed", "given_as"),
    [
        ("Revenue was $2.4B in Q3.", "Q3 revenue came in at $2.1B.", "$2.4B", "$2.1B"),
        ("2. Revenue was $2.4B [1].", "Revenue was $2.1B.", "$2.4B", "$2.1B"),
        ("Sales rose 12% in May.", "In May sales rose 9 percent.", "12%", "9 percent"),
        ("It counted 1990 visitors.", "It counted 2,500 visitors.", "1990", "2,500"),
        ("The pump gave 1500 litres.", "The pump gave 3500 litres.", "1500 litres", "3500 litres"),
        ("The bridge opened in 1932.", "The bridge opened in 1931.", "1932", "1931"),
        (
            "Python was created by George Lucas.",
            "Python, created by Guido van Rossum in the late 1980s, is a language.",
            "George Lucas",
            "Guido van Rossum",
        ),
    ],
)
def test_the_differing_values_are_found_where_they_stand(
    claim: str, quote: str, claimed: str, given_as: str
) -> None:
    verdict = check(claim, quote)
    assert (verdict.verdict, verdict.correction) == ("contradicted", given_as)
    assert values_told(verdict) == (claimed, given_as)


def test_of_several_values_the_one_in_the_same_place_is_taken() -> None:
    quote = "Revenue was $2.1B and net profit was $0.3B, up 12%."
    assert check("Net profit was $0.4B.", quote).correction == "$0.3B"


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
    verdict = check(claim, quote)
    assert verdict.verdict == "contradicted"
    assert [value.split()[0] for value in values_told(verdict)] == [claimed, given_as]


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
    verdict = check(claim, quote)
    assert "the claim says" not in verdict.explanation
    assert verdict.correction in (None, quote)


@pytest.mark.parametrize(
    ("claim", "quote", "years"),
    [
        (
            "Emissions were cut to 20% below 2005 levels.",
            "They were cut to 20% below 1990 levels.",
            ("2005", "1990"),
        ),
        ("Output exceeded 1990 levels.", "Output exceeded 2005 levels.", ("1990", "2005")),
        ("Fiscal 2019 sales were strong.", "Fiscal 2018 sales were strong.", ("2019", "2018")),
    ],
)
def test_years_before_what_could_be_counted_are_compared_as_years(
    claim: str, quote: str, years: tuple[str, str]
) -> None:
    assert values_told(check(claim, quote)) == years


@pytest.mark.parametrize(
    ("claim", "quote", "values"),
    [
        (
            "The level at station 3 was 1003 mm.",
            "The level at station 3 was 3 mm.",
            ("1003 mm", "3 mm"),
        ),
        ("Station 3 counted 1,003 visitors.", "Station 3 counted 3 visitors.", ("1,003", "3")),
        ("Room 12 has 40 seats.", "Room 12 has 12 seats.", ("40", "12")),
        ("Ann has 3 apples and Bob has 4.", "Ann has 3 apples and Bob has 3.", ("4", "3")),
    ],
)
def test_a_value_that_the_claim_gives_elsewhere_is_not_given_twice(
    claim: str, quote: str, values: tuple[str, str]
) -> None:
    assert values_told(check(claim, quote)) == values


def test_a_value_and_its_label_are_compared_wherever_the_quote_has_the_value() -> None:
    verdict = check("Warranty: five years", "The product has a three-year warranty.")
    assert verdict.correction == "three-year"


@pytest.mark.parametrize(
    ("claim", "quote"),
    [
        ("Rome is not the capital of Italy.", "Rome is the capital of Italy."),
        ("The museum is open on Mondays.", "The museum is never open on Mondays."),
    ],
)
def test_a_denial_differs_in_polarity(claim: str, quote: str) -> None:
    verdict = check(claim, quote)
    assert (verdict.verdict, verdict.correction) == ("contradicted", quote)
    assert verdict.explanation.startswith("The documents say the opposite.")


@pytest.mark.parametrize(
    ("claim", "quote"),
    [
        ("Revenue was $2.1B in Q3.", "Q3 revenue came in at 2,100 million dollars."),
        ("Rome is the capital of Italy.", "Rome is the capital of Italy."),
        ("Rome has 4 million inhabitants.", "The bakery sold 300 loaves."),
        ("He won in 1999.", "The soup was served at noon."),
        ("It is not only fast but cheap to run.", "It is fast and cheap to run."),
        ("Revenue was $2.1B [2].", "Revenue was $2.1B."),
    ],
)
def test_agreement_and_other_subjects_are_no_difference(claim: str, quote: str) -> None:
    verdict = check(claim, quote)
    assert verdict.verdict != "contradicted"
    assert verdict.correction is None


@pytest.mark.parametrize(
    "claim",
    [
        "2. Rome is old [1].",
        "- Rome is old (docs/rome.md#age).",
        "Based on the given passages, Rome is old.",
        "Rome is old (Passage 3)",
    ],
)
def test_references_in_a_claim_change_nothing(claim: str) -> None:
    plain = "Rome is old." if claim.endswith(".") else "Rome is old"
    verdict, expected = check(claim, "Rome is old."), check(plain, "Rome is old.")
    assert verdict.support_probability == pytest.approx(expected.support_probability, abs=1e-4)
