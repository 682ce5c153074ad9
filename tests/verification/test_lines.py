import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_groundedness.verification.batched import VerdictLine, read_lines, read_text

CASES = [
    ("C1: [3] supported", VerdictLine(1, "supported", (3,))),
    ("C1: [3] [4] supported", VerdictLine(1, "supported", (3, 4))),
    ("1: 3,4 supported", VerdictLine(1, "supported", (3, 4))),
    ("1: 3-5 supported", VerdictLine(1, "supported", (3, 4, 5))),
    ("**C12.** [7] Supported", VerdictLine(12, "supported", (7,))),
    ("Claim 2: supported [3]", VerdictLine(2, "supported", (3,))),
    ("2) supported by sentences 3, 4", VerdictLine(2, "supported", (3, 4))),
    ("2 [3] supported", VerdictLine(2, "supported", (3,))),
    ("C2: supported", VerdictLine(2, "supported")),
    (
        "C2: [7] contradicted | $2.1B | it was $2.1B",
        VerdictLine(2, "contradicted", (7,), "$2.1B", "it was $2.1B"),
    ),
    ("C2: [7] contradicted | $2.1B", VerdictLine(2, "contradicted", (7,), "$2.1B")),
    ("C2: [7] contradicted | - | no value", VerdictLine(2, "contradicted", (7,), None, "no value")),
    (
        "C2: [7] contradicted | the report says something else on that",
        VerdictLine(2, "contradicted", (7,), None, "the report says something else on that"),
    ),
    (
        "C3: unverifiable | kein Preis genannt",
        VerdictLine(3, "unverifiable", (), None, "kein Preis genannt"),
    ),
    ("C3: - unverifiable", VerdictLine(3, "unverifiable")),
    ("C3: not supported", VerdictLine(3, "unverifiable")),
    ("C3: [2] refuted", VerdictLine(3, "contradicted", (2,))),
    ("C1: Sentence 3 and 4 - **Supported**.", VerdictLine(1, "supported", (3, 4))),
    ("C1: Supported (sentences [3] and [4])", VerdictLine(1, "supported", (3, 4))),
    ("C1: [3] & [4], verdict: supported", VerdictLine(1, "supported", (3, 4))),
    ("C1: [3] => supported.", VerdictLine(1, "supported", (3,))),
    ("C1 [4, 5] supported", VerdictLine(1, "supported", (4, 5))),
    ("C3: unverifiable - no price", VerdictLine(3, "unverifiable", (), None, "no price")),
    ("C3: [1] not supported: none", VerdictLine(3, "unverifiable", (1,))),
]


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_a_line_is_read(text: str, expected: VerdictLine) -> None:
    assert read_lines([text]) == {expected.claim: expected}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "supported",
        "C1:",
        "C1: [3]",
        "C1: [3] suppor",
        "C1: [3] supported or contradicted",
        "C1: LABEL",
        "Here are the verdicts:",
        "| C1: x",
        "C1 | [3] | fine",
        "[1] supported",
        "C1: [1] not fully supported",
        "C1: [1] partially supported",
        "C1: [1] hardly supported | x",
        "C1: [1] isn't supported",
        "C1: [1] cannot be supported",
        "C1: [1] un-supported",
        "C1: [1] \u00acsupported",
        "C1: [1] !supported",
        "C1: 1 supported? no",
        "C1: supported by nothing",
        "C1: supported - not at all",
        "C1: supported, no",
        "C1: Sentence 1 does not mean that it is supported.",
        "C1: I doubt sentence 1 means it is supported",
        "C1: According to 2014 data supported",
    ],
)
def test_what_is_no_verdict_is_passed_over(text: str) -> None:
    assert read_lines([text]) == {}
    assert read_text(text) is None


def test_two_labels_for_a_claim_are_no_verdict() -> None:
    lines = ["C1: [3] supported", "C2: [1] supported", "C1: [3] contradicted"]
    assert set(read_lines(lines)) == {2}


def test_the_first_of_two_equal_verdicts_counts() -> None:
    lines = ["C1: [3] supported", "C1: [4] supported"]
    assert read_lines(lines)[1].sentences == (3,)


def test_a_huge_range_is_not_spelled_out() -> None:
    assert read_lines(["C1: 1-999999999 supported"])[1].sentences == (1, 999999999)


def test_a_number_of_thousands_of_digits_is_no_sentence() -> None:
    assert read_lines([f"C1: [{'9' * 5_000}] supported"]) == {}


def test_verdict_lines_are_found_in_prose() -> None:
    reply = read_text("Sure!\n\nC1: [1] supported\nThat was it.")
    assert reply is not None
    assert reply.lines == ["C1: [1] supported"]


@given(st.lists(st.text()))
def test_any_text_can_be_read(lines: list[str]) -> None:
    for number, line in read_lines(lines).items():
        assert line.claim == number
