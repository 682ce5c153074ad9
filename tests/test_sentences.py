"""Sentence boundaries: what counts as one, exact offsets, streams, and time on large texts."""

from itertools import pairwise

import pytest
from growth import assert_linear
from hypothesis import given
from hypothesis import strategies as st

from langchain_groundedness.claims import statements
from langchain_groundedness.text import sentences as reading
from langchain_groundedness.text.sentences import split_sentences

PIECES = st.sampled_from(
    [
        "Dr. Oak", "word", "No. 10", " ", "  ", "\n", "\r\n", "\n\n", "\t", "\x00", "\u2028",
        "\u00a0", "\x1c", "\x85", "\u3000", ".", "..", "\u2026", "!", "?", "\u3002", "\uff01",
        "\u061f", "\u0964", '"', "\u201d", ")", "(", "[1]", "[2, 3]", "[", "]", "(a.md#b)", "`",
        "`a. B`", "```", "~~~", "# ", "- ", "* ", "1. ", "12)", "| a | b |", "|", "---", "===",
        "== A ==", "==",
        "**", "**Bold**", "> ", ">", "https://a.b/c. ", "www.", "Key: v", ":", "\u4eac", "\u306e",
        "e\u0301", "\u0301", "\U0001f389", "\ufe0f", "A", "Then it", "3.14", "v2.1.3", "J.",
        "a.m. ", "ends here.Next", "z.B.", "\u0430\u0431", "\uac00", "\ud800", "_", "=", "<", "\\",
    ]
)  # fmt: skip
TEXTS = st.one_of(
    st.lists(PIECES, max_size=40).map("".join),
    st.text(max_size=80),
    st.text(st.characters(codec="utf-8"), max_size=80),
)


def split(text: str) -> list[str]:
    return [sentence.text for sentence in split_sentences(text)]


@given(TEXTS)
def test_every_character_but_white_space_is_in_exactly_one_sentence(text: str) -> None:
    at = 0
    for sentence in split_sentences(text):
        assert text[at : sentence.start].strip() == ""
        assert text[sentence.start : sentence.end] == sentence.text == sentence.text.strip() != ""
        at = sentence.end
    assert text[at:].strip() == ""


@given(TEXTS, st.lists(st.integers(0, 400), max_size=30))
def test_a_stream_gives_the_same_sentences_however_it_is_cut(text: str, cuts: list[int]) -> None:
    assert stream(text, cuts) == stream(text, [])


@given(TEXTS)
def test_a_stream_of_single_characters_gives_the_same_sentences(text: str) -> None:
    assert stream(text, list(range(len(text)))) == stream(text, [])


def stream(text: str, cuts: list[int]) -> list[statements.AnswerSentence]:
    reader = statements.StatementReader(only_checkable=False)
    edges = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    found = [each for start, end in pairwise(edges) for each in reader.feed(text[start:end])]
    return found + reader.close()


@given(TEXTS, st.integers(5, 40))
def test_a_long_text_is_searched_in_stretches_as_it_is_at_once(text: str, stretch: int) -> None:
    at_once = split_sentences(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "_STRETCH", stretch)
        assert split_sentences(text) == at_once


@pytest.mark.parametrize("stretch", range(5, 25))
def test_no_border_of_a_stretch_hides_an_address(stretch: int) -> None:
    text = "x" * 30 + " https://a.b/c.d?e#f. Then www.a.b/c.d. Then the end."
    at_once = split_sentences(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "_STRETCH", stretch)
        assert split_sentences(text) == at_once


def test_a_long_stream_keeps_offsets_in_the_whole_text() -> None:
    text = "It rose by 3.5% in May. Then (in June) it fell. " * 1000 + "\n\n- An item. Two.\n" * 500
    assert stream(text, list(range(0, len(text), 7))) == stream(text, [])


def test_a_stream_releases_a_sentence_one_word_after_its_end() -> None:
    reader = statements.StatementReader()
    assert reader.feed("Sales rose. ") == []
    [released] = reader.feed("They ")
    assert (released.start, released.end) == (0, 11)


