"""The page of figures shows medians, and says how far the runs lie apart."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent
RUNS = (
    "calls  12.5 ms  2 x 1,000 rows  .85",
    "calls  10.5 ms  2 x 1,100 rows  .85",
    "calls 110.5 ms  2 x 1,300 rows  .84",
)


@pytest.fixture(scope="module")
def page() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "benchmarks_page", ROOT / "benchmarks" / "benchmarks_page.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_each_number_is_the_median_of_the_runs(page: ModuleType) -> None:
    assert page.middle(RUNS) == "calls  12.5 ms  2 x 1,100 rows  .85"


def test_the_spread_is_that_between_lowest_and_highest_run(page: ModuleType) -> None:
    assert page.apart(RUNS).endswith("27% above the lowest at the median, 800% at most.")
    assert page.apart(RUNS[:1] * 3) == "The same in 3 runs."


def test_runs_that_printed_other_lines_are_not_mixed(page: ModuleType) -> None:
    runs = (RUNS[0], "failed", RUNS[2])
    assert page.middle(runs) == RUNS[0]
    assert "did not print the same lines" in page.apart(runs)


def test_a_goal_is_missed_if_most_runs_say_so(page: ModuleType) -> None:
    runs = (
        "12.0 ms\nmissed: mean: 12.0 ms, goal 10\nmissed: memory",
        "9.0 ms",
        "11.0 ms\nmissed: mean: 11.0 ms, goal 10",
    )
    assert page.mostly_missed(runs) == ["missed: mean: 12.0 ms, goal 10"]
    assert page.mostly_missed(runs[:1]) == ["missed: mean: 12.0 ms, goal 10", "missed: memory"]
    assert page.mostly_missed(runs[1:2]) == []


def test_every_script_that_is_named_is_there(page: ModuleType) -> None:
    for section in page.SECTIONS:
        assert (ROOT / section.command.split()[0]).is_file(), section.name


def test_the_summary_links_to_each_result_and_lists_the_goals_it_missed(
    page: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(page, "RESULTS", tmp_path)
    (tmp_path / "load.md").write_text("# Load\n\n```text\nmissed: embedded: 12 ms\n```\n")
    (tmp_path / "guard.md").write_text("# Policy and audit log\n")
    page.write_summary()
    text = page.PAGE.read_text(encoding="utf-8")
    assert text.count("](benchmarks/results/guard.md) |") == 1
    assert "- [Load](benchmarks/results/load.md): embedded: 12 ms" in text
    assert "benchmarks/results/overhead.md" not in text


def test_the_summary_in_the_repository_is_the_one_of_its_results(
    page: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = page.PAGE.read_text(encoding="utf-8")
    monkeypatch.setattr(page, "PAGE", tmp_path / "page.md")
    page.write_summary()
    assert page.PAGE.read_text(encoding="utf-8") == written
    assert len(written.splitlines()) <= 200
