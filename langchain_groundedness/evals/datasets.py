"""Data sets to evaluate: files and objects of many kinds, read row by row."""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from langchain_groundedness.evals.columns import find_columns, read_cells
from langchain_groundedness.evals.readers import (
    Record,
    Records,
    csv_columns,
    listed,
    of_frame,
    of_hugging_face,
    of_objects,
    of_parquet,
    parquet_records,
    read_csv,
    read_json,
    read_json_lines,
)
from langchain_groundedness.evals.values import BadRow, EvaluationRow
from langchain_groundedness.exceptions import ConfigurationError, InputFormatError

__all__ = ["DataSet", "Layout", "LocatedRow", "Outline", "open_dataset"]

Layout: TypeAlias = Literal["rows", "claims"]
"""How records make rows. `rows`: each record is one. `claims`: some records define documents, and
the others are claims that refer to them by `documents_id`."""

_ENDINGS = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet")

_AS_LIST = ("to_pylist", "to_dicts")
"""What tables of pyarrow and polars give their rows with."""


class LocatedRow(NamedTuple):
    """A row, and where it stands."""

    row: EvaluationRow
    line: int | None
    cells: Mapping[str, Any] | None = None
    """The record as it came, by column."""


class Outline(NamedTuple):
    """What reading a whole data set once tells of it."""

    rows: int
    """How many rows can be evaluated."""
    bad_rows: tuple[BadRow, ...]
    """The others."""
    digest: str
    """SHA-256 of all rows in order, whatever kind of file they came from."""

    def require_rows(self, name: str) -> None:
        """Refuse a data set of which nothing can be read."""
        if self.rows:
            return
        if not self.bad_rows:
            msg = f"{name}: there are no rows in it"
            raise InputFormatError(msg)
        first = self.bad_rows[0]
        where = "" if first.line is None else f"line {first.line}: "
        msg = f"{name}: none of its {len(self.bad_rows)} rows can be read; the first: {where}"
        raise InputFormatError(msg + first.reason)


def open_dataset(
    source: Any,
    *,
    columns: Mapping[str, str] | None = None,
    layout: Layout = "rows",
    separator: str | None = None,
    limit: int | None = None,
) -> "DataSet":
    """Open a data set.

    Read are files of JSON lines (`.jsonl`), JSON (`.json`), CSV (`.csv`, `.tsv`), each also
    compressed (`.gz`), and Parquet (`.parquet`, extra `data`, also by URL, as in `s3://…`, with
    what fsspec needs for it); a folder of such files; pandas DataFrames; splits of Hugging Face
    `datasets`; a mapping of lists; lists of mappings, of `EvaluationRow`s, or of
    examples of a LangSmith client. Exports of LangSmith, with `inputs`, `outputs` and
    `reference_outputs`, are read too; `outputs` count as the answer.

    Columns are found by their names: the question under `question`, `user_input`, `input` or
    `query`; the answer under `answer`, `response`, `predicted_answer` or `output`; the documents
    under `documents`, `contexts`, `context` or `retrieved_contexts`; the right answer under
    `reference`, `ground_truth` or `reference_answer`; `label` and `id` under these names. All
    other columns become metadata. Documents are texts, or objects with `page_content` and
    `metadata`; in CSV a JSON list of these, or one text.

    Args:
        source: A path, several paths, or an object of one of these kinds.
        columns: The column of a part of the row, where its name does not say it:
            `{"answer": "my_column"}`.
        layout: How records make rows.
        separator: What stands between documents that are written into one text.
        limit: Read this many rows only, the first ones.

    Returns:
        The data set; nothing of it is kept in memory but what was given in memory.

    Raises:
        ConfigurationError: An option has a value that cannot work.
        InputFormatError: It is of no kind that can be read, or its columns do not tell what they
            hold; the message lists the columns.
        MissingDependencyError: An extra is needed.

    Example:
        >>> rows = [{"query": "Capital?", "response": "Rome.", "contexts": ["Rome is it."]}]
        >>> for row, line, _ in open_dataset(rows):
        ...     print(line, row.question, row.answer, len(row.documents))
        1 Capital? Rome. 1
    """
    if limit is not None and limit < 1:
        msg = f"limit must be 1 or more, got {limit}"
        raise ConfigurationError(msg)
    parts = tuple(_parts(source))
    if not parts:
        places = source if isinstance(source, list | tuple) else [source]
        where = ", ".join(str(place) for place in places)
        msg = f"{where}: no file to read there; accepted are {', '.join(_ENDINGS)}"
        raise InputFormatError(msg)
    return DataSet(
        parts=parts,
        name=parts[0].name if len(parts) == 1 else _name_of(source),
        given_columns=dict(columns or {}),
        layout=layout,
        separator=separator,
        limit=limit,
    )


