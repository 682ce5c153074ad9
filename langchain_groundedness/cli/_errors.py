"""What the commands say when they cannot do what they are asked: one line."""

from collections.abc import Iterator
from contextlib import contextmanager

import typer
from pydantic import ValidationError

from langchain_groundedness.exceptions import GroundednessError
from langchain_groundedness.terminal import printable

__all__ = ["CannotCheckError", "ending", "one_line"]

CANNOT, INTERRUPTED = 2, 130


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


@contextmanager
def ending(what: str) -> Iterator[None]:
    """End a command that fails with one line for the user.

    Args:
        what: What the command cannot do then.

    Yields:
        Nothing.

    Raises:
        Exit: Something went wrong: 2; or the user has interrupted it: 130.
    """
    try:
        yield
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except (typer.Exit, typer.Abort):
        raise
    except Exception as error:  # noqa: BLE001  (the reader wants a line, not a traceback)
        typer.echo(f"{what}: {printable(one_line(error))}", err=True)
        raise typer.Exit(CANNOT) from None
