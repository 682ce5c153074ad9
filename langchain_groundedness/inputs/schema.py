"""What a check accepts: the schema that LangChain shows, and what reads it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.runnables.config import run_in_executor
from pydantic import BaseModel, Field

from langchain_groundedness._runtime.executors import computed
from langchain_groundedness.exceptions import ConfigurationError
from langchain_groundedness.inputs.formats import LABELS, CheckInput, read_input

__all__ = ["GroundednessInput", "InputReader", "reader"]


class GroundednessInput(BaseModel):
    """The plainest input; outputs of chains and agents are accepted as they are."""

    answer: str
    documents: list[Any] = Field(default_factory=list)
    """`Document`s or texts."""
    question: str | None = None
    query_class: str | None = None
    risk_tier: str | None = None
    retrieval_score: float | None = None
    """These three are for the policy."""


_PLAIN = (dict, str, BaseModel)


@dataclass(frozen=True)
class InputReader:
    """Reads the inputs of a check."""

    context_extractor: Callable[[Any], Any] | None
    given: Mapping[str, Any]

    def __call__(self, value: Any) -> CheckInput:
        """Read an input."""
        source = read_input(value, context_extractor=self.context_extractor)
        return read_input({**dict(source), **self.given}) if self.given else source

    async def aread(self, value: Any) -> CheckInput:
        """Read an input off the event loop; what is not ours may wait for something."""
        if self.context_extractor is not None or not isinstance(value, _PLAIN):
            return await run_in_executor(None, self, value)
        return await computed(0, self, value)


def reader(
    owner: str, context_extractor: Callable[[Any], Any] | None, given: Mapping[str, Any]
) -> InputReader:
    """Make what reads the inputs of a check."""
    if unknown := set(given) - {"documents", "question", *LABELS}:
        msg = (
            f"{owner} got {sorted(unknown)}; besides the input and the config it "
            f"accepts documents=, question=, {'=, '.join(LABELS)}=, for inputs that carry none"
        )
        raise ConfigurationError(msg)

    return InputReader(context_extractor, given)
