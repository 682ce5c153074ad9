"""Records as a data set holds them, before anybody knows what their columns mean."""

import csv
import gzip
import io
import json
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, Any, NamedTuple, cast

from pydantic import BaseModel

from langchain_groundedness._runtime.files import whole_up_to
from langchain_groundedness.exceptions import (
    ConfigurationError,
    InputFormatError,
    MissingDependencyError,
    require,
)

__all__ = [
    "LONGEST_LINE",
    "Record",
    "Records",
    "csv_columns",
    "file_error",
    "listed",
    "located",
    "of_frame",
    "of_hugging_face",
    "of_objects",
    "of_parquet",
    "parquet_records",
    "read_csv",
    "read_json",
    "read_json_lines",
]

LONGEST_LINE = 64 << 20
"""Bytes of a line, or characters of a cell; what is longer is no example but a broken file."""

_MOST_COLUMNS = 30

_LONGEST_NAME = 60


class Record(NamedTuple):
    """One entry of a data set."""

    line: int | None
    """Where it begins in its file, or its number among the entries; counted from 1."""
    cells: Mapping[str, Any] | None
    """What it holds, by column; `None` if it cannot be read."""
    fault: str = ""
    """Why it cannot be read."""


class Records(NamedTuple):
    """Where records come from; can be read more than once."""

    name: str
    read: Callable[[], Iterator[Record]]
    columns: tuple[str, ...] | None = None
    """The columns, where they are known without reading all of it."""
    holds_texts: bool = False
    """Whether cells may hold lists written as text, as in CSV."""


def file_error(path: object, error: Exception) -> InputFormatError:
    """Say that a file cannot be read."""
    why = error.strerror if isinstance(error, OSError) else None
    first = next(iter(str(error).splitlines()), "")
    return InputFormatError(f"{path}: {why or first or type(error).__name__}")


def listed(columns: tuple[str, ...]) -> str:
    """Name columns in an error."""
    shown = ", ".join(repr(column[:_LONGEST_NAME]) for column in columns[:_MOST_COLUMNS])
    more = len(columns) - _MOST_COLUMNS
    return (shown or "none") + (f" and {more} more" if more > 0 else "")


LARGEST_JSON = 256 << 20
"""Bytes of a JSON file, unpacked: it is read as a whole, unlike JSON lines."""

_BOM = b"\xef\xbb\xbf"

_TOO_LONG = f"longer than {LONGEST_LINE >> 20} MiB"

_ROWS_KEYS = ("data", "rows", "examples")

_DELIMITERS = ",;\t"

_TEXT_RECORDS_MOST_COLUMNS = 10_000

_CELLS_PER_ROW = 4
"""Of the greatest length."""


def read_json_lines(path: Path) -> Iterator[Record]:
    """Read one JSON object per line, never all at once."""
    with _opened(path) as file:
        number = 0
        while line := file.readline(LONGEST_LINE + 1):
            number += 1
            if len(line) > LONGEST_LINE:
                while line and not line.endswith(b"\n"):
                    line = file.readline(LONGEST_LINE)
                yield Record(number, None, _TOO_LONG)
                continue
            line = line.removeprefix(_BOM) if number == 1 else line
            if line.strip():
                yield _from_json(line, number)


def read_json(path: Path) -> Iterator[Record]:
    """Read a JSON list of objects, also under `data`, `rows` or `examples`."""
    with _opened(path) as file:
        data = whole_up_to(file, LARGEST_JSON, path)
    try:
        found = json.loads(data.removeprefix(_BOM).decode("utf-8"))
    except UnicodeDecodeError as exc:
        msg = f"{path}: not UTF-8 text (byte {exc.start}); convert it first"
        raise InputFormatError(msg) from None
    except (ValueError, RecursionError) as exc:
        where = f", line {exc.lineno}" if isinstance(exc, json.JSONDecodeError) else ""
        advice = "for one object per line, name the file .jsonl"
        msg = f"{path}{where}: no JSON ({getattr(exc, 'msg', type(exc).__name__)}); {advice}"
        raise InputFormatError(msg) from None  # the cause quotes the text
    if isinstance(found, dict):
        found = next((found[key] for key in _ROWS_KEYS if isinstance(found.get(key), list)), found)
    if not isinstance(found, list):
        keys = ", ".join(map(repr, _ROWS_KEYS))
        msg = f"{path}: a list of objects is needed, on its own or under one of {keys}"
        raise InputFormatError(msg)
    for number, each in enumerate(found, 1):
        yield _record(each, number)


