"""Reads records from files, tables and objects, before their columns are mapped."""

import csv
import gzip
import io
import json
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from functools import partial
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import IO, Any, NamedTuple, cast

from pydantic import BaseModel

from langchain_groundedness._runtime.files import read_rest_up_to
from langchain_groundedness.exceptions import (
    ConfigurationError,
    InputFormatError,
    MissingDependencyError,
    require,
)

__all__ = [
    "FILE_ENDINGS",
    "LONGEST_LINE",
    "Record",
    "Records",
    "file_error",
    "json_error",
    "list_columns",
    "open_filesystem",
    "open_records",
    "parse_json",
]

FILE_ENDINGS = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet")

LONGEST_LINE = 64 << 20
"""Longest line in bytes, or cell in characters; a longer one means a broken file."""

LARGEST_JSON = 256 << 20
"""Largest JSON file in bytes, unpacked: unlike JSON lines, it is read as a whole."""

_LONGEST_LINES_PER_ROW = 4
_MAX_COLUMNS = 10_000
_MAX_LISTED = 30
_LONGEST_NAME = 60
_BATCH_ROWS = 128
_BOM = b"\xef\xbb\xbf"
_TOO_LONG = f"longer than {LONGEST_LINE >> 20} MiB"
_JSON_KEYS = ("data", "rows", "examples")
_DELIMITERS = ",;\t"
_QUOTED = re.compile(rf'(?<![^{_DELIMITERS}])"(?:[^"]|"")*"?')


class Record(NamedTuple):
    """One entry of a data set."""

    line: int
    """Its first line in the file, or its number among the entries; counted from 1."""
    cells: Mapping[str, Any] | None
    """What it holds, by column; `None` if it cannot be read."""
    error: str = ""
    """Why it cannot be read."""


class Records(NamedTuple):
    """Where records come from; can be read more than once."""

    name: str
    read: Callable[[], Iterator[Record]]
    is_table: bool = False
    """Whether all records have the columns of the first one, and cells may hold lists as text."""


def open_records(source: Any) -> list[Records]:
    """Find what there is to read in a path, a URL, a table, or a list of objects."""
    if isinstance(source, str) and "://" in source:
        return _parquet_at_url(source)
    if isinstance(source, str | Path):
        return [_file_records(path) for path in _files(Path(source))]
    kind = f"a {type(source).__name__}"
    if (table := _open_table(source, kind)) is not None:
        return [table]
    if isinstance(source, Mapping) or not isinstance(source, Iterable):
        accepted = "paths, DataFrames, splits of Hugging Face `datasets`, and lists of mappings"
        msg = (
            f"cannot read a data set from a value of type {type(source).__name__}: give {accepted}"
        )
        raise InputFormatError(msg)
    given = list(source)
    if given and all(isinstance(each, str | Path) for each in given):
        return [records for path in given for records in open_records(path)]
    return [Records(kind, partial(_numbered, given))]


def _open_table(source: Any, kind: str) -> Records | None:
    rows: Any = getattr(source, "to_pylist", None) or getattr(source, "to_dicts", None)
    if rows is not None:  # of pyarrow, or of polars
        return Records(kind, lambda: _numbered(rows()))
    if hasattr(source, "itertuples"):
        rows = partial(source.to_dict, "records")
        return Records("a pandas DataFrame", lambda: _numbered(rows()), is_table=True)
    if hasattr(source, "column_names"):
        split = _only_split(source)
        return Records("a Hugging Face data set", lambda: _numbered(split), is_table=True)
    columns = list(source.values()) if isinstance(source, Mapping) else []
    if (
        all(isinstance(column, list | tuple) for column in columns)
        and len({len(column) for column in columns}) == 1
    ):
        given = [dict(zip(source, row, strict=True)) for row in zip(*columns, strict=True)]
        return Records("a dict of columns", partial(_numbered, given))
    return None


def file_error(path: object, error: Exception) -> InputFormatError:
    """Say that a file cannot be read."""
    why = error.strerror if isinstance(error, OSError) else None
    first = next(iter(str(error).splitlines()), "")
    return InputFormatError(f"{path}: {why or first or type(error).__name__}")


def list_columns(columns: Sequence[str]) -> str:
    """Name columns in an error."""
    shown = ", ".join(repr(column[:_LONGEST_NAME]) for column in columns[:_MAX_LISTED])
    more = len(columns) - _MAX_LISTED
    return (shown or "none") + (f" and {more} more" if more > 0 else "")


