"""What comes of every kind of answer and every kind of document, offline, by name."""

from collections.abc import Callable
from itertools import product
from time import process_time

import pytest
from growth import assert_linear

from langchain_groundedness import GroundednessResult, GroundednessRunnable

MANUAL = (
    "The S2 runs for 18 months on one set of batteries. It has a three-year warranty and supports "
    "Wi-Fi and Matter. Employees may work from home on Fridays. Paris is the capital of France."
)


def check(answer: str, documents: list[str], question: str | None = None) -> GroundednessResult:
    result = GroundednessRunnable().invoke(
        {"answer": answer, "documents": documents, "question": question}
    )
    for v in result.claims:
        for citation in v.citations:
            assert citation.holds_in(result.documents)
        if v.verdict in ("supported", "contradicted"):
            assert v.citations
    return result


def labels(result: GroundednessResult) -> list[str]:
    return [v.verdict for v in result.claims]


@pytest.mark.parametrize(
    ("question", "answer", "expected"),
    [
        pytest.param("What is the capital of France?", "Paris", ["supported"], id="one word"),
        pytest.param("What is the capital of France?", "Lyon", ["unverifiable"], id="wrong word"),
        pytest.param("How many months does it run?", "18", ["supported"], id="a number"),
        pytest.param("May employees work from home on Fridays?", "Yes", ["supported"], id="yes"),
        pytest.param("May employees work from home on Fridays?", "No.", ["contradicted"], id="no"),
        pytest.param(
            None,
            "- Runs for 18 months on one set of batteries\n- Five-year warranty",
            ["supported", "contradicted"],
            id="list",
        ),
        pytest.param(
            None,
            "| Part | Value |\n|---|---|\n| Radio | Wi-Fi and Matter |\n| Weight | 2 kg |",
            ["supported", "unverifiable"],
            id="table",
        ),
        pytest.param(
            None,
            "## Warranty\n\nIt has a **three-year warranty** [1].",
            ["supported"],
            id="markdown with a citation",
        ),
        pytest.param(
            None,
            "It supports Wi-Fi and Matter (manual.md#radio).",
            ["supported"],
            id="citation of a section",
        ),
        pytest.param(
            None,
            "Use this:\n\n```python\nwarranty = 5\n```\n\nIt has a three-year warranty.",
            ["supported"],
            id="code is skipped",
        ),
        pytest.param(
            None,
            'The manual says: "It has a three-year warranty and supports Wi-Fi and Matter."',
            ["supported"],
            id="quote",
        ),
        pytest.param(None, "The documents do not say.", [], id="refusal"),
        pytest.param(None, "Hello! Can I help you with anything else?", [], id="courtesy"),
        pytest.param(None, "", [], id="empty"),
    ],
)
def test_every_kind_of_answer(question: str | None, answer: str, expected: list[str]) -> None:
    result = check(answer, [MANUAL], question)
    assert labels(result) == expected
    assert result.answer == answer


@pytest.mark.parametrize("documents", [[], [""], [" \n\t", ""]])
def test_no_documents_and_empty_documents_leave_every_claim_unchecked(
    documents: list[str],
) -> None:
    result = check("It has a three-year warranty.", documents)
    assert labels(result) == ["unchecked"]
    assert result.claims[0].reason == "no documents to check against"
    assert not result.is_trusted


def test_empty_documents_beside_others_keep_the_index_of_the_citation() -> None:
    result = check("It has a three-year warranty.", ["", MANUAL, ""])
    assert labels(result) == ["supported"]
    assert result.claims[0].citations[0].document == 1


def test_the_end_of_a_document_of_a_megabyte_is_read() -> None:
    filler = "The committee thanked the volunteers who had prepared the exhibition. "
    long = filler * 14_500 + "The treaty was signed in 1848."
    assert len(long) > 1_000_000
    result = check("The treaty was signed in 1848. The treaty was signed in 1912.", [long])
    assert labels(result) == ["supported", "contradicted"]


def test_the_last_of_ten_thousand_documents_is_read() -> None:
    documents = [f"Item {n} is kept on shelf {n % 97}." for n in range(9_999)]
    result = check("The treaty was signed in 1848.", [*documents, "The treaty was signed in 1848."])
    assert labels(result) == ["supported"]
    assert result.claims[0].citations[0].document == 9_999


def test_time_grows_with_the_documents_and_not_with_their_square() -> None:
    sentence = "Shelf {n} of the archive holds {n} boxes and a ladder. "
    small, large = (
        ["".join(sentence.format(n=n) for n in range(count))] for count in (1_000, 8_000)
    )

    def seconds(documents: list[str]) -> float:
        start = process_time()
        check("Shelf 7 of the archive holds 7 boxes and a ladder.", documents)
        return process_time() - start

    seconds(small)
    # Eight times the text; quadratic work would take sixty-four times as long.
    assert min(seconds(large) for _ in range(2)) < 24 * min(seconds(small) for _ in range(3))


ENDLESS: dict[str, Callable[[int], str]] = {
    "negations": lambda size: "Revenue " + "not told " * size,
    "numbers": lambda size: " ".join(map(str, range(1_000, 1_000 + size))),
    "quantifiers": lambda size: "Every one of " * size,
    "names": lambda size: " by ".join(f"Abc{n}" for n in range(size)),
    "brackets": lambda size: "( A " * size,
}


@pytest.mark.parametrize(
    ("kind", "largest", "degree"),
    [
        ("negations", 4_000, 1),
        ("numbers", 8_000, 1),
        ("quantifiers", 3_000, 1),
        ("names", 4_000, 1),
        ("brackets", 10_000, 1),
        # Sentences of at most 500 words, which are read closely.
        ("negations", 240, 2),
        ("numbers", 490, 2),
        ("names", 240, 2),
    ],
)
def test_an_endless_sentence_takes_linear_time(kind: str, largest: int, degree: int) -> None:
    def read(size: int) -> None:
        answer = ENDLESS[kind](size)
        check(answer, [MANUAL, answer, "Revenue was $2.1B in Q3. " * 50])

    assert_linear(read, largest, degree=degree)


def test_a_document_of_words_that_all_begin_alike_takes_linear_time() -> None:
    endings = product("abcdefghijklmnop", repeat=4)
    words = sorted(("prefix" + "".join(letters) for letters in endings), key=lambda w: w[::-1])

    def read(size: int) -> None:
        document = ". ".join(" ".join(words[n : n + 12]) for n in range(60, size, 12))
        check(" ".join(words[:60]), [document])

    assert_linear(read, len(words))


def test_a_claim_of_more_than_five_hundred_words_is_unchecked_and_says_so() -> None:
    result = check("The radio supports Wi-Fi and Matter " * 100, [MANUAL])
    assert labels(result) == ["unchecked"]
    assert "500 words" in str(result.claims[0].reason)
    assert not result.is_trusted
