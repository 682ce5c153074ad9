"""The plots of a report, as SVG; pure."""

from collections.abc import Sequence

from langchain_groundedness.calibration import Reliability
from langchain_groundedness.calibration.thresholds import reliability_plot
from langchain_groundedness.display.escaping import Html, printable, tag
from langchain_groundedness.display.svg import Plot
from langchain_groundedness.evals.statistics import Estimate
from langchain_groundedness.report.values import MetricFigures

__all__ = ["Bounds", "distribution", "interval", "reliability"]

Bounds = tuple[float, float]
"""Where a scale begins and ends."""

_BINS = 20
_WIDE, _HIGH = 120, 16
_INSET = 6


def distribution(metric: MetricFigures) -> Html:
    """Draw how many rows have which score."""
    low, high = metric.bounds
    counts = _counts(metric.scores, low, high)
    most = max(counts)
    plot = Plot(
        title=printable(f"Distribution of {metric.key}"),
        highest=float(most),
        y_label="rows",
        width=340,
        height=150,
    )
    middle = (low + high) / 2
    along = [(place, f"{value:g}") for place, value in ((0, low), (0.5, middle), (1, high))]
    plot.ticks(along, [(float(most), str(most))])
    for place, count in enumerate(counts):
        start, end = (low + (high - low) * edge / _BINS for edge in (place, place + 1))
        told = f"{count} rows with {start:.3g} to {end:.3g}"
        plot.bar((place + 0.08) / _BINS, 0.84 / _BINS, 0, count, "e", told)
    if metric.estimate is not None:
        plot.mark((metric.estimate.mean - low) / (high - low), "c")
    return Html(plot.drawn())


def _counts(scores: Sequence[float], low: float, high: float) -> list[int]:
    counts = [0] * _BINS
    for score in scores:
        counts[min(int((score - low) / (high - low) * _BINS), _BINS - 1)] += 1
    return counts


def interval(estimate: Estimate, bounds: Bounds, told: str) -> Html:
    """Draw a mean with its interval on a scale."""
    low, high = bounds

    def place(value: float) -> str:
        return f"{_INSET + (value - low) / (high - low) * (_WIDE - 2 * _INSET):.1f}"

    middle = _HIGH // 2
    ends = {"y1": middle, "y2": middle}
    first, last = (estimate.mean if end is None else end for end in (estimate.low, estimate.high))
    return tag(
        "svg",
        tag("line", class_="scale", x1=_INSET, x2=_WIDE - _INSET, **ends),
        tag("line", class_="range", x1=place(first), x2=place(last), **ends),
        tag("circle", class_="mean", cx=place(estimate.mean), cy=middle, r=4),
        class_="interval",
        role="img",
        aria_label=told,
        viewBox=f"0 0 {_WIDE} {_HIGH}",
        width=_WIDE,
        height=_HIGH,
    )


def reliability(found: Reliability) -> Html:
    """Draw how probabilities compare to shares."""
    return Html(reliability_plot(found).drawn())
