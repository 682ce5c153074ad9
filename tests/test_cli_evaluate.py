"""The command `evaluate`, run in this process with real arguments and files."""

import json
import logging
import signal
from pathlib import Path
from typing import Any

import pytest
from commands import Outcome, Run, ran, without_settings
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.messages import AIMessage

from langchain_groundedness import evals
from langchain_groundedness.cli.errors import each_warning_once
from langchain_groundedness.evals import FaithfulnessEvaluator, load_run
from langchain_groundedness.testing import ScriptedChatModel, ScriptedVerifier
from langchain_groundedness.types import Claim

TRUE = {"id": "t", "answer": "Rome is in Italy.", "contexts": ["Rome is in Italy."], "kind": "x"}
FALSE = {"id": "f", "answer": "Rome is in Spain.", "contexts": ["Rome is in Italy."]}


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> Run:
    monkeypatch.chdir(tmp_path)
    without_settings(monkeypatch)

    def evaluate(*arguments: str) -> Outcome:
        return ran(capsys, "evaluate", *arguments)

    return evaluate


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    return write(tmp_path / "rows.jsonl", TRUE, FALSE)


def write(path: Path, *rows: Any) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


USUAL = ("rows.jsonl", "--metric", "faithfulness", "-o", "run.jsonl")


@pytest.mark.usefixtures("rows")
def test_the_table_tells_the_mean_and_the_run_file_has_the_rows(run: Run) -> None:
    outcome = run(*USUAL)
    assert outcome.code == 0
    assert "faithfulness" in outcome.out
    assert "0.500" in outcome.out
    assert "2 of 2 rows; 2 of them now" in outcome.out
    assert outcome.err == ""
    assert [row.row.id for row in load_run("run.jsonl").rows] == ["t", "f"]


@pytest.mark.usefixtures("rows")
def test_a_verifier_is_chosen_by_name(run: Run) -> None:
    assert run(*USUAL, "--verifier", "embedded").code == 0
    other = ("rows.jsonl", "--metric", "bleu", "-o", "other.jsonl", "--verifier", "gpt")
    outcome = run(*other)
    assert outcome.code == 2
    expected = "no verifier 'gpt'; accepted: embedded, hhem (110 million parameters, Apache-2.0)"
    assert expected in outcome.err


@pytest.mark.usefixtures("rows")
def test_the_same_command_again_evaluates_nothing(run: Run) -> None:
    run(*USUAL)
    before = load_run("run.jsonl").rows
    again = run(*USUAL)
    assert (again.code, "rows/s" in again.out) == (0, False)
    assert load_run("run.jsonl").rows == before
    other = run(*USUAL, "--limit", "1")
    assert other.code == 2
    assert "the rows are not those of rows.jsonl" in other.err
    assert run(*USUAL, "--limit", "1", "--fresh").code == 0
    assert len(load_run("run.jsonl").rows) == 1


@pytest.mark.parametrize(
    ("bound", "code", "said"),
    [
        ("0.5", 0, ""),
        ("0.51", 1, "below --fail-under: faithfulness is 0.500, less than 0.51"),
    ],
)
@pytest.mark.usefixtures("rows")
def test_a_mean_below_the_bound_exits_with_one(run: Run, bound: str, code: int, said: str) -> None:
    outcome = run(*USUAL, "--fail-under", f"faithfulness={bound}")
    assert outcome.code == code
    assert outcome.err.strip() == said


def test_what_was_not_checked_does_not_pass_the_bound(run: Run, tmp_path: Path) -> None:
    write(tmp_path / "rows.jsonl", TRUE, {"answer": []})
    bounded = (*USUAL, "--fail-under", "faithfulness=0.1")
    outcome = run(*bounded)
    assert outcome.code == 1
    assert "1 row failed or could not be read, more than 0" in outcome.err
    assert "1 row could not be read and is left out:" in outcome.out
    assert "line 2: answer: expected a text, got list" in outcome.out
    assert run(*bounded, "--max-failed", "1").code == 0
    write(tmp_path / "rows.jsonl", {**TRUE, "contexts": None})
    outcome = run(*bounded, "--fresh")
    assert (outcome.code, "faithfulness: no row has a score" in outcome.err) == (1, True)


