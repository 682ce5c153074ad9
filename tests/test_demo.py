"""The demonstration that `make demo` runs."""

import re

import pytest
from commands import ran
from langchain_core.runnables import Runnable

from langchain_groundedness import GroundednessResult, GroundednessRunnable
from langchain_groundedness.demo import ANSWER, QUESTION, build_chain, load_documents


def test_chain_retrieves_the_documents_that_settle_its_answer() -> None:
    found = build_chain().invoke(QUESTION)
    assert found["answer"] == ANSWER
    assert isinstance(found["documents"], list)
    assert {document.metadata["source"] for document in found["documents"]} == {
        "quarterly-report.md",
        "s2-changelog.md",
        "s2-manual.md",
        "warranty-policy.md",
    }
    assert len(load_documents()) == 6


@pytest.fixture
def checked() -> Runnable[str, GroundednessResult]:
    return build_chain().pipe(GroundednessRunnable(on_contradicted="correct"))


async def test_planted_errors_are_found_and_corrected(
    checked: Runnable[str, GroundednessResult],
) -> None:
    result = await checked.ainvoke(QUESTION)
    assert [found.verdict for found in result.claims] == [
        "contradicted",
        "supported",
        "contradicted",
        "supported",
        "unverifiable",
    ]
    assert "Revenue was [CORRECTED: $2.1B] in Q3" in result.answer
    assert "five-year" not in result.answer
    assert all(
        citation.holds_in(result.documents)
        for found in result.claims
        for citation in found.citations
    )
    assert result.verdict == "has_contradictions"


PARTS = (
    "scripted",
    "✗ contradicted",
    "✓ supported",
    "? unverifiable",
    "“Revenue was $2.1B in Q3, up 12% from the year before.",
    "quarterly-report.md",
    "[CORRECTED: $2.1B]",
)


def test_demonstration_in_a_terminal_colours_sentences_as_their_verdicts_come(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")
    code, out, err = ran(capsys, "demo")
    assert (code, err) == (0, "")
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", out)
    for part in (*PARTS, "not trusted · has contradictions", "· after correction: grounded · pass"):
        assert part in shown
    assert "\x1b[31mRevenue was $2.4B in Q3, up 12% from the year before.\x1b[0m" in out
    assert "\x1b[32mVersion 4.2.0 added support for Matter.\x1b[0m" in out


def test_demonstration_in_a_pipe_prints_a_line_for_each_verdict(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, out, err = ran(capsys, "demo")
    assert (code, err) == (0, "")
    assert "\x1b[" not in out
    assert all(part in out for part in PARTS)
    assert out.count("\n✓ supported") == out.count("\n✗ contradicted") == 2
