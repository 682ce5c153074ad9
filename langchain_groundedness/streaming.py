"""A guard between a model and its reader: it releases text only after the check allows it."""

from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from contextlib import aclosing, closing
from typing import TYPE_CHECKING, Any, Literal, Unpack

from langchain_core.callbacks import AsyncCallbackManagerForChainRun, CallbackManagerForChainRun
from langchain_core.runnables import RunnableConfig, RunnableSerializable, patch_config
from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import override

from langchain_groundedness._runtime.executors import admitted
from langchain_groundedness._runtime.options import CheckedOptions, expand_options
from langchain_groundedness._runtime.streams import atransformed, transformed
from langchain_groundedness.audit import AuditLog, Review
from langchain_groundedness.llm.usage import counted
from langchain_groundedness.pipeline.events import EventStream
from langchain_groundedness.pipeline.recording import Recorder, unaudited
from langchain_groundedness.pipeline.release import OnUnchecked, Release, ReleaseRules, guarded_text
from langchain_groundedness.pipeline.runs import arun_live, run_live
from langchain_groundedness.runnable import CheckerOptions, GroundednessRunnable, checker_from

if TYPE_CHECKING:
    from langchain_groundedness.types import GroundednessResult

__all__ = ["GroundednessGuard"]


class GuardOptions(CheckerOptions, total=False):
    """Options of `GroundednessGuard`: its own, and those of its checker."""

    release: Literal["verified", "immediate"]
    on_unchecked: OnUnchecked
    unchecked_marker: str
    blocked_message: str
    audit_log: AuditLog | None
    name: str | None


