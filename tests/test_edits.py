"""Edits of an answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_groundedness.correction.edits import (
    apply_edits,
    differing_part,
    removal_span,
    without_overlaps,
)
from langchain_groundedness.types import Edit

WORDS = st.lists(
    st.sampled_from(["red", "green", "blue", "one", "two", "3.5", "$2B"]), min_size=1, max_size=9
)


def edit(start: int, end: int, replacement: str = "X") -> Edit:
    return Edit(claim_id="c", start=start, end=end, original="", replacement=replacement)


@pytest.mark.parametrize(
    ("text", "correction", "replaced", "by"),
    [
        ("It opened in May 2019.", "It opened in June 2019.", "May", "June"),
        ("The plan costs $5 a month.", "The plan costs $7 a month.", "$5", "$7"),
        ("He is not the chair.", "He is the chair.", "is not the", "is the"),
        ("He is the chair.", "He is not the chair.", "is", "is not"),
        ("Returns take 30 days.", "Returns take 14 working days.", "30", "14 working"),
    ],
)
def test_the_least_part_is_found(text: str, correction: str, replaced: str, by: str) -> None:
    part = differing_part(text, correction)
    assert part is not None
    assert (text[part.start : part.end], part.text) == (replaced, by)


def test_another_statement_has_no_differing_part() -> None:
    assert differing_part("It opened in May.", "Revenue fell sharply last year.") is None


def test_equal_words_have_no_differing_part() -> None:
    assert differing_part("It opened.", "it opened") is None


@given(WORDS, WORDS)
def test_making_the_replacement_gives_the_words_of_the_correction(
    old: list[str], new: list[str]
) -> None:
    text, correction = " ".join(old), " ".join(new)
    part = differing_part(text, correction)
    if part is not None:
        assert (text[: part.start] + part.text + text[part.end :]).split() == new


@pytest.mark.parametrize(
    ("text", "target", "left"),
    [
        ("One. Two. Three.", "Two.", "One. Three."),
        ("One. Two.", "Two.", "One."),
        ("One. Two.", "One.", "Two."),
        ("Rome is big with trees.", "with trees", "Rome is big."),
        ("- One.\n- Two.\n- Three.", "Two.", "- One.\n- Three."),
        ("- One.\n- Two.", "Two.", "- One."),
        ("1. **One.**\n2. Two.", "One.", "2. Two."),
        ("One.\n\nTwo.", "One.", "\nTwo."),
    ],
)
def test_removal_leaves_no_scar(text: str, target: str, left: str) -> None:
    start = text.index(target)
    a, b = removal_span(text, start, start + len(target))
    assert text[:a] + text[b:] == left


def test_of_two_edits_that_overlap_the_smaller_is_made() -> None:
    assert without_overlaps([edit(0, 20), edit(5, 8), edit(30, 31)]) == (edit(5, 8), edit(30, 31))


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 9)), max_size=20))
def test_an_edit_is_made_unless_a_smaller_one_is_in_its_way(spans: list[tuple[int, int]]) -> None:
    wanted = [edit(a, a + n, "new") for a, n in spans]
    made: list[Edit] = []
    for each in sorted(wanted, key=lambda e: (e.end - e.start, e.start)):
        if all(each.end <= other.start or each.start >= other.end for other in made):
            made.append(each)
    assert without_overlaps(wanted) == tuple(sorted(made, key=lambda e: e.start))


@given(st.text(), st.lists(st.tuples(st.integers(0, 40), st.integers(0, 9)), max_size=6))
def test_every_character_outside_the_edits_stays(text: str, spans: list[tuple[int, int]]) -> None:
    wanted = [edit(a, a + n, "\x00") for a, n in spans if a + n <= len(text) and n]
    made = without_overlaps(wanted)
    kept = "".join(c for i, c in enumerate(text) if not any(e.start <= i < e.end for e in made))
    result = apply_edits(text.replace("\x00", "_"), made)
    assert result.replace("\x00", "") == kept.replace("\x00", "_")
    assert result.count("\x00") == len(made)


def test_where_words_are_only_dropped_a_phrase_is_left_that_can_be_read() -> None:
    text = "The drug is not safe for children."
    part = differing_part(text, "The drug is safe for children.")
    assert part is not None
    assert (text[part.start : part.end], part.text) == ("is not safe", "is safe")
    text = "It is safe for children only."
    part = differing_part(text, "It is safe for children.")
    assert part is not None
    assert (text[part.start : part.end], part.text) == ("children only", "children")
