"""Figures in words, the same in every format; pure."""

from langchain_groundedness.evals.values import EvaluationRun
from langchain_groundedness.report._values import ComparedMetric, Difference, Estimate

__all__ = ["NONE", "change", "cost", "count", "interval", "number", "significance", "warnings"]

NONE = "\N{EN DASH}"
"""In the place of a figure that is not there."""

_SURE = 0.05
_TINY = 0.001
_TEN = 10
_MINUTE = 60


def number(value: float) -> str:
    """Write a score.

    Args:
        value: The score.

    Returns:
        Such as `0.833`, or `34.2` for scores from 10 on.
    """
    return f"{value:.1f}" if abs(value) >= _TEN else f"{value:.3f}"


def count(rows: int, what: str = "row") -> str:
    """Write how many there are.

    Args:
        rows: The number.
        what: Of what, in the singular.

    Returns:
        Such as `1 row` or `1,200 rows`.
    """
    return f"{rows:,} {what}{'' if rows == 1 else 's'}"


def interval(estimate: Estimate | Difference) -> str:
    """Write an interval.

    Args:
        estimate: What has one.

    Returns:
        Such as `0.71 to 0.89`.
    """
    return f"{number(estimate.low)} to {number(estimate.high)}"


def change(difference: Difference) -> str:
    """Write a difference with its sign and direction.

    Args:
        difference: The difference.

    Returns:
        Such as `▲ +0.12`.
    """
    arrow = "▲" if difference.mean > 0 else "▼" if difference.mean < 0 else "="
    return f"{arrow} {difference.mean:+.3f}"


def significance(metric: ComparedMetric) -> str:
    """Say whether a change is more than chance.

    Args:
        metric: The metric before and now.

    Returns:
        A sentence without its full stop.
    """
    found = metric.difference
    if found is None:
        return "no row has a score in both runs"
    p_value = "p < 0.001" if found.p_value < _TINY else f"p = {found.p_value:.3f}"
    if not metric.higher and not metric.lower:
        return f"no score has changed in {count(found.rows)}"
    sure = "more than chance" if found.p_value < _SURE else "could be chance"
    return f"{sure}, {p_value}"


def cost(run: EvaluationRun) -> str:
    """Say what a run took.

    Args:
        run: The run.

    Returns:
        Time, model calls and tokens, as far as they are known.
    """
    usage, parts = run.usage, []
    if run.seconds is not None:
        whole = int(run.seconds)
        minutes = f"{whole // _MINUTE} min {whole % _MINUTE} s"
        parts.append(minutes if whole >= _MINUTE else f"{run.seconds:.1f} s")
    parts.append(count(usage.model_calls, "model call") if usage.model_calls else "no model calls")
    tokens = (usage.input_tokens, "read"), (usage.output_tokens, "written")
    parts.extend(f"{n:,} tokens {what}" for n, what in tokens if n is not None)
    return " · ".join(parts)


def warnings(run: EvaluationRun) -> dict[str, str]:
    """Say what stands between the figures and the data set.

    Args:
        run: The run.

    Returns:
        A sentence each, by what it is about.
    """
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
