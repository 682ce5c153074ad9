"""Tables: Parquet files, pandas, pyarrow and Hugging Face `datasets` give the same rows."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from langchain_groundedness import InputFormatError
from langchain_groundedness.evals import BadRow, open_dataset

ROWS: list[dict[str, Any]] = [
    {"question": "Capital?", "answer": "Rome.", "contexts": ["Rome is it.", "Old."], "year": 2024},
    {"question": None, "answer": "Bari.", "contexts": None, "year": 2025},
]


class Split:
    """What `datasets.Dataset` shows to us; importing the real one takes seconds."""

    def __init__(self, rows: list[Mapping[str, Any]], column_names: list[str] | None) -> None:
        self.column_names = column_names
        self._rows = rows

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        return iter(self._rows)


def rows_of(source: object) -> list[object]:
    return [
        each if isinstance(each, BadRow) else (each.row, each.line) for each in open_dataset(source)
    ]


def parquet(folder: Path) -> Path:
    pq.write_table(pa.Table.from_pylist(ROWS), folder / "rows.parquet", row_group_size=1)
    return folder / "rows.parquet"


def as_parquet(folder: Path) -> object:
    return parquet(folder)


def as_table(_: Path) -> object:
    return pa.Table.from_pylist(ROWS)


def as_frame(_: Path) -> object:
    return pd.DataFrame(ROWS)


def as_frame_of_arrays(folder: Path) -> object:
    return pd.read_parquet(parquet(folder))


def as_split(_: Path) -> object:
    return Split([*ROWS], list(ROWS[0]))


def as_stream(_: Path) -> object:
    return Split([*ROWS], None)


@pytest.mark.parametrize(
    "made", [as_parquet, as_table, as_frame, as_frame_of_arrays, as_split, as_stream]
)
def test_tables_give_the_rows_that_mappings_give(made: Any, tmp_path: Path) -> None:
    expected, found = rows_of(ROWS), rows_of(made(tmp_path))
    assert found == expected
    assert not any(isinstance(each, BadRow) for each in found)


def test_what_pandas_writes_into_csv_is_read_back(tmp_path: Path) -> None:
    pd.DataFrame(ROWS).to_csv(tmp_path / "rows.csv")
    first, second = open_dataset(tmp_path / "rows.csv")
    assert not isinstance(first, BadRow)
    assert not isinstance(second, BadRow)
    assert [d.page_content for d in first.row.documents or ()] == ["Rome is it.", "Old."]
    assert (second.row.question, second.row.documents) == (None, None)


def test_several_splits_are_refused_with_their_names() -> None:
    class Splits(dict[str, Split]):
        column_names = ()

    with pytest.raises(InputFormatError, match="several splits: 'train', 'test'"):
        open_dataset(Splits(train=Split([], []), test=Split([], [])))


@pytest.mark.parametrize("gone", [pd.NA, pd.NaT, float("nan"), None])
def test_what_pandas_puts_for_nothing_is_nothing(gone: object) -> None:
    frame = pd.DataFrame(
        {"answer": ["a"], "label": [gone], "kind": pd.Series([gone], dtype=object)}
    )
    (found,) = open_dataset(frame)
    assert not isinstance(found, BadRow)
    assert found.row.label is None
    assert found.row.metadata == {"kind": None}


def test_a_damaged_parquet_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    path = parquet(tmp_path)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(InputFormatError, match=r"rows\.parquet: "):
        open_dataset(path)