def test_the_most_frequent_reasons_of_rows_without_a_score_are_told(
    run: Run, tmp_path: Path
) -> None:
    write(tmp_path / "rows.jsonl", TRUE, *({"id": str(n), "answer": "A."} for n in range(2)))
    out = run(*USUAL).out
    assert "faithfulness: 2 skipped: the row has no documents" in out
    assert "faithfulness: 2 skipped" in run(*USUAL).out  # of the rows that were done before


def test_columns_and_claims_files_can_be_named(run: Run, tmp_path: Path) -> None:
    write(tmp_path / "rows.jsonl", {"mine": TRUE["answer"], "passages": TRUE["contexts"]})
    named = ("--column", "answer=mine", "--column", "documents=passages")
    assert "1.000" in run(*USUAL, *named).out
    write(
        tmp_path / "rows.jsonl",
        {"documents_id": "d", "documents": TRUE["contexts"]},
        {"claim": TRUE["answer"], "documents_id": "d", "label": "supported"},
    )
    assert run(*USUAL, "--format", "claims", "--fresh").code == 0
    assert load_run("run.jsonl").rows[0].row.label == "supported"


def test_answer_correctness_takes_embeddings_by_name(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "langchain.embeddings.init_embeddings",
        lambda name: DeterministicFakeEmbedding(size=len(name)),
    )
    write(tmp_path / "rows.jsonl", {**TRUE, "reference": TRUE["answer"]})
    correctness = ("rows.jsonl", "--metric", "answer_correctness", "-o", "run.jsonl")
    outcome = run(*correctness, "--embeddings", "mine:small")
    assert "1.000" in outcome.out, outcome.err
    assert "--embeddings" in run(*correctness).err


def test_a_column_may_have_an_equals_sign_in_its_name(run: Run, tmp_path: Path) -> None:
    write(tmp_path / "rows.jsonl", {"a=b": TRUE["answer"], "contexts": TRUE["contexts"]})
    outcome = run(*USUAL, "--column", "answer=a=b")
    assert "1.000" in outcome.out, outcome.err


@pytest.mark.usefixtures("rows")
def test_json_is_for_programs(run: Run) -> None:
    outcome = run(*USUAL, "--json")
    summary = json.loads(outcome.out)
    assert summary["metrics"]["faithfulness"]["mean"] == 0.5
    assert (summary["rows"], summary["complete"], summary["cost"]) == (2, True, None)


