"""The command `langchain-groundedness report`."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from langchain_groundedness.cli import app
from langchain_groundedness.evals import EvaluationRun, save_run
from report.runs import hostile, row, run, scored, small


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    return kept(small(), tmp_path / "run.jsonl")


def kept(of: EvaluationRun, path: Path) -> Path:
    save_run(of, path)
    return path


def called(*arguments: object) -> tuple[int, str, str]:
    found = CliRunner().invoke(app, ["report", *map(str, arguments)])
    assert found.exception is None or isinstance(found.exception, SystemExit)
    return found.exit_code, found.stdout, found.stderr


def test_all_formats_are_written_at_once(saved: Path, tmp_path: Path) -> None:
    outputs = [tmp_path / name for name in ("r.html", "r.md", "r.xml")]
    code, out, err = called(saved, *(part for path in outputs for part in ("-o", path)))
    assert (code, out) == (0, "")
    assert all(path.exists() for path in outputs)
    assert err.count("written to") == 3


@pytest.mark.parametrize("bad", ["bad.pdf", "gone/r.md", "run.jsonl", "good.html"])
def test_no_report_is_written_where_one_of_them_cannot_be(
    saved: Path, tmp_path: Path, bad: str
) -> None:
    before = saved.read_bytes()
    code, _, err = called(saved, "-o", tmp_path / "good.html", "-o", tmp_path / bad)
    assert code == 2
    assert bad in err
    assert not (tmp_path / "good.html").exists()
    assert saved.read_bytes() == before


def test_without_a_file_markdown_is_printed(saved: Path) -> None:
    code, out, _ = called(saved)
    assert code == 0
    assert out.startswith("# after\n")


def test_a_run_is_compared_with_another(saved: Path, tmp_path: Path) -> None:
    other = kept(run(row("r-2", scored("faithfulness", 0.0), question="Who leads it?")),
                 tmp_path / "other.jsonl")  # fmt: skip
    code, out, _ = called(saved, "--compare", other)
    assert code == 0
    said = "1 row in both, 1 of them with another answer or other documents, 3 only in this run."
    assert said in out


@pytest.mark.parametrize(
    ("least", "allowed", "code"), [("0.8", 3, 1), ("0.75", 3, 0), ("0.75", 2, 1), ("0", 0, 1)]
)
def test_the_exit_code_says_whether_a_metric_is_good_enough(
    saved: Path, least: str, allowed: int, code: int
) -> None:
    options = ("--fail-under", f"faithfulness={least}", "--max-failed", allowed)
    found, _, err = called(saved, *options)
    assert found == code
    assert err.startswith("✗ faithfulness: " if code else "✓ faithfulness: 0.750 is not below 0.75")


def test_one_metric_below_is_enough_and_the_reports_are_written_all_the_same(
    saved: Path, tmp_path: Path
) -> None:
    code, _, err = called(
        saved,
        *("--fail-under", "context_relevance=0.1", "--fail-under", "faithfulness=0.99"),
        *("--max-failed", 3, "-o", tmp_path / "r.xml"),
    )
    assert code == 1
    assert "✓ context_relevance" in err
    assert "failure" in (tmp_path / "r.xml").read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("none.jsonl",), "none.jsonl: No such file"),
        (("SAVED", "-o", "r.pdf"), "name the file .html, .md or .xml"),
        (("SAVED", "--fail-under", "faithfulness"), "--fail-under takes a pair"),
        (("SAVED", "--fail-under", "faithfulness=high"), "takes a finite number"),
        (("SAVED", "--fail-under", "faithfulness=nan"), "takes a finite number"),
        (("SAVED", "--fail-under", "speed=0.5"), "the run has no metric 'speed'"),
        (("SAVED", "--compare", "none.jsonl"), "none.jsonl: No such file"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(
    saved: Path, arguments: tuple[str, ...], said: str
) -> None:
    code, out, err = called(*(str(saved) if each == "SAVED" else each for each in arguments))
    assert (code, out) == (2, "")
    assert err.startswith("cannot make the report: ")
    assert said in err
    assert err.count("\n") == 1


def test_hostile_names_are_printed_as_text(tmp_path: Path) -> None:
    made = hostile()
    code, _, err = called(
        kept(made, tmp_path / "run.jsonl"), "--fail-under", f"{made.header.name}=0.6",
        "-o", tmp_path / "a.html",
    )  # fmt: skip
    assert code == 1
    assert "0.500 is below 0.6" in err
    assert not set("\x00\u202e") & set(err)
