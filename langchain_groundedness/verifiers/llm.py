"""Verification by a chat model."""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, Self

from langchain_core.callbacks import (
    AsyncCallbackManagerForChainRun,
    CallbackManagerForChainRun,
)
from langchain_core.prompts.chat import BaseChatPromptTemplate
from langchain_core.runnables import (
    Runnable,
    RunnableConfig,
    RunnableSerializable,
    patch_config,
)
from pydantic import ConfigDict, Field, SkipValidation, model_validator
from typing_extensions import override

from langchain_groundedness._flow import Flow, adrive, drive, quiet
from langchain_groundedness._lanes import computed, size_of
from langchain_groundedness._learnt import kept
from langchain_groundedness._options import CheckedOptions
from langchain_groundedness._patience import PATIENCE, Budget, Seconds
from langchain_groundedness.evidence import EvidencePacker
from langchain_groundedness.prompts import (
    LABEL_PROMPT,
    VERIFICATION_PROMPT,
    VerdictLines,
    check_prompt,
)
from langchain_groundedness.scoring import reconcile
from langchain_groundedness.structured import StructuredModel
from langchain_groundedness.types import ClaimVerdict, EvidenceBatch, VerificationTask
from langchain_groundedness.verifiers._batched import NumberedEvidence, judge_together
from langchain_groundedness.verifiers._lines import read_text, why_no_verdict
from langchain_groundedness.verifiers._per_claim import LabelModel, PlainEvidence, judge_alone

__all__ = ["LLMVerifier"]


