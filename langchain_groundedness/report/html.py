"""A report as one file of HTML that loads nothing: style, script and rows are in it.

The policy in its head lets no script run but its own, and nothing be fetched.
"""

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from functools import lru_cache
from hashlib import sha256
from importlib.resources import files
from string import Template

from langchain_groundedness.audit.record import plain_mapping
from langchain_groundedness.calibration import Reliability
from langchain_groundedness.display.escaping import Html, joined, tag
from langchain_groundedness.display.notebook import CELL, WARNING, table
from langchain_groundedness.evals.statistics import LabelAgreement
from langchain_groundedness.evals.values import EvaluationRun
from langchain_groundedness.report import plots, words
from langchain_groundedness.report.data import page_data
from langchain_groundedness.report.figures import compared, metrics_of, reliability_of, slices_of
from langchain_groundedness.report.values import (
    ComparedMetric,
    MetricFigures,
    RunComparison,
    SlicedColumn,
    SliceGroup,
)

__all__ = ["page", "run_html"]


def page(run: EvaluationRun, baseline: EvaluationRun | None = None) -> str:
    """Write a run as a page."""
    metrics = metrics_of(run)
    slices = slices_of(run, metrics)
    overview = Overview(
        run=run,
        metrics=metrics,
        slices=slices,
        reliability=reliability_of(run),
        comparison=None if baseline is None else compared(run, baseline),
    )
    data = page_data(run, metrics, slices, baseline)
    style, script = _style(), _file("report.js")
    return Template(_file("page.html")).substitute(
        title=joined([run.header.name]),
        style=style,
        style_hash=_hash(style),
        script=script,
        script_hash=_hash(script),
        sections=overview.sections,
        overview=overview.main,
        about=overview.about,
        table=data.table,
        rows=data.rows,
        documents=data.documents,
    )


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


@lru_cache
def _style() -> str:
    look = (files("langchain_groundedness") / "static" / "look.css").read_text("utf-8")
    return look + _file("report.css")


@lru_cache
def _file(name: str) -> str:
    return (files("langchain_groundedness.report") / "static" / name).read_text("utf-8")


_MOST_REASONS = 3

_SHARES = ("balanced accuracy", "F1", "kappa")

_MOST_BAD_ROWS = 500

_NOTHING = Html("")

_ABOUT_METRICS = (
    "Means of the rows that have a score, with 95 % intervals; below them, how many rows have "
    "which score."
)

_ABOUT_SLICES = (
    "Means with 95 % intervals. Each scale runs from the lowest to the highest end of an interval "
    "in its column; of many intervals, some lie apart by chance alone."
)


