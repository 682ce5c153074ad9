"""The command `langchain-groundedness validate`.

Exit codes: 0 every row has passed or was rejected, 1 some could not be checked or read, 2 nothing
could be validated (bad input included), 130 interrupted.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from langchain_core.embeddings import Embeddings
from rich import box
from rich.console import Console, Group, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from langchain_groundedness.cli.errors import (
    INTERRUPTED,
    CannotCheckError,
    each_warning_once,
    ending,
    one_line,
    require_json_lines,
)
from langchain_groundedness.cli.options import (
    AsJson,
    BaseUrl,
    Layout,
    MaxConcurrency,
    ModelTimeout,
    Separator,
    load_model,
    numbers,
    pairs,
)
from langchain_groundedness.display.terminal import printable
from langchain_groundedness.evals import CompositeScore
from langchain_groundedness.evals.judged import QUALITY_DIMENSIONS
from langchain_groundedness.evals.composite import DEFAULT_WEIGHTS
from langchain_groundedness.evals.datasets import open_dataset
from langchain_groundedness.evals.statistics import Estimate
from langchain_groundedness.evals.validation import (
    AnswerValidator,
    SweepLine,
    ValidatedRow,
    ValidationSummary,
    validate,
)
from langchain_groundedness.exceptions import GroundednessError, require
from langchain_groundedness.llm.timeouts import PATIENCE

__all__ = ["HELP", "validate_command"]

SOME_UNCHECKED = 1

HELP = """Part a data set in two: rows that may be learnt from, and rows that may not.

\b
Examples:
  langchain-groundedness validate qa.jsonl --passed passed.jsonl --rejected rejected.jsonl
  langchain-groundedness validate qa.csv --passed p.jsonl --rejected r.jsonl \\
      --column answer=reply --column documents=sources --sweep
  langchain-groundedness validate qa.jsonl --passed p.jsonl --rejected r.jsonl \\
      --model openai:gpt-4o-mini --minimum correctness=0.5

\b
Stage 1 looks for the claims of each answer in its documents. Stage 2, with --model, judges
relevance, correctness and completeness of the answers that passed the first. Rows that could not
be checked go to the rejected ones, with the reason. Rows are written as they are done, which may
not be the order of the data set. The same command goes on where it was stopped.
Exit code: 0 every row has passed or was rejected, 1 some could not be checked or read, 2 it could
not be done, 130 interrupted.
"""


def validate_command(  # noqa: PLR0913  (each is an option of the command)
    *,
    data: Annotated[
        list[str],
        typer.Argument(metavar="IN...", help="Files or folders: question, answer, contexts."),
    ],
    passed: Annotated[Path, typer.Option(metavar="FILE.jsonl", help="For rows that pass.")],
    rejected: Annotated[Path, typer.Option(metavar="FILE.jsonl", help="For the others.")],
    summary: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.json",
            help="For the summary, options and sweep; by default beside --passed.",
        ),
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PART=NAME",
            help="Column of question, answer, documents, label or id, where its name does not say.",
        ),
    ] = None,
    layout: Layout = "rows",
    separator: Separator = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Validate this many rows only, the first ones.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="PROVIDER:NAME",
            help="Chat model for what similarity leaves open, and for stage 2.",
        ),
    ] = None,
    base_url: BaseUrl = None,
    model_timeout: ModelTimeout = PATIENCE,
    embeddings: Annotated[
        str | None,
        typer.Option(
            metavar="PROVIDER:NAME",
            help="Embeddings that give the similarity; without them, the embedded verifier does.",
        ),
    ] = None,
    calibration: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Thresholds that `calibrate` has written, for --accept and --reject.",
        ),
    ] = None,
    accept: Annotated[
        float, typer.Option(help="Similarity from which a claim is supported.")
    ] = 0.75,
    reject: Annotated[float, typer.Option(help="Similarity below which it is not.")] = 0.5,
    min_source: Annotated[
        float, typer.Option(help="Share of claims to be supported to pass stage 1.")
    ] = 0.5,
    pass_score: Annotated[float, typer.Option(help="Composite score from which a row passes.")] = (
        0.7
    ),
    weight: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SCORE=NUMBER", help="Of source, relevance, correctness, completeness."
        ),
    ] = None,
    minimum: Annotated[
        list[str] | None, typer.Option(metavar="SCORE=NUMBER", help="Least value of one score.")
    ] = None,
    on_contradicted: Annotated[
        Literal["reject", "count"],
        typer.Option(help="Reject answers that the documents contradict, or count such claims."),
    ] = "reject",
    evidence: Annotated[
        Literal["documents", "cited"],
        typer.Option(help="Look in all documents, or only in those that the answer cites."),
    ] = "documents",
    resume: Annotated[
        bool, typer.Option("--resume/--fresh", help="Go on with the files, or begin them anew.")
    ] = True,
    retry_unchecked: Annotated[
        bool, typer.Option("--retry-unchecked", help="Try rows again that could not be checked.")
    ] = False,
    max_concurrency: MaxConcurrency = 16,
    sweep: Annotated[
        bool, typer.Option("--sweep", help="Show what other thresholds would let pass.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Validate; `HELP` tells the user the rest."""
    with ending("cannot validate"), each_warning_once():
        require_json_lines(passed, "--passed")
        require_json_lines(rejected, "--rejected")
        composite = _composite(weight, minimum, judged=model is not None)
        validator = AnswerValidator(
            model=load_model(model, base_url),
            model_timeout=model_timeout,
            embeddings=_load_embeddings(embeddings),
            calibration=calibration,
            accept=accept,
            reject=reject,
            min_source=min_source,
            pass_score=pass_score,
            composite=composite,
            on_contradicted=on_contradicted,
            evidence=evidence,
        )
        columns = pairs(column, "--column", "answer=reply")
        rows = open_dataset(data, columns=columns, layout=layout, separator=separator, limit=limit)
        told = summary or passed.with_suffix(".summary.json")
        try:
            with _progress() as shown:
                found = validate(
                    rows,
                    passed=passed,
                    rejected=rejected,
                    summary=told,
                    validator=validator,
                    fresh=not resume,
                    retry_unchecked=retry_unchecked,
                    max_concurrency=max_concurrency,
                    on_begin=shown.begin,
                    on_row=shown.advance,
                )
        except KeyboardInterrupt:
            _print(_interrupted(told), sweep=sweep, as_json=as_json)
            typer.echo("interrupted; the same command goes on from here", err=True)
            raise typer.Exit(INTERRUPTED) from None
        _print(found, sweep=sweep, as_json=as_json)
        if not as_json:
            typer.echo(f"written to {passed}, {rejected} and {told}")
        if found.unchecked or found.bad_rows:
            raise typer.Exit(SOME_UNCHECKED)


