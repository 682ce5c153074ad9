"""What all evaluators share: how they read rows, run, fail, and are called."""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, ClassVar

from langchain_core.callbacks import AsyncCallbackManagerForChainRun, CallbackManagerForChainRun
from langchain_core.runnables import RunnableConfig, RunnableSerializable, patch_config
from pydantic import ConfigDict, Field
from typing_extensions import override

from langchain_groundedness._causes import cause
from langchain_groundedness._interruptions import exceptions_at_most
from langchain_groundedness._options import OptionsAlone
from langchain_groundedness._usage import counted
from langchain_groundedness.evals._fingerprint import describe
from langchain_groundedness.evals._progress import progress
from langchain_groundedness.evals.columns import read_columns, read_example, read_row
from langchain_groundedness.evals.results import EvaluationResult
from langchain_groundedness.evals.values import EvaluationRow, RowScore
from langchain_groundedness.exceptions import (
    ConfigurationError,
    EvaluationError,
    GroundednessError,
    InputFormatError,
    MissingDependencyError,
)
from langchain_groundedness.structured import Flow, adrive, drive, quiet
from langchain_groundedness.types import GroundednessResult, Usage

__all__ = ["EvaluationResult", "Evaluator"]

_LOGGER = logging.getLogger(__name__)
_SHOWN = 10


