"""The whole check as one runnable, to put behind any chain that answers from documents."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator, Sequence
from contextlib import aclosing
from typing import Any, Self

from langchain_core.callbacks import AsyncCallbackManagerForChainRun, CallbackManagerForChainRun
from langchain_core.runnables import RunnableConfig, RunnableSerializable
from langchain_core.runnables.graph import Graph
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, model_validator
from typing_extensions import override

from langchain_groundedness._runtime.executors import turn
from langchain_groundedness._runtime.flow import exceptions_at_most
from langchain_groundedness._runtime.options import AnyRunnable, OptionsAlone
from langchain_groundedness._runtime.streams import atransformed, transformed
from langchain_groundedness.audit import AuditLog
from langchain_groundedness.decision import DecisionPolicy
from langchain_groundedness.inputs.schema import GroundednessInput, InputReader, reader
from langchain_groundedness.llm.timeouts import DEFAULT_TIMEOUT, Seconds
from langchain_groundedness.pipeline.build import assembled, import_verifier, refuse_clashes
from langchain_groundedness.pipeline.live import LiveCheck
from langchain_groundedness.pipeline.recording import Recorder
from langchain_groundedness.pipeline.runs import Runs, arun_pieces, run_pieces
from langchain_groundedness.pipeline.steps import Check
from langchain_groundedness.text.sentences import load
from langchain_groundedness.types import (
    GroundednessResult,
    GroundednessResultChunk,
    OnContradicted,
    OnUnverifiable,
)
from langchain_groundedness.verification.cached import VerdictCache
from langchain_groundedness.verification.single_pass import SinglePassJudge

__all__ = ["GroundednessRunnable"]


class GroundednessRunnable(OptionsAlone, RunnableSerializable[Any, GroundednessResult]):
    """Checks an answer claim by claim against the documents it was made from.

    Put it behind a chain with `chain.pipe(GroundednessRunnable())`. It reads what retrieval
    chains and agents return as it is, or `{"answer": ..., "documents": ..., "question": ...}`.
    Without a model it works offline, with the embedded verifier.

    Nothing is fine because it was not checked: a claim that could not be checked is `unchecked`
    in the result, with the reason, and the answer is then not trusted.

    Example:
        >>> checker = GroundednessRunnable(on_contradicted="correct")
        >>> result = checker.invoke(
        ...     {
        ...         "question": "What was Q3 revenue?",
        ...         "answer": "Revenue was $2.4B in Q3.",
        ...         "documents": ["Revenue was $2.1B in Q3, up 12% from last year."],
        ...     }
        ... )
        >>> result.answer
        'Revenue was [CORRECTED: $2.1B] in Q3.'
        >>> result.verdict, result.is_trusted
        ('has_contradictions', False)
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    model: AnyRunnable | None = None
    """Chat model that extracts and judges claims; `None` for the embedded verifier."""
    model_timeout: Seconds = DEFAULT_TIMEOUT
    """Seconds to wait for one reply of the model; a claim that waits in vain is `unchecked`.
    `None` leaves it to the model's client. Stages of your own have options of their own."""
    extractor: AnyRunnable | None = None
    """Finds the claims; by default the model, or sentences where there is no model."""
    verifier: AnyRunnable | None = None
    """Judges the claims; by default the model, or the embedded verifier."""
    corrector: AnyRunnable | None = None
    """Edits the answer; by default a `Corrector`, with the model if there is one."""
    max_claims: int | None = Field(default=None, ge=1)
    """Most claims to verify; those beyond stay in the result as `unchecked`."""
    on_contradicted: OnContradicted = "annotate"
    """What happens to the text of contradicted claims. Edits are checked again, and undone if
    the documents do not support them."""
    on_unverifiable: OnUnverifiable = "keep"
    """What happens to the text of unverifiable claims."""
    trust_threshold: float = Field(default=1.0, ge=0.0, le=1.0)
    """Least share of supported claims for an answer to be trusted."""
    policy: DecisionPolicy = DecisionPolicy()
    """Turns verdicts, and what is known about the question, into a decision."""
    raise_on_failure: bool = False
    """Raise `VerificationError` when a claim cannot be checked because something failed."""
    context_extractor: Callable[[Any], Any] | None = None
    """Turns an input of any shape into one that is accepted."""
    examples: Sequence[Any] | None = None
    """Few-shot examples for the extraction by the model."""
    single_pass: bool | SinglePassJudge = False
    """Whether the model finds and judges the claims in one call, not in two; or the judge that
    does. `stream` and `transform` then wait for the whole answer; a guard asks per sentence."""
    audit_log: AuditLog | None = Field(default=None, exclude=True)
    """Gets a record of each decision. It is not saved with the checker."""
    verdict_cache: VerdictCache | None = Field(default=None, exclude=True)
    """Keeps verdicts, as a `CachedVerifier` does. It is not saved with the checker."""

    _check: Check | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _options_go_together(self) -> Self:
        refuse_clashes(self)
        import_verifier(self)
        return self

    @override
    def __setstate__(self, state: dict[Any, Any]) -> None:
        super().__setstate__(state)
        import_verifier(self)

    @override
    @classmethod
    def is_lc_serializable(cls) -> bool:
        return True

    @override
    def invoke(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> GroundednessResult:
        return self._call_with_config(self._run, input, config, **kwargs)

    @override
    async def ainvoke(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> GroundednessResult:
        await turn()
        return await self._acall_with_config(self._arun, input, config, **kwargs)

    @override
    def batch(
        self,
        inputs: list[Any],
        config: RunnableConfig | list[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **kwargs: Any,
    ) -> list[GroundednessResult]:
        return exceptions_at_most(
            self._batch_with_config(
                self._run_all, inputs, config, return_exceptions=return_exceptions, **kwargs
            )
        )

    @override
    async def abatch(
        self,
        inputs: list[Any],
        config: RunnableConfig | list[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **kwargs: Any,
    ) -> list[GroundednessResult]:
        return exceptions_at_most(
            await self._abatch_with_config(
                self._arun_all, inputs, config, return_exceptions=return_exceptions, **kwargs
            )
        )

    @override
    def stream(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Iterator[GroundednessResultChunk]:
        """Check, and yield what is found out as soon as it is final.

        Args:
            input: As for `invoke`.
            config: As for `invoke`.
            **kwargs: As for `invoke`.

        Yields:
            Chunks that add up with `+` to what `invoke` returns.
        """
        yield from self.transform(iter([input]), config, **kwargs)

    @override
    async def astream(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[GroundednessResultChunk]:
        """Check, and yield what is found out as soon as it is final.

        Args:
            input: As for `ainvoke`.
            config: As for `ainvoke`.
            **kwargs: As for `ainvoke`.

        Yields:
            Chunks that add up with `+` to what `ainvoke` returns.
        """

        async def inputs() -> AsyncIterator[Any]:
            yield input

        async with aclosing(self.atransform(inputs(), config, **kwargs)) as chunks:
            async for chunk in chunks:
                yield chunk

    @override
    def transform(
        self, input: Iterator[Any], config: RunnableConfig | None = None, **kwargs: Any
    ) -> Generator[GroundednessResultChunk]:
        """Check an answer while it is written.

        A sentence is checked as soon as its end is certain and documents have come, while later
        ones are still being written. That needs a `SentenceClaimExtractor`, which is the default
        without a model; any other extractor gets the whole answer, at the end.

        Args:
            input: Pieces that add up to an input of `invoke`: mappings with parts of it, as
                retrieval chains stream them, texts, or message chunks.
            config: As for `invoke`; `max_concurrency` bounds how many sentences are checked at
                once (8 by default).
            **kwargs: As for `invoke`.

        Yields:
            Chunks that add up with `+` to what `invoke` returns for the sum of the pieces, but
            for the usage: a model that judges sentence by sentence is called more often.
        """
        yield from transformed(self, self._grow, input, config, **kwargs)

    @override
    async def atransform(
        self, input: AsyncIterator[Any], config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncGenerator[GroundednessResultChunk]:
        """Check an answer while it is written.

        Args:
            input: As for `transform`.
            config: As for `transform`.
            **kwargs: As for `transform`.

        Yields:
            As `transform`.
        """
        await turn()
        async with aclosing(atransformed(self, self._agrow, input, config, **kwargs)) as chunks:
            async for chunk in chunks:
                yield chunk

    def warm_up(self) -> None:
        """Load what the check needs now, not at the first one; calling it again is free."""
        load()
        warm_up = getattr(self.check.verifier, "warm_up", None)
        if callable(warm_up):
            warm_up()

    @override
    def get_input_schema(self, config: RunnableConfig | None = None) -> type[BaseModel]:
        return GroundednessInput

    @override
    def get_output_schema(self, config: RunnableConfig | None = None) -> type[BaseModel]:
        return GroundednessResult

    @override
    def get_graph(self, config: RunnableConfig | None = None) -> Graph:
        """Draw the steps of the check.

        Args:
            config: Not used.

        Returns:
            The graph of the pipeline, from input to result.
        """
        return self.check.pipeline(self._reader()).get_graph(config)

    @property
    def check(self) -> Check:
        """The steps and options in force, with the defaults filled in."""
        if self._check is None:
            self._check = assembled(self)
        return self._check

    def live(self, *, removes: bool = False, **given: Any) -> LiveCheck:
        """Start a check of an answer that is still to be written.

        Args:
            removes: Whether sentences may be removed, whatever the options say.
            **given: `documents`, `question` and labels of it, for inputs that carry none.

        Returns:
            The check, to be fed by a driver.
        """
        return self._live(given, removes=removes)

    def _live(
        self, given: dict[str, Any], *, removes: bool = False, whole: bool = False
    ) -> LiveCheck:
        gather = self.context_extractor is not None
        reader = self._reader(**given)
        return LiveCheck(self.check, reader, gather=gather, removes=removes, whole=whole)

    def _reader(self, **given: Any) -> InputReader:
        return reader(type(self).__name__, self.context_extractor, given)

    @property
    def _recorder(self) -> Recorder:
        return Recorder(self.audit_log, "runnable", self)

    def _runs(self, given: dict[str, Any]) -> Runs:
        return Runs(self.check, self._reader(**given), self._recorder)

    def _run(
        self,
        value: Any,
        run_manager: CallbackManagerForChainRun,
        config: RunnableConfig,
        **given: Any,
    ) -> GroundednessResult:
        return self._runs(given).one(value, config, run_manager)

    async def _arun(
        self,
        value: Any,
        run_manager: AsyncCallbackManagerForChainRun,
        config: RunnableConfig,
        **given: Any,
    ) -> GroundednessResult:
        return await self._runs(given).aone(value, config, run_manager)

    def _run_all(
        self,
        values: list[Any],
        run_manager: list[CallbackManagerForChainRun],
        config: list[RunnableConfig],
        **given: Any,
    ) -> list[Exception | GroundednessResult]:
        return self._runs(given).many(values, config, run_manager)

    async def _arun_all(
        self,
        values: list[Any],
        run_manager: list[AsyncCallbackManagerForChainRun],
        config: list[RunnableConfig],
        **given: Any,
    ) -> list[Exception | GroundednessResult]:
        return await self._runs(given).amany(values, config, run_manager)

    def _grow(
        self,
        pieces: Iterator[Any],
        run_manager: CallbackManagerForChainRun,
        config: RunnableConfig,
        **given: Any,
    ) -> Iterator[GroundednessResultChunk]:
        pending = self._recorder.begin(run_manager, config)
        yield from run_pieces(self._live(given, whole=True), pieces, config, pending)

    async def _agrow(
        self,
        pieces: AsyncIterator[Any],
        run_manager: AsyncCallbackManagerForChainRun,
        config: RunnableConfig,
        **given: Any,
    ) -> AsyncGenerator[GroundednessResultChunk]:
        pending, live = self._recorder.begin(run_manager, config), self._live(given, whole=True)
        async with aclosing(arun_pieces(live, pieces, config, pending)) as chunks:
            async for chunk in chunks:
                yield chunk
