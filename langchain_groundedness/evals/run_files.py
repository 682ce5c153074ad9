"""Run files: an evaluation as JSON lines, written while it runs.

The first line is the header (`"type": "run"`), the others a row with its scores (`"row"`), a row
that could not be read (`"bad_row"`), or the end (`"end"`). A later line about a row replaces an
earlier one. An incomplete last line, as a killed process leaves it, is ignored. `save_parquet`
makes a table of it, and `ResultCache` keeps single scores for other runs.
"""

import hashlib
import json
import logging
import math
import mmap
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date, datetime
from itertools import chain, islice
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from langchain_groundedness._runtime.files import (
    describe_unusable_path,
    lines_up_to,
    open_private,
    private_folder,
    raising_configuration_error,
    replace_file,
    replacing,
    require_file_locks,
    try_lock,
    write_all,
)
from langchain_groundedness.audit.record import plain_mapping
from langchain_groundedness.evals.readers import (
    file_error,
    json_error,
    open_filesystem,
    parse_json,
)
from langchain_groundedness.evals.values import (
    BadRow,
    EvaluatedRow,
    EvaluationRow,
    EvaluationRun,
    RowScore,
    RunHeader,
)
from langchain_groundedness.exceptions import ConfigurationError, require
from langchain_groundedness.types import FrozenModel, Usage

__all__ = [
    "Journal",
    "ResultCache",
    "RunEnd",
    "as_json",
    "as_line",
    "cut_torn_line",
    "load_run",
    "open_to_append",
    "save_parquet",
    "save_run",
]


LONGEST_LINE = 256 << 20
"""Bytes of a line: a row with its documents and all that was found about it."""


class RunEnd(FrozenModel):
    """The last line of a run file; without it, the run was killed."""

    complete: bool
    seconds: float | None = None
    usage: Usage = Usage()


class RunLine(NamedTuple):
    """One line of a run file."""

    value: RunHeader | EvaluatedRow | BadRow | RunEnd
    place: int | None = None
    """Position of the row in the data set, counted from 0, if the line has it."""
    begin: int = 0
    """Position in the file, in bytes."""


KeptT = TypeVar("KeptT")


def load_run(path: str | Path) -> EvaluationRun:
    """Read a run file.

    Args:
        path: What an evaluation has written, also one that is still going on or was killed.

    Returns:
        The run, rows in the order of the data set; `complete` is false if the end is missing.

    Raises:
        ConfigurationError: There is no such file, or a line of it is no line of a run; the message
            names the line.
    """
    header, rows, bad_rows, end = read_run(path, lambda line: line.value)
    return EvaluationRun(header=header, rows=rows, bad_rows=bad_rows, **dict(end))


def read_run(
    path: str | Path, keep: Callable[[RunLine], KeptT]
) -> tuple[RunHeader, list[KeptT], list[BadRow], RunEnd]:
    """Read a run file, with what `keep` returns for each row, in the order of the data set."""
    header: RunHeader | None = None
    rows: dict[str, tuple[float, KeptT]] = {}
    bad_rows: dict[BadRow, None] = {}
    end = RunEnd(complete=False)
    for line in read_lines(path):
        if isinstance(line.value, RunHeader):
            header = line.value
        elif isinstance(line.value, EvaluatedRow):
            place = line.value.line if line.place is None else line.place
            # Rows without a position come last, in file order.
            rows[line.value.row.id] = math.inf if place is None else place, keep(line)
        elif isinstance(line.value, BadRow):
            bad_rows[line.value] = None
        else:
            end = line.value
    if header is None:
        msg = f"{path}: not a run file: it is empty"
        raise ConfigurationError(msg)
    ordered = sorted(rows.values(), key=itemgetter(0))
    return header, [kept for _, kept in ordered], list(bad_rows), end


