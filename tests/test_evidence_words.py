"""What stands above the quotes of a claim, wherever a claim is shown."""

from typing import Any

import pytest
from langchain_core.documents import Document
from rich.console import Console

from langchain_groundedness import Citation, Claim, ClaimVerdict, Decision, GroundednessResult
from langchain_groundedness.display.notebook import result_html
from langchain_groundedness.display.terminal import render
from langchain_groundedness.display.words import evidence_words

DOCUMENTS = (Document("It is red."), Document("It was red."))


def verdict(label: Any, quotes: int = 1, **fields: Any) -> ClaimVerdict:
    cited = tuple(Citation.from_document(DOCUMENTS, place, 0, 10) for place in range(quotes))
    claim = Claim(id="a", text="It is red.", start=0, end=10)
    return ClaimVerdict(claim=claim, verdict=label, citations=cited, **fields)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (verdict("supported", support_probability=0.88), "The documents say this"),
        (verdict("supported", support_probability=0.83), "Supporting passage"),
        (verdict("supported"), "Supporting passage"),
        (verdict("supported", 2), "Supporting passages"),
        (verdict("supported", 0, support_probability=0.99), "Closest passage"),
        (verdict("supported", 2, conflicting=True), "Passages for and against"),
        (verdict("contradicted"), "Contradicting passage"),
        (verdict("contradicted", 2), "Contradicting passages"),
        (verdict("unverifiable"), "Closest passage"),
        (verdict("unverifiable", 2, support_probability=0.9), "Closest passages"),
        (verdict("unchecked", reason="no reply"), "Closest passage"),
    ],
)
def test_no_more_is_said_of_quotes_than_is_known(found: ClaimVerdict, words: str) -> None:
    assert evidence_words(found) == words


def test_terminal_and_notebook_say_the_same() -> None:
    result = GroundednessResult(
        question=None,
        answer="It is red.",
        original_answer="It is red.",
        documents=DOCUMENTS,
        claims=(verdict("supported", 2),),
        trust_score=1.0,
        verdict="grounded",
        is_trusted=True,
        decision=Decision(action="pass"),
    )
    console = Console(width=200)
    with console.capture() as shown:
        console.print(render(result))
    assert "Supporting passages:" in shown.get()
    assert ">Supporting passages<" in result_html(result)
