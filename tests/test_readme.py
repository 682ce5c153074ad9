"""The README: its commands come first, its Python runs and prints what it says, its links hold."""

import re

import pytest
from snippets import ROOT, Snippet, snippets_of

from langchain_groundedness import GroundednessResult, GroundednessRunnable

README = (ROOT / "README.md").read_text(encoding="utf-8")
RUNNABLE = (ROOT / "docs" / "guide" / "runnable.md").read_text(encoding="utf-8")
SNIPPETS = snippets_of(README)
BEHIND, UNCHANGED = SNIPPETS


def run(*codes: str) -> dict[str, object]:
    names: dict[str, object] = {}
    for code in codes:
        exec(compile(code, "README.md", "exec"), names)  # noqa: S102  (the README is ours)
    return names


def test_readme_says_how_to_install_and_shows_code_before_anything_else() -> None:
    assert README.index("pip install langchain-groundedness") < 400
    assert README.index("```python") < README.index("\n## ")


def test_readme_can_be_read_in_one_go() -> None:
    assert len(README.splitlines()) <= 110


@pytest.mark.parametrize("snippet", SNIPPETS)
def test_each_way_to_begin_takes_about_ten_lines(snippet: Snippet) -> None:
    assert len([line for line in snippet.code.splitlines() if line.strip()]) <= 10


def test_snippet_behind_a_chain_prints_what_it_shows(capsys: pytest.CaptureFixture[str]) -> None:
    run(BEHIND.code)
    assert capsys.readouterr().out == BEHIND.output


def test_snippet_for_a_chain_that_nobody_changed_tells_verdicts_while_it_streams(
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = run(BEHIND.code)
    capsys.readouterr()
    exec(compile(UNCHANGED.code, "README.md", "exec"), before)  # noqa: S102  (the README is ours)
    result = before["result"]
    assert isinstance(result, GroundednessResult)
    shown = capsys.readouterr().out.splitlines()
    assert sorted(shown) == sorted(f"{v.verdict} | {v.claim.text}" for v in result.claims)
    assert result.verdict == "has_contradictions"


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"])
def test_what_a_page_of_the_repository_links_to_is_there(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    links = [link.split("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text)]
    missing = {link for link in links if "://" not in link and not (ROOT / link).exists()}
    assert missing == set()


def test_the_picture_of_the_live_page_is_small_and_says_what_it_shows() -> None:
    [(said, path)] = re.findall(r"!\[([^\]]+)\]\(([^)]+)\)", README)
    assert len(said) > 100
    assert (ROOT / path).stat().st_size < 100_000


def table(heading: str) -> list[str]:
    section = RUNNABLE.split(f"## {heading}\n")[1].split("\n## ")[0]
    first_cells = re.findall(r"^\| (`[^|]*) \|", section, re.MULTILINE)
    return re.findall(r"`(\w+)`", " ".join(first_cells))


def test_table_of_results_names_every_field() -> None:
    assert set(table("What comes out")) | {"question", "documents"} == set(
        GroundednessResult.model_fields
    )


def test_table_of_options_names_every_option() -> None:
    own = set(GroundednessRunnable.model_fields) - {"name"}
    assert set(table("Options")) == own


@pytest.mark.parametrize(
    ("said", "page", "shown_there"),
    [
        ("| BEGIN, dialogue replies | .931 | .911 |", "accuracy", "0.928      0.931 "),
        ("| LFQA-Verification, long answers | .880 | .889 |", "accuracy", "0.881      0.880 "),
        ("| BUMP, news edited by people | .707 | .606 |", "accuracy", "0.701      0.707 "),
        (
            "70 right and supports 8",
            "minimal_pairs",
            "right 70, missed support 8, wrongly supported 8, caught otherwise 4",
        ),
        (
            "| langchain-groundedness | 2.0 | 1,554 | 60 | 8.5 |",
            "peers",
            "| 2.00 | 1,554 | 60 | 8.46",
        ),
        ("`single_pass` | 1.0 | 1,286 | 48 | 4.3 |", "peers", "| 1.00 | 1,286 | 48 | 4.31"),
    ],
)
def test_the_figures_of_the_readme_are_those_of_the_results(
    said: str, page: str, shown_there: str
) -> None:
    assert said in README
    results = ROOT / "benchmarks" / "results" / f"{page}.md"
    assert shown_there in results.read_text(encoding="utf-8")
