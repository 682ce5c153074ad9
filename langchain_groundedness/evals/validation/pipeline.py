"""Validates a data set, row by row, into two files; goes on where it was stopped."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any

from langchain_core.runnables import RunnableConfig

from langchain_groundedness._package import PACKAGE_VERSION
from langchain_groundedness.calibration._samples import group_of
from langchain_groundedness.evals._fingerprint import describe
from langchain_groundedness.evals._schedule import GRACE_SECONDS
from langchain_groundedness.evals.datasets import DataSet, LocatedRow, open_dataset
from langchain_groundedness.evals.validation._files import OutcomeFiles, Paths, read_outcomes
from langchain_groundedness.evals.validation._replay import Setting
from langchain_groundedness.evals.validation._window import Window
from langchain_groundedness.evals.validation.summary import ValidationSummary, summed_up
from langchain_groundedness.evals.validation.validator import AnswerValidator
from langchain_groundedness.evals.validation.values import RowValidation, ValidatedRow
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
