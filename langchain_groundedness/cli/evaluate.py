"""The command `langchain-groundedness evaluate`.

Exit codes: 0 all rows are done, 1 a metric is below what `--fail-under` asks for, 2 it could not
be done, 130 interrupted; what was done by then is in the run file.
"""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import Console, Group, RenderableType
from rich.text import Text

from langchain_groundedness._runtime.files import require_outputs
from langchain_groundedness.cli import options
from langchain_groundedness.cli.errors import (
    INTERRUPTED,
    each_warning_once,
    errors_in_one_line,
    refuse,
    require_json_lines,
)
from langchain_groundedness.display.counts import format_count, is_or_are
from langchain_groundedness.display.terminal import plain_table, printable

if TYPE_CHECKING:
    from langchain_groundedness.evals.evaluation import Evaluation
    from langchain_groundedness.evals.evaluator import Evaluator
    from langchain_groundedness.evals.progress import Price
    from langchain_groundedness.evals.ray_engine import RayEngine

__all__ = ["evaluate"]

_BAD_ROWS_SHOWN = 5
_REASONS_SHOWN = 3
_LONGEST_REASON = 300


def evaluate(  # noqa: PLR0913  (each is an option of the command)
    *,
    data: list[str],
    metric: Annotated[list[str], typer.Option()],
    out: Annotated[Path, typer.Option("--out", "-o")],
    model: str | None = None,
    base_url: str | None = None,
    model_timeout: options.Seconds = options.DEFAULT_TIMEOUT,
    verifier: str | None = None,
    embeddings: str | None = None,
    calibration: Path | None = None,
    column: list[str] | None = None,
    layout: options.Layout = "rows",
    separator: str | None = None,
    limit: options.Count = None,
    max_concurrency: options.MaxConcurrency = 16,
    resume: options.Resume = True,
    retry_failed: Annotated[bool, typer.Option("--retry-failed")] = False,
    cache: Path | None = None,
    price: str | None = None,
    engine: Literal["local", "ray"] = "local",
    workers: options.Count = None,
    address: str | None = None,
    parquet: str | None = None,
    name: str | None = None,
    fail_under: list[str] | None = None,
    max_failed: options.MaxFailed = 0,
    as_json: options.AsJson = False,
) -> None:
    """Score every row of a data set. Rows and scores are written into a run file.

    \b
    Examples:
      langchain-groundedness evaluate answers.jsonl --metric faithfulness -o run.jsonl
      langchain-groundedness evaluate answers.csv --metric faithfulness --metric context_recall \\
          --column answer=reply --column documents=passages -o run.jsonl \\
          --fail-under faithfulness=0.8
      langchain-groundedness evaluate claims/ --format claims --metric faithfulness -o run.jsonl

    \b
    Data sets: .jsonl, .json, .csv, .tsv (each also .gz), .parquet, or a folder of these. Columns
    are found by their names: question, answer, contexts, reference, label, id and the like.

    \b
    The same command resumes a run that was interrupted or killed; --fresh starts over.
    Exit code: 0 done, 1 below --fail-under, 2 cannot be done, 130 interrupted.

    Options:
        metric (NAME): What to measure; repeatable: faithfulness, context_relevance,
            answer_quality, factual_correctness, answer_correctness, context_recall,
            context_precision, citations, bleu, chrf, rouge.
        out (RUN.jsonl): Where to write the run.
        embeddings (PROVIDER:NAME): Embeddings for answer_correctness, which needs them.
        retry_failed: When resuming, try failed rows again.
        cache (FOLDER): Folder of scores that several runs share.
        price (IN,OUT): Price of a million prompt and reply tokens.
        engine: Evaluate in this process, or in several on one or many machines with Ray;
            --max-concurrency counts per process.
        workers (N): Processes, with --engine ray; by default one.
        address (HOST:PORT): A running Ray cluster; auto for this machine's. By default processes
            start here.
        parquet (URL): Also write rows and scores as Parquet: a path or s3://…
        name (NAME): Name of the run.
    """  # noqa: D301  (click reads the backspace)
    from langchain_groundedness.evals.datasets import open_dataset
    from langchain_groundedness.evals.evaluation import Evaluation
    from langchain_groundedness.evals.ray_engine import make_engine
    from langchain_groundedness.evals.run_files import save_parquet
    from langchain_groundedness.verification.by_name import named_verifier

    with errors_in_one_line("cannot evaluate"), each_warning_once():
        require_json_lines(out, "--out")
        least = _parse_fail_under(fail_under or (), metric)
        paid = None if price is None else _price(price)
        ray = make_engine(engine, workers, address, max_concurrency)
        columns = options.parse_pairs(column, "--column", "answer=my_column")
        rows = open_dataset(data, columns=columns, layout=layout, separator=separator, limit=limit)
        inputs = (calibration, *(part.name for part in rows.parts))
        require_outputs([("--out", out), ("--parquet", parquet)], inputs)
        evaluation = Evaluation(
            rows,
            _evaluators(
                metric,
                calibration,
                model=options.load_model(model, base_url),
                model_timeout=model_timeout,
                verifier=None if verifier is None else named_verifier(verifier),
                embeddings=options.load_embeddings(embeddings),
            ),
            journal=out,
            fresh=not resume,
            retry_failed=retry_failed,
            cache=cache,
            progress=True,
            price=paid,
            name=name,
            keep_rows=False,
        )
        is_complete = _run(evaluation, ray, max_concurrency)
        if parquet is not None:
            save_parquet(out, parquet)
        if as_json:
            typer.echo(json.dumps(_as_plain(evaluation, paid, complete=is_complete), indent=2))
        else:
            Console().print(_render(evaluation, paid))
            typer.echo(f"written to {out}" if is_complete else f"partial: {out}")
            if is_complete:
                page = out.with_suffix(".html")
                options.next_step("langchain-groundedness report {} -o {}", out, page)
        if not is_complete:
            typer.echo("interrupted; run the same command again to resume", err=True)
            raise typer.Exit(INTERRUPTED)
        if below := list(_failed_thresholds(evaluation, least, max_failed)):
            typer.echo(f"below --fail-under: {'; '.join(below)}", err=True)
            raise typer.Exit(1)


