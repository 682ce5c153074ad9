"""Run files: an evaluation as lines of JSON, written while it goes on and read afterwards.

The first line is the header (`"type": "run"`), the others a row with its scores (`"row"`), a row
that could not be read (`"bad_row"`), or the end (`"end"`). A later line about a row replaces an
earlier one. A last line that was cut off, as a killed process leaves it, is left out.
"""

import json
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime
from pathlib import Path
from typing import Any, NamedTuple, Self

from langchain_core.load.serializable import Serializable
from pydantic import BaseModel, ConfigDict, ValidationError

from langchain_groundedness._runtime.files import lines_up_to, replace_file, write_all
from langchain_groundedness.audit.record import plain_mapping
from langchain_groundedness.evals.values import BadRow, EvaluatedRow, EvaluationRun, RunHeader
from langchain_groundedness.exceptions import ConfigurationError
from langchain_groundedness.types import Usage

__all__ = [
    "Journal",
    "RunEnd",
    "RunLine",
    "as_json",
    "as_line",
    "load_run",
    "read_line",
    "read_lines",
    "save_run",
]

LONGEST_LINE = 256 << 20
"""Bytes of a line: a row with its documents and all that was found about it."""


class RunEnd(BaseModel):
    """The last line of a run file; without it, the run was killed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    complete: bool
    seconds: float | None = None
    usage: Usage = Usage()


class RunLine(NamedTuple):
    """One line of a run file."""

    value: RunHeader | EvaluatedRow | BadRow | RunEnd
    end: int
    """Position in the file just after it, in bytes."""
    place: int | None = None
    """Where the row stands in the data set, counted from 0, if the line says so."""


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
    header: RunHeader | None = None
    rows: dict[str, tuple[float, EvaluatedRow]] = {}
    bad_rows: dict[tuple[int | None, str | None, str], BadRow] = {}
    end = RunEnd(complete=False)
    for line in read_lines(path):
        value = line.value
        if isinstance(value, RunHeader):
            header = value
        elif isinstance(value, EvaluatedRow):
            rows[value.row.id] = _order(line, value), value
        elif isinstance(value, BadRow):
            bad_rows[value.line, value.id, value.reason] = value
        else:
            end = value
    if header is None:
        msg = f"{path}: no run in it: it is empty"
        raise ConfigurationError(msg)
    return EvaluationRun(
        header=header,
        rows=tuple(row for _, row in sorted(rows.values(), key=lambda each: each[0])),
        bad_rows=tuple(bad_rows.values()),
        complete=end.complete,
        seconds=end.seconds,
        usage=end.usage,
    )


def save_run(run: EvaluationRun, path: str | Path) -> None:
    """Write a run into a file that `load_run` reads; another file there is replaced as a whole.

    Args:
        run: The run.
        path: The file.

    Raises:
        ConfigurationError: It cannot be written.
    """
    try:
        replace_file(Path(path), _lines(run))
    except OSError as exc:
        msg = f"{path}: {exc.strerror or type(exc).__name__}"
        raise ConfigurationError(msg) from exc


def _lines(run: EvaluationRun) -> Iterator[bytes]:
    yield as_line(run.header)
    for place, row in enumerate(run.rows):
        yield as_line(row, place=place)
    yield from map(as_line, run.bad_rows)
    yield as_line(RunEnd(complete=run.complete, seconds=run.seconds, usage=run.usage))


def as_line(
    value: RunHeader | EvaluatedRow | BadRow | RunEnd, *, place: int | None = None
) -> bytes:
    """Write one line of a run file."""
    kind = next(kind for kind, cls in _KINDS.items() if isinstance(value, cls))
    data = {"type": kind} | ({} if place is None else {"place": place}) | value.model_dump()
    for result in _results(data):
        if result.get("documents") == data["row"]["documents"]:
            del result["documents"]  # they stand in the row; `read_line` puts them back
    return f"{as_json(data)}\n".encode("ascii")


def _results(data: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Give the results in a line; nothing, where they are not what a row has."""
    scores = data.get("scores")
    for score in scores if isinstance(scores, list | tuple) else ():
        result = score.get("result") if isinstance(score, dict) else None
        if isinstance(result, dict):
            yield result


