"""Packing documents under a budget, finding quotes in them, and matching sentences to claims."""

import warnings
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from growth import assert_linear
from hypothesis import assume, given
from hypothesis import strategies as st
from langchain_core._api import LangChainBetaWarning
from langchain_core.documents import Document
from langchain_core.load import dumpd, load

from langchain_groundedness.evidence import (
    EvidencePacker,
    SentenceIndex,
    approximate_tokens,
    locate_quote,
    shares_content_word,
)
from langchain_groundedness.exceptions import ConfigurationError
from langchain_groundedness.types import Passage

WORDS = st.sampled_from(
    ["It rose.", "Dr. Oak", "word", "a", "\n\n", "\n- ", " ", "  ", "no", "ends.", "\u4eac\u3002",
     "longerwordwithoutend" * 3, "\u00e9", "e\u0301", "\U0001f389", "\x00", "| a | b |", "2.5"]
)  # fmt: skip
TEXTS = st.one_of(
    st.lists(WORDS, max_size=60).map(" ".join),
    st.lists(WORDS, max_size=30).map("".join),
    st.text(max_size=120),
)
METADATA = st.fixed_dictionaries(
    {}, optional={"score": st.one_of(st.floats(), st.booleans(), st.text(max_size=1))}
)
DOCUMENTS = st.lists(
    st.builds(lambda text, data: Document(page_content=text, metadata=data), TEXTS, METADATA),
    max_size=6,
)


def count_words(text: str) -> int:
    return len(text.split())


def count_bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


COUNTERS = st.sampled_from([approximate_tokens, count_words, count_bytes, len])


@given(DOCUMENTS, st.integers(1, 60), COUNTERS, st.integers(0, 3))
def test_packing_loses_nothing_and_keeps_the_budget(
    documents: list[Document], budget: int, count: Callable[[str], int], overlap: int
) -> None:
    packer = EvidencePacker(max_tokens=budget, count_tokens=count, overlap_sentences=overlap)
    batches = packer.pack(documents)
    seen = [set[int]() for _ in documents]
    for batch in batches:
        assert batch.passages
        assert batch.tokens == sum(count(p.text) for p in batch.passages)
        assert batch.tokens <= budget or [len(p.text) for p in batch.passages] == [1]
        for passage in batch.passages:
            source = documents[passage.document].page_content
            assert source[passage.start : passage.end] == passage.text == passage.text.strip()
            seen[passage.document].update(range(passage.start, passage.end))
    for document, covered in zip(documents, seen, strict=True):
        missed = set(range(len(document.page_content))) - covered
        assert all(document.page_content[at].isspace() for at in missed)
    assert packer.pack(documents) == batches


@pytest.mark.parametrize("key", ["score", "relevance_score"])
def test_documents_are_taken_by_score_and_laid_out_best_at_both_ends(key: str) -> None:
    documents = [
        Document(page_content=f"Rank {6 - n}.", metadata={key: n / 10}) for n in range(1, 6)
    ]
    [batch] = EvidencePacker(max_tokens=100).pack(documents)
    assert [p.text for p in batch.passages] == [f"Rank {n}." for n in (1, 3, 5, 4, 2)]
    assert batch.passages[0].score == 0.5


@pytest.mark.parametrize("bad", [{}, {"score": True}, {"score": "9"}, {"score": float("nan")}])
def test_without_a_number_for_every_document_the_given_order_stands(bad: dict[str, Any]) -> None:
    documents = [
        Document(page_content="First.", metadata=bad),
        Document(page_content="Second.", metadata={"score": 0.9}),
    ]
    [batch] = EvidencePacker(max_tokens=100).pack(documents)
    assert [p.document for p in batch.passages] == [0, 1]


def test_equal_scores_keep_the_given_order() -> None:
    documents = [Document(page_content=f"D{n}.", metadata={"score": 1}) for n in range(3)]
    batches = EvidencePacker(max_tokens=1).pack(documents)
    assert [b.passages[0].document for b in batches] == [0, 1, 2]


def test_the_best_documents_fill_the_first_batch() -> None:
    documents = [
        Document(page_content="low " * 4, metadata={"score": 0.1}),
        Document(page_content="high " * 4, metadata={"score": 0.9}),
    ]
    batches = EvidencePacker(max_tokens=4, count_tokens=count_words).pack(documents)
    assert [b.passages[0].document for b in batches] == [1, 0]


def test_windows_of_a_long_document_end_at_sentence_ends_and_overlap() -> None:
    text = " ".join(f"Sentence number {n} stands here." for n in range(9))
    packer = EvidencePacker(max_tokens=19, count_tokens=count_words)
    windows = [p.text for b in packer.pack([Document(page_content=text)]) for p in b.passages]
    assert all(w.startswith("Sentence") and w.endswith("here.") for w in windows)
    for earlier, later in pairwise(windows):
        assert later.startswith(earlier.rsplit("Sentence", 1)[1].join(["Sentence", ""]))


