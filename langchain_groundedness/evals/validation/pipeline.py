"""Validates a data set, row by row, into two files; goes on where it was stopped."""

import asyncio
import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from threading import Event
from time import monotonic
from types import TracebackType
from typing import Any, NamedTuple, Self

from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import ContextThreadPoolExecutor
from pydantic import BaseModel, ValidationError

from langchain_groundedness._runtime.files import replace_file, try_lock, write_all
from langchain_groundedness._runtime.version import PACKAGE_VERSION
from langchain_groundedness.audit.record import plain_mapping
from langchain_groundedness.calibration.values import group_of
from langchain_groundedness.evals.datasets import DataSet, LocatedRow, open_dataset
from langchain_groundedness.evals.fingerprint import describe
from langchain_groundedness.evals.schedule import GRACE_SECONDS, first_done
from langchain_groundedness.evals.validation.summary import Setting, ValidationSummary, summed_up
from langchain_groundedness.evals.validation.validator import AnswerValidator
from langchain_groundedness.evals.validation.values import Outcome, RowValidation, ValidatedRow
from langchain_groundedness.evals.values import EvaluationRow
from langchain_groundedness.exceptions import ConfigurationError

__all__ = ["avalidate", "validate"]

_NO_QUALITY = (
    "without a chat model there was no second stage: the composite is the source score alone"
)

_SHOWN = 5


def validate(  # noqa: PLR0913  (options by keyword)
    rows: Any,
    *,
    passed: str | Path,
    rejected: str | Path,
    validator: AnswerValidator | None = None,
    model: Any = None,
    columns: Mapping[str, str] | None = None,
    summary: str | Path | None = None,
    fresh: bool = False,
    retry_unchecked: bool = False,
    max_concurrency: int = 16,
    on_begin: Callable[[int], None] | None = None,
    on_row: Callable[[ValidatedRow], None] | None = None,
    config: RunnableConfig | None = None,
    stop: Event | None = None,
) -> ValidationSummary:
    """Validate a data set into two files.

    Each row is written as soon as its outcome is known, as a whole, as it came, with what was found
    under `validation`: into `passed` if it passed, else into `rejected`, rows that could not be
    checked too. So rows stand there in the order in which they were done, which is not always that
    of the data set; `max_concurrency=1` keeps it. Called again with the same options, it goes on
    where it was stopped, by whatever: rows that stand in the files are not validated again.

    Args:
        rows: A data set: a path, or anything else that `open_dataset` reads; or a `DataSet`, whose
            columns may have other names.
        passed: File for rows that passed.
        rejected: File for the others.
        validator: Validates a row; by default an `AnswerValidator()`, which works offline.
        model: Chat model for the default validator, instead of one of your own.
        columns: As for `open_dataset`, where `rows` is not a `DataSet` already.
        summary: File for the summary and the options; by default beside `passed`, with the ending
            `.summary.json`.
        fresh: Empty the files, and begin anew.
        retry_unchecked: Validate rows again that could not be checked before.
        max_concurrency: Most rows at a time.
        on_begin: Called with the number of rows that are left to validate.
        on_row: Called with what was found in each row, once it is written.
        config: Config for the calls of the validator.
        stop: Once it is set, by another thread, no further row is begun.

    Returns:
        The summary, of all rows in the files.

    Raises:
        ConfigurationError: An option has a value that cannot work; the files hold rows that were
            validated with other options, or are written to by another run.
        InputFormatError: The data set cannot be read.
        KeyboardInterrupt: The run was interrupted; rows under way had two seconds to end, and the
            summary is written.
    """
    if isinstance(max_concurrency, bool) or max_concurrency < 1:
        msg = f"max_concurrency must be 1 or more, got {max_concurrency!r}"
        raise ConfigurationError(msg)
    if validator is not None and model is not None:
        msg = "model belongs to AnswerValidator(model=...) where validator= is given"
        raise ConfigurationError(msg)
    if isinstance(rows, DataSet) and columns:
        msg = "columns belong to open_dataset when the data set is opened by it"
        raise ConfigurationError(msg)
    run = _Run(
        data=rows if isinstance(rows, DataSet) else open_dataset(rows, columns=columns),
        paths=Paths.of(passed, rejected, summary),
        validator=validator or AnswerValidator(model=model),
        max_concurrency=max_concurrency,
        config=config or {},
        stop=stop or Event(),
        on_begin=on_begin,
        on_row=on_row,
    )
    return run.all(fresh=fresh, retry_unchecked=retry_unchecked)