@dataclass(frozen=True, kw_only=True)
class Overview:
    """A run as its page begins and ends."""

    run: EvaluationRun
    metrics: Sequence[MetricFigures]
    slices: Sequence[SlicedColumn]
    reliability: Reliability | None
    comparison: RunComparison | None

    @property
    def sections(self) -> Html:
        """Links to the sections that are there."""
        there = {
            "metrics": ("Metrics", True),
            "labels": ("Labels", self._has_labels),
            "slices": ("Slices", bool(self.slices)),
            "rows": ("Rows", True),
            "about": ("About", True),
        }
        shown = ((place, name) for place, (name, is_there) in there.items() if is_there)
        return joined(tag("a", name, href=f"#{place}") for place, name in shown)

    @property
    def main(self) -> Html:
        """What stands above the rows."""
        return joined(
            [
                self._head(),
                _section(
                    "metrics", "Metrics", tag("p", _ABOUT_METRICS, class_="quiet"), self._cards()
                ),
                self._labels() if self._has_labels else _NOTHING,
                self._slices() if self.slices else _NOTHING,
            ]
        )

    @property
    def about(self) -> Html:
        """What stands below them."""
        header = self.run.header
        facts = {
            "Data set": header.dataset,
            "Made": f"{header.made.astimezone(UTC):%Y-%m-%d %H:%M} UTC",
            "Took": words.cost(self.run),
            "Digest": header.digest,
            "Version": header.version,
        }
        shown = (_fact(name, text) for name, text in facts.items() if text)
        listed = tag("dl", *shown, class_="details")
        evaluators = (_evaluator(key, options) for key, options in header.evaluators.items())
        return _section(
            "about",
            "About this run",
            tag("div", listed, *evaluators, class_="card"),
            _bad_rows(self.run) if self.run.bad_rows else _NOTHING,
        )

    def _head(self) -> Html:
        return tag(
            "div",
            tag("h1", words.title(self.run)),
            tag("p", words.facts(self.run), class_="quiet"),
            _warnings(self.run),
            _compared(self.comparison) if self.comparison else _NOTHING,
            class_="title",
        )

    def _cards(self) -> Html:
        changes = self.comparison.metrics if self.comparison else ()
        by_key = {each.key: each for each in changes}
        return tag("div", *(_card(m, by_key.get(m.key)) for m in self.metrics), class_="cards")

    @property
    def _has_labels(self) -> bool:
        return self.reliability is not None or any(each.agreement for each in self.metrics)

    def _labels(self) -> Html:
        drawn = _reliability(self.reliability) if self.reliability else _NOTHING
        return _section("labels", "Labels", _agreements(self.metrics), drawn)

    def _slices(self) -> Html:
        tables = (_slice_table(each, self.metrics) for each in self.slices)
        return _section("slices", "Slices", tag("p", _ABOUT_SLICES, class_="quiet"), *tables)


def _warnings(run: EvaluationRun) -> Html:
    said = words.warnings(run)
    if not said:
        return _NOTHING
    links = {
        "bad rows": tag("a", "Show them", href="#bad-rows"),
        "failed": tag("button", "Show them", type="button", class_="link", data_status="failed"),
    }
    sign = tag("span", "! ", aria_hidden="true")
    items = (tag("li", sign, text, " ", links.get(kind, "")) for kind, text in said.items())
    return tag("ul", *items, class_="problem")


def _section(place: str, name: str, *children: str) -> Html:
    heading = tag("h2", name, id=f"h-{place}")
    return tag("section", heading, *children, id=place, aria_labelledby=f"h-{place}")


def _fact(name: str, text: str) -> Html:
    return tag("div", tag("dt", name), tag("dd", text, dir="auto"))


def _compared(found: RunComparison) -> Html:
    name = tag("b", found.baseline, dir="auto")
    return tag("p", "Compared with ", name, f": {words.overlap(found)}", class_="versus")


def _card(metric: MetricFigures, change: ComparedMetric | None) -> Html:
    found = metric.estimate
    if found is None:
        figure = tag(
            "p", tag("b", words.NONE, class_="mean"), tag("span", "no score", class_="quiet")
        )
        drawn = _NOTHING
    else:
        told = tag("span", f"{words.interval(found)}", class_="quiet", title="95 % interval")
        figure = tag("p", tag("b", words.number(found.mean), class_="mean"), told, class_="figure")
        drawn = plots.distribution(metric)
    return tag(
        "article",
        tag("h3", metric.key, dir="auto"),
        figure,
        _change(change) if change else _NOTHING,
        drawn,
        _counts(metric),
        _reasons(metric),
        class_="card metric",
    )


def _change(change: ComparedMetric) -> Html:
    found = change.found
    by = found.difference
    if by is None or found.before is None:
        return tag("p", words.significance(found), class_="change quiet")
    kind = "higher" if by.mean > 0 else "lower" if by.mean < 0 else "same"
    counts = [f"▲ {found.better:,} higher", f"▼ {found.worse:,} lower", f"= {found.same:,} same"]
    if change.lost:
        counts.append(f"! {change.lost:,} lost")
    delta = tag("b", words.change(by.mean), class_=f"delta {kind}")
    said = f"was {words.number(found.before)} · {words.significance(found)}"
    return tag(
        "div",
        tag("p", delta, f" ({words.interval(by)})"),
        tag("p", said, class_="quiet"),
        tag("p", *(tag("span", text) for text in counts), class_="meta"),
        class_="change",
    )


