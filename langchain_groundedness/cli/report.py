"""The command `langchain-groundedness report`.

Exit codes: 0 done, 1 a metric is below its threshold, 2 no report could be made, 130 interrupted.
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from langchain_groundedness._runtime.files import require_outputs
from langchain_groundedness.cli import options
from langchain_groundedness.cli.errors import errors_in_one_line
from langchain_groundedness.display.terminal import printable

if TYPE_CHECKING:
    from langchain_groundedness.evals.values import EvaluationRun

__all__ = ["report"]


def report(  # noqa: PLR0913  (each is an option of the command)
    run: Path,
    *,
    output: Annotated[list[Path] | None, typer.Option("--output", "-o")] = None,
    compare: Path | None = None,
    fail_under: list[str] | None = None,
    max_failed: options.MaxFailed = 0,
    as_json: options.AsJson = False,
) -> None:
    """Report an evaluation as HTML, Markdown or JUnit XML.

    Without -o, prints Markdown. With --fail-under, the exit code is also 1 if rows could not be
    checked or the run was interrupted.

    \b
    Examples:
      langchain-groundedness report run.jsonl -o report.html
      langchain-groundedness report now.jsonl --compare before.jsonl -o report.html
      langchain-groundedness report run.jsonl -o results.xml --fail-under faithfulness=0.8
      langchain-groundedness report run.jsonl >> "$GITHUB_STEP_SUMMARY"

    Options:
        run (RUN.jsonl): Run written by `evaluate`.
        output (FILE): Where to write it: .html, .md, or .xml for JUnit; repeatable.
        compare (OTHER.jsonl): Earlier run over the same rows.
    """  # noqa: D301  (click reads the backspace)
    from langchain_groundedness.evals.run_files import load_run
    from langchain_groundedness.report import check_thresholds, figures, to_markdown, write_report

    with errors_in_one_line("cannot make the report"):
        thresholds = options.parse_numbers(fail_under, "--fail-under", "faithfulness=0.8")
        found = load_run(run)
        baseline = None if compare is None else load_run(compare)
        require_outputs((("--output", path) for path in output or ()), (run, compare))
        for path in output or ():
            figures.format_of(path)  # before anything is written
        results = check_thresholds(found, thresholds, max_failed=max_failed)
        for path in output or ():
            write_report(
                found, path, baseline=baseline, fail_under=thresholds, max_failed=max_failed
            )
            typer.echo(f"written to {printable(str(path))}", err=True)
        if as_json:
            reached = [result._asdict() for result in results]
            shown = {**_as_plain(found, baseline), "thresholds": reached}
            typer.echo(json.dumps(shown, indent=2))
        elif not output:
            typer.echo(to_markdown(found, baseline=baseline), nl=False)
        elif pages := [path for path in output if path.suffix.lower() == ".html"]:
            options.next_step("open {} in a browser", pages[0], err=True)
        for result in results:
            sign = "✓" if result.passed else "✗"
            typer.echo(f"{sign} {printable(result.text)}", err=True)
        if not all(result.passed for result in results):
            raise typer.Exit(1)


def _as_plain(found: "EvaluationRun", baseline: "EvaluationRun | None") -> dict[str, Any]:
    from langchain_groundedness.evals.values import summarize
    from langchain_groundedness.report import figures

    claims, answers = figures.verdicts_of(found)
    compared = figures.compare(found, baseline).metrics if baseline else ()
    return {
        "name": found.header.name,
        **summarize(found),
        "claims": claims,
        "answers": answers,
        "changes": {each.key: each.found.model_dump(mode="json") for each in compared},
    }
