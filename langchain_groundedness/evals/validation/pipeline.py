"""Validates a data set into two files; a stopped run can be resumed."""

import asyncio
import json
import mmap
import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any, NamedTuple, Self

from langchain_core.runnables import RunnableConfig
from pydantic import BaseModel, ValidationError

from langchain_groundedness._runtime.files import (
    open_private,
    replace_file,
    try_lock,
    unusable,
    write_all,
)
from langchain_groundedness._runtime.installed import PACKAGE_VERSION
from langchain_groundedness.audit.record import plain_mapping
from langchain_groundedness.calibration.values import group_of
from langchain_groundedness.evals.datasets import DataSet, LocatedRow, open_dataset
from langchain_groundedness.evals.fingerprint import describe
from langchain_groundedness.evals.schedule import run_in_threads
from langchain_groundedness.evals.validation.summary import (
    Thresholds,
    ValidationSummary,
    summarize_rows,
)
from langchain_groundedness.evals.validation.validator import (
    AnswerValidator,
    RowValidation,
    ValidatedRow,
)
from langchain_groundedness.evals.values import EvaluationRow
from langchain_groundedness.exceptions import ConfigurationError

__all__ = ["avalidate", "validate"]

_COLUMN = "validation"
_NO_QUALITY = (
    "without a chat model there was no second stage: the composite is the source score alone"
)
_FRESH = "give other paths, or --fresh (fresh=True) to start over, which empties them"
_MOST_IDS = 5
_HAS_LOCKS = find_spec("fcntl") is not None
"""On POSIX systems; elsewhere, nothing keeps two runs from writing to the same files."""


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
    started = monotonic()
    data = rows if isinstance(rows, DataSet) else open_dataset(rows, columns=columns)
    target = Path(passed)
    paths = _Paths(target, Path(rejected), Path(summary or target.with_suffix(".summary.json")))
    paths.require_distinct(*(Path(part.name) for part in data.parts))
    data.require({"answer": ["validation"], "documents": ["validation"]})
    outline = data.outline()
    outline.require_rows(data.name)
    checker = validator or AnswerValidator(model=model)
    options = _options(checker)
    interrupted = False
    with _OutcomeFiles(paths) as files:
        files.begin(options, fresh=fresh, retry_unchecked=retry_unchecked)
        known, before = _known_ids(data, files.done), frozenset(files.done)
        if on_begin is not None:
            on_begin(len(known - before))
        run = _Run(data, checker, files, config=config or {}, stop=stop, on_row=on_row)
        try:
            run_in_threads(run.advance, run.work, max_concurrency)
        except KeyboardInterrupt:
            interrupted = True
        found = summarize_rows(files.read(), Thresholds.of(checker)).model_copy(
            update={
                "bad_rows": outline.bad_rows,
                "resumed": len(before & known),
                "elsewhere": len(files.done.keys() - known),
                "complete": known <= files.done.keys(),
                "notes": () if checker.has_quality else (_NO_QUALITY,),
                "seconds": monotonic() - started,
            }
        )
        files.write_summary({"options": options, "summary": found.model_dump(mode="json")})
    if interrupted:
        raise KeyboardInterrupt
    return found


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


class _Paths(NamedTuple):
    """Where rows and their summary go."""

    passed: Path
    rejected: Path
    summary: Path

    def require_distinct(self, *data: Path) -> None:
        places = [path.resolve() for path in (*self, *data)]
        if len(set(places)) < len(places):
            msg = "passed, rejected, summary and the data set must be different files"
            raise ConfigurationError(msg)


class _Run:
    """The rows to validate, and the outcomes to write."""

    def __init__(  # noqa: PLR0913  (options by keyword)
        self,
        data: DataSet,
        validator: AnswerValidator,
        files: "_OutcomeFiles",
        *,
        config: RunnableConfig,
        stop: Event | None,
        on_row: Callable[[ValidatedRow], None] | None,
    ) -> None:
        self._validator = validator
        self._files = files
        self._config = config
        self._stop = stop or Event()
        self._on_row = on_row
        self._rows = (
            row for row in data if isinstance(row, LocatedRow) and row.row.id not in files.done
        )
        self._unwritten: deque[tuple[LocatedRow, RowValidation]] = deque()

    def work(self, row: LocatedRow) -> tuple[LocatedRow, RowValidation] | Exception:
        try:
            return row, self._validator.invoke(row.row, self._config)
        except Exception as exc:  # noqa: BLE001  (`advance` raises it)
            return exc

    def advance(
        self, outcomes: Sequence[tuple[LocatedRow, RowValidation] | Exception], limit: int
    ) -> Sequence[LocatedRow]:
        """Write outcomes, and return the next rows; an interruption loses none."""
        self._unwritten.extend(each for each in outcomes if not isinstance(each, Exception))
        while self._unwritten:
            self._write(*self._unwritten[0])
            self._unwritten.popleft()
        for each in outcomes:
            if isinstance(each, Exception):
                raise each
        return [] if self._stop.is_set() else list(islice(self._rows, limit))

    def _write(self, located: LocatedRow, found: RowValidation) -> None:
        row = located.row
        told = ValidatedRow(
            **dict(found),
            id=row.id,
            label=row.label,
            digest=_digest(row),
            group=group_of([document.page_content for document in row.documents or ()]),
        )
        self._files.add(located, told)
        if self._on_row is not None:
            self._on_row(told)