@pytest.mark.parametrize(
    "sentences",
    [
        ["Dr. Oak paid $2.1B.", "She left."],
        ["It uses v2.1.3, i.e. the latest.", "Python 3.12 too."],
        ["J. R. R. Tolkien wrote it.", "We read it."],
        ["The U.S. economy grew.", "So did others."],
        ['He said "Stop!" and left.', "She stayed."],
        ["See https://example.com/a.b?c=d. ".strip(), "It is short."],
        ["Sales rose. [1]", "They fell. [2, 3] (report.md#sales)", "Done."],
        ["He waited... and waited.", "Nobody came\u2026", "Then he left."],
        ["Great! \U0001f389", "Now rest."],
        ["It holds until 31 May.", "Interns get a car."],
        ["It runs until 31 Dec.", "Interns get a car."],
        ["The pipe is 5 m.", "Tanks hold 40 l.", "Drivers fill them."],
        ["It opens at 9 a.m.", "Visitors queue until 5 p.m. Monday."],
        ["Choose plan A.", "Employees get a car."],
        ["It was I.", "Nobody believed him."],
        ["It shows modern art.", "See Art. 5 of the law."],
        ["On 31 Dec. 2020 the actor J. Smith came.", "John F. Kennedy did not."],
        ["Er kam am 3. Mai z.B. mit Dr. Weber.", "Gut."],
        ["Call `x.y(). Z` now.", "Then stop."],
        ["\u00bfD\u00f3nde est\u00e1?", "\u00a1Aqu\u00ed!"],
    ],
)
def test_prose_is_split_only_where_a_sentence_ends(sentences: list[str]) -> None:
    assert split(" ".join(sentences)) == sentences


@pytest.mark.parametrize(
    "sentences",
    [
        ["It ends here.", "Next starts."],
        ["It was done in 2020.", "Then came 2021."],
        ["\u4eca\u5929\u5f88\u597d\u3002", "\u6211\u4eec\u8d70\u5427!", "\u4f60\u6765\u5417?"],
        [
            "\u300c\u9ad8\u3044\u3002\u300d\u3068\u8a00\u3063\u305f\u3002",
            "\u7d42\u308f\u308a\u3002",
        ],
        ["\u0645\u0627 \u0647\u064a\u061f", "\u0627\u0644\u0642\u0627\u0647\u0631\u0629."],
    ],
)
def test_a_missing_space_hides_no_boundary(sentences: list[str]) -> None:
    assert split("".join(sentences)) == sentences


@pytest.mark.parametrize("text", ["Node.js and torch.nn work", "see a.b@c.De today", "x.Y(z)"])
def test_dots_inside_names_are_no_boundaries(text: str) -> None:
    assert split(text) == [text]


@pytest.mark.parametrize(
    "lines",
    [
        ["# Results of Dr. Oak. All", "Sales rose."],
        ["**Summary**", "All is well."],
        ["== Early life. Youth ==", "All is well."],
        ["Summary\n=======", "All is well."],
        ["The parts are:", "- a wheel", "* an axle", "1. a seat", "2) a bell"],
        ["| Name | Age |", "|---|---|", "| A. Ann | 31 |", "After it."],
        ["Run:", "```python\nx. Y\n\nz\n```", "It works."],
        ["~~~\nnever closed. A", "B. C"][:1],
        ["Before.", "---\n".strip(), "After."],
        ["Revenue: 2.1", "Profit: 3"],
        [">", "> Quoted words.", "Own words."],
    ],
)
def test_blocks_of_markdown_are_kept_apart(lines: list[str]) -> None:
    assert split(("\n\n" if "---" in lines else "\n").join(lines)) == lines


def test_a_wrapped_line_does_not_end_a_sentence() -> None:
    assert split("It goes\non here. It\nends.") == ["It goes\non here.", "It\nends."]


@pytest.mark.parametrize("text", ["", " \n\t ", "\x00", "no end"])
def test_a_text_without_boundaries_is_at_most_one_sentence(text: str) -> None:
    assert split(text) == ([text] if text.strip() else [])


@pytest.mark.parametrize(
    "unit",
    ["word ", "x", ".", ". ", "a. ", "a.B", "`", '"', "(", "[", "**", "https://", "www.a.", "| ",
     "- a\n", ">", "# ", "\n", "Key: v\n", "[1] ", ".[1]", "\U0001f389", "A b. ", "-", "1. "],
)  # fmt: skip
def test_a_large_text_takes_time_in_proportion(unit: str) -> None:
    assert_linear(lambda size: split_sentences(unit * (size // len(unit))), 400_000)
