"""Words and the memory they take."""

import tracemalloc

from langchain_groundedness.words import find_words


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
