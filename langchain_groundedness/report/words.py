"""Figures in words, the same in every format; pure."""

from datetime import UTC

from langchain_groundedness.evals.statistics import Estimate, PairedComparison
from langchain_groundedness.evals.values import EvaluationRun
from langchain_groundedness.report.values import RunComparison

__all__ = [
    "NONE",
    "change",
    "cost",
    "count",
    "interval",
    "number",
    "overlap",
    "significance",
    "title",
    "warnings",
]

NONE = "\N{EN DASH}"
"""In the place of a figure that is not there."""

_TINY = 0.001
_TEN = 10
_MINUTE = 60


def title(run: EvaluationRun) -> str:
    """Name a run: one over rows in memory that was given no name is told by its time."""
    name = run.header.name
    unnamed = name == run.header.dataset and name.startswith("a ")
    return f"{name}, {run.header.made.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC" if unnamed else name


def number(value: float) -> str:
    """Write a score."""
    return f"{value:.1f}" if abs(value) >= _TEN else f"{value:.3f}"


def count(rows: int, what: str = "row") -> str:
    """Write how many there are."""
    return f"{rows:,} {what}{'' if rows == 1 else 's'}"


def interval(estimate: Estimate) -> str:
    """Write an interval."""
    if estimate.low is None or estimate.high is None:
        return "interval not known"
    return f"{number(estimate.low)} to {number(estimate.high)}"


def change(difference: float) -> str:
    """Write a difference with its sign and direction."""
    arrow = "▲" if difference > 0 else "▼" if difference < 0 else "="
    return f"{arrow} {difference:+.3f}"


def significance(found: PairedComparison) -> str:
    """Say whether a change is more than chance."""
    if found.p_value is None:
        return "no row has a score in both runs"
    if not found.better and not found.worse:
        return f"no score has changed in {count(found.rows)}"
    p_value = "p < 0.001" if found.p_value < _TINY else f"p = {found.p_value:.3f}"
    return f"{'more than chance' if found.is_significant() else 'could be chance'}, {p_value}"


def overlap(found: RunComparison) -> str:
    """Say which rows two runs share."""
    parts = (
        f"{count(found.both)} in both",
        f"{found.other_answer:,} of them with another answer or other documents"
        if found.other_answer
        else "",
        f"{found.only_now:,} only in this run" if found.only_now else "",
        f"{found.only_before:,} only in the other" if found.only_before else "",
        f"{found.other_question:,} with another question" if found.other_question else "",
    )
    return f"{', '.join(filter(None, parts))}."


def cost(run: EvaluationRun) -> str:
    """Say what a run took."""
    usage, parts = run.usage, []
    if run.seconds is not None:
        whole = int(run.seconds)
        minutes = f"{whole // _MINUTE} min {whole % _MINUTE} s"
        parts.append(minutes if whole >= _MINUTE else f"{run.seconds:.1f} s")
    parts.append(count(usage.model_calls, "model call") if usage.model_calls else "no model calls")
    tokens = (usage.input_tokens, "read"), (usage.output_tokens, "written")
    parts.extend(f"{n:,} tokens {what}" for n, what in tokens if n is not None)
    return " · ".join(parts)


def facts(run: EvaluationRun) -> str:
    """Say what a run is of, and what it took."""
    made = f"{run.header.made.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    return " · ".join((run.header.dataset, count(len(run.rows)), cost(run), made))


def warnings(run: EvaluationRun) -> dict[str, str]:
    """Say what stands between the figures and the data set."""
    said = {}
    if not run.complete:
        said["interrupted"] = "The run was interrupted: rows of the data set are missing here."
    if run.bad_rows:
        verb = (
            "row could not be read and was"
            if len(run.bad_rows) == 1
            else ("rows could not be read and were")
        )
        said["bad rows"] = f"{len(run.bad_rows):,} {verb} set aside."
    failed = sum(any(score.status == "failed" for score in row.scores) for row in run.rows)
    if failed:
        of = count(len(run.rows))
        has = "has" if failed == 1 else "have"
        said["failed"] = f"{failed:,} of {of} {has} a failed metric; the means leave these out."
    if not run.rows:
        said["empty"] = "No row was evaluated."
    return said
