"""The command `langchain-groundedness report`.

Exit codes: 0 done, 1 a metric is below its threshold, 2 no report could be made, 130 interrupted.
"""

from pathlib import Path
from typing import Annotated

import typer

from langchain_groundedness.cli.errors import ending
from langchain_groundedness.cli.options import numbers
from langchain_groundedness.display.terminal import printable
from langchain_groundedness.evals.run_files import load_run
from langchain_groundedness.report import check_thresholds, to_markdown, write_report

__all__ = ["HELP", "report"]

_BELOW = 1

HELP = """Write what an evaluation says: a page, Markdown, or JUnit's XML for CI.

Without -o, Markdown is printed. With --fail-under, the exit code is 1 also if rows could not be
checked, or if the run was interrupted.

\b
Examples:
  langchain-groundedness report run.jsonl -o report.html
  langchain-groundedness report now.jsonl --compare before.jsonl -o report.html
  langchain-groundedness report run.jsonl -o results.xml --fail-under faithfulness=0.8
  langchain-groundedness report run.jsonl >> "$GITHUB_STEP_SUMMARY"
"""


def report(
    run: Annotated[Path, typer.Argument(metavar="RUN.jsonl", help="What `evaluate` has written.")],
    *,
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Where it is written, as the name says: .html, .md, or .xml for JUnit. "
            "May be given more than once.",
        ),
    ] = None,
    compare: Annotated[
        Path | None,
        typer.Option(metavar="OTHER.jsonl", help="An earlier run over the same rows."),
    ] = None,
    fail_under: Annotated[
        list[str] | None,
        typer.Option(
            metavar="METRIC=LEAST",
            help="Exit with 1 if the mean of the metric is below. May be given more than once.",
        ),
    ] = None,
    max_failed: Annotated[
        int,
        typer.Option(
            min=0, help="With --fail-under: how many rows may have failed, or be unreadable."
        ),
    ] = 0,
) -> None:
    """Write reports; `HELP` tells the user the rest."""
    with ending("cannot make the report"):
        thresholds = numbers(fail_under, "--fail-under", "faithfulness=0.8")
        found = load_run(run)
        baseline = None if compare is None else load_run(compare)
        results = check_thresholds(found, thresholds, max_failed=max_failed)
        for path in output or ():
            write_report(
                found, path, baseline=baseline, fail_under=thresholds, max_failed=max_failed
            )
            typer.echo(f"written to {printable(str(path))}", err=True)
        if not output:
            typer.echo(to_markdown(found, baseline=baseline), nl=False)
        for result in results:
            sign = "✓" if result.passed else "✗"
            typer.echo(f"{sign} {printable(result.text)}", err=True)
        if not all(result.passed for result in results):
            raise typer.Exit(_BELOW)
