"""The two files that rows go to, and the one that says how they were made."""

import json
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from pydantic import BaseModel, ValidationError

from langchain_groundedness.audit._files import replace_file, try_lock, write_all
from langchain_groundedness.audit._plain import plain_mapping
from langchain_groundedness.evals.datasets import LocatedRow
from langchain_groundedness.evals.validation.values import Outcome, ValidatedRow
from langchain_groundedness.exceptions import ConfigurationError

__all__ = ["OutcomeFiles", "Paths", "read_outcomes"]

_COLUMN = "validation"
_READ_WRITE_ALL = 0o666  # as the umask leaves it: rows are there to be shared
_HAS_LOCKS = find_spec("fcntl") is not None
"""On POSIX systems; elsewhere, nobody keeps two runs from writing to the same files."""
_FRESH = "give other paths, or --fresh (fresh=True) to begin anew, which empties them"


class Paths(NamedTuple):
    """Where rows go."""

    passed: Path
    rejected: Path
    summary: Path

    @classmethod
    def of(cls, passed: str | Path, rejected: str | Path, summary: str | Path | None) -> "Paths":
        """Take paths as they are given.

        Args:
            passed: For rows that passed.
            rejected: For the others.
            summary: For the summary; by default beside the first.

        Returns:
            The paths.

        Raises:
            ConfigurationError: Two of them are one file.
        """
        given = Path(passed)
        found = cls(given, Path(rejected), Path(summary or given.with_suffix(".summary.json")))
        found.refuse_twice()
        return found

    def refuse_twice(self, *others: Path) -> None:
        """Refuse paths that name one file.

        Args:
            *others: Files that are read.

        Raises:
            ConfigurationError: Two are one file.
        """
        places = [path.resolve() for path in (*self, *others)]
        if len(set(places)) < len(places):
            msg = "passed, rejected, summary and the data set must be different files"
            raise ConfigurationError(msg)


