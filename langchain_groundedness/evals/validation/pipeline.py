"""Validates a data set into two files; a stopped run can be resumed."""

import asyncio
import json
import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any, Required, Self, TypedDict, Unpack

from langchain_core.runnables import RunnableConfig

from langchain_groundedness._runtime.files import (
    raising_configuration_error,
    replace_file,
    require_outputs,
    write_all,
)
from langchain_groundedness._runtime.installed import PACKAGE_VERSION
from langchain_groundedness._runtime.options import expand_options, require_positive
from langchain_groundedness.calibration.values import group_of
from langchain_groundedness.display.counts import format_count
from langchain_groundedness.evals.datasets import DataSet, LocatedRow, as_dataset
from langchain_groundedness.evals.evaluation import run_in_threads
from langchain_groundedness.evals.evaluator import listed_ids
from langchain_groundedness.evals.fingerprint import describe
from langchain_groundedness.evals.run_files import as_json, cut_torn_line, open_to_append
from langchain_groundedness.evals.validation.summary import ValidationSummary, summarize_rows
from langchain_groundedness.evals.validation.validator import (
    AnswerValidator,
    RowValidation,
    ValidatedRow,
)
from langchain_groundedness.evals.values import EvaluationRow
from langchain_groundedness.exceptions import ConfigurationError
from langchain_groundedness.llm.chat_models import GivenModel

__all__ = ["avalidate", "validate"]

_COLUMN = "validation"
_NO_QUALITY = (
    "without a chat model there was no second stage: the composite is the source score alone"
)
_FRESH = "give other paths, or --fresh (fresh=True) to start over, which empties them"


