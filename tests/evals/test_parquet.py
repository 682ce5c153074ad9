"""Parquet by URL: data sets from there, results to there."""

from pathlib import Path
from typing import Any

import pytest
from counting import CountingEvaluator

from langchain_groundedness.evals import EvaluationRun, evaluate, load_run, open_dataset
from langchain_groundedness.evals.run_files import save_parquet
from langchain_groundedness.exceptions import (
    ConfigurationError,
    InputFormatError,
    MissingDependencyError,
)

parquet: Any = pytest.importorskip("pyarrow.parquet")
arrow: Any = pytest.importorskip("pyarrow")
fsspec: Any = pytest.importorskip("fsspec")

ROWS = [
    {"id": f"r{n}", "question": "Q?", "answer": answer, "contexts": ["A text.", "ähm"], "at": n}
    for n, answer in enumerate(["banana", "fail", "ananas"])
]


def run_of(source: Any, **options: Any) -> EvaluationRun:
    return evaluate(source, CountingEvaluator(), **options)


@pytest.fixture(params=["memory", "file", "path"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "memory":
        return f"memory://{tmp_path.name}"
    return f"file://{tmp_path}" if request.param == "file" else str(tmp_path)


def test_rows_and_scores_are_written_and_read_again_wherever_it_is(place: str) -> None:
    run = run_of([*ROWS, {"id": "bad", "answer": ["no", "text"]}])
    save_parquet(run, f"{place}/run.parquet")
    with fsspec.open(f"{place}/run.parquet") as file:
        table = parquet.read_table(file).to_pylist()
    assert [row["id"] for row in table[:3]] == ["r0", "r1", "r2"]
    assert [row["counting"] for row in table[:3]] == [0.5, None, 0.5]
    assert [row["counting_status"] for row in table[:3]] == ["scored", "failed", "scored"]
    assert table[1]["counting_reason"] == "the answer says so"
    assert table[0]["contexts"] == ["A text.", "ähm"]
    assert table[0]["metadata"] == '{"at": 0}'
    assert [row["bad_row"] is None for row in table] == [True, True, True, False]
    found: list[Any] = list(open_dataset(f"{place}/run.parquet", limit=3))
    assert [each.row.answer for each in found] == ["banana", "fail", "ananas"]
    assert [each.row.documents for each in found] == [row.row.documents for row in run.rows]


def test_a_data_set_is_evaluated_by_its_url_as_from_a_local_path(tmp_path: Path) -> None:
    table = arrow.Table.from_pylist(ROWS)
    parquet.write_table(table, tmp_path / "rows.parquet")
    with fsspec.open("memory://there/rows.parquet", "wb") as file:
        file.write((tmp_path / "rows.parquet").read_bytes())
    local, there = run_of(tmp_path / "rows.parquet"), run_of("memory://there/rows.parquet")
    assert [(r.row, r.scores) for r in there.rows] == [(r.row, r.scores) for r in local.rows]
    assert there.header.digest == local.header.digest
    assert len(list(open_dataset("memory://there"))) == 3


def test_a_folder_by_url_is_read_as_one_data_set() -> None:
    for name in ("a", "b"):
        save_parquet(run_of(ROWS), f"memory://parts/{name}.parquet")
    ids = [found.row.id for found in open_dataset("memory://parts") if hasattr(found, "row")]
    assert ids == [f"{name}:r{n}" for name in "ab" for n in range(3)]


def test_of_a_run_file_the_last_line_about_a_row_counts_in_the_order_of_the_data_set(
    tmp_path: Path,
) -> None:
    file = tmp_path / "run.jsonl"
    whole = run_of([*ROWS, {"id": "bad", "answer": []}], journal=file)
    header, *lines, end = file.read_text().splitlines()
    rows = [line for line in lines if '"type": "row"' in line]
    others = [line for line in lines if line not in rows]
    stale = next(row for row in rows if '"score": 0.5' in row).replace(": 0.5", ": 0.25")
    file.write_text("\n".join([header, stale, "", *reversed(rows), *others, end, ""]))
    save_parquet(file, "memory://of-file.parquet")
    save_parquet(whole, "memory://of-run.parquet")
    with (
        fsspec.open("memory://of-file.parquet") as one,
        fsspec.open("memory://of-run.parquet") as two,
    ):
        assert parquet.read_table(one).to_pylist() == parquet.read_table(two).to_pylist()
    assert load_run(file).rows == whole.rows


def test_what_cannot_be_written_leaves_what_was_there(tmp_path: Path) -> None:
    target = tmp_path / "run.parquet"
    target.write_bytes(b"before")
    file = tmp_path / "run.jsonl"
    run_of(ROWS, journal=file)
    lines = file.read_text().splitlines()
    file.write_text("\n".join([*lines[:2], '{"type": "row", "nonsense": 1}', *lines[2:], ""]))
    with pytest.raises(ConfigurationError, match="line 3"):
        save_parquet(file, f"file://{target}")
    assert target.read_bytes() == b"before"


def test_what_is_not_there_or_not_known_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputFormatError, match="nothing"):
        open_dataset("memory://nothing.parquet")
    fsspec.filesystem("memory").mkdir("/empty-folder")
    with pytest.raises(InputFormatError, match=r"no [.]parquet file"):
        open_dataset("memory://empty-folder")
    with pytest.raises(ConfigurationError, match="is not a scheme that fsspec knows"):
        open_dataset("nosuch://rows.parquet")
    with pytest.raises(ConfigurationError, match="No such file"):
        save_parquet(run_of(ROWS), f"file://{tmp_path}/no/such/folder/run.parquet")
    (tmp_path / "empty.jsonl").touch()
    with pytest.raises(ConfigurationError, match="empty"):
        save_parquet(tmp_path / "empty.jsonl", "memory://x.parquet")


def test_a_scheme_whose_package_is_missing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: str) -> None:
        raise ImportError("Install s3fs to access S3")  # noqa: EM101, TRY003  (fsspec's)

    monkeypatch.setattr("fsspec.core.url_to_fs", missing)
    with pytest.raises(MissingDependencyError, match=r"s3://.*s3fs"):
        open_dataset("s3://bucket/rows.parquet")
