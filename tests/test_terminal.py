"""What a result looks like in a terminal."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document
from rich.console import Console

from langchain_groundedness.display.terminal import printable, render
from langchain_groundedness.types import (
    Citation,
    Claim,
    ClaimVerdict,
    Decision,
    Edit,
    GroundednessResult,
)

ANSWER = "It opened in 1990. It was closed in 2001. It is red."
CLAIM = Claim(id="c1", text="It opened in 1990.", start=0, end=18)


def shown(result: GroundednessResult, *, colour: bool = False) -> str:
    screen = io.StringIO()
    Console(
        file=screen, width=120, force_terminal=colour, color_system="standard" if colour else None
    ).print(render(result))
    return screen.getvalue()


def result(
    *claims: ClaimVerdict,
    documents: tuple[Document, ...] = (),
    edits: tuple[Edit, ...] = (),
    answer: str = ANSWER,
    trusted: bool = False,
    score: float | None = None,
) -> GroundednessResult:
    return GroundednessResult(
        question=None,
        answer=answer,
        original_answer=ANSWER,
        documents=documents,
        claims=claims,
        trust_score=score,
        verdict="grounded" if trusted else "unchecked",
        is_trusted=trusted,
        decision=Decision(action="pass" if trusted else "review"),
        edits=edits,
    )


def supported(document: Document, **more: object) -> ClaimVerdict:
    cited = Citation.from_document([document], 0, 0, len(document.page_content))
    fields = {"claim": CLAIM, "verdict": "supported", "citations": (cited,), **more}
    return ClaimVerdict.model_validate(fields)


@pytest.mark.parametrize(
    ("document", "name"),
    [
        (Document("It opened.", id="d7", metadata={"source": "a.md"}), "a.md:0-10"),
        (Document("It opened.", id="d7"), "d7:0-10"),
        (Document("It opened."), "document 1 of 1:0-10"),
    ],
)
def test_source_is_the_best_name_that_the_document_has(document: Document, name: str) -> None:
    assert name in shown(result(supported(document), documents=(document,)))


def test_long_quote_is_cut_on_screen_and_its_line_ends_are_folded() -> None:
    document = Document("It\nopened " + "very " * 100)
    screen = shown(result(supported(document), documents=(document,)))
    assert "“It opened very" in screen
    assert "…”" in screen
    assert screen.count("very") < 60


def test_documents_that_disagree_are_said_to() -> None:
    document = Document("It opened in 1990. Others say 1991.")
    screen = shown(result(supported(document, conflicting=True), documents=(document,)))
    assert "the documents disagree" in screen


def test_reason_and_probability_are_shown_where_there_are_any() -> None:
    document = Document("It opened in 1990.")
    unchecked = ClaimVerdict.unchecked(Claim(id="c2", text="It is red."), "the judge timed out")
    screen = shown(
        result(supported(document, support_probability=0.934), unchecked, documents=(document,))
    )
    assert "p = 0.93" in screen
    assert "the judge timed out" in screen


def test_each_edit_is_coloured_where_it_stands_in_the_corrected_answer() -> None:
    edits = (
        Edit(claim_id="c1", start=13, end=17, original="1990", replacement="May 1991"),
        Edit(claim_id="c2", start=36, end=40, original="2001", replacement="1"),
    )
    answer = "It opened in May 1991. It was closed in 1. It is red."
    screen = shown(result(edits=edits, answer=answer), colour=True)
    corrected = next(line for line in screen.splitlines() if "Corrected" in line)
    assert "\x1b[1;32mMay 1991\x1b[0m. It was closed in \x1b[1;32m1\x1b[0m." in corrected


def test_last_line_says_whether_to_trust_and_why() -> None:
    document = Document("It opened in 1990.")
    trusted = shown(result(supported(document), documents=(document,), trusted=True, score=1.0))
    assert trusted.splitlines()[-1].strip() == (
        "trusted · grounded · trust score 1.00 (1 of 1 supported) · pass"
    )
    assert shown(result()).splitlines()[-1].strip() == "not trusted · unchecked · review"


@given(st.text())
def test_printable_keeps_the_length_and_all_that_can_be_seen(text: str) -> None:
    clean = printable(text)
    assert len(clean) == len(text)
    assert printable(clean) == clean
    ends = text.replace("\r\n", " \n")
    assert all(new in (old, "\ufffd") for new, old in zip(clean, ends, strict=True))
    clean.encode()


@pytest.mark.parametrize("char", ["\x00", "\x07", "\r", "\x1b", "\x7f", "\x9b", "\u202e", "\ud800"])
def test_printable_replaces_what_a_terminal_would_obey(char: str) -> None:
    assert printable(f"a{char}b") == "a\ufffdb"


def test_the_line_ends_of_windows_are_no_strange_characters() -> None:
    assert printable("a\r\nb\rc\r\n") == "a \nb\ufffdc \n"


@pytest.mark.parametrize("text", ["a\tb\nc", "é 漢字 مرحبا", "👩‍🚀"])
def test_printable_leaves_ordinary_text_of_any_script_alone(text: str) -> None:
    assert printable(text) == text
