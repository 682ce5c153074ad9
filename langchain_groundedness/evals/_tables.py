"""Reads records from tables: Parquet files, pandas, Hugging Face `datasets`, and lists."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from langchain_groundedness.evals._records import Record, Records, file_error
from langchain_groundedness.exceptions import InputFormatError, require

__all__ = ["of_frame", "of_hugging_face", "of_objects", "of_parquet"]

_AT_ONCE = 128


def of_parquet(path: Path) -> Records:
    """Open a Parquet file.

    Args:
        path: The file.

    Returns:
        Its records, numbered from 1; a few are read at once.

    Raises:
        InputFormatError: It is no Parquet file.
        MissingDependencyError: pyarrow is not installed.
    """
    parquet: Any = require("pyarrow.parquet", extra="data")

    def read() -> Iterator[Record]:
        try:
            with parquet.ParquetFile(path) as file:
                rows = (row for some in file.iter_batches(_AT_ONCE) for row in some.to_pylist())
                yield from (Record(number, row) for number, row in enumerate(rows, 1))
        except (OSError, ValueError) as exc:  # pyarrow's own are of these two kinds
            raise file_error(path, exc) from exc

    try:
        names = tuple(parquet.read_schema(path).names)
    except (OSError, ValueError) as exc:
        raise file_error(path, exc) from exc
    return Records(str(path), read, names, holds_texts=True)


def of_frame(frame: Any, name: str) -> Records:
    """Take a pandas DataFrame.

    Args:
        frame: The table.
        name: What to call it.

    Returns:
        Its records, numbered from 1.
    """
    columns = tuple(map(str, frame.columns))

    def read() -> Iterator[Record]:
        for number, row in enumerate(frame.itertuples(index=False, name=None), 1):
            yield Record(number, dict(zip(columns, row, strict=True)))

    return Records(name, read, columns, holds_texts=True)


def of_hugging_face(dataset: Any, name: str) -> Records:
    """Take a split of Hugging Face `datasets`, in memory or streamed.

    Args:
        dataset: The split.
        name: What to call it.

    Returns:
        Its records, numbered from 1.

    Raises:
        InputFormatError: It is no split, but several of them.
    """
    if isinstance(dataset, Mapping):
        splits = ", ".join(repr(str(split)) for split in dataset)
        msg = f"the data set has several splits: {splits}; give one of them, as in data['test']"
        raise InputFormatError(msg)
    columns = dataset.column_names or tuple(next(iter(dataset), {}))

    def read() -> Iterator[Record]:
        return (Record(number, row) for number, row in enumerate(dataset, 1))

    return Records(name, read, tuple(columns), holds_texts=True)


def of_objects(objects: Iterable[Any], name: str) -> Records:
    """Take mappings, or objects with fields, such as examples of a LangSmith client.

    Args:
        objects: The entries.
        name: What to call them.

    Returns:
        Their records, numbered from 1.
    """
    kept = list(objects)

    def read() -> Iterator[Record]:
        for number, each in enumerate(kept, 1):
            cells = _cells(each)
            fault = "" if cells is not None else f"a mapping is needed, got {type(each).__name__}"
            yield Record(number, cells, fault)

    return Records(name, read)


def _cells(value: Any) -> Mapping[str, Any] | None:
    if isinstance(value, Mapping):
        return {str(key): item for key, item in value.items()}
    if isinstance(value, BaseModel):
        return dict(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    return None
