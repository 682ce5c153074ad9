"""Write docs/reference/command_line.md from the commands: `python .ci/command_help.py`."""

from pathlib import Path

from typer.main import get_command
from typer.testing import CliRunner

from langchain_groundedness.cli import app

__all__ = ["PAGE", "help_page"]

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "command_line.md"
_PROGRAM = "langchain-groundedness"
_INTRODUCTION = """# Command line

Install with `pip install 'langchain-groundedness[cli]'`. This page shows the `--help` of each
command; the [guide](../guide/command_line.md) has examples.
"""


def help_page() -> str:
    """Let each command say its help.

    Returns:
        The page, in Markdown.
    """
    commands = get_command(app).commands
    parts = [_help(), *(_help(name) for name in sorted(commands))]
    return "\n".join((_INTRODUCTION, *parts))


def _help(*command: str) -> str:
    runner = CliRunner(env={"COLUMNS": "80", "TERM": "dumb", "NO_COLOR": "1"})
    said = runner.invoke(app, [*command, "--help"], prog_name=_PROGRAM, terminal_width=80)
    title = " ".join(command) or _PROGRAM
    return f"## {title}\n\n```text\n{said.output.strip()}\n```\n"


if __name__ == "__main__":
    PAGE.write_text(help_page(), encoding="utf-8")