def open_filesystem(url: str) -> tuple[Any, str]:
    """Give the fsspec file system that a URL is on, and the path there."""
    fsspec: Any = require("fsspec.core", extra="data")
    scheme = url.partition("://")[0]
    try:
        files, path = fsspec.url_to_fs(url)
    except ImportError as exc:
        msg = f"{scheme}:// needs a package that is not installed: {exc}"
        raise MissingDependencyError(msg) from exc
    except ValueError as exc:
        msg = f"{scheme}:// is not a scheme that fsspec knows"
        raise ConfigurationError(msg) from exc
    return files, str(path)


def _numbered(values: Iterable[Any]) -> Iterator[Record]:
    return (_record(value, number) for number, value in enumerate(values, 1))


def _record(value: Any, number: int) -> Record:
    if isinstance(value, BaseModel):
        value = dict(value)
    elif is_dataclass(value) and not isinstance(value, type):
        value = {each.name: getattr(value, each.name) for each in fields(value)}
    if isinstance(value, Mapping):
        return Record(number, {str(key): cell for key, cell in value.items()})
    return Record(number, None, f"expected an object (a mapping), got {type(value).__name__}")


def _only_split(dataset: Any) -> Any:
    if not isinstance(dataset, Mapping):
        return dataset
    if len(dataset) > 1:
        splits = ", ".join(repr(str(split)) for split in dataset)
        msg = f"the data set has several splits: {splits}; give one of them, as in data['test']"
        raise InputFormatError(msg)
    return next(iter(dataset.values()), ())


def _files(path: Path) -> Iterator[Path]:
    if path.is_dir():
        yield from sorted(
            each
            for each in path.iterdir()
            if each.is_file() and not each.name.startswith(".") and _ending(each) in FILE_ENDINGS
        )
        return
    if not path.exists():
        msg = f"{path}: no such file or folder"
        raise InputFormatError(msg)
    yield path


def _ending(path: Path) -> str:
    return path.with_suffix("").suffix.lower() if path.suffix == ".gz" else path.suffix.lower()


def _file_records(path: Path) -> Records:
    match _ending(path):
        case ".jsonl" | ".ndjson":
            return Records(str(path), partial(_read_json_lines, path))
        case ".json":
            return Records(str(path), partial(_read_json, path))
        case ".csv" | ".tsv":
            return Records(str(path), partial(_read_csv, path), is_table=True)
        case ".parquet":
            return _parquet_records(str(path), partial(path.open, "rb"), str(path))
    msg = f"{path}: unknown kind of file; its name must end in {', '.join(FILE_ENDINGS)}, or .gz"
    raise InputFormatError(msg)


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    try:
        with path.open("rb") as file:
            yield cast("IO[bytes]", gzip.GzipFile(fileobj=file)) if path.suffix == ".gz" else file
    except (OSError, EOFError, zlib.error) as exc:
        raise file_error(path, exc) from exc


def _read_json_lines(path: Path) -> Iterator[Record]:
    """Read one JSON object per line, never all at once."""
    with _opened(path) as file:
        lines = iter(partial(file.readline, LONGEST_LINE + 1), b"")
        for number, line in enumerate(lines, 1):
            if len(line) > LONGEST_LINE:
                rest = line
                while rest and not rest.endswith(b"\n"):
                    rest = file.readline(LONGEST_LINE)
                yield Record(number, None, _TOO_LONG)
            elif line.strip():
                yield _json_record(line, number)


def _json_record(line: bytes, number: int) -> Record:
    try:
        return _record(parse_json(line), number)
    except (ValueError, RecursionError) as exc:
        return Record(number, None, json_error(exc, " of the line"))


def parse_json(data: bytes) -> Any:
    """Parse JSON in UTF-8."""
    return json.loads(data.removeprefix(_BOM).decode("utf-8"))


def json_error(error: Exception, of: str = "") -> str:
    """Say why JSON could not be parsed, without quoting it."""
    if isinstance(error, UnicodeDecodeError):
        return f"not UTF-8 text (byte {error.start}{of}); convert it first"
    return f"not JSON ({getattr(error, 'msg', type(error).__name__)})"


def _read_json(path: Path) -> Iterator[Record]:
    """Read a JSON list of objects, also under `data`, `rows` or `examples`."""
    with _opened(path) as file:
        data = read_rest_up_to(file, LARGEST_JSON, path)
    try:
        found = parse_json(data)
    except (ValueError, RecursionError) as exc:
        msg = f"{path}: {json_error(exc)}"
        if isinstance(exc, json.JSONDecodeError):
            advice = "for one object per line, name the file .jsonl"
            msg = f"{path}, line {exc.lineno}: {json_error(exc)}; {advice}"
        raise InputFormatError(msg) from None  # the cause quotes the text
    if isinstance(found, dict):
        found = next((found[key] for key in _JSON_KEYS if isinstance(found.get(key), list)), found)
    if not isinstance(found, list):
        keys = ", ".join(map(repr, _JSON_KEYS))
        msg = f"{path}: expected a list of objects, on its own or under one of {keys}"
        raise InputFormatError(msg)
    yield from _numbered(found)


