"""The notebooks: made from their scripts, executed, the same on every machine."""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import nbformat
import pytest

from cookbook.build import cells_of
from langchain_groundedness.calibration.thresholds import FEWEST

NEEDS_RAY = "needs Ray"
FOLDER = Path(__file__).parent.parent / "cookbook"
SCRIPTS = sorted(FOLDER.glob("[0-9]*.py"))


def notebook(path: Path) -> Any:
    read: Any = nbformat.read
    return read(path, as_version=4)


def lines_of(name: str) -> list[Any]:
    return [json.loads(line) for line in (FOLDER / name).read_text("utf-8").splitlines()]


def outputs(path: Path) -> list[Any]:
    return [cell.outputs for cell in notebook(path).cells if cell.cell_type == "code"]


def comparable(path: Path) -> list[str]:
    """What each code cell shows; of those tagged `varies`, without the figures.

    The encoder's int8 arithmetic is not the same on all processors: with AVX2 in place of VNNI,
    probabilities of the claims of the shop differ by up to 0.04.
    """
    cells = [cell for cell in notebook(path).cells if cell.cell_type == "code"]
    if find_spec("ray") is None:
        cells = [cell for cell in cells if NEEDS_RAY not in cell.source]
    return [
        _masked(cell.outputs) if "varies" in tags_of(cell) else str(cell.outputs) for cell in cells
    ]


def tags_of(cell: Any) -> list[str]:
    return list(cell.metadata.get("tags", []))


def _masked(found: Any) -> str:
    shown = re.sub(r"<svg.*?</svg>", "<svg>", str(found), flags=re.DOTALL)
    return re.sub(r"(\d+(\.\d+)?|─+|\s+)", lambda part: "#" if part[0][0].isdigit() else " ", shown)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_notebook_is_made_from_its_script(script: Path) -> None:
    cells = notebook(script.with_suffix(".ipynb")).cells
    assert [(cell.cell_type, cell.source, tags_of(cell)) for cell in cells] == cells_of(
        script.read_text(encoding="utf-8")
    )


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_notebook_shows_a_result_in_its_second_cell(script: Path) -> None:
    second = notebook(script.with_suffix(".ipynb")).cells[1]
    assert second.cell_type == "code"
    shown = [output for output in second.outputs if "data" in output]
    assert [
        kind
        for output in shown
        for kind in output.data
        if kind.startswith(("text/html", "image", "text/markdown"))
    ]


@pytest.mark.timeout(400)
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_notebook_runs_offline_and_gives_the_outputs_that_are_stored(
    script: Path, tmp_path: Path
) -> None:
    # In a process of its own: a kernel talks through sockets, which are blocked in this one.
    subprocess.run(
        [sys.executable, "-W", "ignore", FOLDER / "build.py", script.stem, "--into", tmp_path],
        env=os.environ | {"PYTHONPATH": str(FOLDER.parent)},
        check=True,
    )
    fresh = tmp_path / f"{script.stem}.ipynb"
    assert comparable(fresh) == comparable(script.with_suffix(".ipynb"))
    assert sum(map(len, outputs(fresh))) > 3


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_notebook_knows_nothing_of_the_machine_it_was_made_on(script: Path) -> None:
    text = script.with_suffix(".ipynb").read_text(encoding="utf-8")
    assert not re.search(r"/(tmp|home|root|work|usr|Users)\b|\.venv|Traceback|Warning", text)


@pytest.mark.parametrize("name", ["shop", "papers"])
def test_each_labelled_claim_names_a_document_that_is_there(name: str) -> None:
    rows = lines_of(f"{name}/claims.jsonl")
    documents = {path.name for path in (FOLDER / name / "documents").iterdir()}
    assert {row["source"] for row in rows} == documents
    assert len({row["claim"] for row in rows}) == len(rows)
    counts = Counter(row["label"] == "supported" for row in rows)
    assert {row["label"] for row in rows} <= {
        "supported",
        "unsupported",
        "contradicted",
        "unverifiable",
    }
    assert min(counts[True], counts[False]) >= FEWEST


def test_what_is_wrong_in_an_answer_about_the_papers_stands_in_it() -> None:
    rows = lines_of("papers/answers.jsonl")
    assert {row["source"] for row in rows} == {
        path.name for path in (FOLDER / "papers" / "documents").iterdir()
    }
    for row in rows:
        assert row["wrong"]
        assert all(sentence in row["answer"] for sentence in row["wrong"])
        assert set(row["wrong"].values()) <= {"contradicted", "unverifiable"}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_notebook_warns_of_nothing(script: Path) -> None:
    shown = [output for each in outputs(script.with_suffix(".ipynb")) for output in each]
    assert not [output for output in shown if output.get("name") == "stderr"]


def test_a_warning_ends_the_making_of_a_notebook() -> None:
    script = "# %%\nimport warnings\nwarnings.warn('old', DeprecationWarning, stacklevel=1)\n"
    done = subprocess.run(
        [sys.executable, "-c", f"from cookbook.build import executed; executed({script!r})"],
        cwd=FOLDER.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "DeprecationWarning" in done.stderr


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_notebook_says_what_to_expect_and_how_to_use_a_model_of_yours(script: Path) -> None:
    text = script.read_text(encoding="utf-8")
    assert text.count("*Expect*") > 3
    lacking = {"| OpenAI |", "| Anthropic |", "| Ollama |", "| vLLM |"} - set(
        re.findall(r"\| \w+ \|", text)
    )
    assert not lacking


@pytest.mark.parametrize("page", [*SCRIPTS, FOLDER / "README.md"], ids=lambda path: path.stem)
def test_links_between_notebooks_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!http)([^)]+)\)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (FOLDER / link).exists()] == []


def test_the_readme_of_the_cookbook_lists_each_notebook() -> None:
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"\(([0-9]\w+)\.ipynb\)", text)
    assert listed == [script.stem for script in SCRIPTS]


def test_the_model_of_the_shop_has_a_reply_and_a_person_a_label_for_each_question() -> None:
    questions, labels = lines_of("shop/questions.jsonl"), lines_of("shop/labels.jsonl")
    replies = json.loads((FOLDER / "shop" / "model.json").read_text(encoding="utf-8"))
    assert [row["question"] for row in questions] == list(replies)
    assert [row["id"] for row in questions] == [row["id"] for row in labels]
    assert {row["label"] for row in labels} == {"right", "wrong"}