def test_a_sentence_over_the_budget_is_cut_between_words_and_a_word_anywhere() -> None:
    packer = EvidencePacker(max_tokens=10, count_tokens=len)
    pieces = [
        p.text for b in packer.pack([Document(page_content="one two three " + "x" * 25)])
        for p in b.passages
    ]  # fmt: skip
    assert pieces == ["one two", "three", "x" * 10, "x" * 10, "x" * 5]


def test_blank_and_no_documents_give_no_batch() -> None:
    assert EvidencePacker(max_tokens=5).pack([]) == []
    assert EvidencePacker(max_tokens=5).pack([Document(page_content=" \n")]) == []


@pytest.mark.parametrize(
    "options",
    [{"max_tokens": 0}, {"max_tokens": -1}, {"max_tokens": 5, "overlap_sentences": -1}, {},
     {"max_tokens": 5, "count_tokens": "len"}, {"max_tokens": 5, "budget": 3}],
)  # fmt: skip
def test_useless_options_are_refused_at_construction(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        EvidencePacker(**options)


def test_a_packer_is_saved_and_loaded() -> None:
    packer = EvidencePacker(max_tokens=7, overlap_sentences=2)
    with warnings.catch_warnings(category=LangChainBetaWarning, action="ignore"):
        loaded = load(
            dumpd(packer),
            allowed_objects=[EvidencePacker],
            valid_namespaces=["langchain_groundedness"],
        )
    assert loaded == packer


def test_ten_thousand_documents_and_a_megabyte_pack_in_linear_time() -> None:
    calls = 0

    def count(text: str) -> int:
        nonlocal calls
        calls += len(text)
        return approximate_tokens(text)

    def pack(documents: int) -> None:
        nonlocal calls
        calls = 0
        many = [Document(page_content=f"Document {n} says so.") for n in range(documents)]
        large = Document(page_content="It rose by 3.5% in May. Then it fell. " * (2 * documents))
        EvidencePacker(max_tokens=400, count_tokens=count).pack([*many, large])
        assert calls < 5 * len(large.page_content)

    assert_linear(pack, 13_000)


@given(TEXTS, st.integers(0, 120), st.integers(1, 60))
def test_any_stretch_of_a_text_is_found_where_it_reads_the_same(
    text: str, start: int, length: int
) -> None:
    start %= len(text) or 1
    part = text[start : start + length]
    assume(part.strip())
    for quote in (part, part.upper(), f"  {' '.join(part.split())}\n"):
        if found := locate_quote(quote, text, min_score=101):
            assert read_alike(text[slice(*found)], quote)
    assert locate_quote(part, text) is not None


@given(st.text("abc XYZ.,\n\t\u00c9\u00e9\ufb01\u201c'", max_size=60), st.data())
def test_folded_stretches_are_always_found(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    part = text[start : data.draw(st.integers(start, len(text)))]
    assume(part.strip(" \n\t\r"))
    found = locate_quote("  ".join(part.upper().split()), text, min_score=101)
    assert found is not None
    assert read_alike(text[slice(*found)], part)


def read_alike(one: str, other: str) -> bool:
    """Whether each of two texts is found in the other."""
    pairs = ((one, other), (other, one))
    return all(locate_quote(quote, text, min_score=101) is not None for quote, text in pairs)


@pytest.mark.parametrize(
    ("quote", "text", "found"),
    [
        ("rose by 5%", "Sales rose by 5% then.", "rose by 5%"),
        ("Sales   ROSE", "In May sales\nrose.", "sales\nrose"),
        ('"best" year-end', "A \u201cbest\u201d year\u2014end!", "\u201cbest\u201d year\u2014end"),
        ("cafe\u0301", "The Caf\u00c9 is open.", "Caf\u00c9"),
        ("first", "The \ufb01rst one", "\ufb01rst"),
        ("strasse", "Die Stra\u00dfe dort", "Stra\u00dfe"),
        ('"Paris."', "It is Paris, France.", "Paris"),
        ("wait... what", "Oh wait\u2026 what now", "wait\u2026 what"),
        ("hyphenated", "It is hy\u00adphen\u00adated here", "hy\u00adphen\u00adated"),
        ("\u4eac \uff41", "\u6771\u4eac  a\u9996\u90fd", "\u4eac  a"),
        ("Revenue of it was high", "We saw revenues of it that were high.", None),
    ],
)  # fmt: skip
def test_a_quote_is_found_through_folding(quote: str, text: str, found: str | None) -> None:
    place = locate_quote(quote, text, min_score=101)
    assert (text[slice(*place)] if place else None) == found


def test_a_slightly_changed_quote_is_aligned_to_whole_words() -> None:
    text = "In its annual report the company said that revenue grew strongly in every region."
    place = locate_quote("the company says that revenue grew strongly in every", text)
    assert place is not None
    assert text[slice(*place)] == "the company said that revenue grew strongly in every"


@pytest.mark.parametrize(
    ("quote", "text"),
    [("", "text"), ("  ", "text"), ("quote", ""), ("\u200b", "text"),
     ("cats bark loudly", "dogs sleep for most of the day"), ("a much longer quote", "longer")],
)  # fmt: skip
def test_what_does_not_stand_there_is_not_found(quote: str, text: str) -> None:
    assert locate_quote(quote, text) is None


@pytest.mark.parametrize(
    ("quote", "unit"),
    [
        ("x" * 300 + "y", "x"),
        ("b" * 30 + "q" * 40, "B"),
        ("\u00c9" * 30 + "x", "\u00e9"),
        ("no such words in there at all, not 1", "It rose by 3.5% in May, as they said. "),
        ("lorem ipsum " * 330, "lorem ipsux "),
    ],
)
def test_a_megabyte_is_searched_in_linear_time(quote: str, unit: str) -> None:
    assert_linear(lambda size: locate_quote(quote, unit * (size // len(unit))), 1_000_000)


def test_a_changed_quote_is_found_in_a_megabyte() -> None:
    text = " ".join(f"Entry {n} tells of item {n * 7} and ends here." for n in range(22_000))
    place = locate_quote("Entry 12345 speaks of item 86415 and ends here", text)
    assert place is not None
    assert "item 86415" in text[slice(*place)]


def test_only_words_that_carry_meaning_are_shared() -> None:
    assert shares_content_word("Revenue was high.", "REVENUE fell")
    assert not shares_content_word("It was in the house.", "This was in the car.")


def passage(text: str, start: int = 0, document: int = 0) -> Passage:
    return Passage(document=document, start=start, end=start + len(text), text=text)


def test_the_sentence_with_the_rarest_shared_words_is_the_evidence() -> None:
    passages = [
        passage("The company sells shoes. The company was founded in 1987.", start=10),
        passage("The company is large.", document=1),
    ]
    best = SentenceIndex(passages).best("The company was founded in 1988.")
    assert best == passage("The company was founded in 1987.", start=35)


def test_a_claim_that_shares_no_word_has_no_evidence() -> None:
    index = SentenceIndex([passage("Rome is in Italy.")])
    assert index.best("Cats sleep.") is None
    assert SentenceIndex([]).best("Cats sleep.") is None


MANUAL = """# Pump manual

## Faults

The pump beeps when it stops. Look at the display.

| code | meaning |
|------|---------|
| E04 | too little water |
| E05 | too much water |

Care
----
Clean the pump once a year.

***
## 3 Warranty
It lasts two years.
"""


def test_passages_inside_a_document_carry_the_headings_above_them() -> None:
    packer = EvidencePacker(max_tokens=7, count_tokens=count_words, overlap_sentences=0)
    batches = packer.pack([Document(page_content=MANUAL)])
    headings = {p.text: p.heading for batch in batches for p in batch.passages}
    assert next(iter(headings.values())) == ""
    told = {
        "The pump beeps": "Pump manual > Faults",
        "| E05": "Pump manual > Faults > code | meaning",
        "Clean the pump": "Pump manual > Care",
        "It lasts": "Pump manual > 3 Warranty",
    }
    for beginning, heading in told.items():
        assert [h for text, h in headings.items() if text.startswith(beginning)] == [heading]


def test_a_heading_is_not_the_sentence_that_matches_best() -> None:
    [batch] = EvidencePacker(max_tokens=1000).pack([Document(page_content=MANUAL)])
    index = SentenceIndex(batch.passages)
    shown = [sentence.text for sentence in index.sentences]
    assert shown[:3] == [
        "The pump beeps when it stops.",
        "Look at the display.",
        "| E04 | too little water |",
    ]
    best = index.best("The faults of the pump are in the pump manual.")
    assert best
    assert best.text in {"The pump beeps when it stops.", "Clean the pump once a year."}


@pytest.mark.parametrize("text", ["# Rome is old", "**Rome is old**", "Rome is old\n==="])
def test_a_document_of_headings_alone_is_read_as_sentences(text: str) -> None:
    [batch] = EvidencePacker(max_tokens=1000).pack([Document(page_content=text)])
    assert [sentence.text for sentence in SentenceIndex(batch.passages).sentences] == [text]