@pytest.mark.usefixtures("rows")
def test_scores_are_taken_from_a_cache(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run(*USUAL, "--cache", "cache")
    monkeypatch.setattr(FaithfulnessEvaluator, "invoke", None)
    monkeypatch.setattr(FaithfulnessEvaluator, "ainvoke", None)
    assert "0.500" in run(*USUAL, "--cache", "cache", "--fresh").out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("gone.jsonl", *USUAL[1:]), "gone.jsonl: no such file or folder"),
        ((*USUAL[:1], "--metric", "mood", *USUAL[3:]), "there is no metric 'mood'; accepted: "),
        (
            (*USUAL[:1], "--metric", "answer_quality", *USUAL[3:]),
            "answer_quality needs model=, or --model on",
        ),
        ((*USUAL, "--column", "answer"), "--column takes a pair"),
        (
            (*USUAL, "--column", "reply=answer"),
            "unknown field 'reply' in columns= or --column; accepted: id",
        ),
        ((*USUAL, "--column", "answer=gone"), "there is no column 'gone' for answer"),
        ((*USUAL, "--fail-under", "bleu=1"), "--fail-under bleu: that metric is not measured"),
        (
            (*USUAL, "--fail-under", "faithfulness=x"),
            "--fail-under faithfulness takes a finite number",
        ),
        (
            (*USUAL, "--fail-under", "faithfulness=nan"),
            "--fail-under faithfulness takes a finite number",
        ),
        ((*USUAL, "--fail-under", "faithfulness=80"), "scores are from 0 to 1, got 80"),
        ((*USUAL, "--fail-under", "faithfulness=-1"), "scores are from 0 to 1, got -1"),
        (
            (*USUAL, "--fail-under", "faithfulness=1", "--fail-under", "faithfulness=0"),
            "--fail-under faithfulness is given twice",
        ),
        ((*USUAL, "--price", "nan,1"), "--price takes a finite number"),
        ((*USUAL[:3], "-o", "run.html"), "the file will hold JSON lines; name it run.jsonl"),
        ((*USUAL, "--price", "1"), "--price takes two prices"),
        ((*USUAL, "--base-url", "http://x"), "--base-url needs --model"),
        ((*USUAL, "--calibration", "gone.json"), "gone.json: No such file"),
        ((*USUAL[:3], "-o", "gone/run.jsonl"), "gone/run.jsonl: No such file or directory"),
        ((*USUAL[:3], "-o", "rows.jsonl"), "--out rows.jsonl is also an input and would overwrite"),
        ((*USUAL, "--parquet", "./rows.jsonl"), "--parquet ./rows.jsonl is also an input and"),
        ((*USUAL, "--parquet", "gone/p"), "gone/p: No such file or directory"),
        ((*USUAL, "--parquet", "run.jsonl"), "--parquet run.jsonl is also --out and would"),
    ],
)
def test_what_cannot_be_done_ends_with_one_line_and_two(
    run: Run, rows: Path, arguments: tuple[str, ...], said: str
) -> None:
    before = rows.read_bytes()
    outcome = run(*arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith("cannot evaluate: ")
    assert said in outcome.err
    assert outcome.err.count("\n") == 1
    assert rows.read_bytes() == before


@pytest.mark.usefixtures("rows")
def test_what_models_cost_is_told(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = {"input_tokens": 900, "output_tokens": 100, "total_tokens": 1000}
    model = ScriptedChatModel(replies=lambda _: AIMessage("?", usage_metadata=tokens))
    monkeypatch.setattr("langchain.chat_models.init_chat_model", {"tiny": model}.__getitem__)
    outcome = run(*USUAL, "--model", "tiny", "--price", "1,10")
    calls = len(model.requests)
    assert calls
    assert outcome.code == 0
    assert f"{calls} calls, {1000 * calls:,} tokens, cost {0.0019 * calls:.4g}" in outcome.out


def test_ctrl_c_ends_with_130_and_the_same_command_goes_on(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "rows.jsonl", *({**TRUE, "id": str(n)} for n in range(50)))
    pressed: list[bool] = []

    def judge(_: Claim) -> None:
        if not pressed:
            pressed.append(True)
            signal.raise_signal(signal.SIGINT)

    slow = FaithfulnessEvaluator(verifier=ScriptedVerifier(judge))
    monkeypatch.setattr(evals, "make_metric", lambda *_, **__: slow)
    outcome = run(*USUAL, "--max-concurrency", "1")
    assert outcome.code == 130
    assert "partial: run.jsonl" in outcome.out
    assert "interrupted; run the same command again to resume" in outcome.err
    assert not load_run("run.jsonl").complete
    assert run(*USUAL).code == 0
    assert len(load_run("run.jsonl").rows) == 50


def test_a_warning_that_each_row_brings_up_is_shown_once_and_counted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    logger = logging.getLogger("langchain_groundedness.claims")
    with each_warning_once():
        for _ in range(3):
            logger.warning("the judge is \x1b[31m%s", "tired")
        logger.warning("once")
        assert capsys.readouterr().err.count("\n") == 2
    told = capsys.readouterr().err
    assert "tired (3 times)\n" in told
    assert "\x1b" not in told
    assert "once" not in told
    assert logging.getLogger("langchain_groundedness").handlers == []


def test_help_names_all_metrics(run: Run) -> None:
    assert f"repeatable: {', '.join(evals.METRICS)}." in " ".join(run("--help").out.split())
