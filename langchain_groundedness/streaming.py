"""A guard between a model and the reader: releases text only after the check allows it."""

from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any, Literal, Unpack

from langchain_core.runnables import RunnableConfig, RunnableSerializable, patch_config
from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import override

from langchain_groundedness._runtime.executors import wait_for_admission
from langchain_groundedness._runtime.options import CheckedOptions, expand_options
from langchain_groundedness._runtime.streams import ClosingStream, StreamingTransform
from langchain_groundedness.audit import AuditLog, Review
from langchain_groundedness.llm.usage import with_usage_counter
from langchain_groundedness.pipeline.events import EventStream
from langchain_groundedness.pipeline.recording import Recorder, log_for, without_audit_log
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
    contradicted_marker: str
    blocked_message: str
    audit_log: AuditLog | None
    name: str | None


class GroundednessGuard(CheckedOptions, RunnableSerializable[Any, str], StreamingTransform[str]):
    """Releases the text of an answer sentence by sentence, as its verdicts allow.

    Add it to a chain with `chain.pipe(GroundednessGuard(checker))`: it accepts the same inputs as
    `GroundednessRunnable`, and returns text. The checker's `on_contradicted` and `on_unverifiable`
    decide what happens to a sentence with a failed claim: by default, one that the documents
    contradict is marked. All other text is released unchanged, including headings, questions and
    code. With `on_contradicted="correct"`, a sentence whose claim cannot be corrected is removed.
    Custom events report claims, verdicts, corrections and the decision.

    If the checker's policy decides `block`, the answer ends before the deciding sentence, with
    `blocked_message`. If the policy may block for a reason that depends on the whole answer (a
    share of claims, a trust score below a limit less than 1, a rule that another rule can
    override), no text is released until that is ruled out, or while a stream of mappings may still
    supply a label of the question that the rules need. So no part of an answer that is blocked as a
    whole is released. `flag` and `review` do not hold back text.

    A statement without an extracted claim counts as unchecked.

    Text is released while the answer is written if the checker's extractor is a
    `SentenceClaimExtractor`, the default without a model; with `model=`, pass `extractor=` too.
    Any other extractor needs the whole answer, so all text is released at the end.

    The streamed text adds up to the result of `invoke`; with `release="immediate"`, to the original
    answer or, if that is blocked, to its released part, a space, and `blocked_message`.

    Example:
        >>> guard = GroundednessGuard(on_contradicted="correct")
        >>> guard = guard.bind(documents=["Revenue was $2.1B in Q3."])
        >>> tokens = ["Revenue ", "was $2.4B", " in Q3. ", "Bye!"]
        >>> "".join(guard.transform(iter(tokens)))
        'Revenue was [CORRECTED: $2.1B] in Q3. Bye!'
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)
    _can_be_saved = True

    checker: GroundednessRunnable
    release: Literal["verified", "immediate"] = "verified"
    on_unchecked: OnUnchecked = "mark"
    unchecked_marker: str = " [UNCHECKED]"
    contradicted_marker: str = " [CONTRADICTED]"
    blocked_message: str = "From here on, this answer was withheld: it did not pass the check."
    audit_log: AuditLog | None = Field(default=None, exclude=True)

    def __init__(
        self, checker: GroundednessRunnable | None = None, **options: Unpack[GuardOptions]
    ) -> None:
        """Build a guard from a checker, or from the options of one.

        Args:
            checker: Checks the sentences, and decides what happens to those that fail; by default
                a `GroundednessRunnable` with the options given here.
            release: `verified` releases a sentence only after its verdict. `immediate` releases
                text at once, and `groundedness.retract` events name the characters to replace.
            on_unchecked: What to do with a sentence that could not be checked: `hold_back` removes
                it for good, `mark` appends `unchecked_marker`, `release` keeps it unchanged.
            unchecked_marker: Appended to sentences that could not be checked.
            contradicted_marker: With `on_contradicted="annotate"`, the default, appended to
                sentences that the documents contradict; `""` for none.
            blocked_message: Replaces blocked text: with `on_contradicted="block"`, everything from
                the first contradicted sentence on.
            audit_log: Receives a record of each decision, with the released text; by default the
                checker's log. The checker writes no record of its own here. The log is not saved
                with the guard.
            name: Name of the guard in traces.
            **options: Options of `GroundednessRunnable`, such as `model=`, if no checker is given.

        Raises:
            ConfigurationError: An option has an invalid value, or both a checker and options for
                one were given.
        """
        own: dict[str, Any] = {n: v for n, v in options.items() if n in type(self).model_fields}
        rest: Any = {name: value for name, value in options.items() if name not in own}
        shown = GroundednessGuard.__init__
        super().__init__(checker=checker_from(checker, rest, type(self).__name__, shown), **own)

    @override
    def get_input_schema(self, config: RunnableConfig | None = None) -> type[BaseModel]:
        return self.checker.get_input_schema(config)

    @override
    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> str:
        """Check a whole answer, and return the text that may be shown.

        Args:
            input: As for the checker.
            config: As for the checker.
            **kwargs: As for the checker.

        Returns:
            The corrected answer, even with `release="immediate"`.
        """
        return self._call_with_config(self._run, input, config, **kwargs)

    @override
    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> str:
        """Check a whole answer, and return the text that may be shown.

        Args:
            input: As for the checker.
            config: As for the checker.
            **kwargs: As for the checker.

        Returns:
            As `invoke`.
        """
        await wait_for_admission()
        return await self._acall_with_config(self._arun, input, config, **kwargs)

    @property
    def rules(self) -> ReleaseRules:
        """What happens to sentences in addition to the edits of the checker."""
        return ReleaseRules(
            on_unchecked=self.on_unchecked,
            unchecked_marker=self.unchecked_marker,
            contradicted_marker=self.contradicted_marker,
            check=self.checker.check,
            blocked_message=self.blocked_message,
        )

    @property
    def _recorder(self) -> Recorder:
        return Recorder(log_for(self.checker, self.audit_log), "guard", self.checker)

    def _run(self, value: Any, run_manager: Any, config: RunnableConfig, **given: Any) -> str:
        pending = self._recorder.begin(run_manager, config)
        child = patch_config(config, callbacks=run_manager.get_child())
        result = without_audit_log(self.checker).invoke(value, child, **given)
        text = guarded_text(result, self.rules).text
        pending.end(result, shown_answer=text)
        return text

    async def _arun(
        self, value: Any, run_manager: Any, config: RunnableConfig, **given: Any
    ) -> str:
        pending = self._recorder.begin(run_manager, config)
        child = patch_config(config, callbacks=run_manager.get_child())
        result = await without_audit_log(self.checker).ainvoke(value, child, **given)
        text = guarded_text(result, self.rules).text
        await pending.aend(result, shown_answer=text)
        return text

    def _stream(
        self, pieces: Iterator[Any], run_manager: Any, config: RunnableConfig, **given: Any
    ) -> Iterator[str]:
        guarded = _GuardedAnswer(self, config, given)
        pending = self._recorder.begin(run_manager, config)
        try:
            with closing(run_live(pieces, guarded.live, guarded.config)) as steps:
                for _ in steps:
                    text = guarded.advance()
                    guarded.publish()
                    if text:
                        yield text
                    if guarded.release.stopped:
                        break
        except BaseException:  # the reader stopped reading, or the model failed
            # Not confirmed: no more text is released, and this may run in a garbage collection.
            pending.queue(guarded.abandoned(), **guarded.abandoned_fields)
            raise
        text = guarded.end()
        pending.end(guarded.result, shown_answer=guarded.shown)
        guarded.publish()
        if text:
            yield text

    async def _astream(
        self, pieces: AsyncIterator[Any], run_manager: Any, config: RunnableConfig, **given: Any
    ) -> AsyncGenerator[str]:
        guarded = _GuardedAnswer(self, config, given)
        pending = self._recorder.begin(run_manager, config)
        try:
            async with ClosingStream(arun_live(pieces, guarded.live, guarded.config)) as steps:
                async for _ in steps:
                    text = guarded.advance()
                    await guarded.apublish()
                    if text:
                        yield text
                    if guarded.release.stopped:
                        break
        except BaseException:  # the reader stopped reading, or the model failed
            await pending.aqueue(guarded.abandoned(), **guarded.abandoned_fields)
            raise
        text = guarded.end()
        await pending.aend(guarded.result, shown_answer=guarded.shown)
        await guarded.apublish()
        if text:
            yield text


expand_options(GroundednessGuard.__init__, GroundednessGuard, GroundednessRunnable)


class _GuardedAnswer:
    """The state of one guarded answer."""

    def __init__(
        self, guard: GroundednessGuard, config: RunnableConfig, given: dict[str, Any]
    ) -> None:
        self.config, self._counter = with_usage_counter(config)
        self.live = guard.checker.live(removes=guard.on_unchecked == "hold_back", **given)
        self._rules = guard.rules
        self._immediate = guard.release == "immediate"
        self.release = Release(self.live, self._rules, immediate=self._immediate)
        self._events = EventStream(self.config)
        self._released: list[str] = []
        self.result: GroundednessResult | None = None

    @property
    def shown(self) -> str:
        """The released text after retractions."""
        if not self._immediate or self.result is None:
            return "".join(self._released)
        return guarded_text(self.result, self._rules).text

    @property
    def abandoned_fields(self) -> dict[str, Any]:
        """Record fields of an answer that was not read to its end."""
        return {"shown_answer": self.shown, "outcome": "abandoned", "review": Review()}

    def abandoned(self) -> "GroundednessResult | None":
        """Return the partial result of an abandoned answer; `None` if no text was released."""
        return self.live.abandon(self._counter.usage) if self.shown else None

    def advance(self) -> str:
        self._released.append(text := self.release.take())
        return text

    def end(self) -> str:
        self.result = self.live.conclude(self._counter.usage)
        self._released.append(text := self.release.finish(self.result))
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
