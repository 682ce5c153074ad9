"""Run files: what is written is read back, and what is wrong is named by line."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document

from langchain_groundedness import ConfigurationError, GroundednessRunnable
from langchain_groundedness.evals import (
    BadRow,
    EvaluatedRow,
    EvaluationRow,
    EvaluationRun,
    RowScore,
    RunHeader,
    load_run,
    save_run,
)
from langchain_groundedness.evals.run_files import RunEnd, as_line
from langchain_groundedness.types import Usage

HEADER = RunHeader(
    name="nightly",
    made=datetime(2026, 11, 21, 12, tzinfo=UTC),
    dataset="answers.jsonl",
    digest="d1",
    evaluators={"faithfulness": {"class": "FaithfulnessEvaluator"}},
    version="0.1.0",
)


def evaluated(name: str, *, line: int | None = None, **parts: Any) -> EvaluatedRow:
    score = RowScore(key="faithfulness", score=0.5, status="scored", **parts)
    row = EvaluationRow(id=name, answer="Rome is old.", documents=(Document("Rome.", id="d"),))
    return EvaluatedRow(row=row, scores=(score,), line=line, seconds=0.25)


def run_of(*rows: EvaluatedRow) -> EvaluationRun:
    return EvaluationRun(
        header=HEADER,
        rows=rows,
        bad_rows=(BadRow(line=7, reason="no answer"),),
        seconds=1.5,
        usage=Usage(model_calls=2, input_tokens=10, output_tokens=3),
    )


def test_a_run_comes_back_as_it_was_written(tmp_path: Path) -> None:
    result = GroundednessRunnable().invoke(
        {"answer": "Rome is in Italy.", "documents": [Document("Rome is in Italy.")]}
    )
    run = run_of(evaluated("b", line=2, result=result), evaluated("a", line=1))
    save_run(run, tmp_path / "run.jsonl")
    assert load_run(tmp_path / "run.jsonl") == run


def test_documents_that_a_metric_has_read_stand_in_a_file_once(tmp_path: Path) -> None:
    (document,) = evaluated("a").row.documents or ()
    result = GroundednessRunnable().invoke({"answer": "Rome.", "documents": [document]})
    run, file = run_of(evaluated("a", line=1, result=result)), tmp_path / "run.jsonl"
    save_run(run, file)
    assert file.read_text().count('"page_content"') == 1
    assert load_run(file) == run


def test_a_file_that_repeats_documents_is_read_as_before(tmp_path: Path) -> None:
    result = GroundednessRunnable().invoke({"answer": "Rome.", "documents": ["Rome."]})
    run, file = run_of(evaluated("a", line=1, result=result)), tmp_path / "run.jsonl"
    rows = [{"type": "row", **row.model_dump(mode="json")} for row in run.rows]
    file.write_text(as_line(HEADER).decode() + "".join(f"{json.dumps(row)}\n" for row in rows))
    assert load_run(file).rows == run.rows


@settings(deadline=None)
@given(text=st.text(), number=st.floats(allow_nan=False, allow_infinity=False))
def test_any_text_and_number_comes_back(
    tmp_path_factory: pytest.TempPathFactory, text: str, number: float
) -> None:
    path = tmp_path_factory.mktemp("runs") / "run.jsonl"
    row = EvaluationRow(id=text, question=text, label=text, metadata={text: number})
    run = run_of(EvaluatedRow(row=row, scores=()))
    save_run(run, path)
    assert load_run(path) == run


def test_what_json_cannot_hold_is_put_into_words(tmp_path: Path) -> None:
    details = {
        "share": np.float32(0.5),
        "day": datetime(2026, 1, 2, tzinfo=UTC),
        "kinds": {"b", "a"},
        "document": Document("Rome."),
    }
    save_run(run_of(evaluated("a", details=details)), tmp_path / "run.jsonl")
    (score,) = load_run(tmp_path / "run.jsonl").rows[0].scores
    assert score.details["share"] == 0.5
    assert score.details["day"] == "2026-01-02T00:00:00+00:00"
    assert score.details["kinds"] == ["a", "b"]
    assert score.details["document"]["page_content"] == "Rome."


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {("a", 1): 2}])
def test_no_line_holds_what_strict_readers_of_json_refuse(value: object) -> None:
    def refuse(name: str) -> None:
        raise AssertionError(name)

    line = as_line(evaluated("a", details={"x": value}))
    assert json.loads(line, parse_constant=refuse)["row"]["id"] == "a"


def test_a_later_line_about_a_row_replaces_the_earlier_one_and_order_is_that_of_the_data_set(
    tmp_path: Path,
) -> None:
    first, again = evaluated("a", line=1), evaluated("a", line=1, comment="again")
    path = tmp_path / "run.jsonl"
    path.write_bytes(
        as_line(HEADER)
        + as_line(evaluated("b", line=2), place=1)
        + as_line(first, place=0)
        + as_line(again, place=0)
    )
    run = load_run(path)
    assert [row.row.id for row in run.rows] == ["a", "b"]
    assert run.rows[0].scores[0].comment == "again"
    assert not run.complete


@pytest.mark.parametrize("lost", [1, 2, 20])
def test_a_last_line_that_was_cut_off_is_left_out(tmp_path: Path, lost: int) -> None:
    path = tmp_path / "run.jsonl"
    whole = as_line(HEADER) + as_line(evaluated("a"))
    path.write_bytes(whole + as_line(evaluated("b"))[:-lost])
    assert [row.row.id for row in load_run(path).rows] == (["a", "b"] if lost == 1 else ["a"])


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "not a run file: it is empty"),
        (as_line(RunEnd(complete=True)), "line 1: a run file begins"),
        (as_line(HEADER) + as_line(HEADER), "line 2: a run file begins"),
        (as_line(HEADER) + b"{\n", "line 2: not JSON"),
        (as_line(HEADER) + b"[1]\n", "line 2: not a line of a run file"),
        (as_line(HEADER) + b'{"type": ["row"]}\n', "line 2: not a line of a run file"),
        (as_line(HEADER) + b'{"type": "row"}\n', "line 2: not a valid row: row: Field required"),
        (as_line(HEADER) + b"\xff\n", r"line 2: not UTF-8 text \(byte 0 of the line\); convert it"),
    ],
)
def test_what_is_no_run_file_is_refused_with_the_line(
    tmp_path: Path, data: bytes, said: str
) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(data)
    with pytest.raises(ConfigurationError, match=said):
        load_run(path)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"gone\.jsonl: No such file"):
        load_run(tmp_path / "gone.jsonl")
    with pytest.raises(ConfigurationError, match=r"run\.jsonl: No such file"):
        save_run(run_of(), tmp_path / "gone" / "run.jsonl")


def test_saving_replaces_a_file_as_a_whole_and_leaves_nothing_else(tmp_path: Path) -> None:
    save_run(run_of(evaluated("a"), evaluated("b")), tmp_path / "run.jsonl")
    save_run(run_of(evaluated("c")), tmp_path / "run.jsonl")
    assert [row.row.id for row in load_run(tmp_path / "run.jsonl").rows] == ["c"]
    assert [each.name for each in tmp_path.iterdir()] == ["run.jsonl"]
