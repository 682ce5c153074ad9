"""What reading documents costs, in processor time, as they grow."""

import random
from time import process_time

import pytest
from langchain_core.documents import Document

from langchain_groundedness.text.sentences import split_sentences
from langchain_groundedness.text.words import find_words
from langchain_groundedness.verification.embedded.index import EvidenceIndex


def prose(words: int) -> str:
    chosen = random.Random(words)  # noqa: S311  (no secret)
    said = [f"w{chosen.randrange(20_000):x}" for _ in range(words)]
    for place in range(9, words, 10):
        said[place] += "."
    return " ".join(said)


def seconds_to_read(text: str) -> float:
    begun = process_time()
    EvidenceIndex([Document(text)])
    return process_time() - begun


@pytest.mark.parametrize(
    "text",
    [prose(30_000), ". " * 20_000, "x1y2" * 25_000, "- a b c\n" * 10_000, "东京是首都。" * 10_000],
    ids=["prose", "full stops", "one word", "list", "unspaced"],
)
def test_twice_the_text_takes_about_twice_the_time(text: str) -> None:
    EvidenceIndex([Document(text)])
    assert any(seconds_to_read(2 * text) < 3.5 * seconds_to_read(text) for _ in range(4))


def test_indexing_words_is_a_small_part_of_reading_a_text() -> None:
    text = prose(200_000)

    def seconds_to_split() -> float:
        begun = process_time()
        split_sentences(text)
        find_words(text)
        return process_time() - begun

    assert any(seconds_to_read(text) < 1.5 * seconds_to_split() for _ in range(5))


def test_a_sentence_of_data_is_read_in_pieces_of_bounded_length() -> None:
    text = "Alpha " + " ".join("x" * 900 for _ in range(50)) + " omega."
    index = EvidenceIndex([Document(page_content=text)])
    lengths = [len(index.text(place, place)) for place in range(len(index))]
    assert len(lengths) == 3
    assert max(lengths) <= 20_000
