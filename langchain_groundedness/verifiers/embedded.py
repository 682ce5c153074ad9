"""The embedded verifier: judges claims on the CPU, without a network, a key or a language model."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables import RunnableConfig, RunnableSerializable
from langchain_core.runnables.config import run_in_executor
from pydantic import ConfigDict, Field

from langchain_groundedness._interruptions import exceptions_at_most
from langchain_groundedness._options import CheckedOptions
from langchain_groundedness.inputs import NO_DOCUMENTS
from langchain_groundedness.scoring import reconcile
from langchain_groundedness.types import ClaimVerdict, VerificationTask
from langchain_groundedness.verifiers._index import EvidenceIndex
from langchain_groundedness.verifiers._judgement import VERIFIER, judge
from langchain_groundedness.verifiers._rarity import rarity
from langchain_groundedness.verifiers._support_model import support_model

__all__ = ["EmbeddedVerifier"]

_MOST_KEPT = 64
_LARGEST_KEPT = 50_000
"""Characters of documents whose index is kept: all that is kept stays below some 50 MB."""


class EmbeddedVerifier(CheckedOptions, RunnableSerializable[VerificationTask, list[ClaimVerdict]]):
    """Judges each claim by the sentences of the documents that speak most about it.

    All text of all documents is searched. How well the best one to three neighbouring sentences
    cover the claim is measured by some dozens of signals, which a small model trained on claims
    that people judged turns into a calibrated probability. A claim below the threshold is
    `contradicted` if a sentence about the same thing differs in a value, name, date or polarity,
    and `unverifiable` otherwise. Without documents, or with blank ones only, every claim is
    `unchecked`.

    Example:
        >>> from langchain_groundedness.types import Claim
        >>> task = VerificationTask(
        ...     claims=(Claim(id="1", text="Revenue was $2.4B in Q3."),),
        ...     documents=(Document("Revenue was $2.1B in Q3 2024."),),
        ... )
        >>> verdict = EmbeddedVerifier().invoke(task)[0]
        >>> verdict.verdict, verdict.correction
        ('contradicted', '$2.1B')
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    threshold: float | None = Field(default=None, ge=0.0, le=1.0)
    """The probability from which a claim counts as supported; `None` for the one that the model
    was shipped with, which balances both kinds of mistakes."""

    @classmethod
    def is_lc_serializable(cls) -> bool:
        """Tell LangChain that this can be saved: it holds options only."""
        return True

    def warm_up(self) -> None:
        """Load the model now instead of on first use; doing so again costs nothing."""
        support_model()
        rarity()

    def invoke(
        self,
        input: VerificationTask,  # noqa: A002  (LangChain's name for it)
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> list[ClaimVerdict]:
        """Judge the claims of one answer.

        Args:
            input: The claims and the documents.
            config: The usual configuration of a runnable.
            **kwargs: Ignored, as usual for a runnable.

        Returns:
            One verdict per claim, in their order.
        """
        return self._call_with_config(self._judge_one, input, config, **kwargs)

    def batch(
        self,
        inputs: list[VerificationTask],
        config: RunnableConfig | list[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **kwargs: Any,
    ) -> list[list[ClaimVerdict]]:
        """Judge the claims of several answers; documents they share are analysed once.

        Args:
            inputs: The tasks.
            config: One configuration for all, or one for each.
            return_exceptions: Whether to return exceptions instead of raising the first.
            **kwargs: Ignored, as usual for a runnable.

        Returns:
            The verdicts, per task.
        """
        return exceptions_at_most(
            self._batch_with_config(
                self._judge_all, inputs, config, return_exceptions=return_exceptions, **kwargs
            )
        )

    async def abatch(
        self,
        inputs: list[VerificationTask],
        config: RunnableConfig | list[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **kwargs: Any,
    ) -> list[list[ClaimVerdict]]:
        """Do what `batch` does, off the event loop.

        Args:
            inputs: The tasks.
            config: One configuration for all, or one for each.
            return_exceptions: Whether to return exceptions instead of raising the first.
            **kwargs: Ignored, as usual for a runnable.

        Returns:
            The verdicts, per task.
        """
        return exceptions_at_most(
            await self._abatch_with_config(
                self._ajudge_all, inputs, config, return_exceptions=return_exceptions, **kwargs
            )
        )

    def _judge_one(self, task: VerificationTask) -> list[ClaimVerdict]:
        return self._judge_task(task, _index(task.documents))

    async def _ajudge_all(
        self, tasks: list[VerificationTask]
    ) -> list[Exception | list[ClaimVerdict]]:
        return await run_in_executor(None, self._judge_all, tasks)

    def _judge_all(self, tasks: list[VerificationTask]) -> list[Exception | list[ClaimVerdict]]:
        indexes: dict[tuple[str, ...], EvidenceIndex] = {}
        results: list[Exception | list[ClaimVerdict]] = []
        for task in tasks:
            key = tuple(document.page_content for document in task.documents)
            try:
                if key not in indexes:
                    indexes[key] = _index(task.documents)
                results.append(self._judge_task(task, indexes[key]))
            except Exception as exc:  # noqa: BLE001  (one task must not cost the others theirs)
                results.append(exc)
        return results

    def _judge_task(self, task: VerificationTask, index: EvidenceIndex) -> list[ClaimVerdict]:
        if _all_blank(task.documents):
            verdicts = [
                ClaimVerdict.unchecked(claim, NO_DOCUMENTS, verifier=VERIFIER)
                for claim in task.claims
            ]
            return reconcile(task, verdicts, verifier=VERIFIER)
        model = support_model()
        threshold = model.threshold if self.threshold is None else self.threshold
        verdicts = [judge(claim, task, index, model, threshold=threshold) for claim in task.claims]
        return reconcile(task, verdicts, verifier=VERIFIER)


def _index(documents: Sequence[Document]) -> EvidenceIndex:
    """Read documents, unless they were read a moment ago for another sentence."""
    texts = tuple(document.page_content for document in documents)
    return _recent(texts) if sum(map(len, texts)) <= _LARGEST_KEPT else EvidenceIndex(documents)


@lru_cache(maxsize=_MOST_KEPT)
def _recent(texts: tuple[str, ...]) -> EvidenceIndex:
    return EvidenceIndex([Document(page_content=text) for text in texts])


def _all_blank(documents: Sequence[Document]) -> bool:
    return not any(document.page_content.strip() for document in documents)
