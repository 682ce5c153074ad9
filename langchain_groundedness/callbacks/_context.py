"""What keeps the checks of a handler apart from the chain that it watches."""

from contextvars import Context, ContextVar, copy_context
from typing import Any

from langchain_core.runnables.config import var_child_runnable_config

__all__ = ["CHECK_TAG", "apart", "collecting"]

CHECK_TAG = "groundedness:check"
"""Tag of every run of a check that a handler has started."""

collecting: ContextVar[Any] = ContextVar("groundedness_collecting", default=None)
"""The handler of the `collect_groundedness` block that the code runs in."""


def apart() -> Context:
    """Copy the context, without what ties new runs to the chain that is watched.

    Returns:
        A context to run a check in. What users keep in variables of their own is in it.
    """
    context = copy_context()
    context.run(var_child_runnable_config.set, None)
    context.run(collecting.set, None)
    return context
