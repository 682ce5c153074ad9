"""The demonstration that `make demo` runs."""

import re
import runpy
import sys

import pytest
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


def test_demonstration_prints_each_claim_verdict_quote_and_source_in_colour(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")
    runpy.run_module("langchain_groundedness.demo", run_name="__main__")
    out, err = capsys.readouterr()
    assert err == ""
    assert "\x1b[" in out
    shown = re.sub(r"\x1b\[[0-9;]*m", "", out)
    for part in (
        "scripted",
        "✗ contradicted",
        "✓ supported",
        "? unverifiable",
        "“Revenue was $2.1B in Q3, up 12% from the year before.",
        "quarterly-report.md:",
        "[CORRECTED: $2.1B]",
        "not trusted · has_contradictions",
        "· after correction: grounded · pass",
    ):
        assert part in shown


def test_demonstration_without_its_extra_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "rich.console", None)
    with pytest.raises(SystemExit) as stopped:
        runpy.run_module("langchain_groundedness.demo", run_name="__main__")
    assert stopped.value.code == 2
    assert "pip install 'langchain-groundedness[cli]'" in capsys.readouterr().err
