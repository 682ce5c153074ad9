"""Counts the model calls and tokens of one check."""

from threading import Lock
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler, BaseCallbackManager
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, LLMResult
from langchain_core.runnables import RunnableConfig
from typing_extensions import override

from langchain_groundedness.types import Usage

__all__ = ["UsageCounter", "count_cached", "with_usage_counter"]


class UsageCounter(BaseCallbackHandler):
    """A callback handler that adds up the calls and tokens of all model runs of one check."""

    # Adding numbers is cheaper than the thread that a sync handler gets in an async run.
    run_inline = True
    ignore_chain = True
    ignore_retriever = True
    ignore_agent = True
    ignore_custom_event = True

    def __init__(self) -> None:
        """Start at zero."""
        self._lock = Lock()
        self._usage = Usage()

    @property
    def usage(self) -> Usage:
        """The usage counted so far."""
        return self._usage

    @override
    def on_chat_model_start(
        self, serialized: dict[str, Any], messages: list[list[BaseMessage]], **kwargs: Any
    ) -> None:
        self._add(model_calls=1)

    @override
    def on_llm_start(self, serialized: dict[str, Any], prompts: list[str], **kwargs: Any) -> None:
        self._add(model_calls=1)

    @override
    def on_llm_end(self, response: LLMResult, **kwargs: Any) -> None:
        messages = [
            generation.message
            for choices in response.generations
            for generation in choices[:1]
            if isinstance(generation, ChatGeneration)
        ]
        counts = [m.usage_metadata for m in messages if isinstance(m, AIMessage)]
        for count in filter(None, counts):
            self._add(input_tokens=count["input_tokens"], output_tokens=count["output_tokens"])

    def add_cached(self, verdicts: int) -> None:
        """Count verdicts that came from a cache."""
        self._add(cached_verdicts=verdicts)

    def _add(self, **numbers: int) -> None:
        with self._lock:
            sums = {name: (getattr(self._usage, name) or 0) + n for name, n in numbers.items()}
            self._usage = self._usage.model_copy(update=sums)


def with_usage_counter(config: RunnableConfig) -> tuple[RunnableConfig, UsageCounter]:
    """Attach a usage counter to a config; return both."""
    counter = UsageCounter()
    callbacks = config.get("callbacks")
    if isinstance(callbacks, BaseCallbackManager):
        manager = callbacks.copy()
        manager.add_handler(counter)
        return {**config, "callbacks": manager}, counter
    return {**config, "callbacks": [*(callbacks or []), counter]}, counter


def count_cached(config: RunnableConfig, verdicts: int) -> None:
    """Report cached verdicts to the usage counters of a config."""
    callbacks = config.get("callbacks")
    handlers = callbacks.handlers if isinstance(callbacks, BaseCallbackManager) else callbacks
    for handler in handlers or ():
        if isinstance(handler, UsageCounter):
            handler.add_cached(verdicts)