def _run(evaluation: "Evaluation", ray: "RayEngine | None", max_concurrency: int) -> bool:
    """Evaluate; return whether the run is complete."""
    from langchain_groundedness.evals.runner import arun_evaluation

    try:
        if ray is None:
            options.run_interruptibly(arun_evaluation(evaluation, max_concurrency))
        else:
            with redirect_stdout(sys.stderr), evaluation:  # Ray reports on stdout
                ray.run(evaluation)
    except KeyboardInterrupt:
        if evaluation.header is None:
            raise
        return False
    return True


def _evaluators(names: Iterable[str], calibration: Path | None, **parts: Any) -> "list[Evaluator]":
    from langchain_groundedness.calibration import Calibration
    from langchain_groundedness.evals import make_metric

    taken = [name for name in ("model", "verifier") if parts[name] is not None]
    if calibration is not None and taken:
        refuse(f"--calibration is for the embedded verifier; leave out --{taken[0]}")
    if calibration is not None:
        parts["verifier"] = Calibration.load(calibration).checker().check.verifier
    return [make_metric(name, **parts) for name in dict.fromkeys(names)]


def _parse_fail_under(given: Iterable[str], metrics: Iterable[str]) -> dict[str, float]:
    bounds = options.parse_numbers(given, "--fail-under", "faithfulness=0.8")
    for key, bound in bounds.items():
        if key not in metrics:
            refuse(f"--fail-under {key}: that metric is not measured; add --metric {key}")
        if not 0 <= bound <= 1:
            refuse(f"--fail-under {key}: scores are from 0 to 1, got {bound:g}")
    return bounds


