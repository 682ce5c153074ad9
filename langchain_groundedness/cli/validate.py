"""The command `langchain-groundedness validate`.

Exit codes: 0 every row has passed or was rejected, 1 some could not be checked or read, 2 nothing
could be validated (bad input included), 130 interrupted.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from langchain_groundedness._runtime.files import require_outputs
from langchain_groundedness.cli import options
from langchain_groundedness.cli.errors import (
    INTERRUPTED,
    each_warning_once,
    errors_in_one_line,
    refuse,
    require_json_lines,
    write_file,
)
from langchain_groundedness.display.counts import format_count
from langchain_groundedness.display.terminal import plain_table, printable
from langchain_groundedness.exceptions import require
from langchain_groundedness.types import Usage

if TYPE_CHECKING:
    from langchain_groundedness.evals import CompositeScore
    from langchain_groundedness.evals.progress import ProgressBar
    from langchain_groundedness.evals.statistics import Estimate
    from langchain_groundedness.evals.validation import SweepLine, ValidatedRow, ValidationSummary

__all__ = ["validate"]

_BAD_ROWS_SHOWN = 10


def validate(  # noqa: PLR0913  (each is an option of the command)
    *,
    data: list[str],
    passed: Annotated[Path, typer.Option()],
    rejected: Annotated[Path, typer.Option()],
    summary: Path | None = None,
    column: list[str] | None = None,
    layout: options.Layout = "rows",
    separator: str | None = None,
    limit: options.Count = None,
    model: str | None = None,
    base_url: str | None = None,
    model_timeout: options.Seconds = options.DEFAULT_TIMEOUT,
    verifier: str | None = None,
    embeddings: str | None = None,
    calibration: Path | None = None,
    accept: float = 0.75,
    reject: float = 0.5,
    min_source: float = 0.5,
    pass_score: float = 0.7,
    weight: list[str] | None = None,
    minimum: list[str] | None = None,
    on_contradicted: Literal["reject", "count"] = "reject",
    evidence: Literal["documents", "cited"] = "documents",
    resume: options.Resume = True,
    retry_unchecked: Annotated[bool, typer.Option("--retry-unchecked")] = False,
    max_concurrency: options.MaxConcurrency = 16,
    sweep: Annotated[bool, typer.Option("--sweep")] = False,
    html: Path | None = None,
    as_json: options.AsJson = False,
) -> None:
    """Split a data set into rows to train on and others.

    \b
    Examples:
      langchain-groundedness validate qa.jsonl --passed passed.jsonl --rejected rejected.jsonl
      langchain-groundedness validate qa.csv --passed p.jsonl --rejected r.jsonl \\
          --column answer=reply --column documents=sources --sweep
      langchain-groundedness validate qa.jsonl --passed p.jsonl --rejected r.jsonl \\
          --model openai:gpt-4o-mini --minimum correctness=0.5

    \b
    Stage 1 checks the claims of each answer against its documents. Stage 2, with --model, judges
    relevance, correctness and completeness of the answers that passed stage 1. Rows that could
    not be checked are rejected, with the reason. Rows are written as they are done, not in the
    order of the data set. The same command resumes where it was stopped.
    Exit code: 0 every row has passed or was rejected, 1 some could not be checked or read, 2 it
    could not be done, 130 interrupted.

    Options:
        passed (FILE.jsonl): For rows that pass.
        rejected (FILE.jsonl): For the others.
        summary (FILE.json): For the summary, options and sweep; by default beside --passed.
        model (PROVIDER:NAME): Chat model for claims that similarity leaves open, and for stage 2.
        embeddings (PROVIDER:NAME): Embeddings that measure similarity; by default the embedded
            verifier does.
        calibration (FILE): Thresholds written by `calibrate`, for --accept and --reject.
        accept (NUMBER): Similarity from which a claim is supported.
        reject (NUMBER): Similarity below which it is not.
        min_source (NUMBER): Share of claims that must be supported to pass stage 1.
        pass_score (NUMBER): Composite score from which a row passes.
        weight (SCORE=NUMBER): Weight of source, relevance, correctness or completeness; repeatable.
        minimum (SCORE=NUMBER): Least value of one score; repeatable.
        on_contradicted: Reject answers that the documents contradict, or count such claims.
        evidence: Search all documents, or only those that the answer cites.
        retry_unchecked: Try rows again that could not be checked.
        sweep: Show how many rows other thresholds would pass.
        html (FILE.html): Where to write a page of the summary.
    """  # noqa: D301  (click reads the backspace)
    from langchain_groundedness.evals import validation
    from langchain_groundedness.evals.datasets import open_dataset
    from langchain_groundedness.evals.progress import ProgressBar

    with errors_in_one_line("cannot validate"), each_warning_once():
        require_json_lines(passed, "--passed")
        require_json_lines(rejected, "--rejected")
        if html is not None:
            require("jinja2", extra="report")  # before the work
        validator = validation.AnswerValidator(
            model=options.load_model(model, base_url),
            model_timeout=model_timeout,
            verifier=verifier,
            embeddings=options.load_embeddings(embeddings),
            calibration=calibration,
            accept=accept,
            reject=reject,
            min_source=min_source,
            pass_score=pass_score,
            composite=_composite(weight, minimum, judged=model is not None),
            on_contradicted=on_contradicted,
            evidence=evidence,
        )
        columns = options.parse_pairs(column, "--column", "answer=reply")
        rows = open_dataset(data, columns=columns, layout=layout, separator=separator, limit=limit)
        summary = summary or passed.with_suffix(".summary.json")
        outputs = {"--passed": passed, "--rejected": rejected, "--summary": summary, "--html": html}
        require_outputs(outputs.items(), (calibration, *(part.name for part in rows.parts)))
        try:
            with ProgressBar(wanted=True) as bar:
                found = validation.validate(
                    rows,
                    passed=passed,
                    rejected=rejected,
                    summary=summary,
                    validator=validator,
                    fresh=not resume,
                    retry_unchecked=retry_unchecked,
                    max_concurrency=max_concurrency,
                    on_begin=partial(bar.start, "validating"),
                    on_row=partial(_show_progress, bar, Counter[str]()),
                )
        except KeyboardInterrupt:
            if (so_far := _read_summary(summary)) is not None:
                _print(so_far, sweep=sweep, as_json=as_json)
            typer.echo("interrupted; run the same command again to resume", err=True)
            raise typer.Exit(INTERRUPTED) from None
        if html is not None:
            from langchain_groundedness.report import validation_html

            write_file(html, validation_html(found))
        _print(found, sweep=sweep, as_json=as_json)
        if not as_json:
            files = ", ".join(map(str, filter(None, (passed, rejected, html))))
            typer.echo(f"written to {files} and {summary}")
            _say_next(found, passed, html)
        if found.unchecked or found.bad_rows:
            raise typer.Exit(1)


def _say_next(found: "ValidationSummary", passed: Path, html: Path | None) -> None:
    if found.unchecked:
        options.next_step("the same with --retry-unchecked, for the rows that could not be checked")
    elif html is None:
        options.next_step(
            "the same with --html {}, which shows other thresholds", passed.with_suffix(".html")
        )
    else:
        options.next_step("open {} in a browser", html)


def _composite(
    weight: Sequence[str] | None, minimum: Sequence[str] | None, *, judged: bool
) -> "CompositeScore":
    from langchain_groundedness.evals import CompositeScore
    from langchain_groundedness.evals.composite import DEFAULT_WEIGHTS
    from langchain_groundedness.evals.judged import QUALITY_DIMENSIONS

    weights = options.parse_numbers(weight, "--weight", "correctness=0.5")
    minimums = options.parse_numbers(minimum, "--minimum", "correctness=0.5")
    for option, given in (("--weight", weights), ("--minimum", minimums)):
        unmet = ", ".join(name for name in given if name in QUALITY_DIMENSIONS)
        if unmet and not judged:
            refuse(
                f"{option} {unmet} needs --model, which judges it; without one only the share of "
                "supported claims counts: --min-source, --pass-score"
            )
    return CompositeScore(weights={**DEFAULT_WEIGHTS, **weights}, minimums=minimums)


def _show_progress(bar: "ProgressBar", outcomes: Counter[str], row: "ValidatedRow") -> None:
    outcomes[row.outcome] += 1
    bar.show(outcomes.total(), Usage(), f"{outcomes['passed']} passed")


def _read_summary(path: Path) -> "ValidationSummary | None":
    """Read the summary of an interrupted run, if it wrote one."""
    from langchain_groundedness.evals.validation import ValidationSummary

    try:
        return ValidationSummary.model_validate(json.loads(path.read_text("utf-8"))["summary"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _print(found: "ValidationSummary", *, sweep: bool, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(found.model_dump(mode="json"), indent=2))
    else:
        Console().print(Group(*_parts(found, sweep=sweep)))


def _parts(found: "ValidationSummary", *, sweep: bool) -> Iterator[RenderableType]:
    from langchain_groundedness.evals.validation.summary import NAMES, REASONS

    yield _head(found)
    if found.scores:
        table = plain_table("Score", "mean", "95 %", "rows")
        for name, mean in found.scores.items():
            table.add_row(NAMES.get(name, name), f"{mean.mean:.2f}", _interval(mean), str(mean.n))
        yield table
    if found.reasons:
        table = plain_table("Not passed because", "rows")
        for code, rows in found.reasons.items():
            table.add_row(REASONS[code], str(rows))
        yield table
    if (agreed := found.agreement) is not None and agreed.rows:
        shares = {
            "balanced accuracy": agreed.balanced_accuracy,
            "F1": agreed.f1,
            "kappa": agreed.kappa,
        }
        figures = ", ".join(
            f"{name} {each:.2f}" for name, each in shares.items() if each is not None
        )
        words = figures or "only one kind of them"
        yield Text(f"against {format_count(agreed.rows, 'label')}: {words}")
    if sweep:
        yield _sweep(found.sweep)
    yield from _notes(found)


def _head(found: "ValidationSummary") -> Text:
    rate = "" if found.pass_rate is None else f" ({found.pass_rate:.1%})"
    head = Text(f"{found.passed:,} of {format_count(found.total)} passed{rate}", style="bold")
    head.append(f", {found.rejected} rejected")
    if found.unchecked:
        head.append(f", {found.unchecked} could not be checked", style="magenta")
    if found.bad_rows:
        head.append(f", {len(found.bad_rows)} could not be read", style="red")
    return head


def _interval(mean: "Estimate") -> str:
    return "-" if mean.low is None or mean.high is None else f"{mean.low:.2f} to {mean.high:.2f}"


def _sweep(lines: "Sequence[SweepLine]") -> Table:
    from langchain_groundedness.evals.validation.summary import NAMES

    labelled = any(line.precision is not None for line in lines)
    heads = ["Threshold", "passed", "rate", "unknown"]
    table = plain_table(*heads, *(["precision", "recall"] if labelled else []))
    before = None
    for alike in (list(same) for _, same in groupby(lines, _without_threshold)):
        line = alike[0]
        if before not in (None, line.option):
            table.add_section()
        before = line.option
        last = "" if len(alike) == 1 else f" to {alike[-1].value:.2f}"
        cells = [
            f"{NAMES[line.option]} {line.value:.2f}{last}" + (" *" if line.is_current else ""),
            str(line.passed),
            _share(line.pass_rate),
            str(line.unknown) if line.unknown else "",
        ]
        cells += [_share(line.precision), _share(line.recall)] if labelled else []
        table.add_row(*cells, style="bold" if line.is_current else None)
    table.caption = "* in force; unknown: these rows would have to be judged again"
    return table


def _without_threshold(line: "SweepLine") -> tuple[Any, ...]:
    return (line.option, line.is_current, *tuple(dict(line).values())[3:])


def _share(share: float | None) -> str:
    return "-" if share is None else f"{share:.2f}"


def _notes(found: "ValidationSummary") -> Iterator[Text]:
    for bad in found.bad_rows[:_BAD_ROWS_SHOWN]:
        where = f"row {bad.id}" if bad.line is None else f"line {bad.line}"
        yield Text(f"not read: {where}: {printable(bad.reason)}", style="red")
    if len(found.bad_rows) > _BAD_ROWS_SHOWN:
        yield Text(f"and {len(found.bad_rows) - _BAD_ROWS_SHOWN} more", style="red")
    for note in found.notes:
        yield Text(printable(note), style="dim")
    if found.resumed:
        yield Text(f"{format_count(found.resumed)} already there, not validated again")
    if found.elsewhere:
        yield Text(
            f"not in the data set, but in the files: {format_count(found.elsewhere)}",
            style="yellow",
        )
    if not found.complete:
        yield Text("not complete: run the same command again to resume", style="yellow")
