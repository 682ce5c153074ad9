"""Quantities: what is written differently and means the same, and what is not."""

import math
from datetime import date

import pytest
from embedded_checks import check
from hypothesis import example, given
from hypothesis import strategies as st
from langchain_core.documents import Document

from langchain_groundedness.verification.embedded import quantities as reading
from langchain_groundedness.verification.embedded.index import EvidenceIndex
from langchain_groundedness.verification.embedded.quantities import (
    comparable,
    each_quantity,
    find_quantities,
    same_quantity,
    units_fit,
)

FIGURE = "The depot's figure for the year is {}."


@pytest.mark.parametrize("digits", [400, 5_000])
@pytest.mark.parametrize("form", ["{}th", "{}", "${}.5 billion", "{}.5%", "-{}", "0.{}", "1:{}"])
def test_thousands_of_digits_are_no_error(form: str, digits: int) -> None:
    for quantity in find_quantities(form.format("1" * digits)):
        assert math.isfinite(quantity.value)
        assert same_quantity(quantity, quantity)


@pytest.mark.parametrize(
    ("claimed", "given_as"),
    [
        ("2.1B", "2,100 million"),
        ("$2.1B", "2.1 billion dollars"),
        ("$2.1B", "US$2,134 million"),
        ("12 %", "12 percent"),
        ("12%", "12 per cent"),
        ("3 March 2021", "2021-03-03"),
        ("March 3rd, 2021", "3 March 2021"),
        ("2021-03-03", "March 3rd, 2021"),
        ("25/12/2020", "December 25, 2020"),
        ("2021", "3 March 2021"),
        ("March 2021", "2021-03-03"),
        ("the 1980s", "1985"),
        ("twenty-five", "25"),
        ("two million", "2,000,000"),
        ("5 km", "5,000 metres"),
        ("45 W", "45 watts"),
        ("one litre", "one\nlitre"),
        ("5 km", "5\nkm"),
        ("1.5 kW", "1,500 watts"),
        ("2 litres", "2,000 ml"),
        ("2 hours", "120 minutes"),
        ("second", "2nd"),
        ("6000 millimetres", "6000"),
        ("6000", "6000 millimetres"),
        ("2.5 kg", "2.5"),
        ("1003", "1003 mm"),
        ("10:30", "10:30"),
        ("Start: 12:30", "12:30"),
        ("Date: 2021-03-05", "5 March 2021"),
        ("| 12 May 2020 |", "12 May 2020"),
        ("$ 5", "$5"),
        ("\u017fept 3", "September 3rd"),
        ("5 m\u0131llion", "5,000,000"),
    ],
)
def test_the_same_quantity_written_differently_is_the_same(claimed: str, given_as: str) -> None:
    assert check(FIGURE.format(claimed), FIGURE.format(given_as)).verdict == "supported"


@pytest.mark.parametrize(
    ("claimed", "given_as"),
    [
        ("$2.4B", "$2.1B"),
        ("€5", "$5"),
        ("5", "6"),
        ("3 March 2021", "4 March 2021"),
        ("3 March 2021", "2021"),
        ("1985", "the 1980s"),
        ("1,985", "1985-01-01"),
        ("10:30", "10:31"),
        ("3.11.2", "3.11.3"),
        ("5 km", "5 miles"),
        ("5 litres", "5 ml"),
        ("6000 millimetres", "6"),
        ("6", "6000 millimetres"),
        ("at least 6000 millimetres", "at least 6"),
        ("3 hours", "10,800"),
        ("2021 kg", "2021000"),
        ("2,021,000 mm", "2021"),
        ("station 1", "the first day"),
        ("3 in all", "third in line"),
    ],
)
def test_different_quantities_are_different(claimed: str, given_as: str) -> None:
    assert check(FIGURE.format(claimed), FIGURE.format(given_as)).verdict == "contradicted"


@pytest.mark.parametrize(
    "text",
    ["It counted 1990 visitors", "It has 1800 seats", "a crowd of 1500 people", "about 1200 tons"],
)
def test_four_digits_before_what_is_counted_may_be_a_number(text: str) -> None:
    (quantity,) = find_quantities(text)
    assert comparable(quantity, find_quantities("2,500")[0])
    assert comparable(find_quantities("2,500")[0], quantity)
    assert comparable(quantity, find_quantities("in 1985")[0])
    assert not comparable(quantity, find_quantities("2,500 km")[0])


@pytest.mark.parametrize(
    "text",
    [
        "It opened in 1990 across town", "the 1990 elections", "In 1990 visitors came", "1990",
        "By 1990 sales had fallen", "1990 was a good year", "its 1990 films", "since 1990 as well",
        "compared to 1990 levels", "Summer 1990 sees more", "1990 brings rain", "(1990) songs",
    ],
)  # fmt: skip
def test_four_digits_elsewhere_are_a_year(text: str) -> None:
    (quantity,) = find_quantities(text)
    assert quantity.date == (1990, None, None)
    assert not comparable(quantity, find_quantities("2,500")[0])


