"""Opens data sets: files and objects of many kinds, read row by row."""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from langchain_groundedness._runtime.options import require_positive
from langchain_groundedness.display.counts import format_count
from langchain_groundedness.evals.columns import find_columns, read_cells
from langchain_groundedness.evals.readers import (
    FILE_ENDINGS,
    Record,
    Records,
    list_columns,
    open_records,
)
from langchain_groundedness.evals.values import BadRow, EvaluationRow
from langchain_groundedness.exceptions import ConfigurationError, InputFormatError

__all__ = ["DataSet", "DataSetScan", "Layout", "LocatedRow", "as_dataset", "open_dataset"]

Layout: TypeAlias = Literal["rows", "claims"]
"""How records make rows. `rows`: each record is one. `claims`: some records define documents, and
the others are claims that refer to them by `documents_id`."""

_LANGSMITH_COLUMNS = ("inputs", "outputs", "reference", "reference_outputs")


class LocatedRow(NamedTuple):
    """A row and its position."""

    row: EvaluationRow
    line: int
    cells: Mapping[str, Any] | None = None
    """The original record, by column."""


class DataSetScan(NamedTuple):
    """The counts and digest from one pass over a data set."""

    rows: int
    """How many rows can be evaluated."""
    bad_rows: tuple[BadRow, ...]
    """The others."""
    digest: str
    """SHA-256 of all rows in order; it does not depend on the file format."""

    def require_rows(self, name: str) -> None:
        """Refuse a data set without a readable row."""
        if self.rows:
            return
        msg = f"{name}: the data set has no rows"
        if self.bad_rows:
            first, rows = self.bad_rows[0], format_count(len(self.bad_rows))
            first_one = f"line {first.line}: {first.reason}"
            msg = f"{name}: {rows}, none of which can be read; the first: {first_one}"
        raise InputFormatError(msg)


def open_dataset(
    source: Any,
    *,
    columns: Mapping[str, str] | None = None,
    layout: Layout = "rows",
    separator: str | None = None,
    limit: int | None = None,
) -> "DataSet":
    """Open a data set.

    It reads files of JSON lines (`.jsonl`), JSON (`.json`), CSV (`.csv`, `.tsv`), each also
    compressed (`.gz`), and Parquet (`.parquet`, extra `data`, also by URL such as `s3://…`, if
    the fsspec package for it is installed); a folder of such files; pandas DataFrames; splits of
    Hugging Face `datasets`; a mapping of lists; lists of mappings, of `EvaluationRow`s, or of
    examples of a LangSmith client. Exports of LangSmith, with `inputs`, `outputs` and
    `reference_outputs`, are read too; `outputs` count as the answer.

    Columns are found by their names: the question under `question`, `user_input`, `input` or
    `query`; the answer under `answer`, `response`, `predicted_answer` or `output`; the documents
    under `documents`, `contexts`, `context` or `retrieved_contexts`; the right answer under
    `reference`, `ground_truth` or `reference_answer`; `label` and `id` under these names. A row
    without an id has the number of its line: `7`, or `line 7` where other rows have ids. All other
    columns become metadata. Documents are texts, or objects with `page_content` and
    `metadata`; in CSV a JSON list of these, or one text.

    Args:
        source: A path, several paths, or an object of one of these kinds.
        columns: Which column holds which field, where its name does not say:
            `{"answer": "my_column"}`.
        layout: How records make rows.
        separator: What separates documents in a cell that holds them as one text.
        limit: Read only this many rows, the first ones.

    Returns:
        The data set; files are read row by row, never into memory as a whole.

    Raises:
        ConfigurationError: An option has an invalid value.
        InputFormatError: The source cannot be read, or its columns cannot be mapped; the
            message lists the columns.
        MissingDependencyError: An extra is not installed.

    Example:
        >>> rows = [{"query": "Capital?", "response": "Rome.", "contexts": ["Rome is it."]}]
        >>> for row, line, _ in open_dataset(rows):
        ...     print(line, row.question, row.answer, len(row.documents))
        1 Capital? Rome. 1
    """
    if limit is not None:
        require_positive(limit=limit)
    parts = tuple(open_records(source))
    if len(parts) == 1:
        name = parts[0].name
    else:
        name = ", ".join(map(str, source if isinstance(source, list | tuple) else [source]))
    if not parts:
        msg = f"{name}: no readable file there; accepted are {', '.join(FILE_ENDINGS)}"
        raise InputFormatError(msg)
    return DataSet(parts, name, dict(columns or {}), layout, separator, limit)


def as_dataset(source: Any, columns: Mapping[str, str] | None) -> "DataSet":
    """Open a data set, unless it is an opened one."""
    if not isinstance(source, DataSet):
        return open_dataset(source, columns=columns)
    if columns:
        msg = "columns belong to open_dataset when the data set is opened by it"
        raise ConfigurationError(msg)
    return source