class OutcomeFiles:
    """Both files, opened to append; one run at a time."""

    def __init__(self, paths: Paths) -> None:
        """Name the files.

        Args:
            paths: Where rows go.
        """
        self._paths = paths
        self._open: dict[Path, int] = {}
        self.done: dict[str, str] = {}
        """Digests of the rows that stand in the files, by id."""

    def __enter__(self) -> Self:
        """Open and lock the files."""
        try:
            for path in (self._paths.passed, self._paths.rejected):
                with _named(path):
                    self._open[path] = _opened(path)
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the files."""
        self._close()

    def begin(self, options: Mapping[str, Any], *, fresh: bool, retry_unchecked: bool) -> None:
        """Go on where an earlier run has stopped, or begin.

        Args:
            options: What the outcomes depend on.
            fresh: Whether to empty the files.
            retry_unchecked: Whether rows that could not be checked are to be validated again.

        Raises:
            ConfigurationError: The files are not of a run with these options.
        """
        if fresh:
            for path, descriptor in self._open.items():
                with _named(path):
                    os.ftruncate(descriptor, 0)
            self._paths.summary.unlink(missing_ok=True)
        for path, descriptor in self._open.items():
            with _named(path):
                _cut_torn_line(descriptor)
        if any(os.fstat(descriptor).st_size for descriptor in self._open.values()):
            self._require_same(options)
            if retry_unchecked:
                self._drop_unchecked()
            self.done = {row.id: row.digest for row in read_outcomes(self._paths)}
        else:
            self.write_summary({"options": dict(options), "summary": None})

    def add(self, row: LocatedRow, cells: Mapping[str, Any], found: ValidatedRow) -> None:
        """Write a row into the file where it belongs, as a whole; once only.

        Args:
            row: The row.
            cells: The row as it came.
            found: What was found.

        Raises:
            ConfigurationError: It cannot be written.
        """
        if row.row.id in self.done:
            return
        is_passed = found.outcome == "passed"
        path = self._paths.passed if is_passed else self._paths.rejected
        with _named(path):
            write_all(self._open[path], _line(cells, found))
        self.done[row.row.id] = found.digest

    def write_summary(self, told: Mapping[str, Any]) -> None:
        """Put a summary in the place of the last one.

        Args:
            told: What it says.

        Raises:
            ConfigurationError: It cannot be written.
        """
        path = self._paths.summary
        with _named(path):
            replace_file(path, [f"{json.dumps(told, indent=2)}\n".encode()])

    def _require_same(self, options: Mapping[str, Any]) -> None:
        path = self._paths.summary
        try:
            before = json.loads(path.read_text(encoding="utf-8"))["options"]
        except (OSError, ValueError, KeyError, TypeError):
            msg = f"there are rows in {self._paths.passed} or {self._paths.rejected} already, and "
            msg += f"{path} does not say with which options they were validated: {_FRESH}"
            raise ConfigurationError(msg) from None
        now = json.loads(json.dumps(options))
        if before != now:
            names = sorted(n for n in {*before, *now} if before.get(n) != now.get(n))
            msg = (
                f"the rows in {self._paths.passed} and {self._paths.rejected} were validated with "
                f"other options ({', '.join(names)}): take the same ones, or {_FRESH}"
            )
            raise ConfigurationError(msg)

    def _drop_unchecked(self) -> None:
        """Leave out the rows that are to be validated again; all others stay as they are."""
        path = self._paths.rejected
        draft = path.with_name(f".{path.name}.{os.getpid()}.part")
        with _named(path):
            try:
                with path.open("rb") as source, draft.open("xb") as kept:
                    kept.writelines(
                        line for line in source if _outcome_of(line) not in (None, "unchecked")
                    )
                    kept.flush()
                    os.fsync(kept.fileno())
                draft.replace(path)
                os.close(self._open.pop(path))
                self._open[path] = _opened(path)
            finally:
                draft.unlink(missing_ok=True)

    def _close(self) -> None:
        for descriptor in self._open.values():
            os.close(descriptor)
        self._open.clear()


def read_outcomes(paths: Paths) -> Iterator[ValidatedRow]:
    """Read what was found, never all at once.

    Args:
        paths: Where the rows are.

    Yields:
        What was found in each row, each row once, those that passed first.

    Raises:
        ConfigurationError: A file cannot be read, or a line of it is no validated row.
    """
    seen: set[str] = set()
    for path in (paths.passed, paths.rejected):
        with _named(path), path.open("rb") as file:
            for number, line in enumerate(file, 1):
                found = _read(line, f"{path}, line {number}")
                if found.id not in seen:
                    seen.add(found.id)
                    yield found


def _read(line: bytes, where: str) -> ValidatedRow:
    try:
        return ValidatedRow.model_validate(json.loads(line)[_COLUMN])
    except (ValueError, KeyError, TypeError, ValidationError):
        msg = f"{where}: this is no row that was validated: {_FRESH}"
        raise ConfigurationError(msg) from None  # the cause quotes the text


def _outcome_of(line: bytes) -> Outcome | None:
    return _read(line, "rejected").outcome if line.strip() else None


def _line(cells: Mapping[str, Any], found: ValidatedRow) -> bytes:
    data = {**cells, _COLUMN: found.model_dump(mode="json")}
    try:
        text = json.dumps(data, allow_nan=False, default=_plain)
    except (TypeError, ValueError, RecursionError):
        text = json.dumps(plain_mapping(data))
    return f"{text}\n".encode("ascii")


def _plain(value: Any) -> Any:
    """Put into JSON what rows in memory may hold: documents, arrays and numbers of numpy."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    convert = getattr(value, "tolist", None)
    return convert() if callable(convert) else str(value)


def _opened(path: Path) -> int:
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT
    for name in ("O_NOFOLLOW", "O_NONBLOCK"):  # a link, or a pipe that nobody reads
        flags |= getattr(os, name, 0)
    descriptor = os.open(path, flags, _READ_WRITE_ALL)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        msg = f"{path}: not a plain file"
        raise ConfigurationError(msg)
    if _HAS_LOCKS and not try_lock(descriptor):
        os.close(descriptor)
        msg = f"{path}: another run is writing to it"
        raise ConfigurationError(msg)
    return descriptor


def _cut_torn_line(descriptor: int) -> None:
    """Cut off a last line that has no end, as a killed process leaves it."""
    size = os.fstat(descriptor).st_size
    end = size
    while end:
        first = max(end - 65_536, 0)
        block = os.pread(descriptor, end - first, first)
        found = block.rfind(b"\n")
        if found >= 0:
            end = first + found + 1
            break
        end = first
    if end < size:
        os.ftruncate(descriptor, end)


@contextmanager
def _named(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        msg = f"{path}: {exc.strerror or type(exc).__name__}"
        raise ConfigurationError(msg) from exc