@dataclass(frozen=True, kw_only=True)
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
    def seen(self) -> tuple[str, ...]:
        """All columns that there are; of JSON lines, all of the file is read to know them."""
        found: dict[str, None] = {}
        for part in self.parts:
            if part.columns is not None and not {"inputs", "outputs"} & set(part.columns):
                found |= dict.fromkeys(part.columns)
                continue
            for record in islice(self._records(part), self.limit):
                if record.cells is not None:
                    found |= dict.fromkeys(record.cells)
        return tuple(found)

    @cached_property
    def columns(self) -> Mapping[str, str]:
        """By part of a row, the column that holds it.

        Raises:
            InputFormatError: Columns do not tell what they hold.
        """
        try:
            return find_columns(self.seen, self.given_columns)
        except InputFormatError as exc:
            msg = f"{self.name}: {exc}"
            raise InputFormatError(msg, keys=exc.keys) from None

    def require(self, needs: Mapping[str, Iterable[str]]) -> None:
        """Refuse to go on if no column holds what is needed.

        Args:
            needs: By part of a row, who needs it.

        Raises:
            InputFormatError: No column holds it; the message lists the columns.
        """
        if not self.seen:
            return
        missing = {field: who for field, who in needs.items() if field not in self.columns}
        if missing:
            told = "; ".join(
                f"no column holds the {field}, which {', '.join(who)} needs"
                for field, who in missing.items()
            )
            field = next(iter(missing))
            msg = (
                f"{self.name}: {told}. Say which with columns={{{field!r}: ...}}, or --column "
                f"{field}=... The columns are {listed(self.seen)}"
            )
            raise InputFormatError(msg, keys=self.seen)

    def __iter__(self) -> Iterator[LocatedRow | BadRow]:
        """Read the rows, never all at once."""
        ids: dict[str, int | None] = {}
        for found in islice(self._rows(), self.limit):
            if isinstance(found, BadRow):
                yield found
            elif found.row.id in ids:
                first = ids[found.row.id]
                where = "an earlier row" if first is None else f"line {first}"
                yield BadRow(line=found.line, id=found.row.id, reason=f"{where} has the same id")
            else:
                ids[found.row.id] = found.line
                yield found

    def outline(self) -> Outline:
        """Read all of it once, to know what there is to do.

        Returns:
            How many rows there are, which are bad, and a digest of all.
        """
        digest, rows, bad = hashlib.sha256(), 0, []
        for found in self:
            if isinstance(found, BadRow):
                bad.append(found)
                continue
            rows += 1
            data = found.row.model_dump(mode="json")
            digest.update(json.dumps(data, sort_keys=True).encode("ascii") + b"\n")
        return Outline(rows, tuple(bad), digest.hexdigest())

    def _rows(self) -> Iterator[LocatedRow | BadRow]:
        columns = self.columns
        for part, file in zip(self.parts, _files_named(self.parts), strict=True):
            for record in self._records(part):
                yield self._row(record, columns, file, holds_texts=part.holds_texts)

    def _records(self, part: Records) -> Iterator[Record]:
        records = part.read()
        return joined_claims(records) if self.layout == "claims" else flattened(records)

    def _row(
        self, record: Record, columns: Mapping[str, str], file: "_File | None", *, holds_texts: bool
    ) -> LocatedRow | BadRow:
        if record.cells is None:
            return BadRow(line=record.line, reason=_within(file, record.fault))
        try:
            row = read_cells(
                record.cells,
                columns,
                name=str(record.line),
                separator=self.separator,
                holds_texts=holds_texts,
            )
        except ValueError as exc:
            return BadRow(line=record.line, reason=_within(file, str(exc)))
        if file is not None:
            metadata = {"file": file.name, **row.metadata}
            row = row.model_copy(update={"id": f"{file.prefix}:{row.id}", "metadata": metadata})
        return LocatedRow(row, record.line, record.cells)


class _File(NamedTuple):
    """One of several files, by what tells it from the others."""

    name: str
    prefix: str
    """Before the ids of its rows, which others may have too."""


def _files_named(parts: Sequence[Records]) -> list[_File | None]:
    """Name files as shortly as can be: a folder counts only where two files have one name."""
    if len(parts) == 1:
        return [None]
    paths = [Path(part.name).absolute() for part in parts]
    names, above = [path.name for path in paths], os.path.commonpath([p.parent for p in paths])
    if len(set(names)) < len(names):
        names = [path.relative_to(above).as_posix() for path in paths]
    stems = [name.partition(".")[0] for name in names]
    prefixes = stems if len(set(stems)) == len(stems) else names
    return [_File(name, prefix) for name, prefix in zip(names, prefixes, strict=True)]


