"""Run files: an evaluation as lines of JSON, written while it goes on and read afterwards.

The first line is the header (`"type": "run"`), the others a row with its scores (`"row"`), a row
that could not be read (`"bad_row"`), or the end (`"end"`). A later line about a row replaces an
earlier one. A last line that was cut off, as a killed process leaves it, is left out.
"""

import json
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from pathlib import Path
from typing import Any, NamedTuple

from langchain_core.load.serializable import Serializable
from pydantic import BaseModel, ConfigDict, ValidationError

from langchain_groundedness._bounded import lines_up_to
from langchain_groundedness.audit._files import replace_file
from langchain_groundedness.audit._plain import plain_mapping
from langchain_groundedness.evals.values import BadRow, EvaluatedRow, EvaluationRun, RunHeader
from langchain_groundedness.exceptions import ConfigurationError
from langchain_groundedness.types import Usage

__all__ = [
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
    """Write one line of a run file.

    Args:
        value: What it is to say.
        place: Where a row stands in the data set, counted from 0.

    Returns:
        The line, in ASCII, with its end. What JSON cannot hold is put into words.
    """
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
    """Write what evaluators and readers of data sets hand over as JSON.

    Args:
        data: Plain data for the most part.

    Returns:
        One line of ASCII that strict readers take. What JSON cannot hold is put into words.
    """
    try:
        return json.dumps(data, allow_nan=False, default=_plain)
    except (TypeError, ValueError, RecursionError):
        return json.dumps(plain_mapping(data))


def read_lines(path: str | Path) -> Iterator[RunLine]:
    """Read the lines of a run file, never all at once.

    Args:
        path: The file.

    Yields:
        The lines up to the first that was cut off.

    Raises:
        ConfigurationError: It cannot be read, or a line of it is no line of a run.
    """
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
    """Read a line.

    Args:
        data: The line, with its end.
        end: Position in the file just after it, in bytes.
        where: Its name in errors.
        is_first: Whether it is the first of the file.

    Returns:
        What it says; `None` for a blank one and for one that was cut off.

    Raises:
        ConfigurationError: It is no line of a run.
    """
    if not data.strip():
        return None
    is_whole = data.endswith(b"\n")
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as exc:
        if not is_whole:
            return None
        msg = f"{where}: no JSON ({getattr(exc, 'msg', type(exc).__name__)}); is it a run file?"
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
