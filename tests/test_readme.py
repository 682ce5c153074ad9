"""The README: its commands come first, its Python runs and prints what it says, its links hold."""

import re

import pytest
from snippets import ROOT, promised, put_in_place, snippets_of

from langchain_groundedness import GroundednessResult, GroundednessRunnable

README = (ROOT / "README.md").read_text(encoding="utf-8")
RUNNABLE = (ROOT / "docs" / "guide" / "runnable.md").read_text(encoding="utf-8")
SNIPPETS = [snippet.code for snippet in snippets_of(README)]
BEHIND, UNCHANGED, AGENT = SNIPPETS


def run(snippet: str) -> dict[str, object]:
    names: dict[str, object] = {}
    exec(compile(snippet, "README.md", "exec"), names)  # noqa: S102  (the README is ours)
    return names


def test_readme_opens_with_the_two_commands() -> None:
    commands = re.findall(r"^make (\S+)", README, re.MULTILINE)
    assert commands == ["demo", "test"]
    assert README.index("make demo") < 350


def test_readme_can_be_read_in_one_go() -> None:
    assert len(README.splitlines()) < 200


@pytest.mark.parametrize("snippet", SNIPPETS)
def test_each_way_to_begin_takes_about_ten_lines(snippet: str) -> None:
    assert len([line for line in snippet.splitlines() if line.strip()]) <= 14


def test_snippet_behind_a_chain_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    run(BEHIND)
    assert capsys.readouterr().out.splitlines() == promised(BEHIND) != []


def test_snippet_for_a_chain_that_nobody_changed_tells_verdicts_while_it_streams(
    capsys: pytest.CaptureFixture[str],
) -> None:
    result = run(UNCHANGED)["result"]
    assert isinstance(result, GroundednessResult)
    shown = capsys.readouterr().out.splitlines()
    assert sorted(shown) == sorted(f"{v.verdict} | {v.claim.text}" for v in result.claims)
    assert result.verdict == "has_contradictions"


def test_agent_snippet_prints_what_it_says(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = put_in_place(monkeypatch)
    run(AGENT)
    assert asked == ["anthropic:claude-haiku-4-5"]
    assert capsys.readouterr().out.splitlines() == promised(AGENT) != []


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"])
def test_what_a_page_of_the_repository_links_to_is_there(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    links = [link.split("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text)]
    missing = {link for link in links if "://" not in link and not (ROOT / link).exists()}
    assert missing == set()


def test_the_picture_of_a_checked_answer_is_small_and_says_what_it_shows() -> None:
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
    ("said", "page", "stands_there"),
    [
        ("Of 2,100 checks with 37 faults", "docs/guide/faults.md", "2100 checks: 37 faults"),
        ("none ended with a false verdict", "docs/guide/faults.md", "held; 0 ended wrong"),
        ("Of 902 attacks", "SECURITY.md", "of 902 attacks"),
        ("21 get a false claim through", "SECURITY.md", "| 21 (2.3 %) |"),
        ("and 19 where the embedded", "SECURITY.md", "cross-checked by the embedded verifier | 19"),
        ("Of 200 processes killed", "benchmarks/results/kills.md", "200 kills"),
    ],
)
def test_what_it_says_of_faults_stands_in_the_page_that_it_names(
    said: str, page: str, stands_there: str
) -> None:
    assert said in README
    assert stands_there in (ROOT / page).read_text(encoding="utf-8")
