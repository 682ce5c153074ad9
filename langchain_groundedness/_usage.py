"""Counts what the model calls of one check cost."""

from threading import Lock
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler, BaseCallbackManager
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, LLMResult
from langchain_core.runnables import RunnableConfig
from typing_extensions import override

from langchain_groundedness.types import Usage

__all__ = ["UsageCounter", "count_cached", "counted"]


class UsageCounter(BaseCallbackHandler):
    """A handler that adds up calls and tokens of every model run below one check."""

    # Adding numbers is faster than the thread that a sync handler gets under an async run.
    run_inline = True
    ignore_chain = True
    ignore_retriever = True
    ignore_agent = True
    ignore_custom_event = True

    def __init__(self) -> None:
        """Start at nothing."""
        self._lock = Lock()
        self._usage = Usage()

    @property
    def usage(self) -> Usage:
        """What was counted so far."""
        return self._usage

    @override
    def on_llm_end(self, response: LLMResult, **kwargs: Any) -> None:
        messages = [
            generation.message
            for choices in response.generations
            for generation in choices[:1]
            if isinstance(generation, ChatGeneration)
        ]
        counts = [m.usage_metadata for m in messages if isinstance(m, AIMessage)]
        inputs = [count["input_tokens"] for count in counts if count]
        outputs = [count["output_tokens"] for count in counts if count]
        with self._lock:
            self._usage = Usage(
                model_calls=self._usage.model_calls + 1,
                input_tokens=_add(self._usage.input_tokens, inputs),
                output_tokens=_add(self._usage.output_tokens, outputs),
                cached_verdicts=self._usage.cached_verdicts,
            )

    def add_cached(self, verdicts: int) -> None:
        """Count verdicts that cost nothing.

        Args:
            verdicts: How many.
        """
        with self._lock:
            known = self._usage.cached_verdicts
            self._usage = self._usage.model_copy(update={"cached_verdicts": known + verdicts})


def _add(total: int | None, counts: list[int]) -> int | None:
    return (total or 0) + sum(counts) if counts else total


def counted(config: RunnableConfig) -> tuple[RunnableConfig, UsageCounter]:
    """Attach a counter to the runs below a config.

    Args:
        config: The config of child runs.

    Returns:
        A config with the counter among its callbacks, and the counter.
    """
    counter = UsageCounter()
    callbacks = config.get("callbacks")
    if isinstance(callbacks, BaseCallbackManager):
        manager = callbacks.copy()
        manager.add_handler(counter)
        return {**config, "callbacks": manager}, counter
    return {**config, "callbacks": [*(callbacks or []), counter]}, counter


def count_cached(config: RunnableConfig, verdicts: int) -> None:
    """Tell the counters of a run of verdicts that cost nothing.

    Args:
        config: The config of the run.
        verdicts: How many.
    """
    callbacks = config.get("callbacks")
    handlers = callbacks.handlers if isinstance(callbacks, BaseCallbackManager) else callbacks
    for handler in handlers or ():
        if isinstance(handler, UsageCounter):
            handler.add_cached(verdicts)
