"""The command line, `langchain-groundedness`. Needs the extra `cli`."""

from collections.abc import Iterator, Sequence
from typing import Annotated, NoReturn

import typer

from langchain_groundedness._runtime.version import PACKAGE_VERSION
from langchain_groundedness.cli.calibrate import HELP as CALIBRATE_HELP
from langchain_groundedness.cli.calibrate import calibrate_command
from langchain_groundedness.cli.check import HELP as CHECK_HELP
from langchain_groundedness.cli.check import check
from langchain_groundedness.cli.evaluate import HELP as EVALUATE_HELP
from langchain_groundedness.cli.evaluate import evaluate_command
from langchain_groundedness.cli.export_reviews import HELP as EXPORT_HELP
from langchain_groundedness.cli.export_reviews import export_reviews
from langchain_groundedness.cli.report import HELP as REPORT_HELP
from langchain_groundedness.cli.report import report
from langchain_groundedness.cli.review import HELP as REVIEW_HELP
from langchain_groundedness.cli.review import review
from langchain_groundedness.cli.stats import HELP as STATS_HELP
from langchain_groundedness.cli.stats import stats
from langchain_groundedness.cli.validate import HELP as VALIDATE_HELP
from langchain_groundedness.cli.validate import validate_command

__all__ = ["run", "spread"]

_DONE = 0

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    rich_markup_mode=None,
)


def run(arguments: Sequence[str]) -> NoReturn:
    """Run the command line and exit with its code."""
    app(args=list(spread(arguments, "--documents")), prog_name="langchain-groundedness")
    raise SystemExit(_DONE)


def spread(arguments: Sequence[str], option: str) -> Iterator[str]:
    """Let an option take several values: `--o a b` becomes `--o a --o b`.

    The parser behind typer reads one value per option. The values end at the next argument that
    begins with a dash and is not `-` alone.
    """
    open_option = False
    for place, argument in enumerate(arguments):
        value_follows = place + 1 < len(arguments) and not _is_option(arguments[place + 1])
        if argument == option and value_follows:
            open_option = True
        elif _is_option(argument):
            open_option = argument.startswith(f"{option}=")
            yield f"{argument}=" if argument == option else argument
        elif open_option:
            yield f"{option}={argument}"
        else:
            yield argument


def _is_option(argument: str) -> bool:
    return argument.startswith("-") and argument != "-"


def _print_version(wanted: bool) -> None:  # noqa: FBT001  (as typer calls it)
    if wanted:
        typer.echo(f"langchain-groundedness {PACKAGE_VERSION or '(not installed)'}")
        raise typer.Exit(_DONE)


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
    """Tell which claims of an answer its documents really support."""


app.command(help=CHECK_HELP)(check)
app.command(help=REPORT_HELP)(report)
app.command(help=REVIEW_HELP)(review)
app.command("calibrate", help=CALIBRATE_HELP)(calibrate_command)
app.command("evaluate", help=EVALUATE_HELP)(evaluate_command)
app.command(help=STATS_HELP)(stats)
app.command(help=EXPORT_HELP)(export_reviews)
app.command("validate", help=VALIDATE_HELP)(validate_command)