def save_run(run: EvaluationRun, path: str | Path) -> None:
    """Write a run into a file that `load_run` reads; another file there is replaced as a whole.

    Args:
        run: The run.
        path: The file.

    Raises:
        ConfigurationError: It cannot be written.
    """
    end = RunEnd(complete=run.complete, seconds=run.seconds, usage=run.usage)
    rows = (as_line(row, place=place) for place, row in enumerate(run.rows))
    bad_rows = map(as_line, run.bad_rows)
    with raising_configuration_error(path):
        replace_file(Path(path), chain([as_line(run.header)], rows, bad_rows, [as_line(end)]))


def as_line(
    value: RunHeader | EvaluatedRow | BadRow | RunEnd, *, place: int | None = None
) -> bytes:
    """Write one line of a run file."""
    kind = next(kind for kind, cls in _KINDS.items() if isinstance(value, cls))
    data = {"type": kind} | ({} if place is None else {"place": place}) | value.model_dump()
    for result in _results(data):
        if result.get("documents") == data["row"]["documents"]:
            del result["documents"]  # part of the row; `read_line` restores them
    return f"{as_json(data)}\n".encode("ascii")


def _results(data: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Return the results in a line, if it is a row."""
    scores = data.get("scores")
    for score in scores if isinstance(scores, list | tuple) else ():
        if isinstance(score, dict) and isinstance(score.get("result"), dict):
            yield score["result"]


def as_json(data: Mapping[str, Any]) -> str:
    """Write values of evaluators and data sets as JSON."""
    try:
        return json.dumps(data, allow_nan=False, default=_plain)
    except (TypeError, ValueError, RecursionError):
        return json.dumps(plain_mapping(data))


def read_lines(path: str | Path) -> Iterator[RunLine]:
    """Read the lines of a run file, never all at once."""
    begin = 0
    with raising_configuration_error(path), Path(path).open("rb") as file:
        for number, data in enumerate(lines_up_to(file, LONGEST_LINE, Path(path)), 1):
            line = read_line(data, f"{path}, line {number}", is_first=number == 1)
            if line is not None:
                yield line._replace(begin=begin)
            begin += len(data)


_KINDS: Mapping[str, type[RunHeader | EvaluatedRow | BadRow | RunEnd]] = {
    "run": RunHeader,
    "row": EvaluatedRow,
    "bad_row": BadRow,
    "end": RunEnd,
}


def read_line(data: bytes, where: str, *, is_first: bool = False) -> RunLine | None:
    """Read a line; `None` if it is blank, or was cut off when a process was killed."""
    if not data.strip():
        return None
    try:
        found = parse_json(data)
    except (ValueError, RecursionError) as exc:
        if not data.endswith(b"\n"):
            return None
        hint = "" if isinstance(exc, UnicodeDecodeError) else "; is it a run file?"
        msg = f"{where}: {json_error(exc, ' of the line')}{hint}"
        raise ConfigurationError(msg) from None  # the cause quotes the text
    kind = found.pop("type", None) if isinstance(found, dict) else None
    if not isinstance(kind, str) or kind not in _KINDS:
        msg = f"{where}: not a line of a run file: `type` must be one of {', '.join(_KINDS)}"
        raise ConfigurationError(msg)
    if is_first != (kind == "run"):
        msg = f"{where}: a run file begins with one line of type run, got {kind}"
        raise ConfigurationError(msg)
    place, row = found.pop("place", None), found.get("row")
    for result in _results(found):
        if isinstance(row, dict):
            result.setdefault("documents", row.get("documents"))
    try:
        value = _KINDS[kind].model_validate(found)
    except ValidationError as exc:
        fault = exc.errors(include_url=False, include_input=False, include_context=False)[0]
        msg = f"{where}: not a valid {kind}: {'.'.join(map(str, fault['loc']))}: {fault['msg']}"
        raise ConfigurationError(msg) from None  # the cause quotes the text
    return RunLine(value, place if isinstance(place, int) else None)


def _plain(value: Any) -> Any:
    """Convert values of evaluators and data sets to JSON types."""
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, set | frozenset):
        return sorted(value, key=str)
    if isinstance(value, BaseModel):
        return value.model_dump()
    to_list = getattr(value, "tolist", None)  # arrays and numbers of numpy
    return to_list() if callable(to_list) else str(value)


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
    schema = _schema(arrow, header.evaluators)
    files, path = open_filesystem(str(url))
    rows = map(_cells, found)
    try:
        with _opened_at(files, path) as file, parquet.ParquetWriter(file, schema) as writer:
            while batch := list(islice(rows, _BATCH_ROWS)):
                writer.write_table(arrow.Table.from_pylist(batch, schema))
    except (OSError, ValueError) as exc:
        raise ConfigurationError(str(file_error(url, exc))) from exc


@contextmanager
def _opened_at(files: Any, path: str) -> Iterator[Any]:
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
    of_scores = (f"{key}{part}" for key in keys for part in ("", *(f"_{p}" for p in _SCORE_PARTS)))
    kinds = {
        "line": arrow.int64(),
        "contexts": arrow.list_(arrow.string()),
        "seconds": arrow.float64(),
        **dict.fromkeys(keys, arrow.float64()),
    }
    return arrow.schema(
        [(name, kinds.get(name, arrow.string())) for name in (*_ROW_COLUMNS, *of_scores)]
    )


def _cells(found: EvaluatedRow | BadRow) -> dict[str, Any]:
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
        cells[score.key] = score.score
        cells |= {f"{score.key}_{part}": getattr(score, part) for part in _SCORE_PARTS}
        cells[f"{score.key}_details"] = as_json(score.details)
    return cells


_RUN_BEGIN = b'{"type": "run"'
"""The beginning of an incomplete header."""

_LONGEST_VALUE = 60


class Journal:
    """Appends to a run file, one line per finished row, and reads what it already holds.

    A process may be killed at any moment; the next one removes an incomplete last line.
    Only one process at a time can have a journal open.
    """

    def __init__(self, path: str | Path, *, fresh: bool = False, fsync: bool = False) -> None:
        """Open a run file, made if it is not there."""
        require_file_locks("journal")
        self._path = Path(path)
        self._fsync = fsync
        self.header: RunHeader | None = None
        """The header of the run; `None` if the file is new."""
        self._file = open_to_append(self._path)
        try:
            self._begin(fresh=fresh)
        except BaseException:
            self.close()
            raise

    def start(self, header: RunHeader) -> None:
        """Write the header, or check that the run in the file is the same."""
        if self.header is None:
            self.write(as_line(header))
            self.header = header
        elif differing := "; ".join(_differences(self.header, header)):
            other = f"{self._path} holds another evaluation, which cannot be resumed: {differing}"
            msg = f"{other}. Name another file, or start again with fresh=True (--fresh)"
            raise ConfigurationError(msg)

    def lines(self) -> Iterator[RunLine]:
        """Read the lines after the header."""
        return (line for line in read_lines(self._path) if not isinstance(line.value, RunHeader))

    def write(self, *lines: bytes) -> None:
        """Write lines, as `as_line` makes them."""
        with raising_configuration_error(self._path):
            write_all(self._file, b"".join(lines))
            if self._fsync:
                os.fsync(self._file)

    def close(self) -> None:
        """Close the file, and let others have it; closing again does nothing."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _begin(self, *, fresh: bool) -> None:
        first = next(read_lines(self._path), None)
        torn = os.pread(self._file, len(_RUN_BEGIN), 0)
        if first is None and not _RUN_BEGIN.startswith(torn):
            msg = f"{self._path}: it is not empty, and not a run file; name another one"
            raise ConfigurationError(msg)
        if fresh or first is None:
            os.ftruncate(self._file, 0)
            return
        cut_torn_line(self._file)
        if isinstance(first.value, RunHeader):
            self.header = first.value


def open_to_append(path: Path) -> int:
    """Open a file that this process alone may append to; it is made if it is not there."""
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_NONBLOCK", 0)
    with raising_configuration_error(path):
        descriptor = open_private(path, flags, follow_symlinks=True)
    if try_lock(descriptor):
        return descriptor
    os.close(descriptor)
    msg = f"{path}: another process is writing into it; wait until it has ended"
    raise ConfigurationError(msg)


def cut_torn_line(descriptor: int) -> None:
    """Remove an incomplete last line, or end it if only the newline is missing."""
    size = os.fstat(descriptor).st_size
    if not size:
        return
    with mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ) as data:
        last = data[data.rfind(b"\n") + 1 :]
    if not last:
        return
    try:
        json.loads(last)
    except ValueError:
        os.ftruncate(descriptor, size - len(last))
    else:
        write_all(descriptor, b"\n")