def validate(  # noqa: PLR0913  (options by keyword)
    rows: Any,
    *,
    passed: str | Path,
    rejected: str | Path,
    validator: AnswerValidator | None = None,
    model: GivenModel | None = None,
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

    Each row is written with all its columns as soon as its outcome is known, with the outcome under
    `validation`: to `passed` if it passed, otherwise, also if it could not be checked, to
    `rejected`. Rows are written in the order in which they finish; `max_concurrency=1` keeps the
    order of the data set. Called again with the same options, it resumes: rows that are in the
    files are not validated again.

    Args:
        rows: A data set: a path, anything else that `open_dataset` reads, or a `DataSet`.
        passed: File for rows that passed.
        rejected: File for the others.
        validator: Validates a row; by default an `AnswerValidator()`, which works offline.
        model: For the default validator: a chat model, or its name as `provider:name`; not with
            `validator`.
        columns: As for `open_dataset`; not with a `DataSet`.
        summary: File for the summary and the options; by default next to `passed`, with the suffix
            `.summary.json`.
        fresh: Empty the files and start over.
        retry_unchecked: Validate rows again that could not be checked before.
        max_concurrency: Most rows at a time.
        on_begin: Called with the number of rows that are left to validate.
        on_row: Called with the outcome of each row after it is written.
        config: Config for the calls of the validator.
        stop: An event that another thread sets to stop; no further row is started then.

    Returns:
        The summary, of all rows in the files.

    Raises:
        ConfigurationError: An option is invalid, the files contain rows that were validated with
            other options, or another run is writing to them.
        InputFormatError: The data set cannot be read.
        KeyboardInterrupt: The run was interrupted. Running rows had two seconds to finish, and the
            summary is written.
    """
    require_positive(max_concurrency=max_concurrency)
    if validator is not None and model is not None:
        msg = "model belongs to AnswerValidator(model=...) where validator= is given"
        raise ConfigurationError(msg)
    started = monotonic()
    data = as_dataset(rows, columns)
    target = Path(passed)
    paths = target, Path(rejected), Path(summary or target.with_suffix(".summary.json"))
    names = ("passed", "rejected", "summary")
    require_outputs(zip(names, paths, strict=True), (part.name for part in data.parts))
    data.require({"answer": ["validation"], "documents": ["validation"]})
    outline = data.outline()
    outline.require_rows(data.name)
    checker = validator or AnswerValidator(model=model)
    options = {**describe(checker), "version": PACKAGE_VERSION}  # what the outcomes depend on
    if checker.calibration is not None:
        options["calibration"] = list(checker.bands)
    interrupted = False
    with _OutcomeFiles(*paths) as files:
        files.begin(options, fresh=fresh, retry_unchecked=retry_unchecked)
        known, before = _known_ids(data, files.done), frozenset(files.done)
        if on_begin is not None:
            on_begin(len(known - before))
        rows_left = (
            row for row in data if isinstance(row, LocatedRow) and row.row.id not in files.done
        )
        run = _Run(rows_left, checker, files, config or {}, stop or Event(), on_row)
        try:
            jobs = run.advance([], max_concurrency)
            run_in_threads(jobs, run.advance, run.work, max_concurrency)
        except KeyboardInterrupt:
            interrupted = True
        found = summarize_rows(files.read(), checker.thresholds).model_copy(
            update={
                "bad_rows": outline.bad_rows,
                "resumed": len(before & known),
                "elsewhere": len(files.done.keys() - known),
                "complete": known <= files.done.keys(),
                "notes": () if checker.thresholds.has_quality else (_NO_QUALITY,),
                "seconds": monotonic() - started,
            }
        )
        files.write_summary({"options": options, "summary": found.model_dump(mode="json")})
    if interrupted:
        raise KeyboardInterrupt
    return found


class ValidationOptions(TypedDict, total=False):
    """Options of `avalidate`."""

    passed: Required[str | Path]
    rejected: Required[str | Path]
    validator: AnswerValidator | None
    model: GivenModel | None
    columns: Mapping[str, str] | None
    summary: str | Path | None
    fresh: bool
    retry_unchecked: bool
    max_concurrency: int
    on_begin: Callable[[int], None] | None
    on_row: Callable[[ValidatedRow], None] | None
    config: RunnableConfig | None


async def avalidate(rows: Any, **options: Unpack[ValidationOptions]) -> ValidationSummary:
    """Validate a data set into two files, in threads, without blocking the event loop.

    If it is cancelled, running rows are finished and written first.

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


expand_options(avalidate, validate)


@dataclass
class _Run:
    """The rows to validate, and the outcomes to write."""

    rows: Iterator[LocatedRow]
    validator: AnswerValidator
    files: "_OutcomeFiles"
    config: RunnableConfig
    stop: Event
    on_row: Callable[[ValidatedRow], None] | None
    _unwritten: deque[tuple[LocatedRow, RowValidation]] = field(default_factory=deque)

    def work(self, row: LocatedRow) -> tuple[LocatedRow, RowValidation]:
        return row, self.validator.invoke(row.row, self.config)

    def advance(
        self, outcomes: Sequence[tuple[LocatedRow, RowValidation] | BaseException], limit: int
    ) -> Sequence[LocatedRow]:
        """Write outcomes, and return the next rows; an interruption loses none."""
        self._unwritten.extend(each for each in outcomes if isinstance(each, tuple))
        while self._unwritten:
            self._write(*self._unwritten[0])
            self._unwritten.popleft()
        for each in outcomes:
            if isinstance(each, BaseException):
                raise each
        return [] if self.stop.is_set() else list(islice(self.rows, limit))

    def _write(self, located: LocatedRow, found: RowValidation) -> None:
        row = located.row
        validated = ValidatedRow(
            **dict(found),
            id=row.id,
            label=row.label,
            digest=_digest(row),
            group=group_of([document.page_content for document in row.documents or ()]),
        )
        self.files.add(located, validated)
        if self.on_row is not None:
            self.on_row(validated)


def _known_ids(data: DataSet, done: Mapping[str, str]) -> set[str]:
    """Return the row ids; refuse rows that changed since they were validated."""
    known, changed = set(), []
    for found in data:
        if isinstance(found, LocatedRow):
            known.add(found.row.id)
            if found.row.id in done and done[found.row.id] != _digest(found.row):
                changed.append(found.row.id)
    if changed:
        rows = f"{format_count(len(changed))} ({listed_ids(changed)})"
        msg = f"changed since validation: {rows}: {_FRESH}"
        raise ConfigurationError(msg)
    return known


def _digest(row: EvaluationRow) -> str:
    texts = [document.page_content for document in row.documents or ()]
    return group_of([row.question or "", row.answer or "", row.reference or "", *texts])


class _OutcomeFiles:
    """Both files, opened to append and locked; one run at a time."""

    def __init__(self, passed: Path, rejected: Path, summary: Path) -> None:
        self._passed = passed
        self._rejected = rejected
        self._summary = summary
        self._open: dict[Path, int] = {}
        self.done: dict[str, str] = {}
        """Digests of the rows in the files, by id."""

    def __enter__(self) -> Self:
        try:
            for path in (self._passed, self._rejected):
                self._open[path] = open_to_append(path)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for descriptor in self._open.values():
            os.close(descriptor)

    def begin(self, options: Mapping[str, Any], *, fresh: bool, retry_unchecked: bool) -> None:
        """Resume an earlier run, or begin."""
        for path, descriptor in self._open.items():
            with raising_configuration_error(path):
                os.ftruncate(descriptor, 0) if fresh else cut_torn_line(descriptor)
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
        path = self._passed if found.outcome == "passed" else self._rejected
        with raising_configuration_error(path):
            data = {**(row.cells or row.row.model_dump()), _COLUMN: found.model_dump(mode="json")}
            write_all(self._open[path], f"{as_json(data)}\n".encode("ascii"))
        self.done[row.row.id] = found.digest

    def read(self) -> Iterator[ValidatedRow]:
        """Read what was found, never all at once."""
        seen: set[str] = set()
        for path in self._open:
            with raising_configuration_error(path), path.open("rb") as file:
                for number, line in enumerate(file, 1):
                    found = _read(line, f"{path}, line {number}")
                    if found.id not in seen:
                        seen.add(found.id)
                        yield found

    def write_summary(self, summary: Mapping[str, Any]) -> None:
        with raising_configuration_error(self._summary):
            replace_file(self._summary, [f"{json.dumps(summary, indent=2)}\n".encode()])

    def _require_same(self, options: Mapping[str, Any]) -> None:
        rows = f"the rows in {self._passed} and {self._rejected}"
        try:
            before = json.loads(self._summary.read_text(encoding="utf-8"))["options"]
        except (OSError, ValueError, KeyError, TypeError):
            msg = f"{self._summary} does not say with which options {rows} were validated: {_FRESH}"
            raise ConfigurationError(msg) from None
        now = json.loads(json.dumps(options))
        if names := sorted(n for n in {*before, *now} if before.get(n) != now.get(n)):
            other = f"{rows} were validated with other options ({', '.join(names)})"
            msg = f"{other}: give the same ones, or {_FRESH}"
            raise ConfigurationError(msg)

    def _drop_unchecked(self) -> None:
        """Leave out the rows that are to be validated again; all others stay as they are."""
        path = self._rejected
        with raising_configuration_error(path), path.open("rb") as source:
            kept = (line for line in source if _read(line, str(path)).outcome != "unchecked")
            replace_file(path, kept)
        os.close(self._open.pop(path))
        self._open[path] = open_to_append(path)


def _read(line: bytes, where: str) -> ValidatedRow:
    try:
        return ValidatedRow.model_validate(json.loads(line)[_COLUMN])
    except (ValueError, KeyError, TypeError):
        msg = f"{where}: not a validated row: {_FRESH}"
        raise ConfigurationError(msg) from None  # the cause quotes the text