def as_json(data: Mapping[str, Any]) -> str:
    """Write what evaluators and readers of data sets hand over as JSON."""
    try:
        return json.dumps(data, allow_nan=False, default=_plain)
    except (TypeError, ValueError, RecursionError):
        return json.dumps(plain_mapping(data))


def read_lines(path: str | Path) -> Iterator[RunLine]:
    """Read the lines of a run file, never all at once."""
    position = 0
    try:
        with Path(path).open("rb") as file:
            for number, data in enumerate(lines_up_to(file, LONGEST_LINE, Path(path)), 1):
                position += len(data)
                line = read_line(data, position, f"{path}, line {number}", is_first=number == 1)
                if line is not None:
                    yield line
    except OSError as exc:
        msg = f"{path}: {exc.strerror or type(exc).__name__}"
        raise ConfigurationError(msg) from exc


_KINDS: Mapping[str, type[RunHeader | EvaluatedRow | BadRow | RunEnd]] = {
    "run": RunHeader,
    "row": EvaluatedRow,
    "bad_row": BadRow,
    "end": RunEnd,
}


def read_line(data: bytes, end: int, where: str, *, is_first: bool = False) -> RunLine | None:
    """Read a line."""
    if not data.strip():
        return None
    is_whole = data.endswith(b"\n")
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as exc:
        if not is_whole:
            return None
        msg = f"{where}: not JSON ({getattr(exc, 'msg', type(exc).__name__)}); is it a run file?"
        raise ConfigurationError(msg) from None  # the cause quotes the text
    kind = found.pop("type", None) if isinstance(found, dict) else None
    if not isinstance(kind, str) or kind not in _KINDS:
        msg = f"{where}: no line of a run file: `type` is to be one of {', '.join(_KINDS)}"
        raise ConfigurationError(msg)
    if is_first != (kind == "run"):
        msg = f"{where}: a run file begins with one line of type run, got {kind}"
        raise ConfigurationError(msg)
    place = found.pop("place", None)
    row = found.get("row")
    for result in _results(found):
        if isinstance(row, dict):
            result.setdefault("documents", row.get("documents"))
    try:
        value = _KINDS[kind].model_validate(found)
    except ValidationError as exc:
        msg = f"{where}: not a valid {kind}: {_first_fault(exc)}"
        raise ConfigurationError(msg) from None  # the cause quotes the text
    return RunLine(value, end, place if isinstance(place, int) else None)


def _first_fault(error: ValidationError) -> str:
    fault = error.errors(include_url=False, include_input=False, include_context=False)[0]
    return f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}"


def _order(line: RunLine, row: EvaluatedRow) -> float:
    """Where a row belongs among the others; last, in the order of writing, if nobody says."""
    if line.place is not None:
        return line.place
    return float("inf") if row.line is None else row.line


def _plain(value: Any) -> Any:
    """Put into JSON what evaluators and readers of data sets are likely to hand over."""
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, set | frozenset):
        return sorted(value, key=str)
    if isinstance(value, Serializable):
        return value.model_dump()
    item = getattr(value, "item", None)  # numbers of numpy
    return item() if callable(item) else str(value)


try:
    import fcntl
except ImportError:  # pragma: no cover  (Windows)
    fcntl = None  # type: ignore[assignment]  # the one name for both cases

_READ_WRITE_ALL = 0o666  # as the umask leaves it: whoever evaluates may want to share the file

_LONGEST_VALUE = 60