def _differences(before: RunHeader, now: RunHeader) -> Iterator[str]:
    if before.digest != now.digest:
        yield (
            f"the rows are not those of {before.dataset}: the data set has changed, or columns, "
            "layout or limit differ"
        )
    was, is_now = (
        {"version": each.version, "metrics": sorted(each.evaluators), **_flat(each.evaluators)}
        for each in (before, now)
    )
    if was["metrics"] != is_now["metrics"]:
        was, is_now = {"metrics": was["metrics"]}, {"metrics": is_now["metrics"]}
    for option in sorted({*was, *is_now}):
        if was.get(option) != is_now.get(option):
            yield f"{option} was {_shown(was.get(option))}, now {_shown(is_now.get(option))}"


def _flat(options: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in options.items():
        path, is_nested = f"{above}{name}", isinstance(value, Mapping) and value
        flat |= _flat(value, f"{path}.") if is_nested else {path: value}
    return flat


def _shown(value: Any) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"


_FORMAT = 1
_LOGGER = logging.getLogger(__name__)


class ResultCache:
    """Keeps the score of a row for an evaluator, as one JSON file in a folder.

    The key is the question, answer, documents and reference of a row, and the evaluator's
    `fingerprint`. Only scores are kept, no failures. Several
    processes may use one folder; an entry that is damaged counts as missing.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> row, options = EvaluationRow(id="1", answer="Rome."), {"class": "Mine"}
        >>> with TemporaryDirectory() as folder:
        ...     cache = ResultCache(folder)
        ...     cache.put(row, options, RowScore(key="mine", score=1.0, status="scored"))
        ...     cache.get(row.model_copy(update={"id": "2"}), options).score
        1.0
    """

    def __init__(self, folder: str | Path) -> None:
        """Name the folder."""
        self._folder = Path(folder)
        try:
            private_folder(self._folder)
        except OSError as exc:
            if not self._folder.is_dir():
                raise describe_unusable_path(folder, exc) from exc

    def get(self, row: EvaluationRow, fingerprint: Mapping[str, Any]) -> RowScore | None:
        """Look for a score.

        Args:
            row: The row.
            fingerprint: The evaluator's `fingerprint()`.

        Returns:
            The score, without usage because a cached score costs nothing; `None` if there is none.
        """
        path = self._path(row, fingerprint)
        try:
            score = RowScore.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValidationError) as exc:
            _LOGGER.warning("cache: %s cannot be read (%s)", path, type(exc).__name__)
            return None
        return score.model_copy(update={"usage": Usage()})

    def put(self, row: EvaluationRow, fingerprint: Mapping[str, Any], score: RowScore) -> None:
        """Store a score; failed and skipped ones are ignored.

        Args:
            row: The row.
            fingerprint: The evaluator's `fingerprint()`.
            score: Its score.
        """
        if score.status != "scored":
            return
        path = self._path(row, fingerprint)
        try:
            path.parent.mkdir(exist_ok=True)
            replace_file(path, [as_json(score.model_dump()).encode("ascii")])
        except OSError as exc:  # a full disk must not end the run
            _LOGGER.warning("cache: %s cannot be written (%s)", path, exc.strerror)

    def _path(self, row: EvaluationRow, fingerprint: Mapping[str, Any]) -> Path:
        parts = row.model_dump(
            mode="json", include={"question", "answer", "documents", "reference"}
        )
        content = json.dumps([_FORMAT, dict(fingerprint), parts], sort_keys=True, default=str)
        name = hashlib.sha256(content.encode("ascii")).hexdigest()
        return self._folder / name[:2] / f"{name[2:]}.json"