@pytest.mark.parametrize("text", ["Q3", "B737", "May I go?", "one of them", "x2"])
def test_codes_and_lookalikes_are_no_quantities(text: str) -> None:
    assert find_quantities(text) == []


@given(st.text(max_size=80))
def test_quantities_lie_in_order_inside_any_text(text: str) -> None:
    found = find_quantities(text)
    ends = [0, *(q.end for q in found)]
    assert all(end <= q.start < q.end for end, q in zip(ends, found, strict=False))
    assert all(q.end <= len(text) for q in found)


@given(st.integers(min_value=2101, max_value=10**12))
def test_a_number_equals_itself_with_separators(number: int) -> None:
    (plain,), (grouped,) = find_quantities(f"{number}"), find_quantities(f"{number:,}")
    assert same_quantity(plain, grouped)
    assert same_quantity(grouped, plain)


@given(st.dates(date(1000, 1, 1), date(2099, 12, 31)))
def test_a_date_equals_itself_in_other_formats(day: date) -> None:
    (numeric,) = find_quantities(f"{day:%Y-%m-%d}")
    (worded,) = find_quantities(f"{day:%d %B %Y}")
    (american,) = find_quantities(f"{day:%B %d, %Y}")
    assert numeric.date == worded.date == american.date


_WRITTEN = st.builds(
    "{}{} {}".format,
    st.sampled_from(["", "at least ", "about ", "more than "]),
    st.sampled_from(
        ["6", "6000", "6,000", "0.006", "2021", "1995", "twelve", "2.5", "$6000", "6th", "sixth"]
    ),
    st.sampled_from(["", "mm", "m", "km", "hours", "minutes", "kg", "%", "million", "stops"]),
)


@given(_WRITTEN, st.lists(st.lists(_WRITTEN, max_size=4), min_size=1, max_size=4), _WRITTEN)
@example("2021 ", [["2021 km", "2021 minutes"], [], ["at least 1995 mm"]], "6")
@example("1001 mm", [["1001 "], ["1003 "]], "6")
@example("3 mm", [["3", "3 mm"], ["2.5 mm, not 3", "3 here, 5 mm there"]], "2 km")
@example("2021st", [["x 12:30", "2021-03-05"]], "6")
def test_the_index_finds_the_quantity_in_every_sentence_that_gives_it(
    claimed: str, documents: list[list[str]], also_claimed: str
) -> None:
    written = [[f"It measures | {each} here." for each in given_as] for given_as in documents]
    index = EvidenceIndex([Document(page_content=" ".join(each)) for each in written])
    (wanted,) = find_quantities(claimed)
    beside = [wanted, *find_quantities(also_claimed)]
    found_in = [find_quantities(sentence) for sentences in written for sentence in sentences]
    giving = [
        unit
        for unit, found in enumerate(found_in)
        if any(
            same_quantity(wanted, given)
            and units_fit(
                wanted,
                given,
                in_claim={quantity.unit for quantity in beside},
                beside={quantity.unit for quantity in found},
            )
            for given in found
        )
    ]
    assert index.units_with_value(wanted, beside).tolist() == giving


def test_what_stands_before_the_first_sentence_belongs_to_its_document() -> None:
    texts = ["Alpha words are bright.", "# $\n5 stars are bright here."]
    index = EvidenceIndex([Document(page_content=text) for text in texts])
    (five,) = find_quantities("$5")
    assert index.units_with_value(five).tolist() == [1]


def test_a_bare_number_of_a_claim_is_not_looked_for_before_a_unit_that_the_claim_names() -> None:
    text = "Station 2 rose by 3 mm once. Station 3 rose by 4 mm twice. Row 3 has 1,004 in it."
    index = EvidenceIndex([Document(page_content=text)])
    three, length = find_quantities("Station 3 rose by 1,004 mm.")
    assert index.units_with_value(three).tolist() == [0, 1, 2]
    assert index.units_with_value(three, (three, length)).tolist() == [1, 2]
    assert index.units_with_value(length, (three, length)).tolist() == [2]


_PIECES = st.sampled_from(
    ["3", " March", " June of ", "2021", " ", ",", ".", "$", "%", " million", "12", ":30", "st",
     " kilometres", "five", " hundred", "/", "-", "a", "about ", "\n", "1,000", "x", "\u00e9",
     " per cent"]
)  # fmt: skip


@given(st.lists(_PIECES, max_size=120).map("".join), st.integers(129, 300))
@example("1" * 300 + "th of 5", 150)
@example("5,000,000" * 40 + " kilometres and 12%", 140)
@example("x" * 1_000 + " 5 km", 130)
@example("x" * 137 + " in June of 2021 it" + " w" * 100, 150)
@example("x" * 136 + " in June of 2021 it" + " w" * 100, 150)
def test_a_long_text_is_read_in_stretches_as_it_is_at_once(text: str, stretch: int) -> None:
    at_once = list(each_quantity(text))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "_STRETCH", stretch)
        assert list(each_quantity(text)) == at_once
