"""Shows a calibration in a terminal: before and after, and what could not be chosen."""

from collections.abc import Iterator, Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from langchain_groundedness.calibration import Calibration, ThresholdChoice, ThresholdFigures
from langchain_groundedness.terminal import printable

__all__ = ["render_calibration"]


def render_calibration(found: Calibration, *, notes: Sequence[str] = ()) -> RenderableType:
    """Lay out a calibration for `rich.console.Console.print`.

    Args:
        found: The calibration.
        notes: What else the reader should know.

    Returns:
        A table of the thresholds with precision and recall before and after; below, the others,
        and how to read the figures.
    """
    return Group(_table(found), *_lines(found, notes))


def _table(found: Calibration) -> Table:
    target = f"{found.target.kind} {found.target.value:g}"
    table = Table(box=box.ROUNDED, show_lines=True, header_style="bold", title=f"wanted: {target}")
    for head in ("Threshold", "Chosen on", "", "Passed", "Precision", "Recall"):
        table.add_column(head, no_wrap=head in ("Passed", ""))
    for name, choice in found.chosen.items():
        given = f"{choice.samples} {choice.unit}s\n{choice.good} should pass"
        table.add_row(
            Text(f"{name}\n{_threshold(choice)}", style="bold"),
            f"{given}\n{choice.groups} groups",
            "before\nin-sample\nexpected",
            *_columns(choice.before, choice.fitted, choice.expected),
        )
    return table


def _threshold(choice: ThresholdChoice) -> str:
    if choice.interval is None:
        return f"{choice.threshold:.3f}"
    low, high = choice.interval
    return f"{choice.threshold:.3f}\n({low:.3f} to {high:.3f})"


def _columns(*figures: ThresholdFigures) -> tuple[str, str, str]:
    return (
        "\n".join(f"{each.passed} of {each.samples}" for each in figures),
        "\n".join(_share(each.precision, each.precision_interval) for each in figures),
        "\n".join(_share(each.recall, each.recall_interval) for each in figures),
    )


def _share(share: float | None, interval: tuple[float, float] | None) -> str:
    if share is None or interval is None:
        return "-"
    return f"{share:.3f} ({interval[0]:.2f} to {interval[1]:.2f})"


def _lines(found: Calibration, notes: Sequence[str]) -> Iterator[Text]:
    for name, why in found.not_chosen.items():
        yield Text(f"not chosen: {name}: {printable(why)}", style="yellow")
    for name, choice in found.chosen.items():
        expected = getattr(choice.expected, found.target.kind)
        if expected is None or expected < found.target.value:
            said = "nothing passes" if expected is None else f"it is {expected:.3f}"
            yield Text(
                f"{name}: on samples that it was not chosen on, {said}: more samples, or a target "
                "above what you need, come closer",
                style="yellow",
            )
    yield Text(
        "in-sample: on the samples that a threshold was chosen on, so too good; expected: "
        "cross-validated; in brackets 95 % intervals",
        style="dim",
    )
    for note in notes:
        yield Text(printable(note), style="dim")
