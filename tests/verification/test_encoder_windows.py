from itertools import pairwise
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document

from langchain_groundedness.evidence.windows import encoder_tokens, evidence_windows

TEXTS = st.lists(
    st.text(alphabet="ab. \n\t1é東\U0001f600", max_size=80) | st.text(alphabet="ab", max_size=300),
    max_size=4,
)


@given(TEXTS, st.integers(1, 4), st.integers(8, 40), st.none() | st.integers(0, 2))
def test_every_character_is_in_a_window_within_the_budget(
    texts: list[str], sentences: int, budget: int, overlap: int | None
) -> None:
    documents = [Document(page_content=text) for text in texts]
    windows = evidence_windows(documents, sentences=sentences, max_tokens=budget, overlap=overlap)
    unseen = [set(range(len(text))) for text in texts]
    for window in windows:
        assert documents[window.document].page_content[window.start : window.end] == window.text
        assert encoder_tokens(window.text) <= budget
        unseen[window.document] -= set(range(window.start, window.end))
    for text, places in zip(texts, unseen, strict=True):
        assert "".join(text[place] for place in places).strip() == ""


@given(TEXTS, st.integers(1, 4), st.integers(8, 40), st.none() | st.integers(0, 2))
def test_no_window_lies_inside_the_one_before(
    texts: list[str], sentences: int, budget: int, overlap: int | None
) -> None:
    documents = [Document(page_content=text) for text in texts]
    windows = evidence_windows(documents, sentences=sentences, max_tokens=budget, overlap=overlap)
    for before, after in pairwise(windows):
        assert before.document < after.document or (
            before.document == after.document
            and before.start < after.start
            and before.end < after.end
        )


def test_windows_overlap_so_that_neighbours_are_read_together() -> None:
    document = Document(page_content="One. Two. Three. Four.")
    windows = evidence_windows([document], sentences=3, max_tokens=100)
    assert [w.text for w in windows] == ["One. Two. Three.", "Two. Three. Four."]


@pytest.mark.parametrize(
    ("overlap", "texts"),
    [(1, ["One. Two. Three.", "Three. Four. Five."]), (0, ["One. Two. Three.", "Four. Five."])],
)
def test_the_overlap_can_be_limited_to_so_many_sentences(overlap: int, texts: list[str]) -> None:
    documents = [Document(page_content="One. Two. Three. Four. Five.")] * 2
    windows = evidence_windows(documents, sentences=3, max_tokens=100, overlap=overlap)
    assert [(w.document, w.text) for w in windows] == [(n, t) for n in (0, 1) for t in texts]


def test_a_text_without_sentences_is_cut_at_white_space() -> None:
    document = Document(page_content="word " * 200)
    windows = evidence_windows([document], sentences=1, max_tokens=10)
    assert {w.text for w in windows} == {"word word word word word word"[:29], "word word"}


def test_a_long_document_without_any_break_is_cut_in_linear_time() -> None:
    assert any(seconds_to_cut(1_000_000) < 8 * seconds_to_cut(250_000) for _ in range(4))


def seconds_to_cut(letters: int) -> float:
    begun = process_time()
    windows = evidence_windows([Document("x" * letters)], sentences=3, max_tokens=99)
    assert sum(len(w.text) for w in windows) == letters
    return process_time() - begun


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("a", 1), ("abcd", 2), ("東京", 2)])
def test_tokens_are_estimated_on_the_high_side(text: str, tokens: int) -> None:
    assert encoder_tokens(text) == tokens


def test_a_lone_surrogate_is_counted_too() -> None:
    assert encoder_tokens("\ud800") == 1