def _options(validator: AnswerValidator) -> dict[str, Any]:
    """Say what the outcomes depend on."""
    told = {**describe(validator), "version": PACKAGE_VERSION}
    if validator.calibration is not None:
        told["calibration"] = list(validator.bands)
    return told


def _known_ids(data: DataSet, done: Mapping[str, str]) -> set[str]:
    """Return the row ids; refuse rows that changed since they were validated."""
    known, changed = set(), []
    for found in data:
        if isinstance(found, LocatedRow):
            known.add(found.row.id)
            if found.row.id in done and done[found.row.id] != _digest(found.row):
                changed.append(found.row.id)
    if changed:
        named = ", ".join(changed[:_MOST_IDS]) + (" …" if len(changed) > _MOST_IDS else "")
        msg = (
            f"{len(changed)} rows have changed since they were validated ({named}): give other "
            "paths, or --fresh (fresh=True) to begin anew"
        )
        raise ConfigurationError(msg)
    return known


def _digest(row: EvaluationRow) -> str:
    texts = [document.page_content for document in row.documents or ()]
    return group_of([row.question or "", row.answer or "", row.reference or "", *texts])


class _OutcomeFiles:
    """Both files, opened to append and locked; one run at a time."""

    def __init__(self, paths: _Paths) -> None:
        self._paths = paths
        self._open: dict[Path, int] = {}
        self.done: dict[str, str] = {}
        """Digests of the rows that stand in the files, by id."""

    def __enter__(self) -> Self:
        try:
            for path in (self._paths.passed, self._paths.rejected):
                with _named(path):
                    self._open[path] = _opened(path)
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def begin(self, options: Mapping[str, Any], *, fresh: bool, retry_unchecked: bool) -> None:
        """Resume an earlier run, or begin."""
        for path, descriptor in self._open.items():
            with _named(path):
                os.ftruncate(descriptor, 0) if fresh else _cut_torn_line(descriptor)
        if not any(os.fstat(descriptor).st_size for descriptor in self._open.values()):
            self.write_summary({"options": dict(options), "summary": None})
            return
        self._require_same(options)
        if retry_unchecked:
            self._drop_unchecked()
        self.done = {row.id: row.digest for row in self.read()}

    def add(self, row: LocatedRow, found: ValidatedRow) -> None:
        """Write a row into its file, at once and only once."""
        if row.row.id in self.done:
            return
        paths = self._paths
        path = paths.passed if found.outcome == "passed" else paths.rejected
        with _named(path):
            write_all(self._open[path], _line(row.cells or row.row.model_dump(), found))
        self.done[row.row.id] = found.digest

    def read(self) -> Iterator[ValidatedRow]:
        """Read what was found, never all at once."""
        seen: set[str] = set()
        for path in (self._paths.passed, self._paths.rejected):
            with _named(path), path.open("rb") as file:
                for number, line in enumerate(file, 1):
                    found = _read(line, f"{path}, line {number}")
                    if found.id not in seen:
                        seen.add(found.id)
                        yield found

    def write_summary(self, told: Mapping[str, Any]) -> None:
        path = self._paths.summary
        with _named(path):
            replace_file(path, [f"{json.dumps(told, indent=2)}\n".encode()])

    def _require_same(self, options: Mapping[str, Any]) -> None:
        path = self._paths.summary
        files = f"{self._paths.passed} and {self._paths.rejected}"
        try:
            before = json.loads(path.read_text(encoding="utf-8"))["options"]
        except (OSError, ValueError, KeyError, TypeError):
            msg = (
                f"there are rows in {files} already, and {path} does not say with which options "
                f"they were validated: {_FRESH}"
            )
            raise ConfigurationError(msg) from None
        now = json.loads(json.dumps(options))
        if names := sorted(n for n in {*before, *now} if before.get(n) != now.get(n)):
            msg = (
                f"the rows in {files} were validated with other options ({', '.join(names)}): "
                f"give the same ones, or {_FRESH}"
            )
            raise ConfigurationError(msg)

    def _drop_unchecked(self) -> None:
        """Leave out the rows that are to be validated again; all others stay as they are."""
        path = self._paths.rejected
        with _named(path):
            with path.open("rb") as source:
                kept = (line for line in source if _read(line, str(path)).outcome != "unchecked")
                replace_file(path, kept)
            os.close(self._open.pop(path))
            self._open[path] = _opened(path)

    def _close(self) -> None:
        for descriptor in self._open.values():
            os.close(descriptor)
        self._open.clear()


def _read(line: bytes, where: str) -> ValidatedRow:
    try:
        return ValidatedRow.model_validate(json.loads(line)[_COLUMN])
    except (ValueError, KeyError, TypeError, ValidationError):
        msg = f"{where}: not a validated row: {_FRESH}"
        raise ConfigurationError(msg) from None  # the cause quotes the text


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
    flags |= getattr(os, "O_NONBLOCK", 0)  # refuse pipes without a reader
    descriptor = open_private(path, flags)
    if _HAS_LOCKS and not try_lock(descriptor):
        os.close(descriptor)
        msg = f"{path}: another run is writing to it"
        raise ConfigurationError(msg)
    return descriptor


def _cut_torn_line(descriptor: int) -> None:
    """Remove an incomplete last line, as a killed process leaves it."""
    if size := os.fstat(descriptor).st_size:
        with mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ) as data:
            end = data.rfind(b"\n") + 1
        if end < size:
            os.ftruncate(descriptor, end)


@contextmanager
def _named(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        raise unusable(path, exc) from exc