def csv_columns(path: Path) -> tuple[str, ...]:
    """Read the header of a CSV file."""
    with _opened(path) as file, _decoded(file) as text:
        return _header(path, _CsvLines(path, text))[0]


def read_csv(path: Path) -> Iterator[Record]:
    """Read a CSV file with a header; cells are separated by commas, semicolons or tabs."""
    with _opened(path) as file, _decoded(file) as text:
        lines = _CsvLines(path, text)
        columns, delimiter, used = _header(path, lines)
        rows = csv.reader(lines, delimiter=delimiter, strict=True)
        while True:
            begin = used + rows.line_num + 1
            lines.begin_row()
            try:
                cells = next(rows)
            except StopIteration:
                return
            except csv.Error as exc:
                yield Record(begin, None, _csv_fault(exc))
                continue
            if cells:
                yield _csv_record(cells, columns, begin)


def _header(path: Path, lines: Iterator[str]) -> tuple[tuple[str, ...], str, int]:
    """Give the columns, what separates cells, and how many lines the header takes."""
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_LINE))
    first = next(lines, "")
    delimiter = max(_DELIMITERS, key=first.count)

    def whole() -> Iterator[str]:
        yield first
        yield from lines

    header = csv.reader(whole(), delimiter=delimiter, strict=True)
    try:
        names = [name.strip() for name in next(header, [])]
    except csv.Error as exc:
        msg = f"{path}, line 1: the header cannot be read: {_csv_fault(exc)}"
        raise InputFormatError(msg) from None
    if any("\udc80" <= character <= "\udcff" for name in names for character in name):
        msg = f"{path}, line 1: not UTF-8 text; convert it first"
        raise InputFormatError(msg)
    if not any(names):
        msg = f"{path}: no header in line 1; a CSV file begins with the names of its columns"
        raise InputFormatError(msg)
    columns = tuple(name or f"column {place}" for place, name in enumerate(names, 1))
    if len(columns) > _TEXT_RECORDS_MOST_COLUMNS:
        msg = f"{path}: {len(columns)} columns, more than {_TEXT_RECORDS_MOST_COLUMNS}: is line 1 its header?"
        raise InputFormatError(msg)
    if twice := [name for name, times in Counter(columns).items() if times > 1]:
        named = ", ".join(map(repr, sorted(twice)))
        msg = f"{path}: two columns have the same name: {named}; rename one"
        raise InputFormatError(msg, keys=columns)
    return columns, delimiter, header.line_num


@contextmanager
def _decoded(file: IO[bytes]) -> Iterator[IO[str]]:
    # Bytes that are no UTF-8 become halves of characters, which make their row a bad one.
    text = io.TextIOWrapper(file, encoding="utf-8-sig", errors="surrogateescape", newline="")
    try:
        yield text
    finally:
        text.detach()  # closing is for whoever opened it


class _CsvLines:
    """The lines of a CSV file, and of one row only so many."""

    def __init__(self, path: Path, text: IO[str]) -> None:
        self._path = path
        self._text = text
        self._number = 0
        self._row = 0

    def begin_row(self) -> None:
        self._row = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._text.readline(LONGEST_LINE + 1)
        if not line:
            raise StopIteration
        self._number += 1
        self._row += len(line)
        if len(line) > LONGEST_LINE:
            msg = f"{self._path}, line {self._number}: {_TOO_LONG}"
            raise InputFormatError(msg)
        if self._row > _CELLS_PER_ROW * LONGEST_LINE:
            most = _CELLS_PER_ROW * LONGEST_LINE >> 20
            msg = f"{self._path}, line {self._number}: a row is longer than {most} MiB"
            raise InputFormatError(msg)
        return line


def _csv_fault(error: csv.Error) -> str:
    text = str(error)
    if "unexpected end" in text:
        return "a quote that opens in this row is never closed: all that follows is in one cell"
    if "field limit" in text:
        return f"a cell is {_TOO_LONG}"
    return "a quoted cell goes on after its closing quote; a quote inside is written twice"


def _csv_record(cells: list[str], columns: tuple[str, ...], line: int) -> Record:
    if len(cells) != len(columns):
        return Record(line, None, f"{len(cells)} cells, and the header has {len(columns)}")
    return Record(line, {name: cell or None for name, cell in zip(columns, cells, strict=True)})


