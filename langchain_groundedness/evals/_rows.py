"""How one row is scored, and what becomes of a row that cannot be."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from langchain_core.callbacks import AsyncCallbackManagerForChainRun, CallbackManagerForChainRun
from langchain_core.runnables import RunnableConfig, RunnableSerializable, patch_config
from pydantic import ConfigDict, Field
from typing_extensions import override

from langchain_groundedness._causes import cause
from langchain_groundedness._flow import Flow, adrive, drive, quiet
from langchain_groundedness._interruptions import exceptions_at_most
from langchain_groundedness._options import OptionsAlone
from langchain_groundedness._patience import PATIENCE, Seconds
from langchain_groundedness._usage import counted
from langchain_groundedness.evals._gate import Gate
from langchain_groundedness.evals.columns import read_row
from langchain_groundedness.evals.results import EvaluationResult
from langchain_groundedness.evals.values import EvaluationRow, RowScore
from langchain_groundedness.exceptions import (
    ConfigurationError,
    EvaluationError,
    GroundednessError,
    MissingDependencyError,
)
from langchain_groundedness.types import GroundednessResult, Usage

__all__ = ["RowEvaluator"]


class RowEvaluator(OptionsAlone, RunnableSerializable[Any, RowScore], ABC):
    """A runnable from a row to its score; what goes wrong ends as `failed`."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    needs: ClassVar[tuple[str, ...]] = ()
    """Fields of `EvaluationRow` without which a row is skipped."""

    key: str = Field(min_length=1)
    """Name of the metric."""
    raise_on_failure: bool = False
    """Raise `EvaluationError`, after the last row, if rows failed; its `result` has all rows."""
    progress_bar: bool = False
    """Show how far `run` is: on stderr, if that is a terminal and rich is installed."""
    max_concurrency: int = Field(default=32, ge=1)
    """Most rows at a time, if the config of the run does not say."""
    model_timeout: Seconds = PATIENCE
    """Seconds to wait for one reply of a model, where the evaluator asks one; a row that waits in
    vain fails. `None` leaves it to the model's client."""

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

    def _failed(self, reason: str, **found: Any) -> RowScore:
        return self._without_score("failed", reason, **found)

    def _skipped(self, reason: str, **found: Any) -> RowScore:
        return self._without_score("skipped", reason, **found)

    def _without_score(
        self,
        status: Literal["failed", "skipped"],
        reason: str,
        *,
        details: Mapping[str, Any] | None = None,
        result: GroundednessResult | None = None,
    ) -> RowScore:
        given = dict(details or {})
        return RowScore(key=self.key, status=status, reason=reason, details=given, result=result)

    def _run(
        self,
        value: Any,
        run_manager: CallbackManagerForChainRun,
        config: RunnableConfig,
        *,
        raise_on_failure: bool | None = None,
        gate: Gate | None = None,
    ) -> RowScore:
        child, counter = counted(_child(config, run_manager.get_child(), gate))
        found = drive(self._flow(value, gate), child)
        return self._told(*found, counter.usage, raise_on_failure)

    async def _arun(
        self,
        value: Any,
        run_manager: AsyncCallbackManagerForChainRun,
        config: RunnableConfig,
        *,
        raise_on_failure: bool | None = None,
        gate: Gate | None = None,
    ) -> RowScore:
        child, counter = counted(_child(config, run_manager.get_child(), gate))
        found = await adrive(self._flow(value, gate), child)
        return self._told(*found, counter.usage, raise_on_failure)

    def _flow(self, value: Any, gate: Gate | None) -> Flow[tuple[RowScore, Exception | None]]:
        """Score a row; give also what was raised, if that is why there is no score."""
        try:
            row = read_row(value)
            if lacking := [name for name in self.needs if _lacks(row, name)]:
                return self._skipped(f"the row has no {' and no '.join(lacking)}"), None
            scored = self._score(row)
            return (yield from scored if gate is None else gate.guard(scored)), None
        except (ConfigurationError, MissingDependencyError):
            raise  # a broken installation fails every row: whoever called hears
        except Exception as exc:  # noqa: BLE001  (a model may fail in any way)
            reason = str(exc) if isinstance(exc, GroundednessError) else cause(exc)
            return self._failed(reason), exc

    def _told(
        self,
        score: RowScore,
        raised: Exception | None,
        usage: Usage,
        raise_on_failure: bool | None,  # noqa: FBT001  (an option handed on)
    ) -> RowScore:
        raises = self.raise_on_failure if raise_on_failure is None else raise_on_failure
        score = score.model_copy(update={"usage": usage})
        if raises and score.status == "failed":
            msg = f"{self.key}: the row failed: {score.reason}"
            raise EvaluationError(msg, result=EvaluationResult.of(self.key, [score])) from raised
        return score

    def _bounded(self, config: Any) -> Any:
        if isinstance(config, list):
            return [self._bounded(each) for each in config]
        given = dict(config or {})
        return {**given, "max_concurrency": given.get("max_concurrency") or self.max_concurrency}


def _child(config: RunnableConfig, callbacks: Any, gate: Gate | None) -> RunnableConfig:
    child = quiet(patch_config(config, callbacks=callbacks))
    return child if gate is None else {**child, "max_concurrency": gate.calls}


def _lacks(row: EvaluationRow, name: str) -> bool:
    value = getattr(row, name)
    blank = name in {"question", "reference"} and not str(value).strip()
    return value is None or blank
