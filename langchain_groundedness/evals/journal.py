"""The journal of an evaluation: its run file while it is written, so that it can be resumed."""

import json
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from langchain_groundedness.audit._files import write_all
from langchain_groundedness.evals.run_files import RunEnd, RunLine, as_line, read_lines
from langchain_groundedness.evals.values import BadRow, EvaluatedRow, RunHeader
from langchain_groundedness.exceptions import ConfigurationError

try:
    import fcntl
except ImportError:  # pragma: no cover  (Windows)
    fcntl = None  # type: ignore[assignment]  # the one name for both cases

__all__ = ["Journal"]

_READ_WRITE_ALL = 0o666  # as the umask leaves it: whoever evaluates may want to share the file
_LONGEST_VALUE = 60


class Journal:
    """Appends to a run file, one line per finished row, and reads what stands in it already.

    A process may be killed at any moment: a line that was cut off is cut away by the next one.
    Only one process at a time can have a journal open.
    """

    def __init__(self, path: str | Path, *, fresh: bool = False, fsync: bool = False) -> None:
        """Open a run file, made if it is not there.

        Args:
            path: The file.
            fresh: Begin anew: what stands in it is lost, if it is a run file.
            fsync: Wait after each row until it is on the disk, so that even a loss of power costs
                nothing.

        Raises:
            ConfigurationError: It cannot be opened, another process writes into it, or it holds
                something else.
        """
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
        """Say what the run is of.

        Args:
            header: What it is of.

        Raises:
            ConfigurationError: What stands in it is of something else; the message says what
                differs.
        """
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
        """Read what stands in it.

        Yields:
            All lines but the header.

        Raises:
            ConfigurationError: A line of it is damaged; the message names the line.
        """
        return (line for line in read_lines(self._path) if not isinstance(line.value, RunHeader))

    def add(self, rows: Iterable[tuple[int, EvaluatedRow]]) -> None:
        """Write finished rows.

        Args:
            rows: Rows, each with its place in the data set, counted from 0.

        Raises:
            ConfigurationError: They cannot be written.
        """
        self._append([as_line(row, place=place) for place, row in rows])

    def add_bad(self, rows: Iterable[BadRow]) -> None:
        """Write rows that could not be read.

        Args:
            rows: The rows.

        Raises:
            ConfigurationError: They cannot be written.
        """
        self._append([as_line(row) for row in rows])

    def finish(self, end: RunEnd) -> None:
        """Write the end.

        Args:
            end: How it went.

        Raises:
            ConfigurationError: It cannot be written.
        """
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
