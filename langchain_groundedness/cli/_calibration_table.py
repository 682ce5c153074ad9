"""Shows a calibration in a terminal: before and after, and what could not be chosen."""

from collections.abc import Iterator, Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from langchain_groundedness.calibration import Calibration, ThresholdChoice, ThresholdFigures
from langchain_groundedness.terminal import printable

__all__ = ["render_calibration"]


_WHEN = ("before", "in-sample", "expected")
_NAME_WIDTH = 24
"""Of the longest name of a threshold with its value, which is there to be typed."""


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
    table = Table(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        padding=0,
        pad_edge=False,
        header_style="bold",
        title=f"wanted: {target}",
    )
    table.add_column("Threshold", min_width=_NAME_WIDTH)
    for head in ("", "Passed", "Precision", "Recall"):
        table.add_column(head, no_wrap=True)
    for name, choice in found.chosen.items():
        about = _about(name, choice)
        figures = (choice.before, choice.fitted, choice.expected)
        for words, when, each in zip(about, _WHEN, figures, strict=True):
            table.add_row(words, when, *_columns(each), end_section=when == _WHEN[-1])
    return table


def _about(name: str, choice: ThresholdChoice) -> tuple[Text, Text, Text]:
    low, high = choice.interval or (choice.threshold, choice.threshold)
    return (
        Text(f"{name} {choice.threshold:.3f}", style="bold"),
        Text(f"({low:.3f} to {high:.3f})"),
        Text(f"{choice.good}/{choice.samples} {choice.unit}s, {choice.groups} groups"),
    )


def _columns(each: ThresholdFigures) -> tuple[str, str, str]:
    return (
        f"{each.passed}/{each.samples}",
        _share(each.precision, each.precision_interval),
        _share(each.recall, each.recall_interval),
    )


def _share(share: float | None, interval: tuple[float, float] | None) -> str:
    if share is None or interval is None:
        return "-"
    return f"{share:.2f} ({interval[0]:.2f}-{interval[1]:.2f})"


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
        "below a threshold, what it was chosen on, and how many of those should pass; in-sample: "
        "on these very samples, so too good; expected: cross-validated; in brackets 95 % intervals",
        style="dim",
    )
    for note in notes:
        yield Text(printable(note), style="dim")