class Journal:
    """Appends to a run file, one line per finished row, and reads what stands in it already.

    A process may be killed at any moment: a line that was cut off is cut away by the next one.
    Only one process at a time can have a journal open.
    """

    def __init__(self, path: str | Path, *, fresh: bool = False, fsync: bool = False) -> None:
        """Open a run file, made if it is not there."""
        self._path = Path(path)
        self._fsync = fsync
        self._header: RunHeader | None = None
        try:
            self._file = os.open(
                self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK, _READ_WRITE_ALL
            )
        except OSError as exc:
            msg = f"{path}: {exc.strerror or type(exc).__name__}"
            raise ConfigurationError(msg) from exc
        try:
            self._begin(fresh=fresh)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        """Give the journal."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    @property
    def header(self) -> RunHeader | None:
        """What the run in it is of; `None` if there is none yet."""
        return self._header

    def start(self, header: RunHeader) -> None:
        """Say what the run is of."""
        if self._header is None:
            self._append([as_line(header)])
            self._header = header
        elif differing := "; ".join(_differences(self._header, header)):
            msg = (
                f"{self._path} holds another evaluation, which cannot be resumed with this one: "
                f"{differing}. Name another file, or begin anew with fresh=True (--fresh)"
            )
            raise ConfigurationError(msg)

    def lines(self) -> Iterator[RunLine]:
        """Read what stands in it."""
        return (line for line in read_lines(self._path) if not isinstance(line.value, RunHeader))

    def add(self, rows: Iterable[tuple[int, EvaluatedRow]]) -> None:
        """Write finished rows."""
        self._append([as_line(row, place=place) for place, row in rows])

    def add_bad(self, rows: Iterable[BadRow]) -> None:
        """Write rows that could not be read."""
        self._append([as_line(row) for row in rows])

    def finish(self, end: RunEnd) -> None:
        """Write the end."""
        self._append([as_line(end)])

    def close(self) -> None:
        """Close the file, and let others have it; closing again does nothing."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _begin(self, *, fresh: bool) -> None:
        if not stat.S_ISREG(os.fstat(self._file).st_mode):
            msg = f"{self._path}: no plain file"
            raise ConfigurationError(msg)
        if fcntl is not None:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                msg = f"{self._path}: another process is writing into it; wait for its end"
                raise ConfigurationError(msg) from None
        first = next(read_lines(self._path), None)
        if fresh or first is None:
            if first is None and os.fstat(self._file).st_size and not self._begins_like_a_run():
                msg = f"{self._path}: it is not empty, and no run file; name another one"
                raise ConfigurationError(msg)
            os.ftruncate(self._file, 0)
            return
        self._cut_torn_line()
        if isinstance(first.value, RunHeader):
            self._header = first.value

    def _begins_like_a_run(self) -> bool:
        """Tell whether all there is may be a header that was cut off."""
        begin = b'{"type": "run"'
        return begin.startswith(os.pread(self._file, len(begin), 0))

    def _cut_torn_line(self) -> None:
        """Cut away a last line that was cut off, or end it if only its end is missing."""
        size = os.fstat(self._file).st_size
        position, rest = size, b""
        while position and b"\n" not in rest:
            begin = max(0, position - (1 << 16))
            rest = os.pread(self._file, position - begin, begin) + rest
            position = begin
        last = rest.rpartition(b"\n")[2]
        if not last:
            return
        try:
            json.loads(last)
        except ValueError:
            os.ftruncate(self._file, size - len(last))
        else:
            write_all(self._file, b"\n")

    def _append(self, lines: list[bytes]) -> None:
        if not lines:
            return
        try:
            write_all(self._file, b"".join(lines))
            if self._fsync:
                os.fsync(self._file)
        except OSError as exc:
            msg = f"{self._path}: {exc.strerror or type(exc).__name__}"
            raise ConfigurationError(msg) from exc


def _differences(before: RunHeader, now: RunHeader) -> Iterator[str]:
    if before.digest != now.digest:
        yield (
            f"the rows are not those of {before.dataset}: the data set has changed, or columns, "
            "layout or limit differ"
        )
    if before.version != now.version:
        yield f"version {before.version or '?'} of this package, now {now.version or '?'}"
    for key in sorted({*before.evaluators, *now.evaluators}):
        old, new = before.evaluators.get(key), now.evaluators.get(key)
        if old is None or new is None:
            yield f"metric {key} {'was not there' if old is None else 'is missing'}"
            continue
        was, is_now = dict(_flat(old, "")), dict(_flat(new, ""))
        for option in sorted({*was, *is_now}):
            if was.get(option) != is_now.get(option):
                told = f"{_shown(was.get(option))}, now {_shown(is_now.get(option))}"
                yield f"{key}: {option} was {told}"


def _flat(options: Mapping[str, Any], above: str) -> Iterator[tuple[str, Any]]:
    for name, value in options.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", value


def _shown(value: Any) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"
