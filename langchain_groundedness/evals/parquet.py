"""Results as Parquet, anywhere that fsspec reaches."""

import json
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from langchain_groundedness.evals.readers import file_error, open_filesystem
from langchain_groundedness.evals.run_files import as_json, read_line, read_lines
from langchain_groundedness.evals.values import BadRow, EvaluatedRow, EvaluationRun, RunHeader
from langchain_groundedness.exceptions import ConfigurationError, require

__all__ = ["save_parquet"]

_WRITTEN_AT_ONCE = 1024


def save_parquet(run: EvaluationRun | str | Path, url: str | Path) -> None:
    """Write rows and scores as one Parquet file, in the order of the data set.

    Each row has `id`, `line`, `question`, `answer`, `contexts`, `reference`, `label`, `metadata`
    (JSON) and `seconds`; for each metric its score under its key, and `KEY_status`, `KEY_reason`,
    `KEY_comment` and `KEY_details` (JSON). Rows that could not be read have the reason in
    `bad_row`, which is null in the others. Of a run file, only a few rows at a time are in memory.
    """
    arrow: Any = require("pyarrow", extra="data")
    parquet: Any = require("pyarrow.parquet", extra="data")
    found: Iterator[EvaluatedRow | BadRow]
    if isinstance(run, EvaluationRun):
        header, found = run.header, iter((*run.rows, *run.bad_rows))
    else:
        index = index_run(run)
        header, found = index.header, index.read()
    keys = list(header.evaluators)
    schema = _schema(arrow, keys)
    files, path = open_filesystem(str(url))
    rows = (_plain(each, keys) for each in found)
    try:
        with (
            files.transaction,
            files.open(path, "wb") as file,
            parquet.ParquetWriter(file, schema) as writer,
        ):
            while some := list(islice(rows, _WRITTEN_AT_ONCE)):
                writer.write_table(arrow.Table.from_pylist(some, schema))
    except (OSError, ValueError) as exc:
        raise ConfigurationError(str(file_error(url, exc))) from exc


def _schema(arrow: Any, keys: Iterable[str]) -> Any:
    text = arrow.string()
    columns = {
        "id": text,
        "line": arrow.int64(),
        "bad_row": text,
        "question": text,
        "answer": text,
        "contexts": arrow.list_(text),
        "reference": text,
        "label": text,
        "metadata": text,
        "seconds": arrow.float64(),
    }
    for key in keys:
        columns[key] = arrow.float64()
        columns |= {f"{key}_{part}": text for part in ("status", "reason", "comment", "details")}
    return arrow.schema(list(columns.items()))


def _plain(found: EvaluatedRow | BadRow, keys: Iterable[str]) -> dict[str, Any]:
    if isinstance(found, BadRow):
        return {"id": found.id, "line": found.line, "bad_row": found.reason}
    row = found.row
    plain: dict[str, Any] = {
        "id": row.id,
        "line": found.line,
        "question": row.question,
        "answer": row.answer,
        "contexts": None if row.documents is None else [d.page_content for d in row.documents],
        "reference": row.reference,
        "label": None if row.label is None else _label(row.label),
        "metadata": as_json(row.metadata),
        "seconds": found.seconds,
    }
    scores = {score.key: score for score in found.scores}
    for key in keys:
        if (score := scores.get(key)) is not None:
            plain[key] = score.score
            plain[f"{key}_status"] = score.status
            plain[f"{key}_reason"] = score.reason
            plain[f"{key}_comment"] = score.comment
            plain[f"{key}_details"] = as_json(score.details)
    return plain


def _label(label: str | float) -> str:
    return label if isinstance(label, str) else json.dumps(label)


class RunIndex(NamedTuple):
    """Where what stands in a run file."""

    path: Path
    header: RunHeader
    rows: tuple[int, ...]
    """Where each row begins, in bytes, in the order of the data set."""
    bad_rows: tuple[BadRow, ...]

    def read(self) -> Iterator[EvaluatedRow | BadRow]:
        """Read the rows, one at a time."""
        with self.path.open("rb") as file:
            for begin in self.rows:
                file.seek(begin)
                data = file.readline()
                while data and not data.strip():
                    data = file.readline()
                line = read_line(data, file.tell(), f"{self.path}, at byte {begin}")
                if line is not None and isinstance(line.value, EvaluatedRow):
                    yield line.value
        yield from self.bad_rows


def index_run(path: str | Path) -> RunIndex:
    """Look through a run file."""
    header: RunHeader | None = None
    begins: dict[str, tuple[float, int]] = {}
    bad: dict[BadRow, None] = {}
    begin = 0
    for line in read_lines(path):
        if isinstance(line.value, RunHeader):
            header = line.value
        elif isinstance(line.value, EvaluatedRow):
            place = line.value.line if line.place is None else line.place
            begins[line.value.row.id] = float("inf") if place is None else place, begin
        elif isinstance(line.value, BadRow):
            bad[line.value] = None
        begin = line.end
    if header is None:
        msg = f"{path}: no run in it: it is empty"
        raise ConfigurationError(msg)
    rows = tuple(where for _, where in sorted(begins.values()))
    return RunIndex(Path(path), header, rows, tuple(bad))
