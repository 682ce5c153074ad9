"""The plots of a calibration: how reliable probabilities are, and what each threshold would do."""

from langchain_groundedness.calibration.values import Reliability, ThresholdChoice
from langchain_groundedness.display.svg import Plot, document

__all__ = ["calibration_plot", "reliability_plot"]

_TICKS = [(n / 5, f"{n / 5:g}") for n in range(6)]


def calibration_plot(reliability: Reliability, support: ThresholdChoice | None) -> str:
    """Draw how probabilities compare to shares."""
    above = reliability_plot(reliability)
    most = max((each.count for each in reliability.bins), default=1)
    below = Plot(
        title="Samples per bin",
        highest=float(most),
        x_label="support probability",
        y_label="samples",
        height=170,
    )
    below.ticks(_TICKS, [(0.0, "0"), (float(most), str(most))])
    for each in reliability.bins:
        below.bar(each.low + 0.005, 0.09, 0, each.count, "e", f"{each.count} samples")
    if support is not None:
        for plot in (above, below):
            plot.mark(support.threshold, "d")
    above.legend(_words(reliability, support))
    return document([above, below])


def reliability_plot(reliability: Reliability) -> Plot:
    """Draw the share that is right per bin of probability, beside the diagonal."""
    of = "claims" if reliability.unit == "claim" else "answers, by their least likely claim"
    above = Plot(
        title=f"Reliability on {reliability.samples} {of}",
        x_label=f"support probability, {reliability.samples} {of}",
        y_label="share that is right",
        height=380,
    )
    above.ticks(_TICKS, _TICKS)
    above.ideal()
    for each in reliability.bins:
        above.whisker(each.mean, *each.interval, "e")
        told = f"{each.right:.0%} of {each.count} with {each.low:g} to {each.high:g} are right"
        above.dot(each.mean, each.right, "e", told)
    return above


def _words(reliability: Reliability, support: ThresholdChoice | None) -> list[tuple[str, str]]:
    words = [("e", f"calibration error {reliability.error:.3f}, Brier {reliability.brier:.3f}")]
    if support is not None:
        words.append(("d", f"threshold {support.threshold:.3g}"))
    return words
