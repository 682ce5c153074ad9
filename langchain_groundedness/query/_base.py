"""What all classifiers of queries share: how they read, run, fail and are measured."""

import logging
from abc import ABC, abstractmethod
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForChainRun, CallbackManagerForChainRun
from langchain_core.runnables import RunnableConfig, RunnableSerializable, patch_config
from typing_extensions import override

from langchain_groundedness._causes import cause
from langchain_groundedness._flow import Flow, adrive, drive
from langchain_groundedness._options import CheckedOptions
from langchain_groundedness.exceptions import GroundednessError, VerificationError
from langchain_groundedness.query._report import QueryReport
from langchain_groundedness.query._values import (
    EMPTY_QUERY,
    QueryClass,
    Samples,
    read_query,
    read_samples,
)

__all__ = ["ClosedSetClassifier"]

logger = logging.getLogger("langchain_groundedness")


class ClosedSetClassifier(CheckedOptions, RunnableSerializable[Any, QueryClass], ABC):
    """Sorts queries into classes of a closed set; what goes wrong ends as `unknown`."""

    raise_on_failure: bool = False
    """Raise `VerificationError` where the class would be `unknown` because something failed."""

    @abstractmethod
    def _classify(self, query: str) -> Flow[QueryClass]:
        """Sort one query that is not empty.

        What is raised before the first call comes through to the caller; what is raised by a call
        or after it is a failure.
        """

    @override
    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> QueryClass:
        return self._call_with_config(self._run, input, config, **kwargs)

    @override
    async def ainvoke(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> QueryClass:
        return await self._acall_with_config(self._arun, input, config, **kwargs)

    def evaluate(self, samples: Samples, config: RunnableConfig | None = None) -> QueryReport:
        """Measure the classifier on queries whose class is known.

        Args:
            samples: Queries with their classes, none of which it was fitted on: `QuerySample`s,
                pairs `(query, label)`, or mappings with `query` and `label`.
            config: Config for the calls; `max_concurrency` bounds how many run at once.

        Returns:
            Accuracy, precision, recall, F1 and the confusion matrix. A failure counts as
            `unknown`.

        Raises:
            ConfigurationError: There are no samples, or one has another form.
        """
        rows = read_samples(samples)
        found = self.batch([row.query for row in rows], config)
        return QueryReport.of([row.label for row in rows], found)

    def _run(
        self, value: Any, run_manager: CallbackManagerForChainRun, config: RunnableConfig
    ) -> QueryClass:
        return drive(self._flow(value), patch_config(config, callbacks=run_manager.get_child()))

    async def _arun(
        self, value: Any, run_manager: AsyncCallbackManagerForChainRun, config: RunnableConfig
    ) -> QueryClass:
        child = patch_config(config, callbacks=run_manager.get_child())
        return await adrive(self._flow(value), child)

    def _flow(self, value: Any) -> Flow[QueryClass]:
        query = read_query(value)
        if not query.strip():
            return EMPTY_QUERY
        flow = self._classify(query)
        try:
            return (yield from flow)
        except Exception as exc:  # noqa: BLE001  (a model may fail in any way)
            return self._failure(exc)

    def _failure(self, error: Exception) -> QueryClass:
        why = str(error) if isinstance(error, GroundednessError) else cause(error)
        if self.raise_on_failure:
            msg = f"the query could not be classified ({why})"
            raise VerificationError(msg) from error
        logger.warning("a query could not be classified: %s", type(error).__name__)
        return QueryClass.unknown(f"the classifier failed: {why}", failed=True)