def _counts(metric: MetricFigures) -> Html:
    shown = [tag("span", f"✓ {len(metric.scores):,} scored")]
    if metric.failed:
        shown.append(tag("span", f"! {metric.failed:,} failed", class_="tag failed"))
    if metric.skipped:
        shown.append(tag("span", f"{words.NONE} {metric.skipped:,} skipped", class_="tag"))
    return tag("p", *shown, class_="meta")


def _reasons(metric: MetricFigures) -> Html:
    if not metric.reasons:
        return _NOTHING
    shown = [
        tag("li", f"{words.count(each.rows)} {each.status}: {each.text}", dir="auto")
        for each in metric.reasons[:_MOST_REASONS]
    ]
    left = len(metric.reasons) - _MOST_REASONS
    if left > 0:
        shown.append(tag("li", f"and {words.count(left, 'other reason')}"))
    return tag("ul", *shown, class_="why quiet")


def _reliability(found: Reliability) -> Html:
    said = (
        "How often an answer is right, as people have labelled "
        f"{words.count(found.samples)}, by the support probability of its least likely claim. On "
        f"the diagonal, probabilities are what they say. Calibration error {found.error:.3f}, "
        f"Brier score {found.brier:.3f}."
    )
    drawn = tag("figure", plots.reliability(found), tag("figcaption", said, class_="quiet"))
    return tag("div", drawn, class_="card")


def _agreements(metrics: Sequence[MetricFigures]) -> Html:
    heads = ("metric", "rows", *_SHARES)
    rows = [_agreement(each.key, each.agreement) for each in metrics if each.agreement]
    if not rows:
        return _NOTHING
    said = (
        "Labels of people beside the scores; at 0.5 or above, a score says that an answer is right."
    )
    head = tag(
        "thead",
        tag(
            "tr",
            *(
                tag("th", name, scope="col", class_="amount" if name == "rows" else None)
                for name in heads
            ),
        ),
    )
    return joined(
        [
            tag("p", said, class_="quiet"),
            _scroller(
                "Agreement with labels", tag("table", head, tag("tbody", *rows), class_="stacked")
            ),
        ]
    )


def _agreement(key: str, found: LabelAgreement) -> Html:
    shares = (
        (found.balanced_accuracy, found.balanced_accuracy_interval),
        (found.f1, found.f1_interval),
        (found.kappa, found.kappa_interval),
    )
    cells = (_share(name, *each) for name, each in zip(_SHARES, shares, strict=True))
    name = tag("th", key, scope="row", dir="auto")
    rows = tag("td", f"{found.rows:,}", class_="amount", data_name="rows")
    return tag("tr", name, rows, *cells)


def _share(name: str, share: float | None, interval: tuple[float, float] | None) -> Html:
    if share is None:
        return tag("td", words.NONE, class_="estimate", data_name=name)
    low_high = "" if interval is None else " to ".join(map(words.number, interval))
    range_ = tag("span", low_high, class_="quiet")
    value = tag("b", words.number(share))
    return tag("td", value, " ", range_, class_="estimate", data_name=name)


def _scroller(name: str, table: Html) -> Html:
    return tag("div", table, class_="scroller", tabindex=0, role="region", aria_label=name)


def _slice_table(found: SlicedColumn, metrics: Sequence[MetricFigures]) -> Html:
    head = (tag("th", each.key, scope="col", dir="auto") for each in metrics)
    scales = {each.key: _scale(found, each) for each in metrics}
    body = (_slice_row(group, scales, found.column) for group in found.groups)
    first = tag("th", found.column, scope="col", dir="auto")
    table = tag(
        "table",
        tag("thead", tag("tr", first, tag("th", "rows", scope="col", class_="amount"), *head)),
        tag("tbody", *body),
    )
    return _scroller(found.column, table)


