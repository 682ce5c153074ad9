"""Checks the text of a watched model sentence by sentence while it is written.

Drives a `LiveCheck`: tokens arrive from callbacks, jobs run in the handler's threads, and no token
waits for a check. Only the end of the root run shows whether the text is the answer; if not, its
published verdicts are retracted.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal
from uuid import UUID

from langchain_core.callbacks import CallbackManager, CallbackManagerForChainRun
from langchain_core.runnables import RunnableConfig

from langchain_groundedness.callbacks.channel import GroundednessEvent
from langchain_groundedness.claims.extractors import SentenceClaimExtractor
from langchain_groundedness.inputs.formats import CheckInput
from langchain_groundedness.llm.usage import with_usage_counter
from langchain_groundedness.pipeline.live import Job
from langchain_groundedness.runnable import GroundednessRunnable
from langchain_groundedness.types import ClaimVerdict, GroundednessResult

__all__ = ["PartialAnswer", "checks_sentences"]


def checks_sentences(checker: object) -> bool:
    """Return whether a checker can judge sentences before the answer is complete."""
    if not isinstance(checker, GroundednessRunnable) or checker.check.single_pass is not None:
        return False
    return isinstance(checker.check.extractor, SentenceClaimExtractor)


@dataclass(eq=False, kw_only=True)
class PartialAnswer:
    """A text that is being written, and its published verdicts."""

    run_id: UUID
    checker: GroundednessRunnable
    shown: CheckInput
    """Question and documents that its model was shown."""
    submit: Callable[[Callable[[], None]], object]
    config: RunnableConfig
    publish: Callable[[GroundednessEvent], None]

    def __post_init__(self) -> None:
        """Start with an empty text."""
        shown = self.shown
        self._live = self.checker.live(question=shown.question, documents=list(shown.documents))
        self._run, config = _traced(self.config, shown)
        self._config, self._counter = with_usage_counter(config)
        self._texts: list[str] = []
        self._published: dict[str, ClaimVerdict] = {}
        self._running = 0
        self._dropped = False
        self._error: Exception | None = None
        self._changed = threading.Condition()
        self._publishing = threading.RLock()

    def feed(self, text: str) -> None:
        """Add text, without waiting for checks."""
        with self._changed:
            if text and not self._dropped and not self._live.closed:
                self._texts.append(text)
                self._live.feed(text)
                self._start()

    def end(self) -> None:
        """End the text, so that its last sentence is checked too."""
        with self._changed:
            if not self._dropped and not self._live.closed:
                self._live.end()
                self._start()

    def is_of(self, source: CheckInput) -> bool:
        """Return whether this text became the answer, with the same question and evidence."""
        known, text = self.shown, "".join(self._texts)
        same = source.question == known.question and source.documents == known.documents
        return same and source.answer == text

    def result(self, source: CheckInput) -> GroundednessResult | None:
        """Wait for running checks, and return the result."""
        self.end()
        with self._changed:
            self._changed.wait_for(lambda: not self._running)
            if self._error is not None:
                raise self._error
            own = {**source.labels, "evidence_source": source.evidence_source}
            result = self._live.conclude(self._counter.usage, own)
        self._publish_new()
        self._run.on_chain_end(result)
        return result

    def drop(self) -> None:
        """Stop checking, and retract published verdicts: this text is not the answer."""
        with self._publishing:
            with self._changed:
                if self._dropped:
                    return
                self._dropped = True
                self._live.jobs.clear()
            for verdict in self._published.values():
                self._report("retracted", verdict)
        self._run.on_chain_error(self._error or RuntimeError("this text is not the answer"))

    def _start(self) -> None:
        while self._live.jobs:
            self._running += 1
            self.submit(partial(self._work, self._live.jobs.popleft()))

    def _work(self, job: Job) -> None:
        try:
            for state in job.runnable.stream(job.value, self._config):
                if self._dropped:
                    return
                with self._changed:
                    self._live.add_state(job, state)
                self._publish_new()
            with self._changed:
                self._live.finish(job)
                self._start()
            self._publish_new()
        except Exception as exc:  # noqa: BLE001  (raised again by `result`)
            self._error = exc
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()

    def _publish_new(self) -> None:
        with self._publishing:
            with self._changed:
                chunks = self._live.take()
            if self._dropped:
                return
            for chunk in chunks:
                for verdict in chunk.claims:
                    self._published[verdict.claim.id] = verdict
                    self._report("verdict", verdict)

    def _report(self, kind: Literal["verdict", "retracted"], verdict: ClaimVerdict) -> None:
        self.publish(GroundednessEvent(kind=kind, run_id=self.run_id, verdict=verdict))


def _traced(
    config: RunnableConfig, head: CheckInput
) -> tuple[CallbackManagerForChainRun, RunnableConfig]:
    """Start a parent run for the jobs, so that they form one trace."""
    manager = CallbackManager.configure(
        inheritable_callbacks=config["callbacks"],
        inheritable_tags=config["tags"],
        inheritable_metadata=config["metadata"],
    )
    run = manager.on_chain_start(None, dict(head), name=config["run_name"])
    return run, {**config, "callbacks": run.get_child()}
