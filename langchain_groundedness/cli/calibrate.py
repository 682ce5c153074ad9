"""The command `langchain-groundedness calibrate`.

Exit codes: 0 the calibration is written, 2 it could not be made, 130 interrupted.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from langchain_groundedness.calibration import (
    Calibration,
    CalibrationSample,
    ThresholdChoice,
    ThresholdFigures,
    calibrate,
)
from langchain_groundedness.calibration.labelled_data import read_labelled, samples_of
from langchain_groundedness.calibration.thresholds import calibration_plot
from langchain_groundedness.cli.errors import ending, write_bytes, write_text
from langchain_groundedness.cli.records import Db, Log, read_records, require_one
from langchain_groundedness.display.terminal import printable
from langchain_groundedness.exceptions import ConfigurationError, require
from langchain_groundedness.pipeline.recording import encoder_checksum
from langchain_groundedness.runnable import GroundednessRunnable

__all__ = ["HELP", "calibrate_command"]

HELP = """Choose thresholds on labelled data, for the precision or recall that you want.

\b
Examples:
  langchain-groundedness calibrate --db sqlite:///audit.db --precision 0.95
  langchain-groundedness calibrate --labels claims.jsonl --recall 0.9 --plot calibration.svg

\b
--db and --log take the answers that reviewers have approved (right), edited or rejected
(wrong). --labels takes one JSON object per line:
  {"claim": "Rome is old.", "documents": ["Rome is an old city."], "label": "supported"}
  {"answer": "...", "documents": ["..."], "question": "...", "label": false}
20 right and 20 wrong ones are needed at least. The file is loaded with
Calibration.load("calibration.json").checker().
"""

_PICTURES = (".svg", ".png")

_PIXELS_PER_UNIT = 2

_OF_REVIEWED = (
    "the samples are answers that went to reviewers; where only doubtful ones do, the figures "
    "hold for those"
)


class _Given(NamedTuple):
    samples: list[CalibrationSample]
    encoder: str | None
    notes: tuple[str, ...]


def calibrate_command(  # noqa: PLR0913  (each is an option of the command)
    *,
    db: Db = None,
    log: Log = None,
    labels: Annotated[
        Path | None, typer.Option(metavar="FILE.jsonl", help="Claims or answers with labels.")
    ] = None,
    precision: Annotated[
        float | None, typer.Option(help="Share of what passes that shall be right, 0 to 1.")
    ] = None,
    recall: Annotated[
        float | None, typer.Option(help="Share of what is right that shall pass, 0 to 1.")
    ] = None,
    out: Annotated[
        Path, typer.Option(metavar="FILE.json", help="Where the thresholds are written.")
    ] = Path("calibration.json"),
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE.svg|png", help="Where a reliability plot is drawn.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the calibration as JSON, for a program.")
    ] = False,
) -> None:
    """Calibrate; `HELP` tells the user the rest."""
    with ending("cannot calibrate"):
        require_one(db=db, log=log, labels=labels)
        if (precision is None) == (recall is None):
            msg = "give either --precision or --recall"
            raise ConfigurationError(msg)
        if plot is not None:
            _require_drawable(plot)
        with Console(stderr=True).status("calibrating…"):
            given = _labelled(labels) if labels is not None else _reviewed(db, log)
            found = calibrate(
                given.samples, precision=precision, recall=recall, encoder=given.encoder
            )
        found.save(out)
        drawn = plot is not None and _draw(found, plot)
        if as_json:
            typer.echo(found.model_dump_json(indent=2))
            return
        Console().print(render_calibration(found, notes=given.notes))
        typer.echo(f"written to {out}" + (f", drawn in {plot}" if drawn else ""))


def _labelled(path: Path) -> _Given:
    checker = GroundednessRunnable()
    rows = list(read_labelled(path))  # a fault in the last line costs no check of the others
    if not rows:
        msg = f"{path}: there is no labelled claim or answer in it"
        raise ConfigurationError(msg)
    return _Given(list(samples_of(rows, checker)), encoder_checksum(), ())


def _reviewed(db: str | None, log: Path | None) -> _Given:
    """Read what reviewers have said, as far as it was judged with one encoder."""
    found = list(_samples(db, log))
    if not found:
        records = read_records(db, log, status="waiting")
        waiting = sum(record.review.status == "waiting" for record in records)
        msg = f"no record has been reviewed yet, {waiting} wait for a reviewer"
        raise ConfigurationError(msg)
    encoders = Counter(encoder for encoder, _ in found if encoder is not None)
    own = encoder_checksum()
    encoder = own if own in encoders else next(iter(dict(encoders.most_common(1))), None)
    samples = [sample for made_with, sample in found if made_with in (None, encoder)]
    notes = [_OF_REVIEWED]
    if len(samples) < len(found):
        left_out = len(found) - len(samples)
        notes.append(f"{left_out} answers judged with another encoder are left out")
    return _Given(samples, encoder, tuple(notes))


def _samples(db: str | None, log: Path | None) -> Iterator[tuple[str | None, CalibrationSample]]:
    for record in read_records(db, log, status="decided"):
        sample = CalibrationSample.of_record(record)
        if sample is not None:
            yield record.versions.encoder, sample


def _draw(found: Calibration, path: Path) -> bool:
    if found.reliability is None:
        return False
    drawing = calibration_plot(found.reliability, found.chosen.get("support"))
    if path.suffix.lower() == ".svg":
        write_text(path, drawing)
        return True
    resvg: Any = require("resvg_py", extra="plot")
    picture = resvg.svg_to_bytes(
        svg_string=drawing, zoom=_PIXELS_PER_UNIT, background="#ffffff", font_family="sans-serif"
    )
    write_bytes(path, bytes(picture))
    return True


def _require_drawable(path: Path) -> None:
    """Refuse what could not be drawn before anything is calibrated."""
    if path.suffix.lower() not in _PICTURES:
        came = f"not {path.suffix}" if path.suffix else "and needs to know which"
        msg = f"--plot draws SVG or PNG, {came}: give a name that ends with .svg or .png"
        raise ConfigurationError(msg)
    if path.suffix.lower() == ".png":
        require("resvg_py", extra="plot")


_WHEN = ("before", "in-sample", "expected")

_NAME_WIDTH = 24
"""Of the longest name of a threshold with its value, which is there to be typed."""


def render_calibration(found: Calibration, *, notes: Sequence[str] = ()) -> RenderableType:
    """Lay out a calibration for `rich.console.Console.print`."""
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