def _scale(found: SlicedColumn, metric: MetricFigures) -> plots.Bounds:
    """Give between which values the groups lie: all of the metric's, where there is just one."""
    known = [group.metrics[metric.key] for group in found.groups if metric.key in group.metrics]
    ends = [end for each in known for end in (each.low, each.mean, each.high) if end is not None]
    return (min(ends), max(ends)) if ends and min(ends) < max(ends) else metric.bounds


def _slice_row(group: SliceGroup, scales: Mapping[str, plots.Bounds], column: str) -> Html:
    cells = (_slice_cell(group, key, scale) for key, scale in scales.items())
    name: str = group.name
    if group.is_value:
        name = tag(
        "button", group.name, type="button", class_="link", dir="auto",
        data_column=column, data_value=group.name, title="Show these rows",
    )  # fmt: skip
    rows = tag("td", f"{group.rows:,}", class_="amount")
    return tag("tr", tag("th", name, scope="row"), rows, *cells)


def _slice_cell(group: SliceGroup, key: str, scale: plots.Bounds) -> Html:
    found = group.metrics.get(key)
    if found is None:
        return tag("td", words.NONE, class_="quiet")
    told = f"{words.number(found.mean)}, {words.count(found.n)} scored, {words.interval(found)}"
    drawn = plots.interval(found, scale, told)
    mean = tag("b", words.number(found.mean))
    range_ = tag("span", words.interval(found), class_="quiet")
    return tag("td", drawn, " ", mean, " ", range_, class_="estimate")


def _evaluator(key: str, options: Mapping[str, object]) -> Html:
    text = json.dumps(plain_mapping(options), indent=2, ensure_ascii=False)
    return tag("details", tag("summary", key, dir="auto"), tag("pre", text, dir="auto"))


def _bad_rows(run: EvaluationRun) -> Html:
    left = len(run.bad_rows) - _MOST_BAD_ROWS
    more = tag("p", f"and {words.count(left, 'other')}", class_="quiet") if left > 0 else _NOTHING
    return joined(
        [
            tag("h3", "Rows that could not be read", id="bad-rows"),
            tag("ul", *_bad_row_items(run), class_="why bad-rows"),
            more,
        ]
    )


def _bad_row_items(run: EvaluationRun) -> Iterator[Html]:
    for each in run.bad_rows[:_MOST_BAD_ROWS]:
        where = [f"line {each.line}"] if each.line is not None else []
        where += [f"id {each.id}"] if each.id is not None else []
        yield tag("li", tag("b", ", ".join(where) or "somewhere"), f": {each.reason}", dir="auto")


_HEADS = ("metric", "mean", "95 % interval", "scored", "failed", "skipped")


def run_html(run: EvaluationRun) -> str:
    """Show what a run says of each metric."""
    warnings = (tag("p", f"! {text}", style=WARNING) for text in words.warnings(run).values())
    return tag(
        "div",
        tag("p", tag("b", words.title(run), dir="auto"), f" · {words.facts(run)}"),
        *warnings,
        table(_HEADS, map(_metric, metrics_of(run))),
        class_="langchain-groundedness",
        style="max-width:60em",
    )


EvaluationRun.as_html = run_html  # how notebooks show a run


def _metric(metric: MetricFigures) -> Html:
    found = metric.estimate
    texts = (
        metric.key,
        words.NONE if found is None else words.number(found.mean),
        words.NONE if found is None else words.interval(found),
        f"{len(metric.scores):,}",
        f"! {metric.failed:,}" if metric.failed else "0",
        f"{metric.skipped:,}",
    )
    return tag("tr", *(tag("td", text, style=CELL, dir="auto") for text in texts))