def _read_csv(path: Path) -> Iterator[Record]:
    """Read a CSV file with a header; cells are separated by commas, semicolons or tabs."""
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_LINE))
    begin, length, limit = 1, 0, _LONGEST_LINES_PER_ROW * LONGEST_LINE

    def lines() -> Iterator[str]:
        """Give lines, up to a limit per row: an open quote would take all of them."""
        nonlocal length
        while line := text.readline(limit + 1 - length):
            length += len(line)
            if length > limit:
                msg = f"{path}, line {begin}: a row is longer than {limit >> 20} MiB"
                raise InputFormatError(msg)
            yield line

    with _opened(path) as file:
        # Invalid UTF-8 becomes lone surrogates, which make their row a bad row.
        text = io.TextIOWrapper(file, encoding="utf-8-sig", errors="surrogateescape", newline="")
        given = lines()
        first = next(given, "")
        rows = csv.reader(chain([first], given), delimiter=_delimiter(path, first), strict=True)
        columns = _csv_columns(path, rows)
        while True:
            begin, length = rows.line_num + 1, 0
            try:
                cells = next(rows, None)
            except csv.Error as exc:
                yield Record(begin, None, _csv_error(exc))
                continue
            if cells is None:
                return
            if len(cells) == len(columns):
                named = zip(columns, cells, strict=True)
                yield Record(begin, {name: cell or None for name, cell in named})
            elif cells:
                error = f"{len(cells)} cells, but the header has {len(columns)}"
                yield Record(begin, None, error)


def _delimiter(path: Path, header: str) -> str:
    """Tell what separates cells: in a .tsv file tabs, otherwise what is most frequent."""
    bare = _QUOTED.sub("", header)
    is_tabbed = _ending(path) == ".tsv" and "\t" in bare
    return "\t" if is_tabbed else max(_DELIMITERS, key=bare.count)


def _csv_columns(path: Path, rows: Iterator[list[str]]) -> tuple[str, ...]:
    try:
        names = [name.strip() for name in next(rows, [])]
    except csv.Error as exc:
        msg = f"{path}, line 1: the header cannot be read: {_csv_error(exc)}"
        raise InputFormatError(msg) from None
    if any("\udc80" <= character <= "\udcff" for name in names for character in name):
        msg = f"{path}, line 1: not UTF-8 text; convert it first"
        raise InputFormatError(msg)
    if not any(names):
        msg = f"{path}: no header in line 1; a CSV file begins with the names of its columns"
        raise InputFormatError(msg)
    if len(names) > _MAX_COLUMNS:
        msg = f"{path}: {len(names)} columns, more than {_MAX_COLUMNS}: is line 1 its header?"
        raise InputFormatError(msg)
    columns = tuple(name or f"column {place}" for place, name in enumerate(names, 1))
    if repeated := [name for name, times in Counter(columns).items() if times > 1]:
        named = ", ".join(map(repr, sorted(repeated)))
        msg = f"{path}: two columns have the same name: {named}; rename one"
        raise InputFormatError(msg, keys=columns)
    return columns


def _csv_error(error: csv.Error) -> str:
    text = str(error)
    if "unexpected end" in text:
        return "a quote opened in this row is never closed"
    if "field limit" in text:
        return f"a cell is {_TOO_LONG}"
    return "a quoted cell continues after its closing quote; double the quotes inside a cell"


def _parquet_at_url(url: str) -> list[Records]:
    """Open a Parquet file, or a folder of such, by its URL."""
    files, path = open_filesystem(url)
    try:
        is_folder = files.isdir(path)
        paths = sorted(files.glob(f"{path}/*.parquet")) if is_folder else [path]
    except (OSError, ValueError) as exc:
        raise file_error(url, exc) from exc
    if not paths:
        msg = f"{url}: no .parquet file in that folder"
        raise InputFormatError(msg)
    names = [PurePosixPath(each).name for each in paths] if len(paths) > 1 else [url]
    return [
        _parquet_records(name, partial(files.open, each), url)
        for name, each in zip(names, paths, strict=True)
    ]


def _parquet_records(name: str, opened: Callable[[], Any], where: str) -> Records:
    parquet: Any = require("pyarrow.parquet", extra="data")

    def read() -> Iterator[Record]:
        try:
            with opened() as file:
                batches = parquet.ParquetFile(file).iter_batches(_BATCH_ROWS)
                yield from _numbered(row for batch in batches for row in batch.to_pylist())
        except (OSError, ValueError) as exc:  # pyarrow's own are of these two kinds
            raise file_error(where, exc) from exc

    next(read(), None)  # a file that cannot be read is refused when the data set is opened
    return Records(name, read, is_table=True)