class Evaluator(OptionsAlone, RunnableSerializable[Any, RowScore], ABC):
    """Scores rows, each for itself; a row that cannot be scored says why, and has no number.

    Three ways to call one: `invoke` and its kin take an `EvaluationRow`, or a mapping with
    `question`, `answer`, `contexts` …, and give a `RowScore`; `run` takes columns; the evaluator
    itself is a function `(inputs, outputs, reference_outputs)` for LangSmith's `evaluate` and
    for those who use openevals.

    To write one, say what it needs and write `_score`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    needs: ClassVar[tuple[str, ...]] = ()
    """Fields of `EvaluationRow` without which a row is skipped."""

    key: str = Field(min_length=1)
    """Name of the metric."""
    raise_on_failure: bool = False
    """Raise `EvaluationError`, after the last row, if rows failed; its `result` has all rows."""
    progress_bar: bool = False
    """Show how far `run` is: on stderr, if that is a terminal and rich is installed."""
    max_concurrency: int = Field(default=16, ge=1)
    """Most rows at a time, if the config of the run does not say."""

    @abstractmethod
    def _score(self, row: EvaluationRow) -> Flow[RowScore]:
        """Score a row that has what is needed.

        Calls of models are yielded as `ModelCall`s, so that one method serves `invoke` and
        `ainvoke`. What is raised makes the row `failed`. Make the score with `_scored`, `_failed`
        or `_skipped`.

        Args:
            row: The row.

        Returns:
            Its score.
        """

    @override
    @classmethod
    def is_lc_serializable(cls) -> bool:
        return True

    @override
    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> RowScore:
        """Score a row.

        Args:
            input: An `EvaluationRow`, or a mapping with question, answer, contexts, reference
                under any of the names in `evals.columns.COLUMNS`.
            config: Config for the calls.
            **kwargs: `raise_on_failure=` for this call.

        Returns:
            Its score; `failed` or `skipped`, with the reason, if it has none.

        Raises:
            ConfigurationError: The installation is broken.
            EvaluationError: The row failed, and `raise_on_failure` is set.
        """
        return self._call_with_config(self._run, input, config, **kwargs)

    @override
    async def ainvoke(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> RowScore:
        return await self._acall_with_config(self._arun, input, config, **kwargs)

    @override
    def batch(
        self,
        inputs: list[Any],
        config: RunnableConfig | list[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **kwargs: Any,
    ) -> list[RowScore]:
        outputs = super().batch(
            inputs, self._bounded(config), return_exceptions=return_exceptions, **kwargs
        )
        return exceptions_at_most(outputs)

    @override
    async def abatch(
        self,
        inputs: list[Any],
        config: RunnableConfig | list[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **kwargs: Any,
    ) -> list[RowScore]:
        outputs = await super().abatch(
            inputs, self._bounded(config), return_exceptions=return_exceptions, **kwargs
        )
        return exceptions_at_most(outputs)

    def run(
        self,
        *,
        questions: Sequence[str] | None = None,
        contexts: Sequence[Any] | None = None,
        predicted_answers: Sequence[str] | None = None,
        reference_answers: Sequence[str] | None = None,
        config: RunnableConfig | None = None,
    ) -> EvaluationResult:
        """Score rows that are given as columns of one length.

        Args:
            questions: Questions.
            contexts: For each row a list of texts or `Document`s.
            predicted_answers: Answers.
            reference_answers: The right answers.
            config: Config for the calls; `max_concurrency` bounds how many rows run at once.

        Returns:
            The mean over the rows that have a score, and what there is about each row.

        Raises:
            InputFormatError: The columns do not fit together.
            EvaluationError: Rows failed, and `raise_on_failure` is set.
        """
        rows = read_columns(
            questions=questions,
            contexts=contexts,
            predicted_answers=predicted_answers,
            reference_answers=reference_answers,
        )
        scores: dict[int, RowScore] = {}
        with progress(self.key, len(rows), shown=self.progress_bar) as advance:
            done = self.batch_as_completed(rows, self._bounded(config), raise_on_failure=False)
            for place, score in done:
                scores[place] = score
                advance()
        return self._summed(rows, [scores[place] for place in range(len(rows))])

    async def arun(
        self,
        *,
        questions: Sequence[str] | None = None,
        contexts: Sequence[Any] | None = None,
        predicted_answers: Sequence[str] | None = None,
        reference_answers: Sequence[str] | None = None,
        config: RunnableConfig | None = None,
    ) -> EvaluationResult:
        """Score rows that are given as columns, without blocking the event loop.

        Args:
            questions: As for `run`.
            contexts: As for `run`.
            predicted_answers: As for `run`.
            reference_answers: As for `run`.
            config: As for `run`.

        Returns:
            As `run`.

        Raises:
            InputFormatError: As `run`.
            EvaluationError: As `run`.
        """
        rows = read_columns(
            questions=questions,
            contexts=contexts,
            predicted_answers=predicted_answers,
            reference_answers=reference_answers,
        )
        bounded = self._bounded(config)
        limit = asyncio.Semaphore(bounded["max_concurrency"] or 1)
        with progress(self.key, len(rows), shown=self.progress_bar) as advance:

            async def outcome(row: EvaluationRow) -> RowScore | Exception:
                async with limit:
                    try:
                        return await self.ainvoke(row, config, raise_on_failure=False)
                    except Exception as exc:  # noqa: BLE001  (raised below, outside the group)
                        return exc
                    finally:
                        advance()

            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(outcome(row)) for row in rows]
        scores = [task.result() for task in tasks]
        if broken := [score for score in scores if isinstance(score, Exception)]:
            raise broken[0]
        return self._summed(rows, [score for score in scores if isinstance(score, RowScore)])

    def __call__(
        self,
        inputs: Any = None,
        outputs: Any = None,
        reference_outputs: Any = None,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """Score an example as LangSmith's `evaluate` and openevals have it.

        Args:
            inputs: What went into the chain: a mapping with the question, or the question.
            outputs: What came out: a mapping with answer and documents, or the answer.
            reference_outputs: What should have come out, the same way.
            **kwargs: More of the row, such as `context=`.

        Returns:
            `key`, `score` (`None` if there is none), `comment` (the reason, then), `metadata`
            (status, details and usage).
        """
        try:
            row = read_example(inputs, outputs, reference_outputs, kwargs)
        except InputFormatError as exc:
            return _feedback(self._told(self._failed(str(exc)), Usage(), None))
        return _feedback(self.invoke(row))

    async def acall(
        self,
        inputs: Any = None,
        outputs: Any = None,
        reference_outputs: Any = None,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """Score an example for LangSmith's `aevaluate`: `evaluators=[evaluator.acall]`.

        Args:
            inputs: As when the evaluator is called.
            outputs: As when the evaluator is called.
            reference_outputs: As when the evaluator is called.
            **kwargs: As when the evaluator is called.

        Returns:
            As when the evaluator is called.
        """
        try:
            row = read_example(inputs, outputs, reference_outputs, kwargs)
        except InputFormatError as exc:
            return _feedback(self._told(self._failed(str(exc)), Usage(), None))
        return _feedback(await self.ainvoke(row))

    def fingerprint(self) -> dict[str, Any]:
        """Say what the scores depend on.

        Returns:
            The class, the options that count, and the version of this package; plain data,
            without keys and without texts.
        """
        told = describe(self)
        return {**told, **describe(self._defaults()), "version": package_version()}

    def _defaults(self) -> Mapping[str, Any]:
        """Give what stands in for options that are `None`, as far as the scores depend on it."""
        return {}

    def _scored(
        self,
        score: float,
        *,
        comment: str = "",
        details: Mapping[str, Any] | None = None,
        result: GroundednessResult | None = None,
    ) -> RowScore:
        return RowScore(
            key=self.key,
            score=score,
            status="scored",
            comment=comment,
            details=dict(details or {}),
            result=result,
        )

    def _failed(
        self,
        reason: str,
        *,
        details: Mapping[str, Any] | None = None,
        result: GroundednessResult | None = None,
    ) -> RowScore:
        given = dict(details or {})
        return RowScore(key=self.key, status="failed", reason=reason, details=given, result=result)

    def _skipped(
        self,
        reason: str,
        *,
        details: Mapping[str, Any] | None = None,
        result: GroundednessResult | None = None,
    ) -> RowScore:
        given = dict(details or {})
        return RowScore(key=self.key, status="skipped", reason=reason, details=given, result=result)

    def _run(
        self,
        value: Any,
        run_manager: CallbackManagerForChainRun,
        config: RunnableConfig,
        *,
        raise_on_failure: bool | None = None,
    ) -> RowScore:
        child, counter = counted(quiet(patch_config(config, callbacks=run_manager.get_child())))
        return self._told(drive(self._flow(value), child), counter.usage, raise_on_failure)

    async def _arun(
        self,
        value: Any,
        run_manager: AsyncCallbackManagerForChainRun,
        config: RunnableConfig,
        *,
        raise_on_failure: bool | None = None,
    ) -> RowScore:
        child, counter = counted(quiet(patch_config(config, callbacks=run_manager.get_child())))
        return self._told(await adrive(self._flow(value), child), counter.usage, raise_on_failure)

    def _flow(self, value: Any) -> Flow[RowScore]:
        try:
            row = read_row(value)
            if lacking := [name for name in self.needs if _lacks(row, name)]:
                return self._skipped(f"the row has no {' and no '.join(lacking)}")
            return (yield from self._score(row))
        except (ConfigurationError, MissingDependencyError):
            raise  # a broken installation fails every row: whoever called hears
        except Exception as exc:  # noqa: BLE001  (a model may fail in any way)
            return self._failed(str(exc) if isinstance(exc, GroundednessError) else cause(exc))

    def _told(self, score: RowScore, usage: Usage, raise_on_failure: bool | None) -> RowScore:  # noqa: FBT001  (an option handed on)
        raises = self.raise_on_failure if raise_on_failure is None else raise_on_failure
        score = score.model_copy(update={"usage": usage})
        if raises and score.status == "failed":
            msg = f"{self.key}: the row failed: {score.reason}"
            raise EvaluationError(msg, result=EvaluationResult.of(self.key, [score]))
        return score

    def _summed(
        self, rows: Sequence[EvaluationRow], scores: Sequence[RowScore]
    ) -> EvaluationResult:
        result = EvaluationResult.of(self.key, scores)
        failed = [r.id for r, s in zip(rows, scores, strict=True) if s.status == "failed"]
        if self.raise_on_failure and failed:
            listed = ", ".join(failed[:_SHOWN]) + (" …" if len(failed) > _SHOWN else "")
            msg = f"{self.key}: {len(failed)} of {len(rows)} rows failed (rows {listed})"
            raise EvaluationError(msg, row_ids=tuple(failed), result=result)
        if result.note:
            _LOGGER.warning("%s: %s", self.key, result.note)
        return result

    def _bounded(self, config: Any) -> Any:
        if isinstance(config, list):
            return [self._bounded(each) for each in config]
        given = dict(config or {})
        return {**given, "max_concurrency": given.get("max_concurrency") or self.max_concurrency}


def _lacks(row: EvaluationRow, name: str) -> bool:
    value = getattr(row, name)
    blank = name in {"question", "reference"} and not str(value).strip()
    return value is None or blank


def _feedback(score: RowScore) -> dict[str, Any]:
    metadata = {
        "status": score.status,
        **score.details,
        "usage": score.usage.model_dump(),
    }
    comment = score.comment if score.reason is None else f"{score.status}: {score.reason}"
    return {"key": score.key, "score": score.score, "comment": comment, "metadata": metadata}


@cache
def package_version() -> str:
    """Give the version of this package.

    Returns:
        The version, empty if the package is not installed.
    """
    try:
        return version("langchain-groundedness")
    except PackageNotFoundError:
        return ""
