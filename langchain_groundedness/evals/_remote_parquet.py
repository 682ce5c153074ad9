"""Parquet anywhere that fsspec reaches, as data sets."""

from collections.abc import Iterator
from functools import partial
from pathlib import PurePosixPath
from typing import Any

from langchain_groundedness.evals._records import Record, Records, file_error
from langchain_groundedness.exceptions import (
    ConfigurationError,
    InputFormatError,
    MissingDependencyError,
    require,
)

__all__ = ["located", "parquet_records"]

_AT_ONCE = 128
_ENDING = ".parquet"


def parquet_records(url: str) -> list[Records]:
    """Open a Parquet file, or a folder of such, by its URL.

    Args:
        url: Such as `s3://bucket/answers.parquet` (extra `s3`), `file:///…` or `memory://…`.

    Returns:
        The records of each file.

    Raises:
        InputFormatError: There is no such file, or it is no Parquet file.
        MissingDependencyError: A package is needed that is not installed.
    """
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
    """Find what a URL is about.

    Args:
        url: A URL, or a path.

    Returns:
        A file system of fsspec, and the path in it.

    Raises:
        ConfigurationError: Nobody knows its scheme.
        MissingDependencyError: A package is needed that is not installed.
    """
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
