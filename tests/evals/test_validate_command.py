"""`langchain-groundedness validate`, as users run it."""

import json
from pathlib import Path
from typing import Any

import pytest
from commands import Outcome, Run, ran

from langchain_groundedness.evals.progress import ProgressBar
from langchain_groundedness.evals.validation import AnswerValidator
from langchain_groundedness.testing import ScriptedChatModel

BRIDGE = "The bridge was built in 1890. It is 40 m long."
ROWS = [
    {"id": "a", "question": "Age?", "answer": "The bridge was built in 1890.", "label": True},
    {"id": "b", "question": "Age?", "answer": "The bridge was built in 1990.", "label": False},
    {"id": "c", "question": "Length?", "answer": "It is 40 m long.", "label": True},
]
FILES = ("--passed", "p.jsonl", "--rejected", "r.jsonl")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    write(ROWS)

    def go(*arguments: str) -> Outcome:
        return ran(capsys, "validate", "in.jsonl", *FILES, *arguments)

    return go


def write(rows: list[dict[str, Any]]) -> None:
    lines = (json.dumps({**row, "contexts": row.get("contexts", [BRIDGE])}) for row in rows)
    Path("in.jsonl").write_text("\n".join(lines), "utf-8")


def test_a_data_set_is_parted_and_summed_up(run: Run) -> None:
    found = run()
    assert found.code == 0
    assert "2 of 3 rows passed (66.7%), 1 rejected" in found.out
    assert "the documents contradict a claim" in found.out
    assert "against 3 labels: balanced accuracy 1.00" in found.out
    assert "source score alone" in found.out
    assert "pass_score" not in found.out
    assert len(Path("p.jsonl").read_text().splitlines()) == 2


def test_the_same_command_goes_on_and_shows_the_sweep(run: Run) -> None:
    run()
    found = run("--sweep")
    assert "3 rows already there" in found.out
    assert "--pass-score 0.70 *" in found.out
    assert "precision" in found.out


def test_thresholds_that_change_nothing_share_a_line_of_the_sweep(run: Run) -> None:
    found = run("--sweep")
    lines = [line.split() for line in found.out.splitlines()]
    values = [line[1:-4] for line in lines if line[:1] == ["--min-source"]]
    assert values == [["0.05", "to", "0.45"], ["0.50", "*"], ["0.55", "to", "0.95"]]


def test_every_threshold_of_the_sweep_can_be_given_to_the_command(run: Run) -> None:
    sweep = json.loads(run("--json").out)["sweep"]
    listed = {line["value"] for line in sweep if line["option"] == "reject"}
    assert max(listed) == 0.75  # --accept
    for value in (min(listed), max(listed)):
        assert run("--reject", str(value), "--fresh").code == 0


def test_the_page_says_what_passed_why_not_and_what_other_thresholds_would_do(run: Run) -> None:
    found = run("--html", "v.html")
    assert "Next: open v.html in a browser" in found.out
    page = Path("v.html").read_text("utf-8")
    for said in ("2 passed", "1 rejected", "the documents contradict a claim", "--pass-score"):
        assert said in page
    assert page.count('class="plot"') == 3


def test_json_is_for_programs(run: Run) -> None:
    found = run("--json", "--summary", "s.json")
    told = json.loads(found.out)
    assert (told["passed"], told["rejected"], told["complete"]) == (2, 1, True)
    assert json.loads(Path("s.json").read_text("utf-8"))["summary"] == told


def test_rows_that_cannot_be_read_or_checked_are_told_and_the_code_is_1(run: Run) -> None:
    write([*ROWS, {"id": "d", "question": "?", "answer": "Old.", "contexts": [" "]}])
    with Path("in.jsonl").open("a") as file:
        file.write("\nnonsense\n")
    found = run()
    assert found.code == 1
    assert "1 could not be checked, 1 could not be read" in found.out
    assert "not read: line 5: not JSON" in found.out