async def avalidate(rows: Any, **options: Any) -> ValidationSummary:
    """Validate a data set into two files, off the event loop: in threads of its own.

    If it is cancelled, the rows under way are finished and written first.

    Args:
        rows: As for `validate`.
        **options: As for `validate`; `on_row` is called in another thread.

    Returns:
        As `validate`.

    Raises:
        ConfigurationError: As `validate`.
        InputFormatError: As `validate`.
    """
    stop = Event()
    task = asyncio.ensure_future(asyncio.to_thread(validate, rows, **options, stop=stop))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        stop.set()
        with suppress(Exception):
            await task
        raise


class Paths(NamedTuple):
    """Where rows go."""

    passed: Path
    rejected: Path
    summary: Path

    @classmethod
    def of(cls, passed: str | Path, rejected: str | Path, summary: str | Path | None) -> "Paths":
        """Take paths as they are given."""
        given = Path(passed)
        found = cls(given, Path(rejected), Path(summary or given.with_suffix(".summary.json")))
        found.refuse_twice()
        return found

    def refuse_twice(self, *others: Path) -> None:
        """Refuse paths that name one file."""
        places = [path.resolve() for path in (*self, *others)]
        if len(set(places)) < len(places):
            msg = "passed, rejected, summary and the data set must be different files"
            raise ConfigurationError(msg)


class OutcomeFiles:
    """Both files, opened to append; one run at a time."""

    def __init__(self, paths: Paths) -> None:
        """Name the files."""
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
        """Go on where an earlier run has stopped, or begin."""
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
        """Write a row into the file where it belongs, as a whole; once only."""
        if row.row.id in self.done:
            return
        is_passed = found.outcome == "passed"
        path = self._paths.passed if is_passed else self._paths.rejected
        with _named(path):
            write_all(self._open[path], _line(cells, found))
        self.done[row.row.id] = found.digest

    def write_summary(self, told: Mapping[str, Any]) -> None:
        """Put a summary in the place of the last one."""
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


@dataclass(frozen=True, kw_only=True)
class _Run:
    """One run over a data set."""

    data: DataSet
    paths: Paths
    validator: AnswerValidator
    max_concurrency: int
    config: RunnableConfig
    stop: Event
    on_begin: Callable[[int], None] | None
    on_row: Callable[[ValidatedRow], None] | None

    def all(self, *, fresh: bool, retry_unchecked: bool) -> ValidationSummary:
        """Validate what is left to do."""
        self.paths.refuse_twice(*(Path(part.name) for part in self.data.parts))
        self.data.require({"answer": ["validation"], "documents": ["validation"]})
        started = monotonic()
        outline = self.data.outline()
        outline.require_rows(self.data.name)
        with OutcomeFiles(self.paths) as files:
            files.begin(self._options(), fresh=fresh, retry_unchecked=retry_unchecked)
            before = frozenset(files.done)
            known = self._known(files.done)
            if self.on_begin is not None:
                self.on_begin(len(known - files.done.keys()))
            interrupted = self._validate_rest(files)
            found = summed_up(read_outcomes(self.paths), self._setting(), notes=self._notes())
            found = found.model_copy(
                update={
                    "bad_rows": outline.bad_rows,
                    "resumed": len(before & known),
                    "elsewhere": len(files.done.keys() - known),
                    "complete": known <= files.done.keys(),
                    "seconds": monotonic() - started,
                }
            )
            told = {"options": self._options(), "summary": found.model_dump(mode="json")}
            files.write_summary(told)
        if interrupted:
            raise KeyboardInterrupt
        return found

    def _validate_rest(self, files: OutcomeFiles) -> bool:
        """Validate the rows that are not in the files; tell whether that was interrupted."""
        rows = (
            found
            for found in self.data
            if isinstance(found, LocatedRow) and found.row.id not in files.done
        )
        window = Window(self.validator, self.config, size=self.max_concurrency, stop=self.stop)
        with window:
            try:
                for row, found in window.run(rows):
                    self._write(files, row, found)
            except KeyboardInterrupt:
                for row, found in window.rest(GRACE_SECONDS):
                    self._write(files, row, found)
                return True
            except Exception:
                for row, found in window.rest():
                    self._write(files, row, found)
                raise
        return False

    def _write(self, files: OutcomeFiles, row: LocatedRow, found: RowValidation) -> None:
        texts = [document.page_content for document in row.row.documents or ()]
        told = ValidatedRow(
            **dict(found),
            id=row.row.id,
            label=row.row.label,
            digest=_digest(row.row),
            group=group_of(texts),
        )
        files.add(row, row.cells or row.row.model_dump(), told)
        if self.on_row is not None:
            self.on_row(told)

    def _known(self, done: Mapping[str, str]) -> set[str]:
        """Give the ids of the rows; refuse rows that are not what was validated under their id."""
        known, changed = set(), []
        for found in self.data:
            if isinstance(found, LocatedRow):
                known.add(found.row.id)
                if found.row.id in done and done[found.row.id] != _digest(found.row):
                    changed.append(found.row.id)
        if changed:
            named = ", ".join(changed[:_SHOWN]) + (" …" if len(changed) > _SHOWN else "")
            msg = (
                f"{len(changed)} rows have changed since they were validated ({named}): give other "
                "paths, or --fresh (fresh=True) to begin anew"
            )
            raise ConfigurationError(msg)
        return known

    def _setting(self) -> Setting:
        given = self.validator
        return Setting(given.bands, given.criteria, given.has_judge, given.has_quality)

    def _options(self) -> dict[str, Any]:
        told = {**describe(self.validator), "version": PACKAGE_VERSION}
        if self.validator.calibration is not None:
            told["calibration"] = list(self.validator.bands)
        return told

    def _notes(self) -> tuple[str, ...]:
        return () if self.validator.has_quality else (_NO_QUALITY,)


