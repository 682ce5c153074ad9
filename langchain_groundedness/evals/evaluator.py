"""What all evaluators share: how they read rows, run, fail, and are called."""

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from langchain_core.runnables import RunnableConfig

from langchain_groundedness._package import PACKAGE_VERSION
from langchain_groundedness.evals._fingerprint import describe
from langchain_groundedness.evals._gate import Gate
from langchain_groundedness.evals._progress import progress
from langchain_groundedness.evals._rows import RowEvaluator
from langchain_groundedness.evals.columns import Example, read_columns
from langchain_groundedness.evals.results import EvaluationResult
from langchain_groundedness.evals.values import EvaluationRow, RowScore
from langchain_groundedness.exceptions import EvaluationError

__all__ = ["EvaluationResult", "Evaluator"]

_LOGGER = logging.getLogger(__name__)
_SHOWN = 10


class Evaluator(RowEvaluator):
    """Scores rows, each for itself; a row that cannot be scored says why, and has no number.

    Three ways to call one: `invoke` and its kin take an `EvaluationRow`, or a mapping with
    `question`, `answer`, `contexts` …, and give a `RowScore`; `run` takes columns; the evaluator
    itself is a function `(inputs, outputs, reference_outputs)` for LangSmith's `evaluate` and
    for those who use openevals.

    To write one, say what it needs and write `_score`.
    """

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
            config: Config for the calls; `max_concurrency` bounds how many rows are being judged
                at once.

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
        bounded, gate = self._gated(config)
        with progress(self.key, len(rows), shown=self.progress_bar) as advance:
            done = self.batch_as_completed(rows, bounded, raise_on_failure=False, gate=gate)
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
        bounded, gate = self._gated(config)
        limit = asyncio.Semaphore(gate.rows)
        with progress(self.key, len(rows), shown=self.progress_bar) as advance:

            async def outcome(row: EvaluationRow) -> RowScore | Exception:
                async with limit:
                    try:
                        return await self.ainvoke(row, bounded, raise_on_failure=False, gate=gate)
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
        with _kept_local():
            return _feedback(self.invoke(Example(inputs, outputs, reference_outputs, kwargs)))

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
        with _kept_local():
            example = Example(inputs, outputs, reference_outputs, kwargs)
            return _feedback(await self.ainvoke(example))

    def fingerprint(self) -> dict[str, Any]:
        """Say what the scores depend on.

        Returns:
            The class, the options that count, and the version of this package; plain data,
            without keys and without texts.
        """
        told = describe(self)
        return {**told, **describe(self._defaults()), "version": PACKAGE_VERSION}

    def _defaults(self) -> Mapping[str, Any]:
        """Give what stands in for options that are `None`, as far as the scores depend on it."""
        return {}

    def _gated(self, config: RunnableConfig | None) -> tuple[RunnableConfig, Gate]:
        """Give what bounds the calls of a run, and a config that begins rows enough for it."""
        gate = Gate(self._bounded(config)["max_concurrency"])
        return {**(config or {}), "max_concurrency": gate.rows}, gate

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


def _feedback(score: RowScore) -> dict[str, Any]:
    metadata = {
        "status": score.status,
        **score.details,
        "usage": score.usage.model_dump(),
    }
    comment = score.comment if score.reason is None else f"{score.status}: {score.reason}"
    return {"key": score.key, "score": score.score, "comment": comment, "metadata": metadata}


@contextmanager
def _kept_local() -> Iterator[None]:
    """Trace nothing where LangSmith is told to upload nothing.

    `evaluate(..., upload_results=False)` keeps its own runs on this machine, but langchain-core
    takes that for tracing, and would send ours.
    """
    from langsmith.run_helpers import tracing_context  # noqa: PLC0415  (slow to import)
    from langsmith.utils import tracing_is_enabled  # noqa: PLC0415  (slow to import)

    if tracing_is_enabled() != "local":
        yield
        return
    with tracing_context(enabled=False):
        yield