class GroundednessGuard(CheckedOptions, RunnableSerializable[Any, str]):
    """Lets the text of an answer through, sentence by sentence, as its verdicts allow.

    Put it behind a chain with `chain.pipe(GroundednessGuard(checker))`: it reads what
    `GroundednessRunnable` reads, and gives text. The checker's `on_contradicted` and
    `on_unverifiable` decide what happens to a sentence with a failed claim; every other character
    is released unchanged, and so are headings, questions and code, which state nothing. If
    contradicted claims are to be corrected and a claim has no correction that passes the check,
    its sentence is left out. Custom events report claims, verdicts, corrections and the decision.

    If the checker's policy decides `block`, the answer ends before the sentence that settles the
    decision, with `blocked_message`. If the policy may block for a reason that only the whole
    answer shows (a share of claims, a trust score below a limit less than 1, a rule that another
    rule excuses), no text is released until that is ruled out; nor while a stream of mappings may
    still supply a label of the question that the rules need. So no part of an answer that is
    blocked as a whole is released. `flag` and `review` hold back nothing.

    A statement in which the checker's extractor found no claim counts as unchecked.

    Text is released while the answer is written if the checker's extractor is a
    `SentenceClaimExtractor`, the default without a model; with `model=`, pass `extractor=` too.
    Any other extractor needs the whole answer, and all text is released at the end.

    Example:
        >>> guard = GroundednessGuard(on_contradicted="correct")
        >>> guard = guard.bind(documents=["Revenue was $2.1B in Q3."])
        >>> tokens = ["Revenue ", "was $2.4B", " in Q3. ", "Bye!"]
        >>> "".join(guard.transform(iter(tokens)))
        'Revenue was [CORRECTED: $2.1B] in Q3. Bye!'
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    checker: GroundednessRunnable
    release: Literal["verified", "immediate"] = "verified"
    on_unchecked: OnUnchecked = "mark"
    unchecked_marker: str = " [UNCHECKED]"
    blocked_message: str = "The rest of this answer was withheld: it did not pass the check."
    audit_log: AuditLog | None = Field(default=None, exclude=True)

    def __init__(
        self, checker: GroundednessRunnable | None = None, **options: Unpack[GuardOptions]
    ) -> None:
        """Guard with a checker, or with the options of one.

        Args:
            checker: Checks the sentences, and says what happens to those that fail; by default a
                `GroundednessRunnable` with the options given here.
            release: `verified`: a sentence leaves only after its verdict. `immediate`: text leaves
                as it comes, and a `groundedness.retract` event tells which characters to replace.
            on_unchecked: What happens to a sentence that could not be checked: `hold_back` leaves
                it out, `mark` puts `unchecked_marker` behind it, `release` lets it through.
            unchecked_marker: Stands behind sentences that could not be checked.
            blocked_message: Replaces what is blocked: with `on_contradicted="block"`, the first
                contradicted sentence and all that follows it.
            audit_log: Gets a record of each decision, with the text that was let through; by
                default that of the checker, which records nothing by itself here. It is not saved
                with the guard.
            name: Name of the guard in traces.
            **options: Options of `GroundednessRunnable`, such as `model=`, if no checker is given.

        Raises:
            ConfigurationError: An option has a value that cannot work, or a checker came together
                with options of one.
        """
        own: dict[str, Any] = {n: v for n, v in options.items() if n in type(self).model_fields}
        rest: Any = {name: value for name, value in options.items() if name not in own}
        super().__init__(checker=checker_from(checker, rest), **own)

    @override
    @classmethod
    def is_lc_serializable(cls) -> bool:
        return True

    @override
    def get_input_schema(self, config: RunnableConfig | None = None) -> type[BaseModel]:
        return self.checker.get_input_schema(config)

    @override
    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> str:
        """Check a whole answer, and give the text of it that may be shown.

        Args:
            input: As for the checker.
            config: As for the checker.
            **kwargs: As for the checker.

        Returns:
            The corrected answer, also with `release="immediate"`.
        """
        return self._call_with_config(self._run, input, config, **kwargs)

    @override
    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> str:
        """Check a whole answer, and give the text of it that may be shown.

        Args:
            input: As for the checker.
            config: As for the checker.
            **kwargs: As for the checker.

        Returns:
            As `invoke`.
        """
        await admitted()
        return await self._acall_with_config(self._arun, input, config, **kwargs)

    @override
    def stream(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Iterator[str]:
        yield from self.transform(iter([input]), config, **kwargs)

    @override
    async def astream(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[str]:
        async def inputs() -> AsyncIterator[Any]:
            yield input

        async with aclosing(self.atransform(inputs(), config, **kwargs)) as texts:
            async for text in texts:
                yield text

    @override
    def transform(
        self, input: Iterator[Any], config: RunnableConfig | None = None, **kwargs: Any
    ) -> Generator[str]:
        """Guard an answer while it is written.

        Args:
            input: As for the checker's `transform`.
            config: As for the checker's `transform`.
            **kwargs: As for the checker's `transform`.

        Yields:
            Text. With `release="verified"` it adds up to what `invoke` returns, with
            `"immediate"` to the answer as it came, as far as it came if it is blocked, with
            the message behind it.
        """
        yield from transformed(self, self._stream, input, config, **kwargs)

    @override
    async def atransform(
        self, input: AsyncIterator[Any], config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncGenerator[str]:
        """Guard an answer while it is written.

        Args:
            input: As for the checker's `transform`.
            config: As for the checker's `transform`.
            **kwargs: As for the checker's `transform`.

        Yields:
            As `transform`.
        """
        await admitted()
        async with aclosing(atransformed(self, self._astream, input, config, **kwargs)) as texts:
            async for text in texts:
                yield text

    @property
    def rules(self) -> ReleaseRules:
        """What happens to sentences, beyond the edits of the checker."""
        return ReleaseRules(
            on_unchecked=self.on_unchecked,
            unchecked_marker=self.unchecked_marker,
            check=self.checker.check,
            blocked_message=self.blocked_message,
        )

    @property
    def _recorder(self) -> Recorder:
        own = self.audit_log
        return Recorder(self.checker.audit_log if own is None else own, "guard", self.checker)

    def _run(
        self,
        value: Any,
        run_manager: CallbackManagerForChainRun,
        config: RunnableConfig,
        **given: Any,
    ) -> str:
        pending = self._recorder.begin(run_manager, config)
        child = patch_config(config, callbacks=run_manager.get_child())
        result = unaudited(self.checker).invoke(value, child, **given)
        text = guarded_text(result, self.rules).text
        pending.end(result, shown_answer=text)
        return text

    async def _arun(
        self,
        value: Any,
        run_manager: AsyncCallbackManagerForChainRun,
        config: RunnableConfig,
        **given: Any,
    ) -> str:
        pending = self._recorder.begin(run_manager, config)
        child = patch_config(config, callbacks=run_manager.get_child())
        result = await unaudited(self.checker).ainvoke(value, child, **given)
        text = guarded_text(result, self.rules).text
        await pending.aend(result, shown_answer=text)
        return text

    def _stream(
        self,
        pieces: Iterator[Any],
        run_manager: CallbackManagerForChainRun,
        config: RunnableConfig,
        **given: Any,
    ) -> Iterator[str]:
        guarded = _Guarded(self, config, given)
        pending = self._recorder.begin(run_manager, config)
        try:
            with closing(run_live(pieces, guarded.live, guarded.config)) as steps:
                for _ in steps:
                    text = guarded.go_on()
                    guarded.publish()
                    if text:
                        yield text
                    if guarded.release.stopped:
                        break
        except BaseException:  # the reader stopped reading, or the model failed
            # Not confirmed: no more text is released, and this may run in a garbage collection.
            pending.hand_over(guarded.abandoned(), **guarded.left_behind)
            raise
        text = guarded.end()
        pending.end(guarded.result, shown_answer=guarded.shown)
        guarded.publish()
        if text:
            yield text

    async def _astream(
        self,
        pieces: AsyncIterator[Any],
        run_manager: AsyncCallbackManagerForChainRun,
        config: RunnableConfig,
        **given: Any,
    ) -> AsyncGenerator[str]:
        guarded = _Guarded(self, config, given)
        pending = self._recorder.begin(run_manager, config)
        try:
            async with aclosing(arun_live(pieces, guarded.live, guarded.config)) as steps:
                async for _ in steps:
                    text = guarded.go_on()
                    await guarded.apublish()
                    if text:
                        yield text
                    if guarded.release.stopped:
                        break
        except BaseException:  # the reader stopped reading, or the model failed
            await pending.ahand_over(guarded.abandoned(), **guarded.left_behind)
            raise
        text = guarded.end()
        await pending.aend(guarded.result, shown_answer=guarded.shown)
        await guarded.apublish()
        if text:
            yield text


expand_options(GroundednessGuard.__init__, GroundednessGuard, GroundednessRunnable)


class _Guarded:
    """One answer on its way through a guard."""

    def __init__(
        self, guard: GroundednessGuard, config: RunnableConfig, given: dict[str, Any]
    ) -> None:
        self.config, self._counter = counted(config)
        self.live = guard.checker.live(removes=guard.rules.removes, **given)
        immediate = guard.release == "immediate"
        self.release = Release(self.live, guard.rules, immediate=immediate)
        self._events = EventStream(self.config)
        self._rules = guard.rules
        self._immediate = immediate
        self._let_out: list[str] = []
        self.result: GroundednessResult | None = None

    @property
    def shown(self) -> str:
        """What the reader keeps: the released text, without what was retracted."""
        if not self._immediate or self.result is None:
            return "".join(self._let_out)
        return guarded_text(self.result, self._rules).text

    @property
    def left_behind(self) -> dict[str, Any]:
        """What a record says of an answer that was not read to its end."""
        return {"shown_answer": self.shown, "outcome": "abandoned", "review": Review()}

    def abandoned(self) -> "GroundednessResult | None":
        """Sum up an answer that is not read to its end; `None` if no text of it has left."""
        return self.live.abandon(self._counter.usage) if self.shown else None

    def go_on(self) -> str:
        return self._out(self.release.take())

    def end(self) -> str:
        self.result = self.live.conclude(self._counter.usage)
        return self._out(self.release.finish(self.result))

    def _out(self, text: str) -> str:
        self._let_out.append(text)
        return text

    def publish(self) -> None:
        for chunk in self.live.take():
            self._events.publish(chunk)
        for data in self.release.retracted():
            self._events.send("groundedness.retract", data)

    async def apublish(self) -> None:
        for chunk in self.live.take():
            await self._events.apublish(chunk)
        for data in self.release.retracted():
            await self._events.asend("groundedness.retract", data)