def _digest(row: EvaluationRow) -> str:
    texts = [document.page_content for document in row.documents or ()]
    return group_of([row.question or "", row.answer or "", row.reference or "", *texts])


Finished = tuple[LocatedRow, RowValidation]

_THREADS = "groundedness-validate"


class Window:
    """Rows that are being validated.

    A row counts as under way until whoever iterates asks for the next one: what is interrupted
    between the two comes again from `rest`.
    """

    def __init__(
        self,
        validator: Runnable[EvaluationRow, RowValidation],
        config: RunnableConfig,
        *,
        size: int,
        stop: Event,
    ) -> None:
        """Start with nothing under way."""
        self._validator = validator
        self._config = config
        self._size = size
        self._stop = stop
        self._under_way: dict[Future[RowValidation], LocatedRow] = {}

    def __enter__(self) -> Self:
        """Start the threads."""
        self._pool = ContextThreadPoolExecutor(self._size, thread_name_prefix=_THREADS)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Begin nothing any more; what is under way and was not waited for has no outcome."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def run(self, rows: Iterable[LocatedRow]) -> Iterator[Finished]:
        """Validate rows."""
        for row in rows:
            if self._stop.is_set():
                break
            future = self._pool.submit(self._validator.invoke, row.row, self._config)
            self._under_way[future] = row
            if len(self._under_way) >= self._size:
                yield from self._finished()
        while self._under_way:
            yield from self._finished()

    def rest(self, seconds: float | None = None) -> Iterator[Finished]:
        """Wait for the rows that have begun, when no more are to begin."""
        for future in [each for each in self._under_way if each.cancel()]:
            del self._under_way[future]
        done, _ = wait(self._under_way, seconds)
        for future in done:
            if future.exception() is None:
                yield self._under_way[future], future.result()
            del self._under_way[future]

    def _finished(self) -> Iterator[Finished]:
        done, _ = first_done(self._under_way.keys())
        for future in done:
            yield self._under_way[future], future.result()
            del self._under_way[future]


_COLUMN = "validation"

_READ_WRITE_ALL = 0o666  # as the umask leaves it: rows are there to be shared

_HAS_LOCKS = find_spec("fcntl") is not None
"""On POSIX systems; elsewhere, nobody keeps two runs from writing to the same files."""

_FRESH = "give other paths, or --fresh (fresh=True) to begin anew, which empties them"


def read_outcomes(paths: Paths) -> Iterator[ValidatedRow]:
    """Read what was found, never all at once."""
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
