"""Cancellation and Ctrl-C among the outcomes of a batch."""

from typing import TypeVar

__all__ = ["exceptions_at_most"]

_Output = TypeVar("_Output")


def exceptions_at_most(outputs: list[_Output]) -> list[_Output]:
    """Raise a cancellation or an interrupt that came back as if it were an outcome.

    With `return_exceptions=True`, LangChain returns whatever ended a batch in the place of its
    outputs, also what must end the program or the task.

    Args:
        outputs: What a batch returned.

    Returns:
        The same, which holds no exception that is not an `Exception`.
    """
    for output in outputs:
        if isinstance(output, BaseException) and not isinstance(output, Exception):
            raise output
    return outputs