class LLMVerifier(CheckedOptions, RunnableSerializable[VerificationTask, list[ClaimVerdict]]):
    """Judges claims with a chat model: any LangChain model, remote or local.

    The evidence comes first and is the same in all calls about an answer, so prompt caches pay for
    it once. A verdict counts only with evidence that the judge was shown: it names sentences by
    number, and the numbers become verbatim quotes here. What cannot be checked is `unchecked`.

    Example:
        >>> from langchain_core.documents import Document
        >>> from langchain_core.language_models import FakeListChatModel
        >>> from langchain_groundedness.types import Claim
        >>> judge = LLMVerifier(model=FakeListChatModel(responses=["1: 1 supported"]))
        >>> task = VerificationTask(
        ...     claims=(Claim(id="c1", text="Rome is in Italy."),),
        ...     documents=(Document("Rome is the capital of Italy."),),
        ... )
        >>> [(v.verdict, v.citations[0].quote) for v in judge.invoke(task)]
        [('supported', 'Rome is the capital of Italy.')]
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    model: SkipValidation[Runnable[Any, Any]]
    """The judge: a chat model, plain or bound."""
    strategy: Literal["batched", "per_claim"] = "batched"
    """`batched`: many claims per call, with explanations and corrections. `per_claim`: one call
    per claim, answered by one word; `support_probability` where the model gives log-probabilities.
    For small and local models."""
    prompt: BaseChatPromptTemplate | None = None
    """Instead of `prompts.VERIFICATION_PROMPT` (`batched`) or `prompts.LABEL_PROMPT`
    (`per_claim`); it must have the same variables and ask for the same form of reply."""
    packer: EvidencePacker | None = None
    """How documents are cut up for calls; by default 100,000 tokens a call for `batched` and
    3,000 for `per_claim`."""
    claims_per_call: int = Field(default=12, ge=1)
    """Most claims in one call of `batched`."""
    support_threshold: float = Field(default=0.5, gt=0.0, lt=1.0)
    """Least probability of support for `supported`, in `per_claim` with log-probabilities. Small
    models are shy: one of 1.5 billion parameters told claims apart best at 0.2 to 0.3."""
    max_concurrency: int = Field(default=16, ge=1)
    """Most calls at a time, if the config of the run does not say."""
    timeout: Seconds = PATIENCE
    """Seconds to wait for one reply of the model; a claim that waits in vain is `unchecked`.
    `None` leaves it to the model's client."""
    retry_budget: int | None = Field(default=None, ge=0)
    """Most calls beyond those that a check takes if every reply is right: to find the form that
    the model knows, to repair replies, to ask for verdicts that are missing. By default one for
    each claim and evidence batch, and four."""

    @model_validator(mode="after")
    def _usable_prompt(self) -> Self:
        claims = "claims" if self.strategy == "batched" else "claim"
        check_prompt(self._prompt, required={"evidence", claims}, optional={"question"})
        return self

    @override
    @classmethod
    def is_lc_serializable(cls) -> bool:
        return True

    @override
    def invoke(
        self,
        input: VerificationTask,
        config: RunnableConfig | None = None,
        **_: Any,
    ) -> list[ClaimVerdict]:
        return self._call_with_config(self._judge, input, config)

    @override
    async def ainvoke(
        self,
        input: VerificationTask,
        config: RunnableConfig | None = None,
        **_: Any,
    ) -> list[ClaimVerdict]:
        return await self._acall_with_config(self._ajudge, input, config)

    @override
    def stream(
        self,
        input: VerificationTask,
        config: RunnableConfig | None = None,
        **_: Any,
    ) -> Iterator[list[ClaimVerdict]]:
        yield from self._transform_stream_with_config(iter([input]), self._stream, config)

    @override
    async def astream(
        self,
        input: VerificationTask,
        config: RunnableConfig | None = None,
        **_: Any,
    ) -> AsyncIterator[list[ClaimVerdict]]:

        async def once() -> AsyncIterator[VerificationTask]:
            yield input

        async for verdicts in self._atransform_stream_with_config(once(), self._astream, config):
            yield verdicts

    def _judge(
        self,
        task: VerificationTask,
        run_manager: CallbackManagerForChainRun,
        config: RunnableConfig,
    ) -> list[ClaimVerdict]:
        plan = self._plan(task)
        outputs = plan.judge.batch(plan.calls, self._child_config(config, run_manager))
        return plan.merged(outputs)

    async def _ajudge(
        self,
        task: VerificationTask,
        run_manager: AsyncCallbackManagerForChainRun,
        config: RunnableConfig,
    ) -> list[ClaimVerdict]:
        plan = await computed(size_of(task.documents), self._plan, task)
        outputs = await plan.judge.abatch(plan.calls, self._child_config(config, run_manager))
        return plan.merged(outputs)

    def _stream(
        self,
        tasks: Iterator[VerificationTask],
        run_manager: CallbackManagerForChainRun,
        config: RunnableConfig,
    ) -> Iterator[list[ClaimVerdict]]:
        for task in tasks:
            plan = self._plan(task)
            yield from plan.settled()
            child = self._child_config(config, run_manager)
            for place, output in plan.judge.batch_as_completed(plan.calls, child):
                yield from plan.settled(place, output)

    async def _astream(
        self,
        tasks: AsyncIterator[VerificationTask],
        run_manager: AsyncCallbackManagerForChainRun,
        config: RunnableConfig,
    ) -> AsyncIterator[list[ClaimVerdict]]:
        async for task in tasks:
            plan = await computed(size_of(task.documents), self._plan, task)
            for verdicts in plan.settled():
                yield verdicts
            child = self._child_config(config, run_manager)
            async for place, output in plan.judge.abatch_as_completed(plan.calls, child):
                for verdicts in plan.settled(place, output):
                    yield verdicts

    def _child_config(
        self,
        config: RunnableConfig,
        run_manager: CallbackManagerForChainRun | AsyncCallbackManagerForChainRun,
    ) -> RunnableConfig:
        limit = config.get("max_concurrency") or self.max_concurrency
        return patch_config(config, callbacks=run_manager.get_child(), max_concurrency=limit)

    @property
    def _prompt(self) -> BaseChatPromptTemplate:
        default = VERIFICATION_PROMPT if self.strategy == "batched" else LABEL_PROMPT
        return self.prompt or default

    def _plan(self, task: VerificationTask) -> "_Plan":
        size = self.claims_per_call if self.strategy == "batched" else 1
        groups = tuple(
            task.only(task.claims[first : first + size])
            for first in range(0, len(task.claims), size)
        )
        packer = self.packer or EvidencePacker(max_tokens=_BUDGET[self.strategy])
        read: Callable[[EvidenceBatch], Any] = NumberedEvidence.of
        if self.strategy == "per_claim":
            read = PlainEvidence.of
        # Batch by batch, so that calls that share their evidence follow one another.
        evidence = [read(batch) for batch in packer.pack(task.documents)]
        calls = [_Call(group, batch) for batch in evidence for group in groups]
        more = len(task.claims) * len(evidence) + _TO_FIND_THE_FORM
        budget = Budget(more if self.retry_budget is None else self.retry_budget)
        return _Plan(task, groups, calls, _Judge(flow=self._flow(budget)), self.get_name())

    def _flow(self, budget: Budget) -> Callable[["_Call"], Flow[list[ClaimVerdict]]]:
        name = self.get_name()
        if self.strategy == "per_claim":
            ask = LabelModel(self.model, self._prompt, self.support_threshold, self.timeout)
            return lambda call: judge_alone(call.task, call.evidence, ask, name, budget)
        judge = kept(self, self._asking)
        return lambda call: judge_together(call.task, call.evidence, judge, name, budget)

    def _asking(self) -> StructuredModel[VerdictLines]:
        return StructuredModel[VerdictLines](
            model=self.model,
            prompt=self._prompt,
            reply_schema=VerdictLines,
            name="verify_claims",
            from_text=read_text,
            why_unusable=lambda reply: why_no_verdict(reply.lines),
            timeout=self.timeout,
        )


