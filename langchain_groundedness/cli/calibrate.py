"""The command `langchain-groundedness calibrate`.

Exit codes: 0 the calibration is written, 2 it could not be made, 130 interrupted.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import typer
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from langchain_groundedness._runtime.files import require_outputs
from langchain_groundedness.cli import options
from langchain_groundedness.cli.errors import errors_in_one_line, refuse, write_file
from langchain_groundedness.display.counts import format_count
from langchain_groundedness.display.terminal import plain_table, printable
from langchain_groundedness.exceptions import require

if TYPE_CHECKING:
    from langchain_groundedness.calibration import Calibration, CalibrationSample
    from langchain_groundedness.calibration.values import ThresholdName

__all__ = ["calibrate"]

_NAMES: "dict[ThresholdName, str]" = {
    "support": "claim supported",
    "trust": "answer trusted",
    "review": "review below",
    "gate": "documents relevant",
    "settle_supported": "settled as right",
    "settle_unsupported": "settled as wrong",
}
_PIXELS_PER_UNIT = 2
_WHEN = ("before", "in-sample", "expected")
_LEGEND = """\
In brackets: 95 % intervals. 30/50 claims of 12: of 50 claims about 12 documents
(or in 12 threads), 30 should pass.
before     with the thresholds that were in force
in-sample  on the samples that the threshold was chosen on, so too good
expected   on samples that it was not chosen on (cross-validated), as on new"""
_REVIEWED_ONLY = (
    "the samples are what reviewers saw; where only doubtful ones are reviewed, the "
    "figures hold for those"
)


def calibrate(  # noqa: PLR0913  (each is an option of the command)
    *,
    db: options.Db = None,
    log: Path | None = None,
    labels: Path | None = None,
    precision: float | None = None,
    recall: float | None = None,
    out: Path = Path("calibration.json"),
    plot: Path | None = None,
    as_json: options.AsJson = False,
) -> None:
    """Choose thresholds on labelled data. They reach the precision or recall you ask for.

    \b
    Examples:
      langchain-groundedness calibrate --db sqlite:///audit.db --precision 0.95
      langchain-groundedness calibrate --labels claims.jsonl --recall 0.9 --plot calibration.svg

    \b
    --db and --log read the answers that reviewers approved (right), edited or rejected (wrong),
    and the claims that they marked right or wrong.
    --labels reads one JSON object per line:
      {"claim": "Rome is old.", "documents": ["Rome is an old city."], "label": "supported"}
      {"answer": "...", "documents": ["..."], "question": "...", "label": false}
    At least 20 right and 20 wrong ones are needed, of 10 documents or threads, and more right ones
    for a target above 0.95. Use the file with --calibration, or with
    Calibration.load("calibration.json").checker().

    Options:
        labels (FILE.jsonl): Claims or answers with labels.
        precision (NUMBER): Required share of right samples among those that pass, 0 to 1.
        recall (NUMBER): Required share of passing samples among the right ones, 0 to 1.
        out (FILE.json): Where to write the thresholds.
        plot (FILE.svg|png): Where to draw a reliability plot.
    """  # noqa: D301  (click reads the backspace)
    from langchain_groundedness import calibration
    from langchain_groundedness.calibration.threshold_choice import parse_target

    with errors_in_one_line("cannot calibrate"):
        options.require_one(db=db, log=log, labels=labels)
        require_outputs([("--out", out), ("--plot", plot)], [db, log, labels])
        if (precision is None) == (recall is None):
            refuse(
                "give either --precision or --recall: the share of what passes that must be right, "
                "or of what is right that must pass"
            )
        parse_target(precision, recall, prefix="--")  # before the labels are judged
        picture = plot and plot.suffix.lower()
        if plot is not None and picture not in (".svg", ".png"):
            refuse(
                f"--plot draws .svg or .png, not {plot.suffix or 'a file without such an ending'}"
            )
        if picture == ".png":
            require("resvg_py", extra="plot")
        with Console(stderr=True).status("calibrating…"):
            samples, encoder, notes = _labelled(labels) if labels else _reviewed(db, log)
            found = calibration.calibrate(
                samples, precision=precision, recall=recall, encoder=encoder
            )
        found.save(out)
        drawn = plot is not None and _draw(found, plot)
        if as_json:
            typer.echo(json.dumps(found.model_dump(mode="json"), indent=2))
            return
        Console().print(Group(_table(found), *_lines(found, notes)))
        typer.echo(f"written to {out}" + (f", drawn in {plot}" if drawn else ""))
        options.next_step("langchain-groundedness check ANSWER DOC --calibration {}", out)


_Samples: TypeAlias = "tuple[list[CalibrationSample], str | None, list[str]]"
"""Samples, the encoder that they were judged with, and what to know about them."""


def _labelled(path: Path) -> _Samples:
    from langchain_groundedness.calibration.labelled_data import read_labelled, samples_of
    from langchain_groundedness.pipeline.recording import encoder_checksum
    from langchain_groundedness.runnable import GroundednessRunnable

    checker = GroundednessRunnable()
    rows = list(read_labelled(path))  # a fault in the last line costs no check of the others
    if not rows:
        refuse(f"{path}: it contains no labelled claim or answer")
    return list(samples_of(rows, checker)), encoder_checksum(), []


def _reviewed(db: str | None, log: Path | None) -> _Samples:
    """Read what reviewers decided, as far as one encoder judged it."""
    from langchain_groundedness.calibration import CalibrationSample
    from langchain_groundedness.pipeline.recording import encoder_checksum

    found = [
        (record.versions.encoder, sample)
        for record in options.audit_records(db, log, status="decided")
        for sample in (CalibrationSample.of_record(record), *CalibrationSample.of_marks(record))
        if sample is not None
    ]
    if not found:
        records = options.audit_records(db, log, status="waiting")
        waiting = sum(record.review.status == "waiting" for record in records)
        held = options.held_decisions(db)
        also = f"; {options.undoable_note(held, 'read')}" if held else ""
        refuse(f"no record has been reviewed yet; waiting for a reviewer: {waiting}{also}")
    encoders = Counter(encoder for encoder, _ in found if encoder is not None)
    own = encoder_checksum()
    encoder = own if own in encoders else next(iter(dict(encoders.most_common(1))), None)
    samples = [sample for made_with, sample in found if made_with in (None, encoder)]
    notes = [_REVIEWED_ONLY]
    if left_out := len(found) - len(samples):
        notes.append(f"left out, judged with another encoder: {format_count(left_out, 'sample')}")
    return samples, encoder, notes


def _draw(found: "Calibration", path: Path) -> bool:
    from langchain_groundedness.calibration.thresholds import calibration_plot

    if found.reliability is None:
        return False
    drawing: str | bytes = calibration_plot(found.reliability, found.chosen.get("support"))
    if path.suffix.lower() == ".png":
        look = {"zoom": _PIXELS_PER_UNIT, "background": "#ffffff", "font_family": "sans-serif"}
        resvg = require("resvg_py", extra="plot")
        drawing = bytes(resvg.svg_to_bytes(svg_string=drawing, **look))
    write_file(path, drawing)
    return True


def _table(found: "Calibration") -> Table:
    table = plain_table(title=f"wanted: {found.target.kind} {found.target.value:g}")
    table.add_column("Threshold", min_width=24)
    for head in ("", "Passed", "Precision", "Recall"):
        table.add_column(head, no_wrap=True)
    for name, choice in found.chosen.items():
        low, high = choice.interval or (choice.threshold, choice.threshold)
        about = (
            Text(f"{_NAMES[name]} {choice.threshold:.3f}", style="bold"),
            Text(f"({low:.3f} to {high:.3f})"),
            Text(f"{choice.good}/{choice.samples} {choice.unit}s of {choice.groups}"),
        )
        figures = (choice.before, choice.fitted, choice.expected)
        for words, when, each in zip(about, _WHEN, figures, strict=True):
            passed = f"{each.passed}/{each.samples}"
            precision = _share(each.precision, each.precision_interval)
            recall = _share(each.recall, each.recall_interval)
            table.add_row(words, when, passed, precision, recall, end_section=when == "expected")
    return table


def _share(share: float | None, interval: tuple[float, float] | None) -> str:
    if share is None or interval is None:
        return "-"
    return f"{share:.2f} ({interval[0]:.2f}-{interval[1]:.2f})"


def _lines(found: "Calibration", notes: Sequence[str]) -> Iterator[Text]:
    for name, why in found.not_chosen.items():
        yield Text(f"not chosen: {_NAMES[name]}: {printable(why)}", style="yellow")
    for name, choice in found.chosen.items():
        expected = getattr(choice.expected, found.target.kind)
        if expected is None or expected < found.target.value:
            figure = "that nothing passes" if expected is None else f"{expected:.3f}"
            yield Text(
                f"{_NAMES[name]}: on new samples expect {figure}, not the wanted "
                f"{found.target.kind} of {found.target.value:g}: label more samples, or set "
                f"--{found.target.kind} higher than you need",
                style="yellow",
            )
    yield Text(_LEGEND, style="dim")
    for note in notes:
        yield Text(printable(note), style="dim")
