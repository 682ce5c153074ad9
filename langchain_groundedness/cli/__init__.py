"""The command line, `langchain-groundedness`.

A command is loaded when it is called: help, version and completion load none. Its docstring is its
help; under `Options:` it says what each of its own options means, and with which placeholder. The
docstring of `options` says it of those that several commands share.
"""

import re
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from inspect import cleandoc
from io import TextIOWrapper
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command
from typing_extensions import override

__all__ = ["COMMANDS", "app", "repeat_option", "run"]

COMMANDS = {
    "Check answers": {
        "demo": "Watch a scripted answer being checked, claim by claim.",
        "check": "Check an answer claim by claim against its documents.",
        "serve": "Ask about documents in the browser, with each claim checked.",
    },
    "Evaluate data sets": {
        "evaluate": "Score every row of a data set.",
        "validate": "Split a data set into rows to train on and others.",
        "report": "Report an evaluation as HTML, Markdown or JUnit XML.",
    },
    "Learn from production": {
        "calibrate": "Choose thresholds on labelled data.",
        "stats": "Show the figures of an audit log.",
        "review": "Serve a page where people decide about doubtful answers.",
        "export-reviews": "Write reviewed answers as evaluation data.",
    },
}
"""The commands in the order of work, each with what it does. A command is the function of its name
in the module of its name."""

_LINES = {name: line for group in COMMANDS.values() for name, line in group.items()}
_LOOK: dict[str, Any] = {"pretty_exceptions_enable": False, "rich_markup_mode": None}
_OPTION = re.compile(r"^    (\w+)(?: \((\S+)\))?: (.+(?:\n {8}.+)*)", re.MULTILINE)


class _Commands(TyperGroup):
    """Loads commands when they are called, and lists them in groups."""

    _completing_names = False

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = {name: TyperCommand(name, help=line) for name, line in _LINES.items()}

    @override
    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        known = super().get_command(ctx, cmd_name)
        if known is None or self._completing_names:
            return known
        name = cmd_name.replace("-", "_")
        function = getattr(import_module(f"{__name__}.{name}"), name)
        shown, _, own = cleandoc(function.__doc__ or "").partition("\n\nOptions:\n")
        alone = typer.Typer(add_completion=False, **_LOOK)
        alone.command(cmd_name, help=shown)(function)
        command: Any = get_command(alone)
        shared = import_module(f"{__name__}.options").__doc__
        said = {option: words for option, *words in _OPTION.findall(f"{shared}\n{own}")}
        for option in command.params:
            placeholder, text = said.get(option.name, ("", ""))  # python -OO has no docstrings
            option.metavar, option.help = placeholder or None, " ".join(text.split())
        return command

    @override
    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        self._completing_names = True
        return super().shell_complete(ctx, incomplete)

    @override
    def format_commands(self, ctx: Any, formatter: Any) -> None:
        for title, commands in COMMANDS.items():
            with formatter.section(title):
                width = max(map(len, _LINES))
                formatter.write_dl([(name.ljust(width), line) for name, line in commands.items()])


app = typer.Typer(cls=_Commands, no_args_is_help=True, **_LOOK)


def run(arguments: Sequence[str]) -> NoReturn:
    """Run the command line and exit with its code."""
    if isinstance(sys.stdout, TextIOWrapper):  # not every encoding has every sign
        sys.stdout.reconfigure(errors="replace")
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
        installed = import_module("langchain_groundedness._runtime.installed")
        typer.echo(f"langchain-groundedness {installed.PACKAGE_VERSION or '(not installed)'}")
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
    """Check which claims of an answer its documents support.

    \b
    Examples:
      langchain-groundedness check answer.txt report.md
      langchain-groundedness evaluate answers.jsonl --metric faithfulness -o run.jsonl
      langchain-groundedness report run.jsonl -o report.html

    "langchain-groundedness COMMAND --help" has the options of a command, and examples.
    """  # noqa: D301  (click reads the backspace)