_BUDGET = {"batched": 100_000, "per_claim": 3_000}
_TO_FIND_THE_FORM = 4


class _Call(NamedTuple):
    """Some claims, to be judged against one evidence batch."""

    task: VerificationTask
    evidence: Any
    """As the strategy shows it: `NumberedEvidence` or `PlainEvidence`."""


class _Plan:
    """The calls that a task needs, and what has come back so far."""

    def __init__(
        self,
        task: VerificationTask,
        groups: Sequence[VerificationTask],
        calls: list[_Call],
        judge: "_Judge",
        verifier: str,
    ) -> None:
        self.calls = calls
        self.judge = judge
        self._task = task
        self._groups = groups
        self._verifier = verifier
        self._outputs: dict[int, list[ClaimVerdict]] = {}

    def merged(self, outputs: Sequence[list[ClaimVerdict]]) -> list[ClaimVerdict]:
        """Give one verdict per claim of the task."""
        verdicts = [verdict for output in outputs for verdict in output]
        return self._reconciled(self._task, verdicts)

    def settled(
        self, place: int | None = None, output: list[ClaimVerdict] | None = None
    ) -> Iterator[list[ClaimVerdict]]:
        """Give the verdicts that are final now that the call at a place has come back."""
        if not self.calls and self._task.claims:
            yield self._reconciled(self._task, [])
        if place is None or output is None:
            return
        self._outputs[place] = output
        group = place % len(self._groups)
        places = range(group, len(self.calls), len(self._groups))
        if all(place in self._outputs for place in places):
            verdicts = [verdict for place in places for verdict in self._outputs.pop(place)]
            yield self._reconciled(self._groups[group], verdicts)

    def _reconciled(
        self, task: VerificationTask, verdicts: Sequence[ClaimVerdict]
    ) -> list[ClaimVerdict]:
        if not self.calls:
            reason = "there is no text in the documents to check against"
            verdicts = [
                ClaimVerdict.unchecked(claim, reason, verifier=self._verifier)
                for claim in task.claims
            ]
        return reconcile(task, verdicts, verifier=self._verifier)


class _Judge(RunnableSerializable[_Call, list[ClaimVerdict]]):
    """Carries out one call with all that it takes: repair, asking again."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    name: str | None = "judge_claims"
    flow: Callable[[_Call], Flow[list[ClaimVerdict]]]

    @override
    def invoke(
        self,
        input: _Call,
        config: RunnableConfig | None = None,
        **_: Any,
    ) -> list[ClaimVerdict]:
        return self._call_with_config(self._drive, input, config)

    @override
    async def ainvoke(
        self,
        input: _Call,
        config: RunnableConfig | None = None,
        **_: Any,
    ) -> list[ClaimVerdict]:
        return await self._acall_with_config(self._adrive, input, config)

    def _drive(
        self, call: _Call, run_manager: CallbackManagerForChainRun, config: RunnableConfig
    ) -> list[ClaimVerdict]:
        child = quiet(patch_config(config, callbacks=run_manager.get_child()))
        return drive(self.flow(call), child)

    async def _adrive(
        self, call: _Call, run_manager: AsyncCallbackManagerForChainRun, config: RunnableConfig
    ) -> list[ClaimVerdict]:
        child = quiet(patch_config(config, callbacks=run_manager.get_child()))
        return await adrive(self.flow(call), child)
