"""Shows a validation in a terminal: what passed, why the rest did not, what else would."""

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from langchain_groundedness.evals import Estimate, SweepLine, ValidationSummary
from langchain_groundedness.terminal import printable

__all__ = ["render_validation"]

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
    """Lay out a validation for `rich.console.Console.print`.

    Args:
        found: Its summary.
        sweep: Whether to show what other thresholds would let pass.

    Returns:
        One line that sums up, the mean scores, the reasons, rows that could not be read, and the
        table of thresholds.
    """
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