class _Shown:
    """A bar on stderr, if that is a terminal."""

    def __init__(self, bar: Progress) -> None:
        self._bar = bar
        self._task = bar.add_task("validating", total=None)
        self._passed = 0

    def begin(self, rows: int) -> None:
        self._bar.update(self._task, total=rows)

    def advance(self, row: ValidatedRow) -> None:
        self._passed += row.outcome == "passed"
        self._bar.update(self._task, advance=1, description=f"{self._passed} passed")


@contextmanager
def _progress() -> Iterator[_Shown]:
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    bar = Progress(
        *columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal
    )
    with bar:
        yield _Shown(bar)


def _print(found: ValidationSummary | None, *, sweep: bool, as_json: bool) -> None:
    if found is None:
        return
    if as_json:
        typer.echo(json.dumps(found.model_dump(mode="json"), indent=2))
    else:
        Console().print(render_validation(found, sweep=sweep))


def _interrupted(path: Path) -> ValidationSummary | None:
    """Read the summary of a run that was interrupted, if it got so far."""
    try:
        return ValidationSummary.model_validate(json.loads(path.read_text("utf-8"))["summary"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _composite(
    weight: Sequence[str] | None, minimum: Sequence[str] | None, *, judged: bool
) -> CompositeScore:
    weights = numbers(weight, "--weight", "correctness=0.5")
    minimums = numbers(minimum, "--minimum", "correctness=0.5")
    for option, given in (("--weight", weights), ("--minimum", minimums)):
        if not judged and (
            unmet := ", ".join(name for name in given if name in QUALITY_DIMENSIONS)
        ):
            msg = (
                f"{option} {unmet} needs --model, which judges it; without one only the share of "
                "supported claims counts: --min-source, --pass-score"
            )
            raise CannotCheckError(msg)
    return CompositeScore(weights={**DEFAULT_WEIGHTS, **weights}, minimums=minimums)


def _load_embeddings(name: str | None) -> Embeddings | None:
    if name is None:
        return None
    init = require("langchain.embeddings", extra="agents").init_embeddings
    try:
        made: Embeddings = init(name)
    except GroundednessError:
        raise
    except Exception as error:
        msg = f"embeddings {name}: {one_line(error)}"
        raise CannotCheckError(msg) from error
    return made


_SHOWN = 10

_CURRENT = "bold"

_REASONS = {
    "contradicted": "the documents contradict a claim",
    "source": "too few claims are supported",
    "minimum": "a score is below its minimum",
    "composite": "the composite score is too low",
    "no_answer": "no answer",
    "no_documents": "no documents",
    "no_claims": "no claim to check",
    "not_cited": "what the answer cites is not there",
    "claims_unchecked": "a claim could not be checked",
    "quality_unchecked": "the quality could not be judged",
    "failed": "the validation failed",
}


def render_validation(found: ValidationSummary, *, sweep: bool = False) -> RenderableType:
    """Lay out a validation for `rich.console.Console.print`."""
    return Group(*_parts(found, sweep=sweep))


def _parts(found: ValidationSummary, *, sweep: bool) -> Iterator[RenderableType]:
    yield _head(found)
    if found.scores:
        yield _scores(found)
    if found.reasons:
        yield _reasons(found)
    if found.agreement is not None and found.agreement.rows:
        yield _agreement(found)
    if sweep:
        yield _sweep(found.sweep)
    yield from _notes(found)


def _head(found: ValidationSummary) -> Text:
    rate = "" if found.pass_rate is None else f" ({found.pass_rate:.1%})"
    head = Text(f"{found.passed} of {found.total} rows passed{rate}", style="bold")
    head.append(f", {found.rejected} rejected")
    if found.unchecked:
        head.append(f", {found.unchecked} could not be checked", style="magenta")
    if found.bad_rows:
        head.append(f", {len(found.bad_rows)} could not be read", style="red")
    return head


def _scores(found: ValidationSummary) -> Table:
    table = _plain("Score", "mean", "95 %", "rows")
    for name, mean in found.scores.items():
        table.add_row(name, f"{mean.mean:.2f}", _ends(mean), str(mean.n))
    return table


def _ends(mean: Estimate) -> str:
    return "-" if mean.low is None or mean.high is None else f"{mean.low:.2f} to {mean.high:.2f}"


def _reasons(found: ValidationSummary) -> Table:
    table = _plain("Not passed because", "rows")
    for code, rows in found.reasons.items():
        table.add_row(_REASONS.get(code, code), str(rows))
    return table


def _agreement(found: ValidationSummary) -> Text:
    agreed = found.agreement
    assert agreed is not None  # noqa: S101  (asked before)
    shares = (
        ("balanced accuracy", agreed.balanced_accuracy),
        ("F1", agreed.f1),
        ("kappa", agreed.kappa),
    )
    told = ", ".join(f"{name} {share:.2f}" for name, share in shares if share is not None)
    return Text(f"against {agreed.rows} labels: {told or 'only one kind of them'}")


def _sweep(lines: tuple[SweepLine, ...]) -> Table:
    labelled = any(line.precision is not None for line in lines)
    heads = ["Threshold", "passed", "rate", "unknown"]
    table = _plain(*heads, *(["precision", "recall"] if labelled else []))
    before = None
    for alike in (list(same) for _, same in groupby(lines, _told)):
        line = alike[0]
        if before not in (None, line.option):
            table.add_section()
        before = line.option
        last = "" if len(alike) == 1 else f" to {alike[-1].value:.2f}"
        cells = [
            f"{line.option} {line.value:.2f}{last}" + (" *" if line.is_current else ""),
            str(line.passed),
            _share(line.pass_rate),
            str(line.unknown) if line.unknown else "",
        ]
        cells += [_share(line.precision), _share(line.recall)] if labelled else []
        table.add_row(*cells, style=_CURRENT if line.is_current else None)
    table.caption = "* in force; unknown: these rows would have to be judged again"
    return table


def _told(line: SweepLine) -> tuple[Any, ...]:
    """Give what a line tells but for its threshold; the one in force has a line of its own."""
    return (line.option, line.is_current, *tuple(dict(line).values())[3:])


def _share(share: float | None) -> str:
    return "-" if share is None else f"{share:.2f}"


def _notes(found: ValidationSummary) -> Iterator[Text]:
    for bad in found.bad_rows[:_SHOWN]:
        where = f"row {bad.id}" if bad.line is None else f"line {bad.line}"
        yield Text(f"not read: {where}: {printable(bad.reason)}", style="red")
    if len(found.bad_rows) > _SHOWN:
        yield Text(f"and {len(found.bad_rows) - _SHOWN} more", style="red")
    for note in found.notes:
        yield Text(printable(note), style="dim")
    if found.resumed:
        yield Text(f"{found.resumed} rows stood there already, and were not paid for again")
    if found.elsewhere:
        yield Text(f"{found.elsewhere} rows in the files are not in the data set", style="yellow")
    if not found.complete:
        yield Text("not complete: the same command goes on from here", style="yellow")


def _plain(*heads: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
    for place, head in enumerate(heads):
        table.add_column(head, justify="right" if place else "left")
    return table
