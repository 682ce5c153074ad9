"""Words and the memory they take."""

import re
import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_groundedness.text.words import find_words, stem, word_stem


def test_words_of_any_length_are_found_whole() -> None:
    text = "Revenue " + "x" * 10_000
    assert [(word.start, word.end) for word in find_words(text)] == [(0, 7), (8, 10_008)]


def test_overlong_words_are_not_kept_in_memory() -> None:
    find_words("Revenue was high.")
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(50):
            find_words(f"{number}" + "x" * 100_000)
        assert tracemalloc.get_traced_memory()[0] - before < 1_000_000
    finally:
        tracemalloc.stop()


def test_a_text_without_any_space_is_read_in_pieces() -> None:
    pieces = [(word.start, word.end) for word in find_words("x" * 250_000)]
    assert pieces == [(0, 100_000), (100_000, 200_000), (200_000, 250_000)]


@pytest.mark.parametrize(
    ("short", "full"),
    [
        ("wasn't", "was not"),
        ("isn\u2019t", "is not"),
        ("DIDN'T", "did not"),
        ("don't", "do not"),
        ("can't", "can not"),
        ("won't", "will not"),
        ("mustn't", "must not"),
    ],
)
def test_a_contraction_has_the_word_that_it_is_short_for(short: str, full: str) -> None:
    word, *_ = find_words(f"{short} go")
    assert word.stem == find_words(full)[0].stem
    assert short[word.end] in "'\u2019"


@pytest.mark.parametrize("text", ["Don Quixote", "Don's horse", "the isn", "a fan's ticket"])
def test_what_only_looks_like_a_contraction_is_read_as_it_stands(text: str) -> None:
    assert [word.stem for word in find_words(text)] == [
        word_stem(part) for part in re.findall(r"\w+", text)
    ]


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
