"""What the commands say when they cannot do what they are asked: one line."""

from pydantic import ValidationError

from langchain_groundedness.exceptions import GroundednessError

__all__ = ["CannotCheckError", "one_line"]


class CannotCheckError(Exception):
    """The check cannot run; the message is one line for the user."""


def one_line(error: Exception) -> str:
    """Say in one line what went wrong.

    Args:
        error: Any error.

    Returns:
        The line, without values that a user did not mean to show.
    """
    if isinstance(error, CannotCheckError | GroundednessError):
        text = str(error)
    elif isinstance(error, ValidationError):  # its own text repeats the values, keys among them
        text = "; ".join(
            f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors()
        )
    else:
        text = f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}".removesuffix(
            ": "
        )
    return " ".join(text.split())