def _within(file: _File | None, reason: str) -> str:
    return reason if file is None else f"{file.name}: {reason}"


def _parts(source: Any) -> Iterator[Records]:
    if isinstance(source, str) and "://" in source:
        yield from parquet_records(source)
    elif isinstance(source, str | Path):
        yield from map(_of_file, _files(Path(source)))
    elif method := next((name for name in _AS_LIST if hasattr(source, name)), None):
        yield of_objects(getattr(source, method)(), f"a {type(source).__name__}")
    elif hasattr(source, "itertuples") and hasattr(source, "columns"):
        yield of_frame(source, "a pandas DataFrame")
    elif hasattr(source, "column_names"):
        yield of_hugging_face(source, "a Hugging Face data set")
    elif isinstance(source, Mapping) and source and _are_columns(source):
        names = list(map(str, source))
        rows = [dict(zip(names, row, strict=True)) for row in zip(*source.values(), strict=True)]
        yield of_objects(rows, "a dict of columns")
    elif isinstance(source, Mapping) or not isinstance(source, Iterable):
        msg = (
            f"cannot read a data set from a value of type {type(source).__name__}; accepted are "
            "paths, DataFrames, splits of Hugging Face `datasets`, and lists of mappings"
        )
        raise InputFormatError(msg)
    else:
        kept = list(source)
        if kept and all(isinstance(each, str | Path) for each in kept):
            for each in kept:
                yield from _parts(each)
        else:
            yield of_objects(kept, f"a {type(source).__name__}")


def _are_columns(source: Mapping[Any, Any]) -> bool:
    """Tell whether a mapping holds a list per column, all as long."""
    columns = source.values()
    return all(isinstance(c, list | tuple) for c in columns) and len({len(c) for c in columns}) == 1


def _files(path: Path) -> Iterator[Path]:
    if path.is_dir():
        yield from sorted(
            each
            for each in path.iterdir()
            if each.is_file() and not each.name.startswith(".") and _ending(each) in _ENDINGS
        )
        return
    if not path.exists():
        msg = f"{path}: no such file or folder"
        raise InputFormatError(msg)
    yield path


def _of_file(path: Path) -> Records:
    ending = _ending(path)
    if ending in {".jsonl", ".ndjson"}:
        return Records(str(path), partial(read_json_lines, path))
    if ending == ".json":
        return Records(str(path), partial(read_json, path))
    if ending in {".csv", ".tsv"}:
        return Records(str(path), partial(read_csv, path), csv_columns(path), holds_texts=True)
    if ending == ".parquet":
        return of_parquet(path)
    msg = f"{path}: what kind of file is it? Its name ends in none of {', '.join(_ENDINGS)}, or .gz"
    raise InputFormatError(msg)


def _ending(path: Path) -> str:
    return path.with_suffix("").suffix.lower() if path.suffix == ".gz" else path.suffix.lower()


def _name_of(source: Any) -> str:
    return str(source) if isinstance(source, str | Path) else ", ".join(map(str, source))


_NESTS = ("inputs", "outputs", "reference", "reference_outputs")


def flattened(records: Iterable[Record]) -> Iterator[Record]:
    """Take apart what LangSmith exports nested: `{"inputs": {"question": ...}, ...}`."""
    for record in records:
        if record.cells is None or not any(name in record.cells for name in _NESTS):
            yield record
        else:
            yield record._replace(cells=dict(_flat(record.cells)))


def _flat(cells: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in cells.items():
        nested = _nested(value) if name in _NESTS else None
        if nested is None:
            yield name, value
        else:
            yield from ((f"{name}.{key}", each) for key, each in nested.items())


def _nested(value: Any) -> Mapping[str, Any] | None:
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    return value if isinstance(value, Mapping) else None


def joined_claims(records: Iterable[Record]) -> Iterator[Record]:
    """Give claims the documents that they refer to by `documents_id`.

    A record with `documents` and no claim defines a set of documents; every other one is a
    claim (or an answer), which becomes the answer of a row.
    """
    known: dict[str, Any] = {}
    for record in records:
        cells = record.cells
        if cells is None:
            yield record
        elif "documents" in cells and "claim" not in cells and "answer" not in cells:
            known[str(cells.get("documents_id"))] = cells["documents"]
        elif "documents" in cells:
            yield record._replace(cells=_as_answer(cells))
        elif (key := str(cells.get("documents_id"))) in known:
            yield record._replace(cells={**_as_answer(cells), "documents": known[key]})
        else:
            why = "no earlier line holds the documents that its documents_id names"
            yield record._replace(cells=None, fault=why)


def _as_answer(cells: Mapping[str, Any]) -> dict[str, Any]:
    return {"answer" if name == "claim" else name: value for name, value in cells.items()}