def test_columns_may_have_other_names(run: Run) -> None:
    text = json.dumps({"reply": "It is 40 m long.", "sources": [BRIDGE]})
    Path("in.jsonl").write_text(text, "utf-8")
    found = run("--column", "answer=reply", "--column", "contexts=sources")
    assert "1 of 1 row passed" in found.out


def test_a_chat_model_judges_the_second_stage(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    scores = {"relevance": 1.0, "correctness": 0.4, "completeness": 1.0}
    model = ScriptedChatModel(
        replies=lambda m: (
            json.dumps({"reasoning": "So.", **scores})
            if "You review answers" in m[0].text
            else "{tag} C1: contradicted [1] | 1890"
        )
    )
    models = {"some:model": model}
    monkeypatch.setattr("langchain.chat_models.init_chat_model", models.__getitem__)
    found = run("--model", "some:model", "--minimum", "correctness=0.5", "--weight", "source=0.5")
    assert found.code == 0
    assert "0 of 3 rows passed" in found.out
    assert "a score is below its minimum" in found.out
    assert "source score alone" not in found.out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--accept", "0.3"), "reject must not be above accept"),
        (("--column", "answer"), "--column takes a pair"),
        (("--minimum", "correctness=much"), "--minimum correctness takes a finite number"),
        (("--minimum", "correctness=0.5"), "--minimum correctness needs --model"),
        (("--weight", "correctness=0.5"), "--weight correctness needs --model"),
        (("--weight", "charm=1"), "weights may name"),
        (("--column", "answer=nothing"), "nothing"),
        (("--base-url", "http://x"), "--base-url needs --model"),
        (("--calibration", "gone.json"), "gone.json: No such file"),
        (("--embeddings", "nobody:nothing"), "embeddings nobody:nothing"),
    ],
)
def test_what_cannot_work_is_said_in_one_line(
    run: Run, options: tuple[str, ...], said: str
) -> None:
    found = run(*options)
    assert found.code == 2
    assert said in found.err
    assert found.err.startswith("cannot validate: ")
    assert len(found.err.splitlines()) == 1
    assert not Path("p.jsonl").exists()


@pytest.mark.parametrize("page", ["in.jsonl", "p.jsonl", "p.summary.json"])
def test_the_page_replaces_no_other_file_of_the_command(run: Run, page: str) -> None:
    before = Path("in.jsonl").read_bytes()
    found = run("--html", page)
    assert (found.code, found.out) == (2, "")
    assert f"--html {page} is also " in found.err
    assert Path("in.jsonl").read_bytes() == before
    assert not Path("p.jsonl").exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "in.jsonl: the data set has no rows"),
        ("nonsense\n", "in.jsonl: 1 row, none of which can be read; the first: line 1: not JSON"),
    ],
)
def test_a_data_set_of_which_nothing_can_be_read_is_refused_and_leaves_no_files(
    run: Run, text: str, said: str
) -> None:
    Path("in.jsonl").write_text(text, "utf-8")
    found = run()
    assert (found.code, found.out) == (2, "")
    assert said in found.err
    assert {path.name for path in Path().iterdir()} == {"in.jsonl"}


def test_other_options_need_fresh(run: Run) -> None:
    run()
    found = run("--pass-score", "0.9")
    assert found.code == 2
    assert "other options (pass_score)" in found.err
    assert run("--pass-score", "0.9", "--fresh").code == 0


def test_ctrl_c_shows_what_there_is_and_the_next_run_goes_on(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []

    def interrupt(_: object, done: int, *__: object) -> None:
        seen.append(done)
        if len(seen) == 1:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ProgressBar, "show", interrupt)
        found = run("--max-concurrency", "1")
    assert found.code == 130
    assert "not complete: run the same command again to resume" in found.out
    again = run()
    assert again.code == 0
    assert "2 of 3 rows passed" in again.out


def test_what_is_shown_of_rows_cannot_steer_the_terminal(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        msg = "\x1b[31mred"
        raise ValueError(msg)

    monkeypatch.setattr(AnswerValidator, "__init__", fail)
    found = run()
    assert "\x1b" not in found.err
    assert found.code == 2
