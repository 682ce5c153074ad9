"""Who did what to whom: exchanged values are found, and only where their order says something."""

import pytest
from embedded_checks import check, values_told


@pytest.mark.parametrize(
    ("claim", "quote", "mine", "theirs"),
    [
        (
            "Anna hired Peter in 2019.",
            "Peter hired Anna in 2019.",
            "Anna hired Peter",
            "Peter hired Anna",
        ),
        (
            "Revenue was $2.4B in Q3 and $2.1B in Q2.",
            "Last year, revenue was $2.1B in Q3 and $2.4B in Q2, they said.",
            "$2.4B in Q3 and $2.1B",
            "$2.1B in Q3 and $2.4B",
        ),
        ("It grew 3% here and 4% there.", "It grew 4% here and 3% there.", None, None),
        ("Spain beat New Zealand.", "New Zealand beat Spain.", None, None),
        ("The cat chased the dog.", "A cat watched. The dog chased the cat.", None, None),
        (
            "The blue box is lighter than the red box.",
            "The red box is lighter than the blue box.",
            None,
            None,
        ),
        (
            "Borealis sold its unit to Acme.",
            "In May Acme Corp. sold its unit to Borealis Inc.",
            "Borealis sold its unit to Acme",
            "Acme Corp. sold its unit to Borealis",
        ),
        (
            "Mark lent his bicycle to Anna.",
            "Anna lent her bicycle to Mark.",
            "Mark lent his bicycle to Anna",
            "Anna lent her bicycle to Mark",
        ),
        ("Maria employs the bank.", "The bank employs Maria as an analyst.", None, None),
        ("Ann Hill taught Tom Poe's son.", "Tom Poe taught Ann Hill's son.", None, None),
    ],
)
def test_exchanged_values_are_found(
    claim: str, quote: str, mine: str | None, theirs: str | None
) -> None:
    verdict = check(claim, "Nothing.", quote)
    assert verdict.verdict == "contradicted"
    assert verdict.citations[0].document == 1
    claimed, given_as = values_told(verdict)
    assert claimed in claim
    assert given_as in quote
    if mine:
        assert (claimed, given_as) == (mine, theirs)


@pytest.mark.parametrize(
    ("claim", "quote"),
    [
        ("Anna hired Peter.", "Anna hired Peter."),
        ("Anna and Peter hired Paul.", "Peter and Anna hired Paul."),
        ("Anna married Peter.", "Peter married Anna."),
        ("Spain borders France.", "France borders Spain."),
        ("Anna hired Peter.", "Peter was hired by Anna."),
        ("Superman is Clark Kent.", "Clark Kent is Superman."),
        ("anna hired peter", "peter hired anna"),
        ("The town borders the lake.", "The lake borders the town."),
        ("The tower is as tall as the church.", "The church is as tall as the tower."),
        ("The cat was chased by the dog.", "The dog chased the cat."),
    ],
)
def test_nothing_is_exchanged_where_the_order_says_nothing(claim: str, quote: str) -> None:
    verdict = check(claim, quote)
    assert (verdict.verdict, verdict.correction) == ("supported", None)


def test_a_claim_that_any_quote_says_has_nothing_exchanged() -> None:
    verdict = check("Anna hired Peter.", "Peter hired Anna.", "Anna hired Peter.")
    assert verdict.verdict == "supported"


@pytest.mark.parametrize(
    ("claim", "document"),
    [
        ("Anna hired Peter in 2019.", "Peter hired Anna in 2019."),
        ("Revenue was $2.4B in Q3 and $2.1B in Q2.", "Revenue was $2.1B in Q3 and $2.4B in Q2."),
    ],
)
def test_an_exchange_is_contradicted(claim: str, document: str) -> None:
    verdict = check(claim, document)
    assert verdict.verdict == "contradicted"
    assert verdict.correction
    assert verdict.correction in document
    assert verdict.citations[0].quote == document