@dataclass(frozen=True)
class DataSet:
    """A data set that can be read again and again; made by `open_dataset`."""

    parts: tuple[Records, ...]
    name: str
    """Its path, or its kind."""
    given_columns: Mapping[str, str]
    layout: Layout
    separator: str | None
    limit: int | None

    @cached_property
    def column_names(self) -> tuple[str, ...]:
        """All columns; for JSON lines, this reads the whole file."""
        names: dict[str, None] = {}
        for part in self.parts:
            for record in islice(self._in_layout(part.read()), self.limit):
                names |= dict.fromkeys(record.cells or ())
                parents = {name.partition(".")[0] for name in record.cells or ()}
                if part.is_table and parents and not parents & {"inputs", "outputs"}:
                    break
        return tuple(names)

    @cached_property
    def columns(self) -> Mapping[str, str]:
        """The column of each part of a row.

        Raises:
            InputFormatError: Columns cannot be mapped.
        """
        names = self.column_names  # errors of reading name the file themselves
        try:
            return find_columns(names, self.given_columns)
        except InputFormatError as exc:
            msg = f"{self.name}: {exc}"
            raise InputFormatError(msg, keys=exc.keys) from None

    def require(self, needs: Mapping[str, Iterable[str]]) -> None:
        """Raise unless a column holds each part that is needed.

        Args:
            needs: By part of a row, who needs it.

        Raises:
            InputFormatError: No column holds it; the message lists the columns.
        """
        missing = [field for field in needs if field not in self.columns]
        if missing and self.column_names:
            problems = "; ".join(
                f"no column holds the {field}, which {', '.join(needs[field])} needs"
                for field in missing
            )
            option = f"columns={{{missing[0]!r}: ...}}, or --column {missing[0]}=..."
            columns = list_columns(self.column_names)
            msg = f"{self.name}: {problems}. Say which with {option} The columns are {columns}"
            raise InputFormatError(msg, keys=self.column_names)

    def __iter__(self) -> Iterator[LocatedRow | BadRow]:
        """Read the rows, never all at once."""
        lines: dict[str, int] = {}
        for found in islice(self._rows(), self.limit):
            if isinstance(found, BadRow):
                yield found
            elif found.row.id in lines:
                reason = f"line {lines[found.row.id]} has the same id"
                yield BadRow(line=found.line, id=found.row.id, reason=reason)
            else:
                lines[found.row.id] = found.line
                yield found

    def outline(self) -> DataSetScan:
        """Read the data set once, to count and check its rows.

        Returns:
            How many rows there are, which cannot be read, and a digest of all.
        """
        digest, rows, bad = hashlib.sha256(), 0, []
        for found in self:
            if isinstance(found, BadRow):
                bad.append(found)
                continue
            rows += 1
            data = found.row.model_dump(mode="json")
            digest.update(json.dumps(data, sort_keys=True).encode("ascii") + b"\n")
        return DataSetScan(rows, tuple(bad), digest.hexdigest())

    def _rows(self) -> Iterator[LocatedRow | BadRow]:
        for part, (file, prefix) in zip(self.parts, _file_labels(self.parts), strict=True):
            for record in self._in_layout(part.read()):
                found = self._row(record, is_table=part.is_table)
                yield _labelled(found, file, prefix) if file else found

    def _in_layout(self, records: Iterable[Record]) -> Iterator[Record]:
        return _join_claims(records) if self.layout == "claims" else map(_flatten, records)

    def _row(self, record: Record, *, is_table: bool) -> LocatedRow | BadRow:
        line, cells, error = record
        columns = self.columns  # before a bad row: what cannot be mapped is refused
        if cells is None:
            return BadRow(line=line, reason=error)
        options: Any = {"separator": self.separator, "is_table": is_table}
        row_id = f"line {line}" if "id" in columns else str(line)  # another row may have the number
        try:
            row = read_cells(cells, columns, row_id=row_id, **options)
        except InputFormatError as exc:
            return BadRow(line=line, reason=str(exc))
        return LocatedRow(row, line, cells)


def _file_labels(parts: Sequence[Records]) -> list[tuple[str, str]]:
    """Name several files, with folders only where two have one name, and prefixes for row ids."""
    if len(parts) == 1:
        return [("", "")]
    paths = [Path(part.name).absolute() for part in parts]
    names, root = [path.name for path in paths], os.path.commonpath([p.parent for p in paths])
    if len(set(names)) < len(names):
        names = [path.relative_to(root).as_posix() for path in paths]
    stems = [name.partition(".")[0] for name in names]
    return list(zip(names, stems if len(set(stems)) == len(stems) else names, strict=True))


def _labelled(found: LocatedRow | BadRow, file: str, prefix: str) -> LocatedRow | BadRow:
    """Name the file of a row, and make its id differ from those of other files."""
    if isinstance(found, BadRow):
        return found.model_copy(update={"reason": f"{file}: {found.reason}"})
    metadata = {"file": file, **found.row.metadata}
    update = {"id": f"{prefix}:{found.row.id}", "metadata": metadata}
    return found._replace(row=found.row.model_copy(update=update))


def _flatten(record: Record) -> Record:
    """Flatten nested LangSmith exports: `{"inputs": {"question": …}}` to `inputs.question`."""
    if record.cells is None or not any(name in record.cells for name in _LANGSMITH_COLUMNS):
        return record
    flat: dict[str, Any] = {}
    for name, value in record.cells.items():
        inner = _as_mapping(value) if name in _LANGSMITH_COLUMNS else None
        flat |= {name: value} if inner is None else {f"{name}.{k}": v for k, v in inner.items()}
    return record._replace(cells=flat)


def _as_mapping(value: Any) -> Mapping[str, Any] | None:
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    return value if isinstance(value, Mapping) else None


def _join_claims(records: Iterable[Record]) -> Iterator[Record]:
    """Give claims the documents that they refer to by `documents_id`."""
    # A record with documents and no claim defines a set of documents. Every other record is a
    # claim or an answer, which becomes the answer of a row.
    known: dict[str, Any] = {}
    for record in records:
        if record.cells is None:
            yield record
            continue
        cells = {"answer" if k == "claim" else k: value for k, value in record.cells.items()}
        key = str(cells.get("documents_id"))
        if "documents" in cells and "answer" not in cells:
            known[key] = cells["documents"]
        elif "documents" in cells or key in known:
            yield record._replace(cells={"documents": known.get(key), **cells})
        else:
            error = "no earlier line holds the documents that its documents_id names"
            yield record._replace(cells=None, error=error)