def _price(given: str) -> "Price":
    from langchain_groundedness.evals.progress import Price

    prices = [options.parse_number(each, "--price") for each in given.split(",")]
    if len(prices) != 2 or min(prices) < 0:  # noqa: PLR2004  (in and out)
        refuse("--price takes two prices per million tokens, input and output, as in 0.15,0.60")
    return Price(*prices)


def _failed_thresholds(
    evaluation: "Evaluation", least: Mapping[str, float], max_failed: int
) -> Iterable[str]:
    for key, bound in least.items():
        counts = evaluation.totals.metrics[key]
        lost = counts.failed + len(evaluation.outline.bad_rows)
        if counts.mean is None:
            yield f"{key}: no row has a score"
        elif counts.mean < bound:
            yield f"{key} is {counts.mean:.3f}, less than {bound:g}"
        if lost > max_failed:
            yield f"{key}: {format_count(lost)} failed or could not be read, more than {max_failed}"


def _as_plain(evaluation: "Evaluation", price: "Price | None", *, complete: bool) -> dict[str, Any]:
    usage = evaluation.totals.usage
    return {
        "metrics": evaluation.totals.as_dict(),
        "rows": evaluation.totals.rows,
        "rows_in_data_set": evaluation.outline.rows,
        "bad_rows": [row.model_dump() for row in evaluation.outline.bad_rows],
        "complete": complete,
        "seconds": evaluation.seconds,
        "usage": usage.model_dump(),
        "cost": None if price is None else price.of(usage),
    }


def _render(evaluation: "Evaluation", price: "Price | None") -> RenderableType:
    table = plain_table("Metric", "mean", "scored", "failed", "skipped", "rows")
    for key, counts in evaluation.totals.metrics.items():
        mean = "-" if counts.mean is None else f"{counts.mean:.3f}"
        figures = (counts.scored, counts.failed, counts.skipped, counts.rows)
        table.add_row(key, mean, *(f"{figure:,}" for figure in figures))
    return Group(table, *(Text(printable(line)) for line in _lines(evaluation, price)))


def _lines(evaluation: "Evaluation", price: "Price | None") -> Iterator[str]:
    from langchain_groundedness.evals.progress import spending

    rows, seconds = evaluation.new_rows, evaluation.session_seconds
    now = f"; {rows:,} of them now, in {seconds:.1f} s ({rows / seconds:.1f} rows/s)"
    done = f"{evaluation.totals.rows:,} of {format_count(evaluation.outline.rows)}"
    yield f"{done}{now if rows else ''}"
    if spent := spending(evaluation.totals.usage, price):
        yield spent
    yield from _reasons(evaluation)
    if any(counts.failed for counts in evaluation.totals.metrics.values()):
        yield "failed rows are not tried again when the run is resumed, except with --retry-failed"
    if bad := evaluation.outline.bad_rows:
        yield f"{format_count(len(bad))} could not be read and {is_or_are(len(bad))} left out:"
        for row in bad[:_BAD_ROWS_SHOWN]:
            yield f"  {'' if row.line is None else f'line {row.line}: '}{row.reason}"
        if len(bad) > _BAD_ROWS_SHOWN:
            yield "  … all of them are in the run file"


def _reasons(evaluation: "Evaluation") -> Iterator[str]:
    """Say why rows have no score: of each metric the most frequent reasons."""
    counted = evaluation.totals.reasons.most_common()
    for key in evaluation.totals.metrics:
        of_key = [(kind, rows) for kind, rows in counted if kind[0] == key and rows > 0]
        for (_, status, reason), rows in of_key[:_REASONS_SHOWN]:
            line = " ".join(reason.split())
            short = line if len(line) <= _LONGEST_REASON else f"{line[: _LONGEST_REASON - 1]}…"
            yield f"{key}: {rows:,} {status}: {short}"
        if len(of_key) > _REASONS_SHOWN:
            yield f"{key}: … other reasons are in the run file"
