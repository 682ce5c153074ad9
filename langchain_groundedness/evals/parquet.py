"""Results as Parquet, anywhere that fsspec reaches.

Its own module because it needs pyarrow, and only the command line writes Parquet.
"""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any

from langchain_groundedness._runtime.files import replacing
from langchain_groundedness.evals.readers import file_error, open_filesystem
from langchain_groundedness.evals.run_files import as_json, read_line, read_run
from langchain_groundedness.evals.values import BadRow, EvaluatedRow, EvaluationRun
from langchain_groundedness.exceptions import ConfigurationError, require

__all__ = ["save_parquet"]

_BATCH_ROWS = 1024

_ROW_COLUMNS = tuple(
    "id line bad_row question answer contexts reference label metadata seconds".split()  # noqa: SIM905  (a word list reads better as words)
)
_SCORE_PARTS = ("status", "reason", "comment", "details")


def save_parquet(run: EvaluationRun | str | Path, url: str | Path) -> None:
    """Write rows and scores as one Parquet file, in the order of the data set.

    Each row has `id`, `line`, `question`, `answer`, `contexts`, `reference`, `label`, `metadata`
    (JSON) and `seconds`; for each metric its score under its key, and `KEY_status`, `KEY_reason`,
    `KEY_comment` and `KEY_details` (JSON). Rows that could not be read have the reason in
    `bad_row`, which is null in the others. Of a run file, only a few rows at a time are in memory.
    """
    arrow: Any = require("pyarrow", extra="data")
    parquet: Any = require("pyarrow.parquet", extra="data")
    found: Iterable[EvaluatedRow | BadRow]
    if isinstance(run, EvaluationRun):
        header, found = run.header, (*run.rows, *run.bad_rows)
    else:
        header, begins, bad_rows, _ = read_run(run, lambda line: line.begin)
        found = chain(_rows_at(run, begins), bad_rows)
    keys = list(header.evaluators)
    schema = _schema(arrow, keys)
    files, path = open_filesystem(str(url))
    rows = (_cells(each, keys) for each in found)
    try:
        with _opened(files, path) as file, parquet.ParquetWriter(file, schema) as writer:
            while batch := list(islice(rows, _BATCH_ROWS)):
                writer.write_table(arrow.Table.from_pylist(batch, schema))
    except (OSError, ValueError) as exc:
        raise ConfigurationError(str(file_error(url, exc))) from exc


@contextmanager
def _opened(files: Any, path: str) -> Iterator[Any]:
    """Open a file that appears when it is whole; a local one is for its owner only."""
    if "file" in files.protocol:
        with replacing(Path(path)) as file:
            yield file
    else:
        with files.transaction, files.open(path, "wb") as file:
            yield file


def _rows_at(path: str | Path, begins: Iterable[int]) -> Iterator[EvaluatedRow]:
    with Path(path).open("rb") as file:
        for begin in begins:
            file.seek(begin)
            line = read_line(file.readline(), f"{path}, at byte {begin}")
            if line is not None and isinstance(line.value, EvaluatedRow):
                yield line.value


def _schema(arrow: Any, keys: Iterable[str]) -> Any:
    names = [*_ROW_COLUMNS]
    for key in keys:
        names += [key, *(f"{key}_{part}" for part in _SCORE_PARTS)]
    kinds = {
        "line": arrow.int64(),
        "contexts": arrow.list_(arrow.string()),
        "seconds": arrow.float64(),
        **dict.fromkeys(keys, arrow.float64()),
    }
    return arrow.schema([(name, kinds.get(name, arrow.string())) for name in names])


def _cells(found: EvaluatedRow | BadRow, keys: Iterable[str]) -> dict[str, Any]:
    if isinstance(found, BadRow):
        return {"id": found.id, "line": found.line, "bad_row": found.reason}
    row = found.row
    cells: dict[str, Any] = {
        **row.model_dump(include={"id", "question", "answer", "reference"}),
        "line": found.line,
        "contexts": None if row.documents is None else [d.page_content for d in row.documents],
        "label": row.label if isinstance(row.label, str | None) else json.dumps(row.label),
        "metadata": as_json(row.metadata),
        "seconds": found.seconds,
    }
    for score in found.scores:
        if score.key in keys:
            cells[score.key] = score.score
            for part in _SCORE_PARTS:
                cells[f"{score.key}_{part}"] = getattr(score, part)
            cells[f"{score.key}_details"] = as_json(score.details)
    return cells
