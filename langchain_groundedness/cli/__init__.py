"""The command line, `langchain-groundedness`. Needs the extra `cli`."""

from collections.abc import Iterator, Sequence
from typing import Annotated, NoReturn

import typer

from langchain_groundedness._runtime.installed import PACKAGE_VERSION
from langchain_groundedness.cli import (
    calibrate,
    check,
    evaluate,
    export_reviews,
    report,
    review,
    stats,
    validate,
)

__all__ = ["app", "repeat_option", "run"]

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    rich_markup_mode=None,
)


def run(arguments: Sequence[str]) -> NoReturn:
    """Run the command line and exit with its code."""
    app(args=list(repeat_option(arguments, "--documents")), prog_name="langchain-groundedness")
    raise SystemExit(0)


def repeat_option(arguments: Sequence[str], option: str) -> Iterator[str]:
    """Let an option take several values: `--o a b` becomes `--o=a --o=b`.

    The parser behind typer reads one value per option. The values end at the next argument that
    begins with a dash and is not `-` alone.
    """
    takes_values = False
    for place, argument in enumerate(arguments):
        value_follows = place + 1 < len(arguments) and not _is_option(arguments[place + 1])
        if argument == option and value_follows:
            takes_values = True
        elif _is_option(argument):
            takes_values = argument.startswith(f"{option}=")
            yield f"{argument}=" if argument == option else argument
        elif takes_values:
            yield f"{option}={argument}"
        else:
            yield argument


def _is_option(argument: str) -> bool:
    return argument.startswith("-") and argument != "-"


def _print_version(wanted: bool) -> None:  # noqa: FBT001  (as typer calls it)
    if wanted:
        typer.echo(f"langchain-groundedness {PACKAGE_VERSION or '(not installed)'}")
        raise typer.Exit


@app.callback()
def _program(
    *,
    _: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_print_version, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Check which claims of an answer its documents support."""


for command in (
    check.check,
    report.report,
    review.review,
    calibrate.calibrate,
    evaluate.evaluate,
    stats.stats,
    export_reviews.export_reviews,
    validate.validate,
):
    app.command()(command)