def _from_json(line: bytes, number: int) -> Record:
    try:
        return _record(json.loads(line.decode("utf-8")), number)
    except UnicodeDecodeError as exc:
        return Record(
            number, None, f"not UTF-8 text (byte {exc.start} of the line); convert it first"
        )
    except (ValueError, RecursionError) as exc:
        return Record(number, None, f"no JSON ({getattr(exc, 'msg', type(exc).__name__)})")


def _record(found: Any, number: int) -> Record:
    if isinstance(found, Mapping):
        return Record(number, found)
    return Record(number, None, f"an object is needed, got {type(found).__name__}")


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    try:
        with path.open("rb") as file:
            yield cast("IO[bytes]", gzip.GzipFile(fileobj=file)) if path.suffix == ".gz" else file
    except (OSError, EOFError, zlib.error) as exc:
        raise file_error(path, exc) from exc


_AT_ONCE = 128


def of_parquet(path: Path) -> Records:
    """Open a Parquet file."""
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
    """Take a pandas DataFrame."""
    columns = tuple(map(str, frame.columns))

    def read() -> Iterator[Record]:
        for number, row in enumerate(frame.itertuples(index=False, name=None), 1):
            yield Record(number, dict(zip(columns, row, strict=True)))

    return Records(name, read, columns, holds_texts=True)


def of_hugging_face(dataset: Any, name: str) -> Records:
    """Take a split of Hugging Face `datasets`, in memory or streamed."""
    if isinstance(dataset, Mapping) and len(dataset) == 1:
        [dataset] = dataset.values()
    if isinstance(dataset, Mapping):
        splits = ", ".join(repr(str(split)) for split in dataset)
        msg = f"the data set has several splits: {splits}; give one of them, as in data['test']"
        raise InputFormatError(msg)
    columns = dataset.column_names or tuple(next(iter(dataset), {}))

    def read() -> Iterator[Record]:
        return (Record(number, row) for number, row in enumerate(dataset, 1))

    return Records(name, read, tuple(columns), holds_texts=True)


def of_objects(objects: Iterable[Any], name: str) -> Records:
    """Take mappings, or objects with fields, such as examples of a LangSmith client."""
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


_ENDING = ".parquet"


def parquet_records(url: str) -> list[Records]:
    """Open a Parquet file, or a folder of such, by its URL."""
    parquet: Any = require("pyarrow.parquet", extra="data")
    files, path = located(url)
    try:
        paths = sorted(files.glob(f"{path}/*{_ENDING}")) if files.isdir(path) else [path]
        names = [_columns(parquet, files, each) for each in paths]
    except (OSError, ValueError) as exc:
        raise file_error(url, exc) from exc
    if not paths:
        msg = f"{url}: no {_ENDING} file in that folder"
        raise InputFormatError(msg)
    return [
        Records(
            url if len(paths) == 1 else PurePosixPath(each).name,
            partial(_read, files, each, url),
            columns,
            holds_texts=True,
        )
        for each, columns in zip(paths, names, strict=True)
    ]


def _columns(parquet: Any, files: Any, path: str) -> tuple[str, ...]:
    with files.open(path) as file:
        return tuple(parquet.read_schema(file).names)


def _read(files: Any, path: str, url: str) -> Iterator[Record]:
    parquet: Any = require("pyarrow.parquet", extra="data")
    try:
        with files.open(path) as file:
            batches = parquet.ParquetFile(file).iter_batches(_AT_ONCE)
            rows = (row for some in batches for row in some.to_pylist())
            yield from (Record(number, row) for number, row in enumerate(rows, 1))
    except (OSError, ValueError) as exc:
        raise file_error(url, exc) from exc


def located(url: str) -> tuple[Any, str]:
    """Find what a URL is about."""
    fsspec: Any = require("fsspec.core", extra="data")
    try:
        files, path = fsspec.url_to_fs(url)
    except ImportError as exc:
        scheme = url.partition("://")[0]
        msg = f"{scheme}:// needs a package that is not installed: {exc}"
        raise MissingDependencyError(msg) from exc
    except ValueError as exc:
        msg = f"{url.partition('://')[0]}:// is no scheme that fsspec knows"
        raise ConfigurationError(msg) from exc
    return files, str(path)
